/* SPDX-License-Identifier: Apache-2.0 */
/* Every op in both directions: oracle against fast plans at each ISA level, gradients by
 * differences. */
#include "ops/op_check.h"
#include "ops/op_products.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "ir/ir.h"

#define X(lo, hi, ...) op_f32(c, true, lo, hi, DIMS(__VA_ARGS__))

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

/* As a product of bf16 reads it. */
static lw_val b_ew_bf16(op_ctx *c)
{
    lw_val x = op_f32(c, false, -3, 3, DIMS(5, 67)), y = lw_silu(G, x);
    lw_attr_ew a = *(const lw_attr_ew *)lw_val_node(G, y)->attr;
    a.type.dtype = LW_BF16;
    return lw_cast(G, lw_graph_op(G, LW_OP_EW, &x, 1, &a, sizeof a), LW_F32, LW_NOVAL);
}
static lw_val b_norm_bf16(op_ctx *c)
{
    const lw_attr_norm n = {.groups = 4, .eps = 1e-5f, .act = LW_ACT_SILU, .store = LW_BF16};
    lw_val x = op_f32(c, false, -2, 3, DIMS(2, 5, 3, 24)), one = op_f32(c, false, .5f, 1, DIMS(24));
    lw_val y = lw_graph_op(G, LW_OP_GROUP_NORM, (lw_val[]){x, one, one}, 3, &n, sizeof n);
    return lw_cast(G, y, LW_F32, LW_NOVAL);
}

/* As one element wide, two, in sectors of several groups, in more rows than a GPU's threads keep, and wider than a block. */
static lw_val norm_of(op_ctx *c, int32_t groups, lw_val x)
{
    int32_t n = lw_type_last(lw_val_type(G, x));
    lw_val gamma = op_f32(c, false, .5f, 1.5f, DIMS(n)), beta = op_f32(c, false, -1, 1, DIMS(n));
    return lw_group_norm_op(G, x, gamma, beta, LW_NOVAL, LW_NOVAL, groups, 1e-5f, LW_ACT_SILU);
}
static lw_val b_norm_odd(op_ctx *c)
{
    return norm_of(c, 4, op_f32(c, false, 6, 9, DIMS(1, 66, 70, 12)));
}
static lw_val b_norm_even(op_ctx *c)
{
    return norm_of(c, 3, op_f32(c, false, 6, 9, DIMS(2, 40, 37, 18)));
}
static lw_val b_norm_far(op_ctx *c)
{
    return norm_of(c, 2, op_f32(c, false, 6, 9, DIMS(1, 46, 47, 8)));
}
static lw_val b_norm_sectors(op_ctx *c)
{
    return norm_of(c, 24, op_f32(c, false, -2, 3, DIMS(2, 30, 11, 96)));
}
static lw_val b_norm_wide(op_ctx *c)
{
    return norm_of(c, 1, op_f32(c, false, -2, 3, DIMS(2, 1, 3, 1030)));
}
static lw_val b_norm_rows(op_ctx *c)
{
    return norm_of(c, 2, op_f32(c, false, 6, 9, DIMS(5, 1, 1, 2 * 1100)));
}
static lw_val b_norm(op_ctx *c)
{
    return lw_group_norm_op(G, X(-2, 3, 2, 5, 3, 24), X(.5f, 1.5f, 24), X(-1, 1, 24), LW_NOVAL,
                            LW_NOVAL, 4, 1e-5f, LW_ACT_SILU);
}
static lw_val b_norm_ada(op_ctx *c)
{
    lw_val x = X(-2, 3, 3, 4, 4, 16);
    lw_val gm = X(.5f, 1.5f, 16), bt = X(-1, 1, 16);
    return lw_group_norm_op(G, x, gm, bt, X(-.5f, .5f, 3, 16), X(-1, 1, 3, 16), 8, 1e-5f,
                            LW_ACT_SILU);
}
/* Scale and shift are slices of a result, one of them by an offset that four numbers do not divide, and of a slice. */
static lw_val norm_slices(op_ctx *c, int32_t at, bool twice)
{
    lw_val x = op_f32(c, false, -2, 3, DIMS(3, 4, 4, 16));
    lw_val e = lw_linear_op(G, op_f32(c, false, -.5f, .5f, DIMS(3, 24)),
                            op_f32(c, false, -.5f, .5f, DIMS(36, 24)), LW_NOVAL);
    lw_val shift = lw_slice(G, e, 1, 16 + at, 32 + at);
    if (twice)
        shift = lw_slice(G, lw_slice(G, e, 1, 8, 36), 1, 8 + at, 24 + at);
    return lw_group_norm_op(G, x, op_f32(c, false, .5f, 1.5f, DIMS(16)),
                            op_f32(c, false, -1, 1, DIMS(16)), lw_slice(G, e, 1, 0, 16), shift, 4,
                            1e-5f, LW_ACT_SILU);
}
static lw_val b_norm_slices(op_ctx *c)
{
    return norm_slices(c, 0, false);
}
static lw_val b_norm_slices_odd(op_ctx *c)
{
    return norm_slices(c, 3, false);
}
static lw_val b_norm_slices_twice(op_ctx *c)
{
    return norm_slices(c, 4, true);
}
static lw_val b_norm_relu(op_ctx *c)
{
    return lw_group_norm_op(G, X(-2, 3, 2, 4, 4, 8), X(.5f, 1.5f, 8), X(-1, 1, 8), LW_NOVAL,
                            LW_NOVAL, 8, 1e-5f, LW_ACT_NONE);
}
static lw_val b_attention(op_ctx *c)
{
    return lw_attention(G, X(-1, 1, 2, 17, 3 * 32), 4);
}
/* One query over many tokens, keys and values side by side. */
static lw_val b_attention_pool(op_ctx *c)
{
    return lw_cross_attention(G, X(-1, 1, 2, 1, 64), X(-1, 1, 2, 19, 2 * 64), 2);
}
static lw_val b_attention_qkv(op_ctx *c)
{
    return lw_attention_qkv(G, X(-1, 1, 2, 11, 72), X(-1, 1, 2, 5, 72), X(-1, 1, 2, 5, 72), 1);
}
/* Nobody wants the gradient of the first operand; the other two are one value. */
static lw_val b_attention_shared(op_ctx *c)
{
    lw_val q = op_f32(c, false, -1, 1, DIMS(1, 6, 32)), kv = X(-1, 1, 1, 3, 32);
    return lw_sqr(G, lw_add(G, q, lw_attention_qkv(G, q, kv, kv, 1)));
}
/* Squares of 3 places in pictures of 5 x 7: cut off at the right and below. */
static lw_val b_attention_windows(op_ctx *c)
{
    lw_val x = op_f32(c, false, -1, 1, DIMS(2, 35, 3 * 24));
    return lw_attention_places(G, &x, 1, &(lw_attr_attention){.heads = 2, .window = 3, .width = 7});
}
/* Sizes at the edges of tiles. */
#define ATTENTION(samples, tokens, heads, hd)                                        \
    static lw_val b_attention_##samples##_##tokens##_##heads##_##hd(op_ctx *c)       \
    {                                                                                \
        lw_val qkv = op_f32(c, false, -2, 2, DIMS(samples, tokens, 3 * heads * hd)); \
        return lw_attention(G, qkv, heads);                                          \
    }
