/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and its two gradients; packing of weights for the kernels that want it. */
#include "ir/ops/ops.h"

static int32_t out_size(int32_t in, int32_t lo, int32_t hi, int32_t k, int32_t stride)
{
    return (in + lo + hi - k) / stride + 1;
}

lw_type lw_op_conv_out(const lw_attr_conv *a, int32_t batch)
{
    return lw_type_of(LW_F32, 4, batch, out_size(a->h, a->pad_t, a->pad_b, a->kh, a->stride),
                      out_size(a->w, a->pad_l, a->pad_r, a->kw, a->stride), a->o);
}

static bool is_weight(lw_type t, const lw_attr_conv *a)
{
    return lw_type_count(t) == (int64_t)a->o * a->kh * a->kw * a->c;
}

int lw_op_conv_extras(const lw_graph *g, const lw_node *n, int bias, int residual, lw_type y)
{
    if (!lw_op_is_f32(g, n, 1) || !lw_op_is_f32(g, n, bias))
        return lw_op_fail(g, n, "weight and bias must be f32");
    if (has_in(n, bias) && lw_type_count(in_type(g, n, bias)) != lw_type_last(y))
        return lw_op_fail(g, n, "bias must have one element per output channel");
    if (has_in(n, residual) && !lw_op_same_shape(in_type(g, n, residual), y))
        return lw_op_fail(g, n, "residual must have the result's shape");
    return lw_op_check_residual(g, n, residual, y);
}

int lw_op_conv_check_dy(const lw_graph *g, const lw_node *n)
{
    lw_type dy = in_type(g, n, 0);
    if (dy.rank != 4 || !lw_op_same_shape(dy, lw_op_conv_out(n->attr, dy.dim[0])))
        return lw_op_fail(g, n, "dy must have the convolution's output shape");
    return 0;
}

lw_type lw_op_conv_in(const lw_attr_conv *a, int32_t batch)
{
    return lw_type_of(LW_F32, 4, batch, a->h, a->w, a->c);
}

/* A packed weight (from a pack node) is a flat f32 buffer of the device's own size. */
bool lw_op_packed(const lw_graph *g, lw_val v)
{
    return lw_val_node(g, v)->op == LW_OP_PACK;
}

int lw_op_conv_check(const lw_graph *g, const lw_node *n)
{
    const lw_attr_conv *a = n->attr;
    lw_type x = in_type(g, n, 0);
    if (x.rank != 4 || x.dim[1] != a->h || x.dim[2] != a->w || x.dim[3] != a->c)
        return lw_op_fail(g, n, "input must be [B,H,W,C]");
    if (a->stride < 1 || a->kh < 1 || a->kw < 1)
        return lw_op_fail(g, n, "kernel and stride must be positive");
    if (a->pad_t < 0 || a->pad_l < 0 || a->pad_b < 0 || a->pad_r < 0)
        return lw_op_fail(g, n, "padding must not be negative");
    if ((int64_t)a->h + a->pad_t + a->pad_b > LW_MAX_DIM ||
        (int64_t)a->w + a->pad_l + a->pad_r > LW_MAX_DIM)
        return lw_op_fail(g, n, "padding is too large");
    if (a->h < 1 || a->w < 1)
        return lw_op_fail(g, n, "the image has no pixels");
    if (a->h + a->pad_t + a->pad_b < a->kh || a->w + a->pad_l + a->pad_r < a->kw)
        return lw_op_fail(g, n, "the image is smaller than the kernel");
    return 0;
}

/* Inputs of a projection: both, or none. y: the result. */
static int check_projection(const lw_graph *g, const lw_node *n, lw_type y)
{
    if (has_in(n, LW_CONV_PROJECT_X) != has_in(n, LW_CONV_PROJECT_W))
        return lw_op_fail(g, n, "what is projected and its weight belong together");
    if (!has_in(n, LW_CONV_PROJECT_X))
        return 0;
    lw_type x = in_type(g, n, LW_CONV_PROJECT_X);
    LW_TRY(lw_op_check_operand(g, n, LW_CONV_PROJECT_X, -1));
    if (x.rank != 4 || x.dim[0] != y.dim[0] || x.dim[1] != y.dim[1] || x.dim[2] != y.dim[2])
        return lw_op_fail(g, n, "what is projected must have the result's pixels");
    if (!lw_op_packed(g, n->in[LW_CONV_PROJECT_W]) &&
        (lw_type_count(in_type(g, n, LW_CONV_PROJECT_W)) != (int64_t)y.dim[3] * x.dim[3] ||
         !lw_op_is_f32(g, n, LW_CONV_PROJECT_W)))
        return lw_op_fail(g, n, "weight of the projection must be f32 [O,1,1,P]");
    return 0;
}

