/* SPDX-License-Identifier: Apache-2.0 */
/*
 * precision: which products read bf16 or u8 instead of f32, and the casts that make what they read.
 * Input: a fused f32 graph. Output: the same graph in which products have narrow operands; weights and
 * everything else stay f32 (packing rounds weights, see the device).
 *
 * A product is narrow when its depth fills 32-bit words and it is neither thin (a picture's first
 * and last layer) nor a row per sample (embeddings of time and class, heads). With LW_NUM_S8
 * forward products that were calibrated read u8; what remains reads bf16. A pure function of
 * per-sample shapes, so that results depend on neither batch nor neighbours.
 *
 * Convolutions and their data gradients that the device computes faster in f32 (with fewer
 * multiplications) stay f32.
 *
 * One cast per value however many read it, right behind the value, on this side of reshapes:
 * forward and weight gradient share it. Where the f32 value is kept for the backward pass anyway,
 * that pass casts it again instead of keeping both. A group norm, an elementwise program or a
 * product that is not of f32, read by such products only, writes the narrow type itself; a LayerNorm read
 * both ways writes both.
 *
 * Where the device has values of bf16, a group norm reads what a product made as it lies there, and so does
 * a product that adds it: between convolutions of a network of pictures nothing is f32, and skip
 * concatenations are bf16, and so is what the first layer's product of f32 makes, where the device lets it. Where products read
 * bytes of these, they are made of the bf16; those of norms and elementwise programs that are read otherwise, too, of f32. Not
 * the stream of a transformer, which its LayerNorms read in f32.
 *
 * Attention reads and writes bf16 likewise (under int8 where the device does not say that f32 is faster), and its
 * gradient reads it: scores that are made again there are the same ones. Patches, a convolution
 * whose stride is its kernel, of too few channels for a narrow one are the rows of a matrix product
 * under bf16, and under int8 where the device multiplies bf16 faster than f32. There a first layer of stride 2 is one of
 * stride 1 on pixels of 2 x 2 (space to depth), whose channels fill words. Maxima of windows are those of bf16 or of bytes
 * where their result is read as that. Must not change anything else.
 */
#include "plan/plan_pass.h"

#include <stdio.h>

/* What reads an old value, and what stands for it in each type in the new graph. */
typedef struct typed_val {
    bool f32, bf16, u8;
    bool either;    /* read in f32 or bf16, as it comes */
    bool f32_again; /* the backward pass reads it in f32 */
    int32_t edge;   /* of the calibration, with u8 */
    bool of_maxima; /* that edge is of maxima of these values: for want of their own */
    lw_val as_bf16, as_u8;
    lw_val bf16_again; /* of the backward pass, with f32_again */
} typed_val;

typedef struct precision {
    lw_num num;
    lw_device *dev;
    const lw_calibration *calibration; /* with LW_NUM_S8, else NULL */
    typed_val *val;                    /* by old value id */
    lw_val *pair;                      /* by edge: {scale, zero} in the new graph */
    bool marked;
    int32_t products, gaps; /* that int8 can compute; of them without a range */
    char gap[160];          /* one of those */
} precision;

/* ---- which products -------------------------------------------------------------------------- */

/* Edge of the calibration that feeds a forward product; -1: none. */
static int32_t edge_of(const precision *p, const lw_graph *g, const lw_node *n)
{
    return lw_calibration_edge(p->calibration, g, n);
}

/* The narrowest operand type that a node can have: F32 for whatever is no product. */
static lw_num possible_num(const precision *p, const lw_graph *g, const lw_node *n)
{
    lw_product f;
    if (!lw_product_narrow(g, n, &f))
        return LW_NUM_F32;
    if (edge_of(p, g, n) >= 0)
        return LW_NUM_S8;
    return f.weight_gradient || f.depth % 2 == 0 ? LW_NUM_BF16 : LW_NUM_F32;
}

