/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax attention, row softmax, and cross-entropy. */
#include "ir/ops/ops.h"

#include <string.h>

/* ---- attention ------------------------------------------------------------------------------- */

/* Operands `at` .. at + n_x - 1, lw_attr_attention says which; the type of the result in *o. */
static int check_qkv(const lw_graph *g, const lw_node *n, int at, int n_x, lw_type *o)
{
    const lw_attr_attention *a = n->attr;
    lw_type q = in_type(g, n, at), last = in_type(g, n, at + n_x - 1);
    int32_t c = n_x == 1 ? q.dim[2] / 3 : q.dim[2];
    bool fit = a->heads > 0 && (a->num == LW_NUM_F32 || a->num == LW_NUM_BF16) && c > 0 &&
               c % a->heads == 0;
    if (a->window > 0)
        fit &= a->width > 0 && q.dim[1] % a->width == 0 && q.dim[1] == last.dim[1];
    for (int i = 0; i < n_x; i++) {
        lw_type t = in_type(g, n, at + i);
        int32_t parts = i < n_x - 1 ? 1 : 4 - n_x, tokens = i ? last.dim[1] : q.dim[1];
        fit &= t.rank == 3 && t.dtype == (a->num == LW_NUM_BF16 ? LW_BF16 : LW_F32) &&
               t.dim[0] == q.dim[0] && t.dim[1] == tokens && t.dim[2] == parts * c;
    }
    if (fit && last.dim[1] < 1)
        return lw_op_fail(g, n, "attention needs a key at least: these are 0 tokens");
    if (!fit)
        return lw_op_fail(
            g, n,
            "attention needs f32 (under bf16: bf16) [B,T,3C], or [B,Tq,C] and [B,Tk,2C], or "
            "[B,Tq,C] and twice [B,Tk,C], with C a multiple of the heads; in windows of as many "
            "keys, in whole rows");
    *o = lw_type_of(LW_F32, 3, q.dim[0], q.dim[1], c);
    return 0;
}

static int infer_attention(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_attention *a = n->attr;
    lw_type o;
    LW_TRY(check_qkv(g, n, 0, n->n_in, &o));
    *out = (lw_infer){2, {o, lw_type_of(LW_F32, 3, o.dim[0], a->heads, o.dim[1])}};
    if (a->store == LW_BF16) {
        if (a->num != LW_NUM_BF16)
            return lw_op_fail(g, n, "only attention of bf16 writes bf16");
        out->out[0].dtype = LW_BF16;
    }
    return 0;
}

/* inputs: do, the operands of attention, o, lse; outputs: gradients of the operands, f32 */
static int infer_attention_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    int n_x = n->n_in - 3;
    lw_type o;
    LW_TRY(check_qkv(g, n, 1, n_x, &o));
    o.dtype = in_type(g, n, 1).dtype;
    if (!lw_type_eq(in_type(g, n, 0), o) || !lw_type_eq(in_type(g, n, 1 + n_x), o))
        return lw_op_fail(g, n, "do and o must be [B,Tq,C] of the operands' type");
    *out = (lw_infer){.n_out = n_x};
    for (int i = 0; i < n_x; i++) {
        out->out[i] = in_type(g, n, 1 + i);
        out->out[i].dtype = LW_F32;
    }
    return 0;
}

static void grad_attention(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                           lw_val *din)
{
    lw_val in[6] = {dout[0]};
    if (!lw_val_ok(dout[0]))
        return;
    if (((const lw_attr_attention *)n->attr)->window > 0) {
        lw_graph_fail(g, LW_EUNSUPPORTED, "attention in windows has no gradient: train without");
        return;
    }
    memcpy(in + 1, n->in, sizeof *in * (size_t)n->n_in);
    memcpy(in + 1 + n->n_in, n->out, sizeof *in * 2);
    lw_node *d = lw_graph_add(g, LW_OP_ATTENTION_GRAD, in, n->n_in + 3, n->attr, n->attr_size);
    for (int i = 0; d && i < n->n_in; i++)
        din[i] = need[i] ? d->out[i] : LW_NOVAL;
}

/* Sum of the squares of the pieces that a side is cut into. */
static double squares(int32_t side, int32_t window)
{
    const int32_t whole = side / window;
    const double rest = side % window;
    return (double)whole * window * window + rest * rest;
}

