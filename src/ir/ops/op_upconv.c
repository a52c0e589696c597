/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of a convolution behind nearest upsampling by two. Four neighbouring output pixels read
 * only 2 x 2 input pixels each, so upsample + 3x3 is a transposed 4x4 convolution of stride 2 whose
 * weights are sums of the 3x3 ones: 4 products per output and channel pair instead of 9. In one
 * direction, with y[2i] and y[2i+1] from x[i-1], x[i], x[i+1]:
 *
 *   y[2i]   = w0 x[i-1] + (w1 + w2) x[i]             out[0..3] = w2, w1 + w2, w0 + w1, w0
 *   y[2i+1] = (w0 + w1) x[i] + w2 x[i+1]
 */
#include "ir/ops/ops.h"

static int infer_upconv_weight(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type w = in_type(g, n, 0);
    if (w.dtype != LW_F32 || w.rank != 4 || w.dim[1] != 3 || w.dim[2] != 3)
        return lw_op_fail(g, n, "weight must be f32 [O,3,3,C]");
    return lw_op_one(out, lw_type_of(LW_F32, 4, w.dim[3], 4, 4, w.dim[0]));
}

static int infer_upconv_weight_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type w = in_type(g, n, 0);
    if (w.dtype != LW_F32 || w.rank != 4 || w.dim[1] != 4 || w.dim[2] != 4)
        return lw_op_fail(g, n, "gradient must be f32 [C,4,4,O]");
    return lw_op_one(out, lw_type_of(LW_F32, 4, w.dim[3], 3, 3, w.dim[0]));
}

static void grad_upconv_weight(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                               lw_val *din)
{
    (void)n;
    if (need[0])
        din[0] = lw_graph_op(g, LW_OP_UPCONV_WEIGHT_GRAD, &dout[0], 1, NULL, 0);
}

const lw_op_def lw_op_upconv_weight = {
    .name = "upconv_weight",
    .infer = infer_upconv_weight,
    .grad = grad_upconv_weight,
    .cost = lw_cost_bytes,
};
const lw_op_def lw_op_upconv_weight_grad = {
    .name = "upconv_weight_grad",
    .infer = infer_upconv_weight_grad,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
};