/* That type, or F32 where it is faster. */
static lw_num operand_num(const precision *p, const lw_graph *g, const lw_node *n)
{
    lw_num num = possible_num(p, g, n);
    if (num == LW_NUM_F32 || !p->dev->wide)
        return num;
    return p->dev->wide(p->dev->self, g, n, num) ? LW_NUM_F32 : num;
}

/* Does the device multiply bf16 faster than what a first layer does in f32? */
static bool bf16_pays(const precision *p, const lw_graph *g, const lw_node *n)
{
    return p->dev->wide && !p->dev->wide(p->dev->self, g, n, LW_NUM_BF16);
}

/* A forward convolution of patches that is no narrow product as it is, but one as a matrix product. */
static bool low_patches(const precision *p, const lw_graph *g, const lw_node *n)
{
    const lw_attr_conv *a = n->attr;
    if (n->op != LW_OP_CONV2D || possible_num(p, g, n) != LW_NUM_F32 ||
        (p->num != LW_NUM_BF16 && !bf16_pays(p, g, n)))
        return false;
    lw_type x = lw_val_type(g, n->in[0]);
    bool plain = n->n_in < 5 || (!lw_val_ok(n->in[4]) && (n->n_in < 6 || !lw_val_ok(n->in[5])));
    return plain && a->stride > 1 && a->kh == a->stride && a->kw == a->stride && !a->pad_t &&
           !a->pad_l && !a->pad_b && !a->pad_r && x.dim[1] % a->kh == 0 && x.dim[2] % a->kw == 0 &&
           a->kh * a->kw * x.dim[3] % 2 == 0 && a->o >= LW_THIN;
}

/* Space to depth: n, of stride 2 and few channels, as a convolution of stride 1 on pixels of 2 x 2, [B, H/2, W/2, 4C], of a
 * picture with n's own zeros around it, so that no window leaves it. The zeros of filters meet pixels beyond n's own windows: an
 * infinite one there is no number here. */
typedef struct halved {
    lw_attr_conv conv;
    int x[4], w[4]; /* zeros around pictures and filters: top, left, bottom, right */
} halved;

/* out: pixels that n makes. False: pixels are left over that would have to be cut off. */
static bool halve_axis(int32_t size, int32_t out, int32_t kernel, int32_t before, int32_t *half,
                       int32_t *half_kernel, int *x_after, int *w_after)
{
    *half_kernel = LW_CEIL_DIV(kernel, 2);
    *half = out + *half_kernel - 1;
    *x_after = 2 * *half - size - before;
    *w_after = 2 * *half_kernel - kernel;
    return *x_after >= 0;
}

static bool can_halve(const precision *p, const lw_graph *g, const lw_node *n, halved *h)
{
    enum { LEAST = 5 }; /* of 3x3 the zeros would cost what words of two gain */
    const lw_attr_conv *a = n->attr;
    if (n->op != LW_OP_CONV2D || n->backward || possible_num(p, g, n) != LW_NUM_F32)
        return false;
    const lw_type x = lw_val_type(g, n->in[0]), y = lw_val_type(g, n->out[0]);
    for (int i = 3; i < n->n_in; i++)
        if (lw_val_ok(n->in[i]))
            return false;
    if (a->stride != 2 || a->kh < LEAST || a->kw < LEAST || x.dim[3] >= LW_THIN ||
        4 * x.dim[3] < LW_THIN || a->o < LW_THIN || !bf16_pays(p, g, n))
        return false;
    *h = (halved){.conv = *a};
    lw_attr_conv *to = &h->conv;
    to->stride = 1;
    to->c = 4 * x.dim[3];
    to->pad_t = to->pad_l = to->pad_b = to->pad_r = 0;
    h->x[0] = a->pad_t;
    h->x[1] = a->pad_l;
    return halve_axis(x.dim[1], y.dim[1], a->kh, a->pad_t, &to->h, &to->kh, &h->x[2], &h->w[2]) &&
           halve_axis(x.dim[2], y.dim[2], a->kw, a->pad_l, &to->w, &to->kw, &h->x[3], &h->w[3]);
}