double lw_attention_pairs(const lw_attr_attention *a, int32_t queries, int32_t keys)
{
    if (a->window <= 0)
        return (double)queries * keys;
    const int32_t height = queries / a->width;
    return squares(height, a->window) * squares(a->width, a->window);
}

static void cost_attention(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    bool forward = n->op == LW_OP_ATTENTION;
    lw_type o = forward ? lw_val_type(g, n->out[0]) : in_type(g, n, 0);
    int32_t keys = in_type(g, n, n->n_in - (forward ? 1 : 3)).dim[1];
    lw_cost_bytes(g, n, out);
    out->flops = (forward ? 2 : 5) * 2.0 * o.dim[0] * o.dim[2] *
                 lw_attention_pairs(n->attr, o.dim[1], keys);
}

static void print_attention(lw_str *s, const lw_node *n)
{
    const lw_attr_attention *a = n->attr;
    lw_str_addf(s, "heads %d%s%s", a->heads, a->num == LW_NUM_BF16 ? " bf16" : "",
                a->store == LW_BF16 ? " to bf16" : "");
    if (a->window > 0)
        lw_str_addf(s, " windows %d of width %d", a->window, a->width);
}

const lw_op_def lw_op_attention = {
    .name = "attention",
    .infer = infer_attention,
    .grad = grad_attention,
    .cost = cost_attention,
    .print = print_attention,
};
const lw_op_def lw_op_attention_grad = {
    .name = "attention_grad",
    .infer = infer_attention_grad,
    .grad = lw_grad_none,
    .cost = cost_attention,
    .print = print_attention,
    .flags = LW_OPF_ANY_OUT,
};

lw_val lw_attention_places(lw_graph *g, const lw_val *x, int n, const lw_attr_attention *a)
{
    lw_attr_attention own = *a;
    for (int i = 0; i < n; i++)
        if (!lw_val_ok(x[i]))
            return LW_NOVAL;
    const int32_t places = lw_val_type(g, x[0]).dim[1], rows = places / LW_MAX(a->width, 1);
    if (a->window <= 0 || places < LW_ATTENTION_WINDOWED ||
        (a->window >= a->width && a->window >= rows))
        own.window = own.width = 0;
    return lw_graph_op(g, LW_OP_ATTENTION, x, n, &own, sizeof own);
}

static lw_val attention(lw_graph *g, const lw_val *x, int n, int heads)
{
    return lw_attention_places(g, x, n, &(lw_attr_attention){.heads = heads});
}

lw_val lw_attention(lw_graph *g, lw_val qkv, int heads)
{
    return attention(g, &qkv, 1, heads);
}

lw_val lw_cross_attention(lw_graph *g, lw_val q, lw_val kv, int heads)
{
    return attention(g, (lw_val[]){q, kv}, 2, heads);
}

lw_val lw_attention_qkv(lw_graph *g, lw_val q, lw_val k, lw_val v, int heads)
{
    return attention(g, (lw_val[]){q, k, v}, 3, heads);
}

/* ---- rotary positions ------------------------------------------------------------------------ */

static int infer_rope(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type x = in_type(g, n, 0), t = in_type(g, n, 1);
    if (x.rank != 3 || x.dtype != LW_F32 || t.rank != 3 || t.dtype != LW_F32 || t.dim[1] < 1 ||
        t.dim[0] != x.dim[1] || t.dim[2] % 2 || x.dim[2] % ((int64_t)t.dim[1] * t.dim[2]))
        return lw_op_fail(g, n, "rope needs f32 [B,T,C] and [T,P,D], D even, C a multiple of P D");
    return lw_op_like_first(g, n, out);
}

static lw_val rope(lw_graph *g, lw_val x, lw_val table, int32_t back)
{
    if (!lw_val_ok(x) || !lw_val_ok(table))
        return LW_NOVAL;
    return lw_graph_op(g, LW_OP_ROPE, (lw_val[]){x, table}, 2, &(lw_attr_rope){back},
                       sizeof(lw_attr_rope));
}

static void grad_rope(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                      lw_val *din)
{
    if (need[0])
        din[0] = rope(g, dout[0], n->in[1], !((const lw_attr_rope *)n->attr)->back);
}

