/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution, a filter of its own for every channel, and its two gradients. The
 * attributes are those of conv2d with as many outputs as inputs. */
#include "ir/ops/ops.h"

static bool is_filter(lw_type t, const lw_attr_conv *a)
{
    return lw_type_count(t) == (int64_t)a->c * a->kh * a->kw && a->o == a->c;
}

static int check_weight(const lw_graph *g, const lw_node *n)
{
    if (!lw_op_packed(g, n->in[1]) && !is_filter(in_type(g, n, 1), n->attr))
        return lw_op_fail(g, n, "weight must be [C,KH,KW,1]");
    return 0;
}

static int infer_depthwise(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    LW_TRY(lw_op_conv_check(g, n));
    LW_TRY(check_weight(g, n));
    lw_type y = lw_op_conv_out(n->attr, in_type(g, n, 0).dim[0]);
    LW_TRY(lw_op_conv_extras(g, n, 2, 3, y));
    return in_type(g, n, 0).dtype == LW_F32 ? lw_op_one(out, y)
                                            : lw_op_fail(g, n, "input must be f32");
}

static int infer_dx(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    LW_TRY(lw_op_conv_check_dy(g, n));
    LW_TRY(check_weight(g, n));
    lw_type dx = lw_op_conv_in(n->attr, in_type(g, n, 0).dim[0]);
    LW_TRY(lw_op_conv_extras(g, n, 3, 2, dx));
    return lw_op_one(out, dx);
}

static int infer_dw(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_conv *a = n->attr;
    lw_type dy = in_type(g, n, 0), x = in_type(g, n, 1);
    if (dy.rank != 4 || !lw_type_eq(dy, lw_op_conv_out(a, dy.dim[0])) ||
        !lw_type_eq(x, lw_type_of(LW_F32, 4, dy.dim[0], a->h, a->w, a->c)))
        return lw_op_fail(g, n, "dy and x must belong to one convolution");
    *out = (lw_infer){2,
                      {lw_type_of(LW_F32, 4, a->c, a->kh, a->kw, 1), lw_type_of(LW_F32, 1, a->c)}};
    return 0;
}

static void grad_depthwise(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                           lw_val *din)
{
    lw_op_conv_grad(g, n, LW_OP_DEPTHWISE_DX, LW_OP_DEPTHWISE_DW, dout[0], need, din);
}

static void cost_depthwise(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    const lw_attr_conv *a = n->attr;
    lw_cost_bytes(g, n, out);
    out->flops = 2.0 * in_type(g, n, 0).dim[0] * a->c * lw_op_conv_taps(a);
}

/* A sum over taps alone: its operands stay f32 (memory bound, and one channel fills no word). */
static void product_depthwise(const lw_graph *g, const lw_node *n, lw_product *out)
{
    const lw_attr_conv *a = n->attr;
    (void)g;
    *out = (lw_product){.depth = 1,
                        .results = a->c,
                        .taps = (int64_t)a->kh * a->kw,
                        .residual = 3,
                        .image_bias = -1,
                        .act = offsetof(lw_attr_conv, act)};
}

static void product_dx(const lw_graph *g, const lw_node *n, lw_product *out)
{
    product_depthwise(g, n, out);
    out->residual = 2;
}

static void product_dw(const lw_graph *g, const lw_node *n, lw_product *out)
{
    product_depthwise(g, n, out);
    out->weight_gradient = true;
    out->residual = -1;
}

const lw_op_def lw_op_depthwise = {
    .name = "depthwise",
    .infer = infer_depthwise,
    .grad = grad_depthwise,
    .cost = cost_depthwise,
    .product = product_depthwise,
    .print = lw_op_conv_print,
};
const lw_op_def lw_op_depthwise_dx = {
    .name = "depthwise_dx",
    .infer = infer_dx,
    .grad = lw_grad_none,
    .cost = cost_depthwise,
    .product = product_dx,
    .print = lw_op_conv_print,
};
const lw_op_def lw_op_depthwise_dw = {
    .name = "depthwise_dw",
    .infer = infer_dw,
    .grad = lw_grad_none,
    .cost = cost_depthwise,
    .product = product_dw,
    .print = lw_op_conv_print,
};

lw_val lw_depthwise_op(lw_graph *g, lw_val x, lw_val w, lw_val bias, int stride, const int pad[4])
{
    if (!lw_val_ok(x) || !lw_val_ok(w))
        return LW_NOVAL;
    lw_type tw = lw_val_type(g, w);
    if (lw_val_type(g, x).rank != 4 || tw.rank != 4 || tw.dim[3] != 1)
        return lw_graph_fail(g, LW_ESHAPE, "depthwise needs [B,H,W,C] and [C,KH,KW,1]");
    return lw_op_conv_of(g, LW_OP_DEPTHWISE, x, w, bias, tw.dim[0], stride, pad);
}