/* Is input i of a product an activation? */
static bool is_activation(const lw_graph *g, const lw_node *n, int i)
{
    lw_product f;
    return i == 0 || (i == 1 && lw_node_product(g, n, &f) && f.weight_gradient);
}

/* ---- who reads what -------------------------------------------------------------------------- */

/* A calibration of an older version, or of a part of the network. */
static void note_gap(precision *p, const lw_graph *g, const lw_node *n)
{
    const char *name = p->calibration ? lw_product_int8_weight(g, n) : NULL;
    p->products += name != NULL;
    if (name && edge_of(p, g, n) < 0 && p->gaps++ == 0)
        snprintf(p->gap, sizeof p->gap, "%s", name);
}

/* Is input i of attention, or of its gradient, read as bf16? All but log-sums are, under int8 where that is not slower
 * than f32. */
static bool low_attention(const precision *p, const lw_graph *g, const lw_node *n, int i)
{
    if (n->op != LW_OP_ATTENTION && (n->op != LW_OP_ATTENTION_GRAD || i == n->n_in - 1))
        return false;
    return p->num == LW_NUM_BF16 || !p->dev->wide || !p->dev->wide(p->dev->self, g, n, LW_NUM_BF16);
}

/* Does n, whose operands have type `num`, take input i in f32 or bf16, as it comes? A group norm of several pixels,
 * and a residual. */
static bool takes_either(const precision *p, const lw_graph *g, const lw_node *n, lw_num num, int i)
{
    lw_product f;
    if (!p->dev->bf16_values || n->backward || lw_val_type(g, n->in[i]).dtype != LW_F32)
        return false;
    if (n->op == LW_OP_GROUP_NORM) {
        lw_type x = lw_val_type(g, n->in[0]);
        return i == 0 && lw_type_count(x) > (int64_t)x.dim[0] * lw_type_last(x);
    }
    return num != LW_NUM_F32 && lw_node_product(g, n, &f) && f.residual == i;
}

/* Is v made in bf16 alone, if what makes it can? Its bytes, if any, are then those of what bf16 holds. */
static bool low_alone(const typed_val *v)
{
    return !v->f32 && (v->bf16 || v->either);
}

/* A concatenation of such a value, of whole words of two. */
static bool low_concat(const precision *p, const lw_graph *g, const lw_node *n)
{
    if (n->op != LW_OP_CONCAT || !p->dev->bf16_values || n->backward ||
        !low_alone(&p->val[n->out[0].id]))
        return false;
    const lw_type a = lw_val_type(g, n->in[0]), b = lw_val_type(g, n->in[1]);
    return lw_type_last(a) % 2 == 0 && lw_type_last(b) % 2 == 0;
}

/* The type that maxima of windows have: that in which all read them. f32 where the backward pass reads the pixels in it. */
static lw_num pooled_num(const precision *p, const lw_node *n)
{
    if (n->op != LW_OP_POOL || !((const lw_attr_pool *)n->attr)->max || !p->dev->narrow_maxima ||
        p->val[n->in[0].id].f32_again)
        return LW_NUM_F32;
    const typed_val *v = &p->val[n->out[0].id];
    if (low_alone(v))
        return LW_NUM_BF16;
    return v->u8 && !v->f32 ? LW_NUM_S8 : LW_NUM_F32;
}

/* The first consumer's range, as all have seen the same value; that of maxima only where nothing else reads bytes: it may leave
 * out the least values. Maxima of bytes of any range are right. */
static void read_bytes(typed_val *v, int32_t edge, bool of_maxima)
{
    if (of_maxima && v->u8)
        return;
    v->edge = edge;
    v->of_maxima = of_maxima;
    v->u8 = true;
}

