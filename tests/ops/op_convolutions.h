/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of linear layers and convolutions of f32. */
#ifndef LW_TESTS_OP_CONVOLUTIONS_H
#define LW_TESTS_OP_CONVOLUTIONS_H

#include "ops/op_build.h"

static lw_val b_linear(op_ctx *c)
{
    return lw_linear_op(G, X(-1, 1, 3, 7, 19), X(-1, 1, 37, 19), X(-1, 1, 37));
}
static lw_val b_matmul_nn(op_ctx *c)
{
    return lw_matmul(G, X(-1, 1, 33, 18), X(-1, 1, 18, 35), false, false);
}
static lw_val b_matmul_tn(op_ctx *c)
{
    lw_val a = op_f32(c, false, -1, 1, DIMS(21, 18)), b = op_f32(c, false, -1, 1, DIMS(21, 35));
    return lw_matmul(G, a, b, true, false);
}
static lw_val b_linear_fused(op_ctx *c)
{
    lw_val y = lw_linear_op(G, X(-1, 1, 5, 16), X(-1, 1, 16, 16), X(-1, 1, 16));
    return lw_silu(G, lw_add(G, y, X(-1, 1, 5, 16)));
}
/* Of few rows, and of few tiles, whose last ones are cut off in every direction. */
static lw_val b_linear_row(op_ctx *c)
{
    lw_val x = op_f32(c, false, -1, 1, DIMS(1, 516)), w = op_f32(c, false, -1, 1, DIMS(37, 516));
    return lw_silu(G, lw_linear_op(G, x, w, op_f32(c, false, -1, 1, DIMS(37))));
}
static lw_val b_linear_rows(op_ctx *c)
{
    lw_val x = op_f32(c, false, -1, 1, DIMS(7, 132)), w = op_f32(c, false, -1, 1, DIMS(33, 132));
    lw_val y = lw_linear_op(G, x, w, op_f32(c, false, -1, 1, DIMS(33)));
    return lw_ew1(G, LW_EW_gelu, lw_add(G, y, op_f32(c, false, -1, 1, DIMS(7, 33))));
}
static lw_val b_linear_tiles(op_ctx *c)
{
    lw_val x = op_f32(c, false, -1, 1, DIMS(35, 300)), w = op_f32(c, false, -1, 1, DIMS(67, 300));
    lw_val y = lw_linear_op(G, x, w, op_f32(c, false, -1, 1, DIMS(67)));
    return lw_silu(G, lw_add(G, y, op_f32(c, false, -1, 1, DIMS(35, 67))));
}
static lw_val b_conv3(op_ctx *c)
{
    return lw_conv2d_op(G, X(-1, 1, 2, 9, 7, 5), X(-1, 1, 35, 3, 3, 5), X(-1, 1, 35), 1, 1);
}
static lw_val b_conv3_wide(op_ctx *c)
{
    return lw_conv2d_op(G, X(-1, 1, 2, 8, 8, 33), X(-.2f, .2f, 32, 3, 3, 33), X(-1, 1, 32), 1, 1);
}
static lw_val b_conv3_s2(op_ctx *c)
{
    return lw_conv2d_op(G, X(-1, 1, 2, 8, 6, 6), X(-1, 1, 18, 3, 3, 6), X(-1, 1, 18), 2, 1);
}
static lw_val b_conv3_s2_odd(op_ctx *c)
{
    return lw_conv2d_op(G, X(-1, 1, 2, 9, 7, 6), X(-1, 1, 4, 3, 3, 6), LW_NOVAL, 2, 1);
}
/* Padding that differs from side to side: SAME of an even and of an odd size, more above and on the
 * left than below and on the right, and more than a kernel. */