static int infer_conv(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_conv *a = n->attr;
    LW_TRY(lw_op_conv_check(g, n));
    LW_TRY(lw_op_check_operand(g, n, 0, 4));
    if (!lw_op_packed(g, n->in[1]) && !is_weight(in_type(g, n, 1), a))
        return lw_op_fail(g, n, "weight must be [O,KH,KW,C]");
    lw_type y = lw_op_conv_out(a, in_type(g, n, 0).dim[0]);
    LW_TRY(lw_op_check_stored(g, n, a->store));
    y.dtype = lw_op_stored(a->store);
    LW_TRY(lw_op_conv_extras(g, n, 2, 3, y));
    if (has_in(n, 5) &&
        (lw_type_count(in_type(g, n, 5)) != (int64_t)y.dim[0] * a->o || !lw_op_is_f32(g, n, 5)))
        return lw_op_fail(g, n, "image bias must be f32 [B,O]");
    LW_TRY(check_projection(g, n, y));
    return lw_op_one(out, y);
}

static int infer_dx(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_conv *a = n->attr;
    LW_TRY(lw_op_conv_check_dy(g, n));
    LW_TRY(lw_op_check_operand(g, n, 0, 4));
    if (!lw_op_packed(g, n->in[1]) && !is_weight(in_type(g, n, 1), a))
        return lw_op_fail(g, n, "weight must be [O,KH,KW,C]");
    lw_type dx = lw_op_conv_in(a, in_type(g, n, 0).dim[0]);
    LW_TRY(lw_op_check_stored(g, n, a->store));
    dx.dtype = lw_op_stored(a->store);
    LW_TRY(lw_op_conv_extras(g, n, 3, 2, dx));
    return lw_op_one(out, dx);
}

static int infer_dw(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_conv *a = n->attr;
    lw_type dy = in_type(g, n, 0), x = in_type(g, n, 1);
    if (dy.rank != 4 || !lw_op_same_shape(dy, lw_op_conv_out(a, dy.dim[0])) ||
        !lw_type_eq(x, lw_type_of(dy.dtype, 4, dy.dim[0], a->h, a->w, a->c)))
        return lw_op_fail(g, n, "dy and x must belong to one convolution");
    LW_TRY(lw_op_check_operand(g, n, 0, -1));
    *out = (lw_infer){
        2, {lw_type_of(LW_F32, 4, a->o, a->kh, a->kw, a->c), lw_type_of(LW_F32, 1, a->o)}};
    return 0;
}

void lw_op_conv_grad(lw_graph *g, const lw_node *n, lw_op dx, lw_op dw, lw_val dy, const bool *need,
                     lw_val *din)
{
    const lw_attr_conv *a = n->attr;
    if (a->act != LW_ACT_NONE || lw_op_packed(g, n->in[1])) {
        lw_graph_fail(g, LW_EUNSUPPORTED, "gradient of a fused convolution");
        return;
    }
    if (need[0])
        din[0] = lw_graph_op(g, dx, (lw_val[]){dy, n->in[1]}, 2, a, sizeof *a);
    bool bias = n->n_in > 2 && need[2];
    if (need[1] || bias) {
        lw_node *d = lw_graph_add(g, dw, (lw_val[]){dy, n->in[0]}, 2, a, sizeof *a);
        if (d && need[1])
            din[1] = lw_reshape(g, d->out[0], in_type(g, n, 1));
        if (d && bias)
            din[2] = lw_reshape(g, d->out[1], in_type(g, n, 2));
    }
    if (n->n_in > 3 && need[3])
        din[3] = dy;
}

static void grad_conv(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                      lw_val *din)
{
    lw_op_conv_grad(g, n, LW_OP_CONV2D_DX, LW_OP_CONV2D_DW, dout[0], need, din);
}