static void mark_inputs(precision *p, const lw_graph *g, const lw_node *n)
{
    halved h;
    lw_num num = low_patches(p, g, n) || can_halve(p, g, n, &h) ? LW_NUM_BF16
                                                                : operand_num(p, g, n);
    note_gap(p, g, n);
    if (n->op == LW_OP_POOL)
        num = pooled_num(p, n);
    for (int i = 0; i < n->n_in; i++) {
        typed_val *v = &p->val[n->in[i].id];
        if (takes_either(p, g, n, num, i)) {
            v->either = true;
            continue;
        }
        if (low_concat(p, g, n)) {
            v->bf16 = true;
            continue;
        }
        lw_num as = low_attention(p, g, n, i) ? LW_NUM_BF16
                    : is_activation(g, n, i)  ? num
                                              : LW_NUM_F32;
        v->f32 |= as == LW_NUM_F32;
        v->f32_again |= as == LW_NUM_F32 && n->backward;
        v->bf16 |= as == LW_NUM_BF16;
        if (as == LW_NUM_S8 && n->op == LW_OP_POOL)
            read_bytes(v, p->val[n->out[0].id].edge, true);
        else if (as == LW_NUM_S8)
            read_bytes(v, edge_of(p, g, n), false);
    }
}

static void mark_values(precision *p, const lw_rewrite *r)
{
    const lw_graph *g = r->from;
    p->marked = true;
    for (int i = 0; i < lw_graph_output_count(g); i++)
        p->val[lw_graph_output_at(g, i)->val.id].f32 = true;
    for (uint32_t k = lw_graph_node_count(g); k-- > 0;) {
        const lw_node *n = lw_graph_node(g, k);
        if (!r->live[k])
            continue;
        if (!lw_node_is(n, LW_OPF_ALIAS)) {
            mark_inputs(p, g, n);
            continue;
        }
        const typed_val *out = &p->val[n->out[0].id];
        typed_val *in = &p->val[n->in[0].id];
        in->f32 |= out->f32;
        in->bf16 |= out->bf16;
        in->either |= out->either;
        if (out->u8)
            read_bytes(in, out->edge, out->of_maxima);
    }
}

/* ---- rewriting ------------------------------------------------------------------------------- */

static lw_val quant_pair(precision *p, lw_graph *to, int32_t edge)
{
    const lw_edge_range *e = &p->calibration->edge[edge];
    if (!lw_val_ok(p->pair[edge]))
        p->pair[edge] = lw_const(to, lw_type_of(LW_F32, 1, 2), (float[]){e->scale, (float)e->zero});
    return p->pair[edge];
}

/* Behind n: the casts of its outputs that narrow products read. */
static int add_casts(lw_rewrite *r, const lw_node *n, precision *p)
{
    const char *up = lw_rewrite_scope(r, n);
    for (int i = 0; i < n->n_out; i++) {
        typed_val *v = &p->val[n->out[i].id];
        lw_val f32 = r->map[n->out[i].id];
        if (v->bf16 && !lw_val_ok(v->as_bf16))
            v->as_bf16 = lw_cast(r->to, f32, LW_BF16, LW_NOVAL);
        if (v->u8 && !lw_val_ok(v->as_u8))
            v->as_u8 = lw_cast(r->to, f32, LW_U8, quant_pair(p, r->to, v->edge));
    }
    lw_scope_set(r->to, up);
    return lw_graph_error(r->to);
}

/* What stands for an old value where f32 and bf16 are taken alike. */
static lw_val either_of(lw_rewrite *r, const precision *p, lw_val old)
{
    const typed_val *v = &p->val[old.id];
    return !v->f32 && lw_val_ok(v->as_bf16) ? v->as_bf16 : lw_rewrite_map(r, old);
}