static lw_val padded(op_ctx *c, lw_val x, lw_val w, int stride, int top, int left, int bottom,
                     int right)
{
    return lw_conv2d_pad(G, x, w, X(-1, 1, lw_val_type(G, w).dim[0]), stride,
                         (const int[4]){top, left, bottom, right});
}
static lw_val b_conv3_same(op_ctx *c)
{
    lw_val x = X(-1, 1, 2, 8, 7, 6);
    int32_t pad[4];
    lw_conv_pads_same(8, 3, 2, &pad[0], &pad[2]);
    lw_conv_pads_same(7, 3, 2, &pad[1], &pad[3]);
    return padded(c, x, X(-1, 1, 18, 3, 3, 6), 2, pad[0], pad[1], pad[2], pad[3]);
}
static lw_val b_conv3_pads(op_ctx *c) /* near Winograd's shape, but not of it */
{
    return padded(c, X(-1, 1, 2, 7, 6, 32), X(-.3f, .3f, 32, 3, 3, 32), 1, 2, 1, 0, 1);
}
static lw_val b_conv5_pads(op_ctx *c)
{
    return padded(c, X(-1, 1, 2, 5, 6, 9), X(-.3f, .3f, 17, 5, 4, 9), 3, 4, 0, 1, 3);
}
/* The weight is a constant, so that plans pack it beforehand, for both passes. */
static lw_val b_conv3_far_pads(op_ctx *c)
{
    float w[20 * 9 * 12];
    for (int i = 0; i < (int)LW_COUNT(w); i++)
        w[i] = (float)(i * 37 % 101) / 50.5f - 1.0f;
    return padded(c, X(-1, 1, 1, 3, 4, 12), lw_const(G, lw_type_of(LW_F32, 4, 20, 3, 3, 12), w), 2,
                  0, 65, 1, 0);
}
/* A picture of one pixel is not a row of a matrix where taps lie beside it. */
static lw_val b_conv1_pads(op_ctx *c)
{
    lw_val x = X(-1, 1, 3, 1, 1, 20);
    lw_val y = padded(c, x, X(-1, 1, 17, 1, 1, 20), 1, 1, 1, 1, 1);
    lw_val z = padded(c, x, X(-1, 1, 17, 1, 1, 20), 3, 1, 1, 0, 0); /* reads nothing */
    return lw_add(G, lw_pool2d(G, y, 3, 3, 0, false), z);
}
static lw_val b_conv1(op_ctx *c)
{
    return lw_conv2d_op(G, X(-1, 1, 2, 5, 5, 20), X(-1, 1, 17, 1, 1, 20), X(-1, 1, 17), 1, 0);
}
static lw_val b_conv_residual(op_ctx *c)
{
    lw_val x = X(-1, 1, 2, 6, 6, 16);
    lw_val y = lw_conv2d_op(G, x, X(-.5f, .5f, 16, 3, 3, 16), X(-1, 1, 16), 1, 1);
    return lw_relu(G, lw_add(G, y, x));
}
static lw_val b_conv_to_rgb(op_ctx *c)
{
    return lw_conv2d_op(G, X(-1, 1, 3, 6, 6, 16), X(-1, 1, 3, 3, 3, 16), X(-1, 1, 3), 1, 1);
}

static lw_val b_upconv(op_ctx *c)
{
    return lw_conv2d_op(G, lw_upsample(G, X(-1, 1, 2, 3, 5, 18), 2), X(-.4f, .4f, 33, 3, 3, 18),
                        X(-1, 1, 33), 1, 1);
}
static lw_val b_upconv_weight(op_ctx *c)
{
    lw_val w = X(-1, 1, 19, 3, 3, 35);
    return lw_sqr(G, lw_graph_op(G, LW_OP_UPCONV_WEIGHT, &w, 1, NULL, 0));
}