ATTENTION(3, 1, 2, 4)
ATTENTION(2, 15, 3, 20)
ATTENTION(1, 63, 2, 32)
ATTENTION(1, 64, 1, 40)
ATTENTION(1, 65, 2, 64)
ATTENTION(1, 66, 1, 72)
ATTENTION(1, 129, 1, 128)
ATTENTION(1, 257, 1, 64)
ATTENTION(1, 18, 2, 42)
ATTENTION(1, 18, 1, 132)
/* Fewer queries than keys and more, keys beside values or by themselves. */
static lw_val b_attention_pool_wide(op_ctx *c)
{
    return lw_cross_attention(G, X(-1, 1, 2, 3, 128), X(-1, 1, 2, 97, 2 * 128), 2);
}
static lw_val b_attention_qkv_wide(op_ctx *c)
{
    return lw_attention_qkv(G, X(-1, 1, 1, 70, 208), X(-1, 1, 1, 31, 208), X(-1, 1, 1, 31, 208), 2);
}
/* Squares of 9 places in pictures of 10 x 21: of 81, 27, 9 and 3. */
static lw_val b_attention_windows_wide(op_ctx *c)
{
    lw_val x = op_f32(c, false, -1, 1, DIMS(2, 210, 3 * 80));
    return lw_attention_places(G, &x, 1,
                               &(lw_attr_attention){.heads = 2, .window = 9, .width = 21});
}
/* Scores of some hundreds, whose greatest changes from tile to tile. */
static lw_val b_attention_steep(op_ctx *c)
{
    return lw_attention(G, op_f32(c, false, -16, 16, DIMS(1, 200, 3 * 32)), 1);
}
/* Of bf16: sizes at the edges of tensor cores' tiles. P is rounded: 2^-9 of the average of |v| is off. */
static lw_val attention_bf16(op_ctx *c, int32_t samples, int32_t tokens, int32_t heads, int32_t hd)
{
    lw_val qkv = bf16(c, op_f32(c, false, -2, 2, DIMS(samples, tokens, 3 * heads * hd)));
    return lw_graph_op(G, LW_OP_ATTENTION, &qkv, 1,
                       &(lw_attr_attention){.heads = heads, .num = LW_NUM_BF16},
                       sizeof(lw_attr_attention));
}
#define ATTENTION_BF16(samples, tokens, heads, hd)                                    \
    static lw_val b_attention_##samples##_##tokens##_##heads##_##hd##_bf16(op_ctx *c) \
    {                                                                                 \
        return attention_bf16(c, samples, tokens, heads, hd);                         \
    }
ATTENTION_BF16(2, 1, 2, 8)
ATTENTION_BF16(1, 15, 3, 16)
ATTENTION_BF16(2, 16, 1, 24)
ATTENTION_BF16(1, 17, 2, 40)
ATTENTION_BF16(1, 63, 1, 64)
ATTENTION_BF16(1, 64, 2, 72)
ATTENTION_BF16(1, 65, 1, 128)
ATTENTION_BF16(1, 257, 1, 64)
ATTENTION_BF16(1, 129, 1, 20)
ATTENTION_BF16(1, 18, 1, 42)
ATTENTION_BF16(1, 18, 1, 136)
ATTENTION_BF16(1, 290, 2, 12)
ATTENTION_BF16(1, 66, 132, 40)
ATTENTION_BF16(1, 100, 132, 40)
/* Fewer queries than keys and more, keys beside values or by themselves, results of bf16. */
static lw_val b_attention_pool_bf16(op_ctx *c)
{
    lw_val x[] = {bf16(c, op_f32(c, false, -1, 1, DIMS(2, 3, 128))),
                  bf16(c, op_f32(c, false, -1, 1, DIMS(2, 97, 2 * 128)))};
    lw_attr_attention a = {.heads = 2, .num = LW_NUM_BF16, .store = LW_BF16};
    return lw_cast(G, lw_graph_op(G, LW_OP_ATTENTION, x, 2, &a, sizeof a), LW_F32, LW_NOVAL);
}
static lw_val b_attention_qkv_bf16(op_ctx *c)
{
    lw_val x[] = {bf16(c, op_f32(c, false, -1, 1, DIMS(1, 70, 208))),
                  bf16(c, op_f32(c, false, -1, 1, DIMS(1, 31, 208))),
                  bf16(c, op_f32(c, false, -1, 1, DIMS(1, 31, 208)))};
    lw_attr_attention a = {.heads = 2, .num = LW_NUM_BF16, .store = LW_BF16};
    return lw_cast(G, lw_graph_op(G, LW_OP_ATTENTION, x, 3, &a, sizeof a), LW_F32, LW_NOVAL);
}
/* Squares of 9 places in pictures of 10 x 21: of 81, 27, 9 and 3. */
static lw_val b_attention_windows_bf16(op_ctx *c)
{
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(2, 210, 3 * 80)));
    lw_attr_attention a = {.heads = 2, .num = LW_NUM_BF16, .window = 9, .width = 21};
    return lw_graph_op(G, LW_OP_ATTENTION, &x, 1, &a, sizeof a);
}
static lw_val b_softmax(op_ctx *c)
{
    return lw_softmax(G, X(-3, 3, 7, 13));
}
/* Of most rows the greatest logit is by far the greatest: without it the others' sum is none. */
static lw_val b_softmax_far(op_ctx *c)
{
    lw_val x = op_f32(c, false, -1, 1, DIMS(24, 300));
    for (int i = 0; i < 6; i++)
        x = lw_sqr(G, x);
    return lw_softmax(G, lw_scale(G, x, 5000.0f));
}
static lw_val b_pairs_l1(op_ctx *c)
{
    return lw_pair_distance(G, X(-1, 1, 5, 19), X(-1, 1, 7, 19), LW_DISTANCE_L1);
}
static lw_val b_pairs_l2(op_ctx *c)
{
    return lw_pair_distance(G, X(-1, 1, 5, 19), X(-1, 1, 7, 19), LW_DISTANCE_L2);
}
static lw_val b_pairs_modulus(op_ctx *c)
{
    lw_val x = X(-1, 1, 90, 22);
    return lw_pair_distance(G, x, op_f32(c, false, -1, 1, DIMS(601, 22)), LW_DISTANCE_MODULUS);
}
static lw_val b_ce(op_ctx *c)
{
    return lw_cross_entropy(G, X(-3, 3, 9, 11), op_i32(c, 11, 9));
}