static lw_val reshape_as(lw_rewrite *r, lw_val v, lw_type type)
{
    if (!lw_val_ok(v))
        return v;
    type.dtype = lw_val_type(r->to, v).dtype;
    return lw_reshape(r->to, v, type);
}

static int emit_reshape(lw_rewrite *r, const lw_node *n, precision *p)
{
    lw_type t = ((const lw_attr_type *)n->attr)->type;
    const typed_val *in = &p->val[n->in[0].id];
    typed_val *out = &p->val[n->out[0].id];
    const char *up = lw_rewrite_scope(r, n);
    const bool low = !in->f32 && lw_val_ok(in->as_bf16), either = out->either && !out->f32;
    if (out->f32 || (either && !low))
        r->map[n->out[0].id] = reshape_as(r, lw_rewrite_map(r, n->in[0]), t);
    if (out->bf16 || (either && low))
        out->as_bf16 = reshape_as(r, in->as_bf16, t);
    if (out->u8) {
        out->as_u8 = reshape_as(r, in->as_u8, t);
        out->edge = in->edge;
    }
    lw_scope_set(r->to, up);
    return lw_graph_error(r->to);
}

/* An elementwise program read as bf16 only writes it. */
static bool emit_ew(lw_rewrite *r, const lw_node *n, precision *p, int *rc)
{
    typed_val *v = &p->val[n->out[0].id];
    lw_val in[LW_MAX_IN] = {{0}};
    if (n->op != LW_OP_EW || v->f32 || !v->bf16 || v->u8)
        return false;
    lw_attr_ew a = *(const lw_attr_ew *)n->attr;
    for (int i = 0; i < n->n_in; i++)
        in[i] = lw_rewrite_map(r, n->in[i]);
    a.type.dtype = LW_BF16;
    *rc = lw_rewrite_emit(r, n, n->op, in, n->n_in, &a, sizeof a);
    v->as_bf16 = r->map[n->out[0].id];
    return true;
}

/* A group norm reads what is there; read in one narrow type only, it writes that. */
static bool emit_norm(lw_rewrite *r, const lw_node *n, precision *p, int *rc)
{
    enum { QUANT = 5 };
    typed_val *v = &p->val[n->out[0].id];
    lw_val in[LW_MAX_IN] = {{0}};
    if (n->op != LW_OP_GROUP_NORM)
        return false;
    lw_attr_norm a = *(const lw_attr_norm *)n->attr;
    int n_in = n->n_in;
    for (int i = 0; i < n_in; i++)
        in[i] = takes_either(p, r->from, n, LW_NUM_F32, i) ? either_of(r, p, n->in[i])
                                                           : lw_rewrite_map(r, n->in[i]);
    if (!v->f32 && v->bf16 != v->u8 && !(v->u8 && v->either)) /* bytes are no addends */
        a.store = v->u8 ? LW_U8 : LW_BF16;
    if (a.store == LW_U8) {
        in[QUANT] = quant_pair(p, r->to, v->edge);
        n_in = QUANT + 1;
    }
    *rc = lw_rewrite_emit(r, n, n->op, in, n_in, &a, sizeof a);
    if (a.store)
        *(v->u8 ? &v->as_u8 : &v->as_bf16) = r->map[n->out[0].id];
    return true;
}

static bool emit_concat(lw_rewrite *r, const lw_node *n, precision *p, int *rc)
{
    if (!low_concat(p, r->from, n))
        return false;
    lw_val in[2] = {p->val[n->in[0].id].as_bf16, p->val[n->in[1].id].as_bf16};
    *rc = lw_rewrite_emit(r, n, n->op, in, 2, n->attr, n->attr_size);
    p->val[n->out[0].id].as_bf16 = r->map[n->out[0].id];
    return true;
}