static lw_val b_conv_transpose(op_ctx *c)
{
    return lw_conv_transpose2d_op(G, X(-1, 1, 2, 4, 5, 18), X(-.4f, .4f, 18, 3, 3, 21),
                                  X(-1, 1, 21), 2, 1, 1);
}
static lw_val depthwise(op_ctx *c, lw_val x, int k, int stride, int top, int left, int bottom,
                        int right)
{
    int32_t n = lw_type_last(lw_val_type(G, x));
    lw_val w = X(-.5f, .5f, n, k, k, 1), bias = X(-1, 1, n);
    return lw_depthwise_op(G, x, w, bias, stride, (const int[4]){top, left, bottom, right});
}
static lw_val b_depthwise(op_ctx *c)
{
    return depthwise(c, X(-1, 1, 2, 7, 9, 37), 3, 1, 1, 1, 1, 1);
}
static lw_val b_depthwise_same(op_ctx *c) /* stride 2 of an even and an odd size */
{
    return depthwise(c, X(-1, 1, 3, 8, 7, 24), 3, 2, 0, 1, 1, 1);
}
static lw_val b_depthwise5(op_ctx *c)
{
    return depthwise(c, X(-1, 1, 2, 5, 6, 70), 5, 2, 2, 2, 2, 2);
}
/* The weight and its residual an output beside the block's: everything fused that can be, and a
 * weight that plans pack beforehand. */
static lw_val b_depthwise_block(op_ctx *c)
{
    float w[40 * 9];
    for (int i = 0; i < (int)LW_COUNT(w); i++)
        w[i] = (float)(i * 37 % 101) / 50.5f - 1.0f;
    lw_val x = X(-1, 1, 2, 6, 6, 16);
    lw_val h = lw_relu6(G, lw_conv2d_op(G, x, X(-1, 2, 40, 1, 1, 16), X(-1, 1, 40), 1, 0));
    h = lw_depthwise_op(G, h, lw_const(G, lw_type_of(LW_F32, 4, 40, 3, 3, 1), w), X(-1, 1, 40), 1,
                        (const int[4]){1, 1, 1, 1});
    h = lw_conv2d_op(G, lw_relu6(G, h), X(-.3f, .3f, 16, 1, 1, 40), LW_NOVAL, 1, 0);
    return lw_add(G, h, x);
}

static const op_case convolution_cases[] = {
    CASE("linear", b_linear, 1e-5, 3e-3),
    CASE("matmul_nn", b_matmul_nn, 1e-5, 3e-3),
    CASE("matmul_tn", b_matmul_tn, 1e-5, 0),
    CASE("linear_row", b_linear_row, 2e-5, 0),
    CASE("linear_rows", b_linear_rows, 2e-5, 0),
    CASE("linear_tiles", b_linear_tiles, 2e-5, 0),
    CASE("linear_fused", b_linear_fused, 1e-5, 3e-3),
    CASE("conv3", b_conv3, 2e-5, 3e-3),
    CASE("conv3_wide", b_conv3_wide, 2e-5, 3e-3),
    CASE("conv3_s2", b_conv3_s2, 2e-5, 3e-3),
    CASE("conv3_s2_odd", b_conv3_s2_odd, 2e-5, 3e-3),
    CASE("conv3_same", b_conv3_same, 2e-5, 3e-3),
    CASE("conv3_pads", b_conv3_pads, 2e-5, 3e-3),
    CASE("conv5_pads", b_conv5_pads, 2e-5, 3e-3),
    CASE("conv3_far_pads", b_conv3_far_pads, 2e-5, 3e-3),
    CASE("conv1", b_conv1, 2e-5, 3e-3),
    CASE("conv1_pads", b_conv1_pads, 2e-5, 3e-3),
    KINKS("conv_residual", b_conv_residual, 2e-5, 2e-2),
    CASE("conv_to_rgb", b_conv_to_rgb, 2e-5, 3e-3),
    CASE("conv_transpose", b_conv_transpose, 2e-5, 3e-3),
    CASE("depthwise", b_depthwise, 2e-5, 3e-3),
    CASE("depthwise_same", b_depthwise_same, 2e-5, 3e-3),
    CASE("depthwise5", b_depthwise5, 2e-5, 3e-3),
    KINKS("depthwise_block", b_depthwise_block, 5e-5, 3e-2),
    CASE("upconv", b_upconv, 2e-5, 3e-3),
    CASE("upconv_weight", b_upconv_weight, 1e-5, 3e-3),
};

#endif