static lw_val b_ew_chain(op_ctx *c)
{
    lw_val x = X(-2, 2, 3, 4, 5, 6), y = X(-2, 2, 3, 4, 5, 6);
    lw_val z = lw_add(G, lw_mul(G, x, X(.5f, 1.5f, 6)), X(-1, 1, 3, 6));
    z = lw_silu(G, lw_sub(G, z, lw_scale(G, y, 0.7f)));
    return lw_mul(G, z, X(.5f, 2, 3, 1, 1, 1));
}
/* Operands of every form, of rows that four neighbours lie in, and of three. */
static lw_val ew_forms(op_ctx *c, int32_t n)
{
    lw_val x = op_f32(c, false, -2, 2, DIMS(3, 4, 5, n));
    lw_val z = lw_mul(G, x, op_f32(c, false, .5f, 1.5f, DIMS(n)));
    z = lw_add(G, z, op_f32(c, false, -1, 1, DIMS(3, n)));
    z = lw_mul(G, z, op_f32(c, false, .5f, 2, DIMS(3, 1, 1, 1)));
    z = lw_sub(G, z, op_f32(c, false, -1, 1, DIMS(3, 4, 5, 1)));
    return lw_mul(G, z, op_f32(c, false, .5f, 2, DIMS(1)));
}
static lw_val b_ew_quads(op_ctx *c)
{
    return ew_forms(c, 8);
}
static lw_val b_ew_triples(op_ctx *c)
{
    return ew_forms(c, 3);
}
/* More results at once than a GPU's four elements have room for. */
static lw_val b_ew_places(op_ctx *c)
{
    lw_val x = op_f32(c, false, -2, 2, DIMS(7, 9)), part[12], y = x;
    for (int i = 0; i < 12; i++)
        part[i] = y = lw_ew1(G, LW_EW_sin, lw_scale(G, y, 1.0f + .1f * (float)i));
    for (int i = 0; i < 12; i++)
        y = lw_mul(G, lw_add_f32(G, y, .5f), lw_add_f32(G, part[i], 1.5f));
    return y;
}
static lw_val b_ew_unary(op_ctx *c)
{
    lw_val x = X(.3f, 2, 4, 33);
    lw_val y = lw_ew1(G, LW_EW_tanh, lw_ew1(G, LW_EW_log, x));
    y = lw_add(G, y, lw_ew1(G, LW_EW_sqrt, x));
    y = lw_add(G, y, lw_ew1(G, LW_EW_rsqrt, x));
    y = lw_add(G, y, lw_ew1(G, LW_EW_gelu, lw_add_f32(G, x, -1.0f)));
    y = lw_add(G, y, lw_ew1(G, LW_EW_gelu_tanh, lw_add_f32(G, x, -1.0f)));
    y = lw_add(G, y, lw_ew1(G, LW_EW_quick_gelu, lw_add_f32(G, x, -1.2f)));
    y = lw_add(G, y, lw_ew1(G, LW_EW_softplus, x));
    y = lw_add(G, y, lw_mul(G, lw_ew1(G, LW_EW_sin, x), lw_ew1(G, LW_EW_cos, x)));
    y = lw_add(G, y, lw_ew1(G, LW_EW_sigmoid, lw_ew1(G, LW_EW_neg, x)));
    y = lw_add(G, y, lw_ew1(G, LW_EW_exp, lw_ew1(G, LW_EW_abs, lw_add_f32(G, x, .1f))));
    return lw_div(G, y, lw_add_f32(G, lw_sqr(G, x), 1.0f));
}
static lw_val b_ew_minmax(op_ctx *c)
{
    lw_val x = X(-2, 2, 5, 21), y = X(-2, 2, 5, 21);
    return lw_sub(G, lw_ew2(G, LW_EW_max, x, y), lw_ew2(G, LW_EW_min, x, lw_scale(G, y, .5f)));
}
static lw_val b_relu6(op_ctx *c)
{
    lw_val x = X(-4, 10, 5, 21);
    return lw_add(G, lw_sqr(G, lw_relu6(G, x)), lw_ew1(G, LW_EW_tanh, x));
}
/* As the epilogue of a product, a narrow one, and a convolution of each kind. */
static lw_val b_relu6_fused(op_ctx *c)
{
    lw_val h = lw_relu6(
        G, lw_conv2d_op(G, X(-1, 1, 2, 6, 6, 24), X(-1, 1, 24, 3, 3, 24), X(-1, 9, 24), 1, 1));
    h = lw_relu6(G, lw_conv2d_op(G, h, X(-.3f, .3f, 18, 3, 3, 24), LW_NOVAL, 2, 0));
    h = lw_relu6(G, lw_linear_op(G, h, X(-.6f, .9f, 20, 18), LW_NOVAL));
    return lw_relu6(G, lw_linear_op(G, h, X(-.5f, .7f, 3, 20), LW_NOVAL));
}
static lw_val b_broadcast(op_ctx *c)
{
    return lw_mul(G, lw_broadcast(G, X(-1, 1, 3, 5, 1), lw_type_of(LW_F32, 3, 3, 5, 7)),
                  X(-1, 1, 1));
}
static lw_val b_sums(op_ctx *c)
{
    lw_val x = X(-1, 1, 3, 4, 5, 6);
    lw_val a = lw_sum(G, x, LW_OVER_ALL), r = lw_mean(G, lw_sqr(G, x), LW_OVER_ROWS);
    lw_val m = lw_mean(G, x, LW_OVER_MIDDLE), l = lw_sum(G, lw_sqr(G, x), LW_OVER_LAST);
    lw_val b = lw_mean(G, lw_sqr(G, x), LW_OVER_BATCH);
    lw_val y = lw_add(G, lw_mul(G, m, r), a);
    y = lw_mul(G, y, lw_reshape(G, b, lw_type_of(LW_F32, 2, 3, 1)));
    return lw_mul(G, lw_mul(G, l, x), y);
}
static lw_val b_big_sum(op_ctx *c)
{
    return lw_mean(G, X(-1, 1, 700, 70), LW_OVER_ROWS);
}
static lw_val b_all_sum(op_ctx *c)
{
    return lw_mean(G, lw_sqr(G, X(-1, 1, 300, 70)), LW_OVER_ALL);
}