/* A LayerNorm read in f32 and in bf16 (a residual stream) writes both. */
static bool emit_both(lw_rewrite *r, const lw_node *n, precision *p, int *rc)
{
    typed_val *v = &p->val[n->out[0].id];
    lw_val in[LW_MAX_IN] = {{0}};
    if (n->op != LW_OP_GROUP_NORM || !v->f32 || !v->bf16 || v->u8)
        return false;
    lw_attr_norm a = *(const lw_attr_norm *)n->attr;
    bool scale = n->n_in > 3 && lw_val_ok(n->in[3]);
    if (a.store || !lw_norm_is_layer_norm(lw_val_type(r->from, n->in[0]), &a, scale))
        return false;
    a.also = LW_BF16;
    for (int i = 0; i < n->n_in; i++)
        in[i] = lw_rewrite_map(r, n->in[i]);
    *rc = lw_rewrite_emit(r, n, n->op, in, n->n_in, &a, sizeof a);
    if (*rc == 0)
        v->as_bf16 = lw_val_node(r->to, r->map[n->out[0].id])->out[3];
    return true;
}

static bool emit_patches(lw_rewrite *r, const lw_node *n, precision *p, int *rc)
{
    if (!low_patches(p, r->from, n))
        return false;
    const lw_attr_conv *a = n->attr;
    const char *up = lw_rewrite_scope(r, n);
    lw_val rows = lw_patches(r->to, p->val[n->in[0].id].as_bf16, a->kh), in[4] = {{0}};
    lw_type w = lw_type_of(LW_F32, 2, a->o, lw_type_last(lw_val_type(r->to, rows)));
    for (int i = 2; i < LW_MIN(n->n_in, 4); i++)
        in[i] = lw_val_ok(n->in[i]) ? lw_rewrite_map(r, n->in[i]) : LW_NOVAL;
    in[0] = rows;
    in[1] = lw_reshape(r->to, lw_rewrite_map(r, n->in[1]), w);
    lw_attr_matmul m = {.trans_b = 1, .act = a->act};
    lw_val y = lw_graph_op(r->to, LW_OP_MATMUL, in, LW_MIN(n->n_in, 4), &m, sizeof m);
    r->map[n->out[0].id] = lw_reshape(r->to, y, lw_val_type(r->from, n->out[0]));
    lw_scope_set(r->to, up);
    *rc = lw_graph_error(r->to);
    return true;
}

/* The maxima of bytes are bytes of the same range. */
static bool emit_pool(lw_rewrite *r, const lw_node *n, precision *p, int *rc)
{
    const lw_num num = pooled_num(p, n);
    if (num == LW_NUM_F32)
        return false;
    const typed_val *in = &p->val[n->in[0].id];
    typed_val *v = &p->val[n->out[0].id];
    const lw_val x = num == LW_NUM_S8 ? in->as_u8 : in->as_bf16;
    *rc = lw_rewrite_emit(r, n, n->op, &x, 1, n->attr, n->attr_size);
    *(num == LW_NUM_S8 ? &v->as_u8 : &v->as_bf16) = r->map[n->out[0].id];
    v->edge = num == LW_NUM_S8 ? in->edge : v->edge;
    return true;
}

/* Input i of n as bf16. In the backward pass it is made there where that pass reads the f32 too. */
static lw_val operand_bf16(lw_rewrite *r, const lw_node *n, int i, precision *p)
{
    const lw_val old = n->in[i];
    typed_val *v = &p->val[old.id];
    if (!n->backward || !v->f32_again || lw_val_node(r->from, old)->backward)
        return v->as_bf16;
    if (!lw_val_ok(v->bf16_again)) {
        const char *up = lw_rewrite_scope(r, n);
        v->bf16_again = lw_cast(r->to, lw_rewrite_map(r, old), LW_BF16, LW_NOVAL);
        lw_scope_set(r->to, up);
    }
    return v->bf16_again;
}