/* dy -> dx is linear, and the convolution is what leads back. */
static void grad_dx(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                    lw_val *din)
{
    const lw_attr_conv *a = n->attr;
    lw_val d = dout[0];
    if (a->act != LW_ACT_NONE || lw_op_packed(g, n->in[1])) {
        lw_graph_fail(g, LW_EUNSUPPORTED, "gradient of a fused convolution");
        return;
    }
    if (need[0])
        din[0] = lw_graph_op(g, LW_OP_CONV2D, (lw_val[]){d, n->in[1]}, 2, a, sizeof *a);
    if (need[1]) {
        lw_val dw = lw_graph_op(g, LW_OP_CONV2D_DW, (lw_val[]){n->in[0], d}, 2, a, sizeof *a);
        din[1] = lw_reshape(g, dw, in_type(g, n, 1));
    }
    if (n->n_in > 2 && need[2])
        din[2] = d;
    if (n->n_in > 3 && need[3])
        din[3] = lw_sum_to(g, d, in_type(g, n, 3));
}

/* Multiplications by the zero border are not counted: (valid taps over rows) x (over columns). */
static double valid_taps(int32_t in, int32_t lo, int32_t hi, int32_t k, int32_t stride)
{
    double n = 0;
    int32_t out = out_size(in, lo, hi, k, stride);
    for (int32_t y = 0; y < out; y++)
        for (int32_t t = 0; t < k; t++)
            n += y * stride - lo + t >= 0 && y * stride - lo + t < in;
    return n;
}

double lw_op_conv_taps(const lw_attr_conv *a)
{
    return valid_taps(a->h, a->pad_t, a->pad_b, a->kh, a->stride) *
           valid_taps(a->w, a->pad_l, a->pad_r, a->kw, a->stride);
}

static void cost_conv(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    const lw_attr_conv *a = n->attr;
    double batch = in_type(g, n, 0).dim[0];
    lw_cost_bytes(g, n, out);
    out->flops = 2.0 * batch * a->c * a->o * lw_op_conv_taps(a);
    if (n->op == LW_OP_CONV2D && has_in(n, LW_CONV_PROJECT_X))
        out->flops += 2.0 * (double)lw_type_count(in_type(g, n, LW_CONV_PROJECT_X)) * a->o;
}

void lw_op_conv_print(lw_str *s, const lw_node *n)
{
    lw_op_conv_print_one(s, n->attr);
}

void lw_op_conv_print_one(lw_str *s, const lw_attr_conv *a)
{
    lw_str_addf(s, "%dx%d %d->%d", a->kh, a->kw, a->c, a->o);
    if (a->stride != 1)
        lw_str_addf(s, " stride %d", a->stride);
    if (a->pad_t | a->pad_l | a->pad_b | a->pad_r)
        lw_str_addf(s, " pad %d,%d,%d,%d", a->pad_t, a->pad_l, a->pad_b, a->pad_r);
    lw_str_add(s, lw_op_act_text(a->act));
    lw_str_add(s, lw_op_stored_text(a->store));
}

static void product_conv(const lw_graph *g, const lw_node *n, lw_product *out)
{
    const lw_attr_conv *a = n->attr;
    (void)g;
    *out = (lw_product){.depth = a->c,
                        .results = a->o,
                        .taps = (int64_t)a->kh * a->kw,
                        .narrow = true,
                        .residual = 3,
                        .image_bias = 5,
                        .act = offsetof(lw_attr_conv, act)};
}

static void product_dx(const lw_graph *g, const lw_node *n, lw_product *out)
{
    product_conv(g, n, out);
    out->depth = ((const lw_attr_conv *)n->attr)->o;
    out->results = ((const lw_attr_conv *)n->attr)->c;
    out->residual = 2;
    out->image_bias = -1;
}

static void product_dw(const lw_graph *g, const lw_node *n, lw_product *out)
{
    product_conv(g, n, out);
    out->weight_gradient = true;
    out->residual = out->image_bias = -1;
}

const lw_op_def lw_op_conv2d = {
    .name = "conv2d",
    .infer = infer_conv,
    .grad = grad_conv,
    .cost = cost_conv,
    .product = product_conv,
    .print = lw_op_conv_print,
};
const lw_op_def lw_op_conv2d_dx = {
    .name = "conv2d_dx",
    .infer = infer_dx,
    .grad = grad_dx,
    .cost = cost_conv,
    .product = product_dx,
    .print = lw_op_conv_print,
};
const lw_op_def lw_op_conv2d_dw = {
    .name = "conv2d_dw",
    .infer = infer_dw,
    .grad = lw_grad_none,
    .cost = cost_conv,
    .product = product_dw,
    .print = lw_op_conv_print,
};