static lw_val b_concat(op_ctx *c)
{
    lw_val x = lw_concat(G, X(-1, 1, 2, 3, 3, 5), X(-1, 1, 2, 3, 3, 4), -1);
    return lw_sqr(G, lw_slice(G, lw_concat(G, x, X(-1, 1, 1, 3, 3, 9), 0), 3, 2, 8));
}
static lw_val b_pad(op_ctx *c)
{
    return lw_sqr(
        G, lw_pad(G, X(-1, 1, 2, 4, 5, 3), (const int[3]){1, 0, 2}, (const int[3]){2, -1, 0}));
}
/* Everything that is moved, in pieces of four. */
static lw_val b_move_quads(op_ctx *c)
{
    lw_val x = lw_concat(G, op_f32(c, false, -1, 1, DIMS(2, 3, 4, 8)),
                         op_f32(c, false, -1, 1, DIMS(2, 3, 4, 12)), -1);
    x = lw_slice(G, x, 3, 4, 16);
    x = lw_pad(G, lw_sqr(G, x), (const int[3]){1, 0, 4}, (const int[3]){2, -1, 0});
    x = lw_subsample(G, lw_upsample(G, lw_sqr(G, x), 4), 2);
    return lw_sqr(G, lw_patches(G, lw_sqr(G, x), 2));
}
static lw_val b_subsample(op_ctx *c)
{
    return lw_sqr(G, lw_subsample(G, X(-1, 1, 2, 5, 6, 7), 2));
}
static lw_val b_patches(op_ctx *c)
{
    return lw_sqr(G, lw_patches(G, X(-1, 1, 2, 4, 6, 3), 2));
}
static lw_val b_patches_bf16(op_ctx *c)
{
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(2, 4, 6, 3)));
    return lw_cast(G, lw_patches(G, x, 2), LW_F32, LW_NOVAL);
}
static lw_val b_upsample(op_ctx *c)
{
    return lw_sqr(G, lw_upsample(G, X(-1, 1, 2, 3, 4, 7), 2));
}
static lw_val b_avg_pool(op_ctx *c)
{
    return lw_sqr(G, lw_pool2d(G, X(-1, 1, 2, 8, 7, 5), 3, 2, 1, false));
}
static lw_val b_mean_inside(op_ctx *c)
{
    lw_val half = lw_mean_inside(G, X(-1, 1, 2, 8, 7, 5), 3, 2, 1);
    return lw_sqr(G, lw_mean_inside(G, half, 3, 1, 1));
}
static lw_val b_max_pool(op_ctx *c)
{
    return lw_sqr(G, lw_pool2d(G, X(-1, 1, 2, 8, 7, 5), 2, 2, 0, true));
}
#define TO(high, wide, how, ...) \
    ((lw_attr_resize){           \
        .h = high, .w = wide, .form = LW_RESAMPLE_##how, .filter = LW_FILTER_##__VA_ARGS__})
static lw_val b_resize(op_ctx *c)
{
    return lw_sqr(G, lw_resize(G, X(-1, 1, 2, 5, 4, 3), TO(9, 7, TORCH, BILINEAR)));
}
static lw_val b_resize_bicubic(op_ctx *c)
{
    return lw_sqr(G, lw_resize(G, X(-1, 1, 2, 7, 4, 3), TO(2, 9, TORCH, BICUBIC)));
}
static lw_val b_resize_aa(op_ctx *c)
{
    return lw_sqr(G, lw_resize(G, X(-1, 1, 2, 7, 9, 18), TO(3, 4, FLOAT_AA, BICUBIC)));
}
static lw_val b_resize_one_axis(op_ctx *c)
{
    lw_val across = lw_resize(G, X(-1, 1, 2, 5, 4, 3), TO(5, 7, FLOAT_AA, BILINEAR));
    return lw_sqr(G, lw_resize(G, across, TO(2, 7, FLOAT_AA, LANCZOS)));
}
static lw_val b_resize_tf(op_ctx *c)
{
    lw_val up = lw_resize(G, X(-1, 1, 2, 3, 9, 3), TO(7, 9, TF_INCEPTION, BILINEAR));
    return lw_sqr(G, lw_resize(G, up, TO(5, 4, TF_INCEPTION, BILINEAR)));
}
static lw_val b_resize_scale(op_ctx *c)
{
    lw_val x = X(-1, 1, 1, 9, 5, 20);
    return lw_sqr(G, lw_resize(G, x, TO(4, 5, TORCH, BICUBIC, .scale = {4.1 / 9, 5.1 / 5})));
}
/* LayerNorm and residual of rows of one slot. */
static lw_val b_layer_norm(op_ctx *c)
{
    lw_val x = X(-1, 1, 2, 3, 7, 50), gamma = X(.5f, 1.5f, 50), beta = X(-1, 1, 50);
    return lw_sqr(G, lw_layer_norm_op(G, x, gamma, beta, X(-1, 1, 2, 3, 7, 50), 1e-5f));
}
static lw_val b_layer_norm_rows(op_ctx *c)
{
    lw_val x = X(-1, 1, 37, 50), gamma = X(.5f, 1.5f, 50), beta = X(-1, 1, 50);
    return lw_layer_norm_op(G, x, gamma, beta, LW_NOVAL, 1e-5f);
}

/* Tokens in a row, and the two axes of a picture. */
static lw_val b_rope(op_ctx *c)
{
    lw_val x = lw_rope(G, X(-1, 1, 2, 5, 36), op_f32(c, false, -1, 1, DIMS(5, 1, 18)));
    return lw_sqr(G, lw_rope(G, x, op_f32(c, false, -1, 1, DIMS(5, 2, 6))));
}
static lw_val b_rms_norm(op_ctx *c)
{
    lw_val x = lw_rms_norm_op(G, X(-1, 2, 2, 3, 7, 50), X(.5f, 1.5f, 50), 1e-6f);
    return lw_sqr(G, lw_rms_norm_op(G, lw_reshape(G, x, lw_type_of(LW_F32, 4, 2, 21, 5, 10)),
                                    LW_NOVAL, 1e-6f));
}

/* The rows of runs 0 .. 3; the harness' runs have step 3. */
/* Two frames of 37 x 11 pixels: their RGB, and that of what is made of it again. */
static lw_val b_frame(op_ctx *c, lw_pixels_form form)
{
    const lw_attr_pixels a = {
        .form = form, .matrix = LW_MATRIX_709, .w = 37, .h = 11, .to = LW_F32};
    lw_val rgb = lw_frame_to_rgb(
        G, op_u8(c, 2, (int32_t)lw_pixels_form_bytes(form, (size_t)a.w, (size_t)a.h)), a);
    lw_val noisy = lw_add(G, rgb, op_f32(c, false, -2, 2, DIMS(2, 11, 37, 3)));
    return lw_concat(G, rgb, lw_frame_to_rgb(G, lw_rgb_to_frame(G, noisy, a), a), 3);
}
#define FRAME(name, form)                    \
    static lw_val b_frame_##name(op_ctx *c)  \
    {                                        \
        return b_frame(c, LW_PIXELS_##form); \
    }
FRAME(420, 420)
FRAME(422, 422)
FRAME(444, 444)
FRAME(nv12, NV12)
FRAME(yuyv, YUYV)
FRAME(gray, GRAY)
FRAME(rgb, RGB)

static lw_val b_reverse_step(op_ctx *c)
{
    enum { N = 700 };
    lw_reverse row[4] = {{0}};
    row[3] = (lw_reverse){.a = .6, .s = .8, .c0 = .7, .c1 = .5, .c2 = .3, .c3 = .1};
    row[3].clip = 1.0;
    row[3].limit = 1.25;
    lw_val numbers = lw_at_step(G, lw_const(G, lw_type_of(LW_I64, 2, 4, 8), row));
    lw_val x = X(-1, 1, 3, N), y = X(-1, 1, 3, N), noise = X(-1, 1, 3, N);
    lw_val a = lw_reverse_step_op(G, x, y, numbers, noise, LW_PREDICT_EPSILON, false);
    lw_val b = lw_reverse_step_op(G, x, y, numbers, LW_NOVAL, LW_PREDICT_VELOCITY, true);
    lw_val d = lw_reverse_step_op(G, x, y, numbers, noise, LW_PREDICT_FLOW, false);
    return lw_add(G, lw_add(G, a, b), d);
}

static lw_val b_embedding(op_ctx *c)
{
    return lw_sqr(G, lw_embedding(G, X(-1, 1, 10, 13), op_i32(c, 10, 8)));
}

/* Arguments' signs; pads, repeated ids and ids behind the table are among them. */
static lw_val b_embedding_bag(op_ctx *c)
{
    lw_val table = X(-1, 1, 10, 37);
    return lw_sqr(G, lw_embedding_bag(G, table, op_i32(c, 12, 7 * 6), X(-1, 1, 7, 37), 6, 2, 2));
}
static lw_val b_embedding_bag_plain(op_ctx *c)
{
    lw_val table = X(-1, 1, 5, 150);
    return lw_sqr(G, lw_embedding_bag(G, table, op_i32(c, 5, 33 * 3), LW_NOVAL, 3, 1, 0));
}

static lw_val b_random(op_ctx *c)
{
    lw_val rows = op_rows(c, 4);
    lw_val n = lw_random(G, "noise", LW_RANDOM_NORMAL, 0, lw_type_of(LW_F32, 3, 4, 5, 7), rows);
    lw_val u = lw_random(G, "u", LW_RANDOM_UNIFORM, 0, lw_type_of(LW_F32, 3, 4, 5, 7), rows);
    return lw_add(G, n, lw_scale(G, u, 3));
}
static lw_val b_dropout(op_ctx *c)
{
    lw_val x = X(-1, 1, 4, 5, 7);
    return lw_sqr(G, lw_dropout(G, x, op_rows(c, 4), .3f));
}
static lw_val b_dropout2d(op_ctx *c)
{
    return lw_sqr(G, lw_dropout2d(G, X(-1, 1, 4, 3, 5, 7), op_rows(c, 4), .3f));
}
static lw_val b_stats(op_ctx *c)
{
    lw_val s[LW_STATS], y = LW_NOVAL;
    lw_feature_stats(G, X(-1, 1, 2, 8, 8, 5), s);
    for (int i = 0; i < LW_STATS; i++) {
        lw_val t = lw_sum(G, lw_sqr(G, s[i]), LW_OVER_BATCH);
        y = lw_val_ok(y) ? lw_add(G, y, lw_scale(G, t, 0.5f + (float)i)) : t;
    }
    return y;
}
static lw_val b_drift(op_ctx *c) /* its gradient is closed form: compared, not differenced */
{
    const lw_attr_drift a = {.groups = 2,
                             .n = 5,
                             .np = 7,
                             .nu = 3,
                             .slots = 3,
                             .c = 9,
                             .n_tau = 3,
                             .tau = {.02, .05, .2},
                             .normalize_over_x = 1};
    lw_val gen = op_f32(c, false, -1, 1, DIMS(10, 3, 9)),
           pos = op_f32(c, false, -.5f, 1.5f, DIMS(14, 3, 9));
    lw_val unc = op_f32(c, false, -1, 1, DIMS(6, 3, 9)), w = op_f32(c, false, .5f, 2, DIMS(2));
    lw_drift_out o = lw_drift_field(G, gen, pos, unc, w, &a);
    return lw_add(G, lw_scale(G, o.dx, 100.0f), lw_mul(G, o.loss, lw_sum(G, o.stats, LW_OVER_ALL)));
}
/* More targets and channels than a GPU's tiles have. */
static lw_val b_drift_wide(op_ctx *c)
{
    const lw_attr_drift a = {.groups = 1,
                             .n = 21,
                             .np = 37,
                             .slots = 2,
                             .c = 70,
                             .n_tau = 2,
                             .tau = {.05, .2},
                             .normalize_over_x = 1};
    lw_val gen = op_f32(c, false, -1, 1, DIMS(21, 2, 70)),
           pos = op_f32(c, false, -.5f, 1.5f, DIMS(37, 2, 70));
    lw_drift_out o = lw_drift_field(G, gen, pos, LW_NOVAL, LW_NOVAL, &a);
    return lw_add(G, lw_add(G, lw_scale(G, o.dx, 100.0f), o.field), o.loss);
}
static lw_val b_unet_like(op_ctx *c) /* a residual block with everything in it */
{
    lw_val x = X(-1, 1, 2, 8, 8, 16), temb = X(-1, 1, 2, 24);
    lw_val h = lw_group_norm_op(G, x, X(.5f, 1.5f, 16), X(-.5f, .5f, 16), LW_NOVAL, LW_NOVAL, 8,
                                1e-5f, LW_ACT_SILU);
    h = lw_conv2d_op(G, h, X(-.2f, .2f, 32, 3, 3, 16), X(-.5f, .5f, 32), 1, 1);
    lw_val ss = lw_linear_op(G, lw_silu(G, temb), X(-.3f, .3f, 64, 24), X(-.2f, .2f, 64));
    h = lw_group_norm_op(G, h, op_f32(c, false, .5f, 1.5f, DIMS(32)),
                         op_f32(c, false, -.5f, .5f, DIMS(32)), lw_slice(G, ss, 1, 0, 32),
                         lw_slice(G, ss, 1, 32, 64), 8, 1e-5f, LW_ACT_SILU);
    lw_val skip = lw_conv2d_op(G, x, op_f32(c, false, -.4f, .4f, DIMS(32, 1, 1, 16)), LW_NOVAL, 1,
                               0);
    return lw_add(G, h, skip);
}

#define CASE(name, build, tol, grad_tol)  \
    {                                     \
        name, build, tol, grad_tol, false \
    }
#define KINKS(name, build, tol, grad_tol) \
    {                                     \
        name, build, tol, grad_tol, true  \
    }
static const op_case cases[] = {
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
    KINKS("conv_residual", b_conv_residual, 2e-5, 2e-2),
    CASE("conv_to_rgb", b_conv_to_rgb, 2e-5, 3e-3),
    CASE("conv_transpose", b_conv_transpose, 2e-5, 3e-3),
    CASE("depthwise", b_depthwise, 2e-5, 3e-3),
    CASE("depthwise_same", b_depthwise_same, 2e-5, 3e-3),
    CASE("depthwise5", b_depthwise5, 2e-5, 3e-3),
    KINKS("depthwise_block", b_depthwise_block, 5e-5, 3e-2),
    CASE("cast", b_cast, 0, 0),
    CASE("linear_bf16", b_linear_bf16, 2e-5, 0),
    CASE("linear_wide_bf16", b_linear_wide_bf16, 2e-5, 0),
    CASE("matmul_nn_bf16", b_matmul_nn_bf16, 2e-5, 0),
    CASE("conv3_wide_bf16", b_conv3_wide_bf16, 5e-5, 0),
    CASE("conv3_dx_bf16", b_conv3_dx_bf16, 5e-5, 0),
    CASE("linear_fixed_bf16", b_linear_fixed_bf16, 2e-5, 0),
    CASE("matmul_fixed_bf16", b_matmul_fixed_bf16, 2e-5, 0),
    CASE("conv3_fixed_bf16", b_conv3_fixed_bf16, 5e-5, 0),
    CASE("conv3_dx_fixed_bf16", b_conv3_dx_fixed_bf16, 5e-5, 0),
    CASE("linear_few_tiles", b_linear_few_tiles, 5e-5, 0),
    CASE("linear_few_tiles_bf16", b_linear_few_tiles_bf16, 5e-5, 0),
    CASE("linear_some_tiles", b_linear_some_tiles, 5e-5, 0),
    CASE("linear_some_tiles_bf16", b_linear_some_tiles_bf16, 5e-5, 0),
    CASE("linear_half_tiles", b_linear_half_tiles, 5e-5, 0),
    CASE("linear_many_tiles", b_linear_many_tiles, 5e-5, 0),
    CASE("linear_many_tiles_bf16", b_linear_many_tiles_bf16, 5e-5, 0),
    CASE("conv3_narrow_tiles", b_conv3_narrow_tiles, 5e-5, 0),
    CASE("conv3_narrow_tiles_bf16", b_conv3_narrow_tiles_bf16, 5e-5, 0),
    CASE("conv3_apart_tiles", b_conv3_apart_tiles, 5e-5, 0),
    CASE("conv3_apart_tiles_bf16", b_conv3_apart_tiles_bf16, 5e-5, 0),
    CASE("conv3_from_rgb_tiles", b_conv3_from_rgb_tiles, 5e-5, 0),
    CASE("conv3_to_rgb_tiles", b_conv3_to_rgb_tiles, 1e-4, 0),
    CASE("conv3_to_rgb_tiles_bf16", b_conv3_to_rgb_tiles_bf16, 1e-4, 0),
    CASE("conv3_whole_tiles", b_conv3_whole_tiles, 5e-5, 0),
    CASE("conv3_whole_tiles_bf16", b_conv3_whole_tiles_bf16, 5e-5, 0),
    CASE("conv3_parts_tiles", b_conv3_parts_tiles, 1e-4, 0),
    CASE("conv3_parts_tiles_bf16", b_conv3_parts_tiles_bf16, 1e-4, 0),
    CASE("conv3_deep_tiles", b_conv3_deep_tiles, 1e-4, 0),
    CASE("conv3_twice_tiles", b_conv3_twice_tiles, 1e-4, 0),
    CASE("conv3_deep_tiles_bf16", b_conv3_deep_tiles_bf16, 1e-4, 0),
    CASE("conv4_dx_tiles", b_conv4_dx_tiles, 5e-5, 0),
    CASE("conv4_dx_tiles_bf16", b_conv4_dx_tiles_bf16, 5e-5, 0),
    CASE("matmul_few_tiles_bf16", b_matmul_few_tiles_bf16, 5e-5, 0),
    CASE("matmul_tn_bf16", b_matmul_tn_bf16, 2e-5, 0),
    CASE("conv3_bf16", b_conv3_bf16, 5e-5, 0),
    CASE("conv3_grads_bf16", b_conv3_grads_bf16, 2e-4, 0),
    CASE("conv3_pads_bf16", b_conv3_pads_bf16, 2e-4, 0),
    CASE("conv3_pads_u8", b_conv3_pads_u8, 2e-5, 0),
    CASE("linear_u8", b_linear_u8, 1e-5, 0),
    PIXELS_STAY_CASES BF16_VALUE_CASES CASE("norm_conv_u8", b_norm_conv_u8, 5e-2,
                                            0), /* a rounding of the norm moves a byte by one */
    CASE("ew_bf16", b_ew_bf16, 8e-3, 0),
    CASE("norm_bf16", b_norm_bf16, 8e-3, 0), /* or a bf16 by its last bit */
    CASE("upconv", b_upconv, 2e-5, 3e-3),
    CASE("upconv_weight", b_upconv_weight, 1e-5, 3e-3),
    CASE("norm", b_norm, 2e-5, 5e-3),
    CASE("norm_odd", b_norm_odd, 2e-5, 0),
    CASE("norm_even", b_norm_even, 2e-5, 0),
    CASE("norm_far", b_norm_far, 2e-5, 0),
    CASE("norm_sectors", b_norm_sectors, 2e-5, 0),
    CASE("norm_wide", b_norm_wide, 2e-5, 0),
    CASE("norm_rows", b_norm_rows, 2e-5, 0),
    CASE("norm_ada", b_norm_ada, 2e-5, 5e-3),
    CASE("norm_slices", b_norm_slices, 2e-5, 0),
    CASE("norm_slices_odd", b_norm_slices_odd, 2e-5, 0),
    CASE("norm_slices_twice", b_norm_slices_twice, 2e-5, 0),
    CASE("norm_plain", b_norm_relu, 2e-5, 5e-3),
    CASE("attention", b_attention, 2e-5, 5e-3),
    CASE("attention_pool", b_attention_pool, 2e-5, 5e-3),
    CASE("attention_qkv", b_attention_qkv, 2e-5, 5e-3),
    CASE("attention_shared", b_attention_shared, 2e-5, 5e-3),
    CASE("attention_windows", b_attention_windows, 2e-5, 0),
    CASE("attention_3_1_2_4", b_attention_3_1_2_4, 2e-5, 0),
    CASE("attention_2_15_3_20", b_attention_2_15_3_20, 2e-5, 0),
    CASE("attention_1_63_2_32", b_attention_1_63_2_32, 2e-5, 0),
    CASE("attention_1_64_1_40", b_attention_1_64_1_40, 2e-5, 0),
    CASE("attention_1_65_2_64", b_attention_1_65_2_64, 2e-5, 0),
    CASE("attention_1_66_1_72", b_attention_1_66_1_72, 2e-5, 0),
    CASE("attention_1_129_1_128", b_attention_1_129_1_128, 2e-5, 0),
    CASE("attention_1_257_1_64", b_attention_1_257_1_64, 2e-5, 0),
    CASE("attention_1_18_2_42", b_attention_1_18_2_42, 2e-5, 0),
    CASE("attention_1_18_1_132", b_attention_1_18_1_132, 2e-5, 0),
    CASE("attention_pool_wide", b_attention_pool_wide, 2e-5, 0),
    CASE("attention_qkv_wide", b_attention_qkv_wide, 2e-5, 0),
    CASE("attention_windows_wide", b_attention_windows_wide, 2e-5, 0),
    CASE("attention_steep", b_attention_steep, 5e-4, 0),
    CASE("attention_2_1_2_8_bf16", b_attention_2_1_2_8_bf16, 8e-3, 0),
    CASE("attention_1_15_3_16_bf16", b_attention_1_15_3_16_bf16, 8e-3, 0),
    CASE("attention_2_16_1_24_bf16", b_attention_2_16_1_24_bf16, 8e-3, 0),
    CASE("attention_1_17_2_40_bf16", b_attention_1_17_2_40_bf16, 8e-3, 0),
    CASE("attention_1_63_1_64_bf16", b_attention_1_63_1_64_bf16, 8e-3, 0),
    CASE("attention_1_64_2_72_bf16", b_attention_1_64_2_72_bf16, 8e-3, 0),
    CASE("attention_1_65_1_128_bf16", b_attention_1_65_1_128_bf16, 8e-3, 0),
    CASE("attention_1_257_1_64_bf16", b_attention_1_257_1_64_bf16, 8e-3, 0),
    CASE("attention_1_129_1_20_bf16", b_attention_1_129_1_20_bf16, 8e-3, 0),
    CASE("attention_1_18_1_42_bf16", b_attention_1_18_1_42_bf16, 8e-3, 0),
    CASE("attention_1_66_132_40_bf16", b_attention_1_66_132_40_bf16, 8e-3, 0),
    CASE("attention_1_100_132_40_bf16", b_attention_1_100_132_40_bf16, 8e-3, 0),
    CASE("attention_1_18_1_136_bf16", b_attention_1_18_1_136_bf16, 8e-3, 0),
    CASE("attention_1_290_2_12_bf16", b_attention_1_290_2_12_bf16, 8e-3, 0),
    CASE("attention_pool_bf16", b_attention_pool_bf16, 8e-3, 0),
    CASE("attention_qkv_bf16", b_attention_qkv_bf16, 8e-3, 0),
    CASE("attention_windows_bf16", b_attention_windows_bf16, 4e-3, 0),
    CASE("softmax", b_softmax, 1e-5, 5e-3),
    CASE("softmax_far", b_softmax_far, 1e-5, 0),
    KINKS("pairs_l1", b_pairs_l1, 1e-5, 2e-2),
    CASE("pairs_l2", b_pairs_l2, 1e-5, 5e-3),
    CASE("pairs_modulus", b_pairs_modulus, 1e-5, 5e-3),
    CASE("cross_entropy", b_ce, 1e-5, 5e-3),
    CASE("ew_chain", b_ew_chain, 1e-5, 5e-3),
    CASE("ew_quads", b_ew_quads, 1e-5, 0),
    CASE("ew_triples", b_ew_triples, 1e-5, 0),
    CASE("ew_places", b_ew_places, 1e-4, 0),
    CASE("ew_unary", b_ew_unary, 1e-5, 5e-3),
    KINKS("ew_minmax", b_ew_minmax, 1e-5, 2e-2),
    KINKS("relu6", b_relu6, 1e-5, 2e-2),
    KINKS("relu6_fused", b_relu6_fused, 1e-4, 3e-2),
    CASE("broadcast", b_broadcast, 1e-5, 5e-3),
    CASE("sums", b_sums, 1e-5, 5e-3),
    CASE("big_sum", b_big_sum, 1e-5, 5e-3),
    CASE("all_sum", b_all_sum, 1e-5, 5e-3),
    CASE("concat", b_concat, 1e-5, 5e-3),
    CASE("pad", b_pad, 1e-5, 5e-3),
    CASE("move_quads", b_move_quads, 1e-5, 0),
    CASE("subsample", b_subsample, 1e-5, 5e-3),
    CASE("patches", b_patches, 1e-5, 5e-3),
    CASE("patches_bf16", b_patches_bf16, 0, 0),
    CASE("upsample", b_upsample, 1e-5, 5e-3),
    CASE("avg_pool", b_avg_pool, 1e-5, 5e-3),
    CASE("avg_pool inside", b_mean_inside, 1e-5, 5e-3),
    KINKS("max_pool", b_max_pool, 1e-5, 2e-2),
    CASE("resize", b_resize, 1e-5, 5e-3),
    CASE("resize bicubic", b_resize_bicubic, 1e-5, 5e-3),
    CASE("resize antialias", b_resize_aa, 1e-5, 5e-3),
    CASE("resize as tensorflow 1", b_resize_tf, 1e-5, 5e-3),
    CASE("resize one axis", b_resize_one_axis, 1e-5, 5e-3),
    CASE("resize scale", b_resize_scale, 1e-5, 5e-3),
    CASE("layer_norm", b_layer_norm, 1e-5, 1e-2),
    CASE("layer_norm_rows", b_layer_norm_rows, 1e-5, 1e-2),
    CASE("rope", b_rope, 1e-5, 3e-3),
    CASE("rms_norm", b_rms_norm, 1e-5, 1e-2),
    CASE("frame 420", b_frame_420, 0, 0),
    CASE("frame 422", b_frame_422, 0, 0),
    CASE("frame 444", b_frame_444, 0, 0),
    CASE("frame nv12", b_frame_nv12, 0, 0),
    CASE("frame yuyv", b_frame_yuyv, 0, 0),
    CASE("frame gray", b_frame_gray, 0, 0),
    CASE("frame rgb", b_frame_rgb, 0, 0),
    CASE("reverse_step", b_reverse_step, 1e-7, 0),
    CASE("embedding", b_embedding, 1e-5, 5e-3),
    CASE("embedding_bag", b_embedding_bag, 1e-5, 5e-3),
    CASE("embedding_bag_plain", b_embedding_bag_plain, 1e-5, 5e-3),
    CASE("random", b_random, 1e-6, 0),
    CASE("dropout", b_dropout, 1e-5, 5e-3),
    CASE("dropout2d", b_dropout2d, 1e-5, 5e-3),
    CASE("stats", b_stats, 2e-5, 5e-3),
    CASE("drift_field", b_drift, 1e-4, 0),
    CASE("drift_wide", b_drift_wide, 1e-4, 0),
    CASE("resblock", b_unet_like, 5e-5, 2e-2),
};

static void test_all(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < LW_COUNT(cases); i++)
        bad += op_check(&cases[i]);
    assert_int_equal(bad, 0);
}

/* LW_OPS_ONLY: parts of names, with commas between them; NULL or none: all. */
static bool is_chosen(const char *name, const char *only)
{
    char part[64];
    if (!only || !*only)
        return true;
    for (; *only; only += *only == ',') {
        size_t n = strcspn(only, ",");
        snprintf(part, sizeof part, "%.*s", (int)n, only);
        if (n && strstr(name, part))
            return true;
        only += n;
    }
    return false;
}

/* LW_OPS_DEVICE: the cases that this device computes, forward, at least LW_OPS_LEAST of them. LW_OPS_FIRST: up to the first
 * that is wrong. */
static void test_device(void **state)
{
    const char *only = getenv("LW_OPS_ONLY"), *first = getenv("LW_OPS_FIRST");
    const char *device = getenv("LW_OPS_DEVICE"), *least = getenv("LW_OPS_LEAST");
    int bad = 0, computed = 0;
    (void)state;
    for (size_t i = 0; i < LW_COUNT(cases) && !(first && bad); i++) {
        if (!is_chosen(cases[i].name, only))
            continue;
        int rc = op_check_on(&cases[i], device);
        if (rc < 0)
            printf("not on %s: %s: %s\n", device, cases[i].name, lw_errmsg());
        bad += rc > 0;
        computed += rc >= 0;
    }
    printf("%d of %zu cases on %s, %d wrong\n", computed, LW_COUNT(cases), device, bad);
    assert_int_equal(bad, 0);
    assert_true(computed >= (least ? (int)strtol(least, NULL, 10) : 1));
}

/* An op cannot stay without a case: every op that runs was in some graph above. Packing is the
 * device's own, chains are made by a pass (tests/plan/test_plan_chain.c). */
static void test_coverage(void **state)
{
    (void)state;
    for (int i = 0; i < LW_OP_COUNT; i++) {
        if (lw_op_get((lw_op)i)->flags & (LW_OPF_LEAF | LW_OPF_ALIAS) || i == LW_OP_PACK ||
            i == LW_OP_CONV_CHAIN)
            continue;
        if (!op_seen((lw_op)i))
            printf("no case has op '%s'\n", lw_op_get((lw_op)i)->name);
        assert_true(op_seen((lw_op)i));
    }
}

/* Walks the table of ops: no hole where a rule is expected. */
static void test_records(void **state)
{
    (void)state;
    for (int i = 0; i < LW_OP_COUNT; i++) {
        const lw_op_def *d = lw_op_get((lw_op)i);
        assert_non_null(d->name);
        assert_non_null(d->infer);
        assert_non_null(d->grad);
        assert_non_null(d->cost);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records), cmocka_unit_test(test_all),
                                       cmocka_unit_test(test_coverage)};
    const struct CMUnitTest on_device[] = {cmocka_unit_test(test_device)};
    if (getenv("LW_OPS_DEVICE"))
        return cmocka_run_group_tests_name("ops on a device", on_device, NULL, NULL);
    return cmocka_run_group_tests_name("ops", tests, NULL, NULL);
}