static bool emit_attention(lw_rewrite *r, const lw_node *n, precision *p, int *rc)
{
    lw_val in[LW_MAX_IN] = {{0}};
    typed_val *v = &p->val[n->out[0].id];
    const lw_graph *g = r->from;
    if (!low_attention(p, g, n, 0))
        return false;
    const bool forward = n->op == LW_OP_ATTENTION;
    lw_attr_attention a = *(const lw_attr_attention *)n->attr;
    a.num = LW_NUM_BF16;
    a.store = forward && v->bf16 && !v->f32 ? LW_BF16 : 0;
    for (int i = 0; i < n->n_in; i++)
        if (low_attention(p, g, n, i))
            in[i] = operand_bf16(r, n, i, p);
        else
            in[i] = lw_rewrite_map(r, n->in[i]);
    *rc = lw_rewrite_emit(r, n, n->op, in, n->n_in, &a, sizeof a);
    if (*rc == 0 && a.store)
        v->as_bf16 = r->map[n->out[0].id];
    return true;
}

/* What a product, whose operands have type `num`, writes: bf16 or bytes where its result is read as that alone. */
static lw_dtype written(const precision *p, const lw_node *n, lw_num num)
{
    const typed_val *v = &p->val[n->out[0].id];
    const bool matmul = n->op == LW_OP_MATMUL;
    if (!(matmul || n->op == LW_OP_CONV2D || n->op == LW_OP_CONV2D_DX) ||
        (matmul && ((const lw_attr_matmul *)n->attr)->trans_a))
        return LW_F32;
    if (v->u8 && !v->f32 && !v->bf16 && !v->either) /* bytes are no addends */
        return num == LW_NUM_F32 ? LW_F32 : LW_U8;
    if (!low_alone(v))
        return LW_F32;
    const bool low = num == LW_NUM_F32 ? p->dev->f32_to_bf16 && !n->backward && v->bf16
                                       : p->dev->bf16_values || (matmul && num == LW_NUM_BF16);
    return low ? LW_BF16 : LW_F32;
}

/* A product that writes `to`. */
static int emit_written(lw_rewrite *r, const lw_node *n, lw_dtype to, lw_val *in, int n_in,
                        const void *attr, precision *p)
{
    typed_val *v = &p->val[n->out[0].id];
    if (to == LW_F32)
        return lw_rewrite_emit(r, n, n->op, in, n_in, attr, n->attr_size);
    if (to == LW_U8) {
        in[LW_STORE_QUANT] = quant_pair(p, r->to, v->edge);
        n_in = LW_STORE_QUANT + 1;
    }
    if (n->op == LW_OP_MATMUL) {
        lw_attr_matmul a = *(const lw_attr_matmul *)attr;
        a.store = to;
        LW_TRY(lw_rewrite_emit(r, n, n->op, in, n_in, &a, sizeof a));
    } else {
        lw_attr_conv a = *(const lw_attr_conv *)attr;
        a.store = to;
        LW_TRY(lw_rewrite_emit(r, n, n->op, in, n_in, &a, sizeof a));
    }
    *(to == LW_U8 ? &v->as_u8 : &v->as_bf16) = r->map[n->out[0].id];
    return 0;
}

static int emit_product(lw_rewrite *r, const lw_node *n, lw_num num, precision *p)
{
    enum { QUANT = 4 };
    lw_val in[LW_MAX_IN] = {{0}};
    int n_in = n->n_in;
    for (int i = 0; i < n->n_in; i++) {
        const typed_val *v = &p->val[n->in[i].id];
        if (takes_either(p, r->from, n, num, i))
            in[i] = either_of(r, p, n->in[i]);
        else if (num == LW_NUM_F32 || !is_activation(r->from, n, i))
            in[i] = lw_rewrite_map(r, n->in[i]);
        else if (num == LW_NUM_S8)
            in[i] = v->as_u8;
        else
            in[i] = operand_bf16(r, n, i, p);
    }
    if (num == LW_NUM_S8) {
        in[QUANT] = quant_pair(p, r->to, p->val[n->in[0].id].edge);
        n_in = LW_MAX(n_in, QUANT + 1);
    }
    return emit_written(r, n, written(p, n, num), in, n_in, n->attr, p);
}