lw_val lw_op_conv_of(lw_graph *g, lw_op op, lw_val x, lw_val w, lw_val bias, int32_t c, int stride,
                     const int pad[4])
{
    lw_type tx = lw_val_type(g, x), tw = lw_val_type(g, w);
    lw_attr_conv a = {
        .kh = tw.dim[1],
        .kw = tw.dim[2],
        .stride = stride,
        .pad_t = pad[0],
        .pad_l = pad[1],
        .pad_b = pad[2],
        .pad_r = pad[3],
        .h = tx.dim[1],
        .w = tx.dim[2],
        .c = c,
        .o = tw.dim[0],
    };
    return lw_graph_op(g, op, (lw_val[]){x, w, bias}, 3, &a, sizeof a);
}

lw_val lw_conv2d_pad(lw_graph *g, lw_val x, lw_val w, lw_val bias, int stride, const int pad[4])
{
    if (!lw_val_ok(x) || !lw_val_ok(w))
        return LW_NOVAL;
    lw_type tw = lw_val_type(g, w);
    if (lw_val_type(g, x).rank != 4 || tw.rank != 4)
        return lw_graph_fail(g, LW_ESHAPE, "conv2d needs [B,H,W,C] and [O,KH,KW,C]");
    return lw_op_conv_of(g, LW_OP_CONV2D, x, w, bias, tw.dim[3], stride, pad);
}

lw_val lw_conv2d_op(lw_graph *g, lw_val x, lw_val w, lw_val bias, int stride, int pad)
{
    return lw_conv2d_pad(g, x, w, bias, stride, (const int[4]){pad, pad, pad, pad});
}

/* Of the result with its padding. */
static int64_t transposed_size(int32_t in, int32_t kernel, int stride, int output_pad)
{
    return (int64_t)(in - 1) * stride + kernel + output_pad;
}

lw_val lw_conv_transpose2d_op(lw_graph *g, lw_val x, lw_val w, lw_val bias, int stride, int pad,
                              int output_pad)
{
    if (!lw_val_ok(x) || !lw_val_ok(w))
        return LW_NOVAL;
    lw_type tx = lw_val_type(g, x), tw = lw_val_type(g, w);
    if (tx.rank != 4 || tw.rank != 4)
        return lw_graph_fail(g, LW_ESHAPE, "conv_transpose2d needs [B,H,W,C] and [C,KH,KW,O]");
    if (stride < 1 || output_pad < 0 || output_pad >= stride)
        return lw_graph_fail(
            g, LW_ESHAPE, "conv_transpose2d: stride must be positive and output padding below it");
    const int64_t height = transposed_size(tx.dim[1], tw.dim[1], stride, output_pad),
                  width = transposed_size(tx.dim[2], tw.dim[2], stride, output_pad);
    if (pad < 0 || LW_MIN(height, width) <= 2 * (int64_t)pad)
        return lw_graph_fail(g, LW_ESHAPE, "conv_transpose2d: padding %d leaves nothing of %dx%d",
                             pad, tx.dim[1], tx.dim[2]);
    if (LW_MAX(height, width) > LW_MAX_DIM)
        return lw_graph_fail(g, LW_ESHAPE, "conv_transpose2d: stride %d of %dx%d is too large",
                             stride, tx.dim[1], tx.dim[2]);
    lw_attr_conv a = {
        .kh = tw.dim[1],
        .kw = tw.dim[2],
        .stride = stride,
        .pad_t = pad,
        .pad_l = pad,
        .pad_b = pad,
        .pad_r = pad,
        .h = (int32_t)height - 2 * pad,
        .w = (int32_t)width - 2 * pad,
        .c = tw.dim[3],
        .o = tw.dim[0],
    };
    return lw_graph_op(g, LW_OP_CONV2D_DX, (lw_val[]){x, w, LW_NOVAL, bias}, 4, &a, sizeof a);
}

void lw_conv_pads_same(int32_t in, int32_t kernel, int32_t stride, int32_t *before, int32_t *after)
{
    int32_t out = LW_CEIL_DIV(in, stride);
    int32_t total = LW_MAX((out - 1) * stride + kernel - in, 0);
    *before = total / 2;
    *after = total - *before;
}

/* ---- pack ------------------------------------------------------------------------------------ */

static int infer_pack(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_pack *a = n->attr;
    (void)g;
    return lw_op_one(out, lw_type_of(LW_F32, 1, (int32_t)a->floats));
}

static void print_pack(lw_str *s, const lw_node *n)
{
    lw_str_addf(s, "kind %d", ((const lw_attr_pack *)n->attr)->kind);
}

const lw_op_def lw_op_pack = {
    .name = "pack",
    .infer = infer_pack,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
    .print = print_pack,
};