static void cost_rope(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    lw_cost_bytes(g, n, out);
    out->flops = 3.0 * (double)lw_type_count(in_type(g, n, 0));
}

static void print_rope(lw_str *s, const lw_node *n)
{
    if (((const lw_attr_rope *)n->attr)->back)
        lw_str_addf(s, "back");
}

const lw_op_def lw_op_rope = {
    .name = "rope",
    .infer = infer_rope,
    .grad = grad_rope,
    .cost = cost_rope,
    .print = print_rope,
    .flags = LW_OPF_INPLACE | LW_OPF_CHEAP,
};

lw_val lw_rope(lw_graph *g, lw_val x, lw_val table)
{
    return rope(g, x, table, 0);
}

/* ---- softmax --------------------------------------------------------------------------------- */

static void grad_softmax(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                         lw_val *din)
{
    if (need[0])
        din[0] = lw_graph_op(g, LW_OP_SOFTMAX_GRAD, (lw_val[]){dout[0], n->out[0]}, 2, NULL, 0);
}

static int infer_softmax(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    if (in_type(g, n, 0).dtype != LW_F32 || in_type(g, n, 0).rank < 1)
        return lw_op_fail(g, n, "softmax needs f32 rows");
    if (n->n_in == 2 && !lw_type_eq(in_type(g, n, 0), in_type(g, n, 1)))
        return lw_op_fail(g, n, "dy and y differ");
    return lw_op_like_first(g, n, out);
}

static void cost_rows(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    lw_cost_bytes(g, n, out);
    out->flops = 12.0 * (double)lw_type_count(in_type(g, n, 0));
}

const lw_op_def lw_op_softmax = {
    .name = "softmax",
    .infer = infer_softmax,
    .grad = grad_softmax,
    .cost = cost_rows,
    .flags = LW_OPF_INPLACE,
};
const lw_op_def lw_op_softmax_grad = {
    .name = "softmax_grad",
    .infer = infer_softmax,
    .grad = lw_grad_none,
    .cost = cost_rows,
    .flags = LW_OPF_INPLACE,
};

lw_val lw_softmax(lw_graph *g, lw_val x)
{
    return lw_val_ok(x) ? lw_graph_op(g, LW_OP_SOFTMAX, &x, 1, NULL, 0) : x;
}

/* ---- cross-entropy --------------------------------------------------------------------------- */

static int infer_ce(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type x = in_type(g, n, 0), l = in_type(g, n, 1);
    if (x.rank != 2 || x.dtype != LW_F32 || l.dtype != LW_I32 || lw_type_count(l) != x.dim[0])
        return lw_op_fail(g, n, "cross_entropy needs f32 [M,K] and i32 [M]");
    lw_type m = lw_type_of(LW_F32, 1, x.dim[0]);
    *out = (lw_infer){2, {m, m}};
    return 0;
}

/* inputs: dloss [M], logits, labels, lse */
static int infer_ce_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type x = in_type(g, n, 1);
    if (lw_type_count(in_type(g, n, 0)) != x.dim[0])
        return lw_op_fail(g, n, "one cotangent per row");
    return lw_op_one(out, x);
}

static void grad_ce(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                    lw_val *din)
{
    if (need[0] && lw_val_ok(dout[0]))
        din[0] = lw_graph_op(g, LW_OP_CROSS_ENTROPY_GRAD,
                             (lw_val[]){dout[0], n->in[0], n->in[1], n->out[1]}, 4, NULL, 0);
}

const lw_op_def lw_op_cross_entropy = {
    .name = "cross_entropy",
    .infer = infer_ce,
    .grad = grad_ce,
    .cost = cost_rows,
    .flags = LW_OPF_ANY_OUT,
};
const lw_op_def lw_op_cross_entropy_grad = {
    .name = "cross_entropy_grad",
    .infer = infer_ce_grad,
    .grad = lw_grad_none,
    .cost = cost_rows,
};

lw_val lw_cross_entropy(lw_graph *g, lw_val logits, lw_val labels)
{
    if (!lw_val_ok(logits) || !lw_val_ok(labels))
        return LW_NOVAL;
    return lw_graph_op(g, LW_OP_CROSS_ENTROPY, (lw_val[]){logits, labels}, 2, NULL, 0);
}