static bool emit_halved(lw_rewrite *r, const lw_node *n, precision *p, int *rc)
{
    halved h;
    if (!can_halve(p, r->from, n, &h))
        return false;
    const lw_attr_conv *a = &h.conv;
    const char *up = lw_rewrite_scope(r, n);
    lw_type x = lw_val_type(r->from, n->in[0]);
    x = lw_type_of(LW_BF16, 4, x.dim[0], a->h, a->w, a->c);
    const lw_type w = lw_type_of(LW_F32, 4, a->o, a->kh, a->kw, a->c);
    const lw_val picture = lw_patches_padded(r->to, operand_bf16(r, n, 0, p), 2, h.x),
                 filter = lw_patches_padded(r->to, lw_rewrite_map(r, n->in[1]), 2, h.w);
    lw_val in[LW_MAX_IN] = {lw_reshape(r->to, picture, x), lw_reshape(r->to, filter, w)};
    if (n->n_in > 2 && lw_val_ok(n->in[2]))
        in[2] = lw_rewrite_map(r, n->in[2]);
    lw_scope_set(r->to, up);
    *rc = lw_graph_error(r->to);
    if (*rc == 0)
        *rc = emit_written(r, n, written(p, n, LW_NUM_BF16), in, 3, a, p);
    return true;
}

/* A product of f32, a picture's first layer. */
static bool emit_wide(lw_rewrite *r, const lw_node *n, precision *p, int *rc)
{
    if (written(p, n, LW_NUM_F32) == LW_F32)
        return false;
    *rc = emit_product(r, n, LW_NUM_F32, p);
    return true;
}

static int precision_node(lw_rewrite *r, const lw_node *n, void *arg)
{
    precision *p = arg;
    int rc = 0;
    if (!p->marked)
        mark_values(p, r);
    if (lw_node_is(n, LW_OPF_ALIAS))
        return emit_reshape(r, n, p);
    lw_num num = operand_num(p, r->from, n);
    if (num != LW_NUM_F32)
        rc = emit_product(r, n, num, p);
    else if (!emit_both(r, n, p, &rc) && !emit_norm(r, n, p, &rc) && !emit_ew(r, n, p, &rc) &&
             !emit_concat(r, n, p, &rc) && !emit_attention(r, n, p, &rc) &&
             !emit_patches(r, n, p, &rc) && !emit_halved(r, n, p, &rc) &&
             !emit_pool(r, n, p, &rc) && !emit_wide(r, n, p, &rc))
        rc = lw_rewrite_copy(r, n, NULL);
    return rc < 0 ? rc : add_casts(r, n, p);
}

int lw_pass_precision(lw_graph **g, lw_device *dev, const lw_compile_opts *o)
{
    const lw_calibration *c = o->precision == LW_NUM_S8 ? o->calibration : NULL;
    precision p = {.num = o->precision, .dev = dev, .calibration = c};
    if (p.num == LW_NUM_S8)
        LW_TRY(lw_calibration_check(c, *g, o->part));
    p.val = lw_calloc(lw_graph_val_count(*g) + 1u, sizeof *p.val);
    p.pair = lw_calloc((c ? (size_t)c->n : 0u) + 1u, sizeof *p.pair);
    int rc = p.val && p.pair ? lw_rewrite_graph(g, dev, precision_node, &p) : LW_ENOMEM;
    lw_free(&p.val);
    lw_free(&p.pair);
    if (rc == 0 && p.gaps > 0)
        lw_log(LW_LOG_WARN, "precision",
               "%d of %d products that int8 can compute have no range and read bf16 or f32 (%s): "
               "`leeway quantize` measures all",
               (int)p.gaps, (int)p.products, p.gap);
    return rc;
}
