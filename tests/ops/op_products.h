/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of products of narrow operands, and of those whose tiles GPUs have. */
#ifndef LW_TESTS_OP_PRODUCTS_H
#define LW_TESTS_OP_PRODUCTS_H

#include "ops/op_build.h"

/* A square filter and a zero on each side. */
#define AROUND(side, step) \
    .kh = side, .kw = side, .stride = step, .pad_t = 1, .pad_l = 1, .pad_b = 1, .pad_r = 1

/* ---- narrow operands: rounded once, then the same numbers everywhere */

static lw_val pair(op_ctx *c, float scale, float zero)
{
    return lw_const(G, lw_type_of(LW_F32, 1, 2), (float[]){scale, zero});
}
static lw_val b_cast(op_ctx *c)
{
    return lw_cast(G, bf16(c, op_f32(c, false, -9, 9, DIMS(3, 5, 67))), LW_F32, LW_NOVAL);
}
static lw_val b_linear_bf16(op_ctx *c)
{
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(3, 7, 18)));
    return lw_linear_op(G, x, op_f32(c, false, -1, 1, DIMS(37, 18)),
                        op_f32(c, false, -1, 1, DIMS(37)));
}
/* Rows that tensor cores' kernels load eight numbers at a time, beyond a tile in every direction. */
static lw_val b_linear_wide_bf16(op_ctx *c)
{
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(67, 72)));
    return lw_linear_op(G, x, op_f32(c, false, -1, 1, DIMS(66, 72)),
                        op_f32(c, false, -1, 1, DIMS(66)));
}
static lw_val b_matmul_nn_bf16(op_ctx *c)
{
    return lw_matmul(G, bf16(c, op_f32(c, false, -1, 1, DIMS(65, 40))),
                     op_f32(c, false, -1, 1, DIMS(40, 35)), false, false);
}
static lw_val b_conv3_wide_bf16(op_ctx *c)
{
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(1, 9, 8, 24)));
    return lw_conv2d_op(G, x, op_f32(c, false, -.4f, .4f, DIMS(65, 3, 3, 24)),
                        op_f32(c, false, -1, 1, DIMS(65)), 1, 1);
}
static lw_val conv3_dx(op_ctx *c, lw_val dy, lw_val w)
{
    const lw_attr_conv a = {AROUND(3, 2), .h = 9, .w = 8, .c = 10, .o = 24};
    return lw_graph_op(G, LW_OP_CONV2D_DX, (lw_val[]){dy, w}, 2, &a, sizeof a);
}
static lw_val b_conv3_dx_bf16(op_ctx *c)
{
    lw_val dy = bf16(c, op_f32(c, false, -1, 1, DIMS(1, 5, 4, 24)));
    return conv3_dx(c, dy, op_f32(c, false, -1, 1, DIMS(24, 3, 3, 10)));
}
/* The same of weights known before a run, which a device may lay out for itself. */
static lw_val fixed(op_ctx *c, lw_type t)
{
    float *v = lw_arena_alloc(lw_graph_arena(G), lw_type_bytes(t));
    for (int64_t i = 0; v && i < lw_type_count(t); i++)
        v[i] = (float)lw_rng_uniform(lw_rng_key_of(23, 0), 0, 0, (uint64_t)i) - 0.5f;
    return v ? lw_const(G, t, v) : LW_NOVAL;
}
static lw_val b_linear_fixed_bf16(op_ctx *c)
{
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(67, 70)));
    return lw_linear_op(G, x, fixed(c, lw_type_of(LW_F32, 2, 66, 70)),
                        op_f32(c, false, -1, 1, DIMS(66)));
}
static lw_val b_matmul_fixed_bf16(op_ctx *c)
{
    return lw_matmul(G, bf16(c, op_f32(c, false, -1, 1, DIMS(65, 40))),
                     fixed(c, lw_type_of(LW_F32, 2, 40, 35)), false, false);
}
static lw_val b_conv3_fixed_bf16(op_ctx *c)
{
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(1, 9, 8, 24)));
    return lw_conv2d_op(G, x, fixed(c, lw_type_of(LW_F32, 4, 65, 3, 3, 24)),
                        op_f32(c, false, -1, 1, DIMS(65)), 1, 1);
}
static lw_val b_conv3_dx_fixed_bf16(op_ctx *c)
{
    lw_val dy = bf16(c, op_f32(c, false, -1, 1, DIMS(1, 5, 4, 24)));
    return conv3_dx(c, dy, fixed(c, lw_type_of(LW_F32, 4, 24, 3, 3, 10)));
}
/* Tiles of products of bf16 on GPUs: a few, whose depth several blocks share, and many, the last in each direction cut off.
 * Everything that may be done to sums behind them. */
static lw_val linear_tiles(op_ctx *c, bool narrow, int32_t m, int32_t k, int32_t n)
{
    lw_attr_matmul a = {.trans_b = true, .act = LW_ACT_SILU};
    lw_val x = op_f32(c, false, -1, 1, DIMS(m, k));
    x = narrow ? bf16(c, x) : x;
    return lw_graph_op(G, LW_OP_MATMUL,
                       (lw_val[]){x, fixed(c, lw_type_of(LW_F32, 2, n, k)),
                                  op_f32(c, false, -1, 1, DIMS(n)),
                                  op_f32(c, false, -1, 1, DIMS(m, n))},
                       4, &a, sizeof a);
}
#define LINEAR_TILES(name, m, k, n)                       \
    static lw_val b_linear_##name##_tiles(op_ctx *c)      \
    {                                                     \
        return linear_tiles(c, false, m, k, n);           \
    }                                                     \
    static lw_val b_linear_##name##_tiles_bf16(op_ctx *c) \
    {                                                     \
        return linear_tiles(c, true, m, k, n);            \
    }
LINEAR_TILES(few, 130, 264, 68)
LINEAR_TILES(some, 8100, 72, 132)
LINEAR_TILES(many, 16800, 136, 132)
LINEAR_TILES(half, 300, 76, 132) /* rows begin at multiples of eight bytes, not of sixteen */
static lw_val b_matmul_few_tiles_bf16(op_ctx *c)
{
    return lw_matmul(G, bf16(c, op_f32(c, false, -1, 1, DIMS(65, 40))),
                     fixed(c, lw_type_of(LW_F32, 2, 40, 36)), false, false);
}
static lw_val conv_tiles(op_ctx *c, bool narrow, lw_attr_conv a, int32_t batch)
{
    int32_t oh = (a.h + a.pad_t + a.pad_b - a.kh) / a.stride + 1;
    int32_t ow = (a.w + a.pad_l + a.pad_r - a.kw) / a.stride + 1;
    a.act = LW_ACT_SILU;
    lw_val x = op_f32(c, false, -1, 1, DIMS(batch, a.h, a.w, a.c));
    x = narrow ? bf16(c, x) : x;
    return lw_graph_op(G, LW_OP_CONV2D,
                       (lw_val[]){x, fixed(c, lw_type_of(LW_F32, 4, a.o, a.kh, a.kw, a.c)),
                                  op_f32(c, false, -1, 1, DIMS(a.o)),
                                  op_f32(c, false, -1, 1, DIMS(batch, oh, ow, a.o)), LW_NOVAL,
                                  op_f32(c, false, -1, 1, DIMS(batch, a.o))},
                       6, &a, sizeof a);
}
#define CONV3_TILES(name, batch, ...)                                    \
    static lw_val b_conv3_##name##_tiles(op_ctx *c)                      \
    {                                                                    \
        return conv_tiles(c, false, (lw_attr_conv){__VA_ARGS__}, batch); \
    }                                                                    \
    static lw_val b_conv3_##name##_tiles_bf16(op_ctx *c)                 \
    {                                                                    \
        return conv_tiles(c, true, (lw_attr_conv){__VA_ARGS__}, batch);  \
    }
CONV3_TILES(narrow, 3, AROUND(3, 1), .h = 7, .w = 5, .c = 8, .o = 12)
CONV3_TILES(apart, 5, .kh = 3, .kw = 3, .stride = 2, .pad_l = 2, .pad_b = 2, .h = 8, .w = 7,
            .c = 24, .o = 68)
static lw_val b_conv3_from_rgb_tiles(op_ctx *c)
{
    return conv_tiles(c, false, (lw_attr_conv){AROUND(3, 1), .h = 9, .w = 8, .c = 3, .o = 132}, 2);
}
CONV3_TILES(to_rgb, 2, AROUND(3, 1), .h = 9, .w = 8, .c = 132, .o = 3)
CONV3_TILES(whole, 3, .kh = 3, .kw = 3, .stride = 1, .h = 3, .w = 3, .c = 8, .o = 12)
/* So many pictures that one block computes all splits of K, one after the other. */
static lw_val b_conv3_splits_tiles(op_ctx *c)
{
    return conv_tiles(c, false, (lw_attr_conv){AROUND(3, 1), .h = 4, .w = 4, .c = 88, .o = 20},
                      1056);
}
static lw_val b_conv3_splits_tiles_bf16(op_ctx *c)
{
    return conv_tiles(c, true, (lw_attr_conv){AROUND(3, 1), .h = 4, .w = 4, .c = 88, .o = 132},
                      512);
}
CONV3_TILES(deep, 1, AROUND(3, 1), .h = 4, .w = 4, .c = 264, .o = 68)
/* Input tiles with a halo, kept for all taps: one chunk of channels, several that are splits of K, several in one split. */
#define HALO_TILES(name, batch, ...)                                    \
    static lw_val b_conv3_halo_##name(op_ctx *c)                        \
    {                                                                   \
        return conv_tiles(c, true, (lw_attr_conv){__VA_ARGS__}, batch); \
    }
HALO_TILES(one, 3, AROUND(3, 1), .h = 7, .w = 5, .c = 64, .o = 12)
HALO_TILES(splits, 5, AROUND(3, 1), .h = 5, .w = 9, .c = 192, .o = 68)
HALO_TILES(eight, 1, AROUND(3, 1), .h = 4, .w = 4, .c = 512, .o = 68) /* the most splits */
HALO_TILES(line, 2, AROUND(3, 1), .h = 1, .w = 32, .c = 128, .o = 4)
HALO_TILES(column, 2, AROUND(3, 1), .h = 70, .w = 1, .c = 64, .o = 8)
HALO_TILES(whole, 1, AROUND(3, 1), .h = 33, .w = 32, .c = 256, .o = 20)
HALO_TILES(wide, 2, AROUND(3, 1), .h = 32, .w = 32, .c = 192, .o = 124)
HALO_TILES(two, 1, AROUND(3, 1), .h = 32, .w = 32, .c = 64, .o = 124)
HALO_TILES(in_turn, 5, AROUND(3, 1), .h = 8, .w = 8, .c = 128, .o = 128)
/* One tap, whose K has two splits and ends within a step. */
static lw_val b_conv1_tiles_bf16(op_ctx *c)
{
    return conv_tiles(
        c, true, (lw_attr_conv){.kh = 1, .kw = 1, .stride = 1, .h = 5, .w = 7, .c = 840, .o = 68},
        2);
}
/* Both count the blocks of a tile in the same memory. */
static lw_val b_conv3_twice_tiles(op_ctx *c)
{
    return lw_add(G, b_conv3_deep_tiles(c), b_conv3_deep_tiles(c));
}
static lw_val conv4_dx_tiles(op_ctx *c, bool narrow)
{
    const lw_attr_conv a = {AROUND(4, 2), .h = 10, .w = 6, .c = 20, .o = 24};
    lw_val dy = op_f32(c, false, -1, 1, DIMS(3, 5, 3, 24));
    dy = narrow ? bf16(c, dy) : dy;
    return lw_graph_op(G, LW_OP_CONV2D_DX,
                       (lw_val[]){dy, fixed(c, lw_type_of(LW_F32, 4, 24, 4, 4, 20)),
                                  op_f32(c, false, -1, 1, DIMS(3, 10, 6, 20)),
                                  op_f32(c, false, -1, 1, DIMS(20))},
                       4, &a, sizeof a);
}
static lw_val b_conv4_dx_tiles(op_ctx *c)
{
    return conv4_dx_tiles(c, false);
}
static lw_val b_conv4_dx_tiles_bf16(op_ctx *c)
{
    return conv4_dx_tiles(c, true);
}
static lw_val b_matmul_tn_bf16(op_ctx *c)
{
    return lw_matmul(G, bf16(c, op_f32(c, false, -1, 1, DIMS(21, 18))),
                     bf16(c, op_f32(c, false, -1, 1, DIMS(21, 35))), true, false);
}
static lw_val b_conv3_bf16(op_ctx *c)
{
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(2, 9, 7, 10)));
    return lw_conv2d_op(G, x, op_f32(c, false, -1, 1, DIMS(35, 3, 3, 10)),
                        op_f32(c, false, -1, 1, DIMS(35)), 1, 1);
}
/* Both gradients of a convolution, of stride 2 at an odd size, added into one result. */
static lw_val conv3_grads_bf16(op_ctx *c, int32_t top, int32_t left)
{
    const lw_attr_conv a = {.kh = 3,
                            .kw = 3,
                            .stride = 2,
                            .pad_t = top,
                            .pad_l = left,
                            .pad_b = 2 - top,
                            .pad_r = 2 - left,
                            .h = 9,
                            .w = 7,
                            .c = 10,
                            .o = 18};
    lw_val dy = bf16(c, op_f32(c, false, -1, 1, DIMS(2, 5, 4, 18)));
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(2, 9, 7, 10)));
    lw_val w = op_f32(c, false, -1, 1, DIMS(18, 3, 3, 10));
    lw_val dx = lw_graph_op(G, LW_OP_CONV2D_DX, (lw_val[]){dy, w}, 2, &a, sizeof a);
    lw_node *d = lw_graph_add(G, LW_OP_CONV2D_DW, (lw_val[]){dy, x}, 2, &a, sizeof a);
    lw_val dw = d ? lw_reshape(G, d->out[0], lw_type_of(LW_F32, 2, 162, 10)) : LW_NOVAL;
    lw_val sum = lw_add(G, lw_sum(G, dw, LW_OVER_ROWS), lw_sum(G, dx, LW_OVER_ROWS));
    return lw_add(G, sum, d ? lw_sum(G, d->out[1], LW_OVER_ALL) : LW_NOVAL);
}
static lw_val b_conv3_grads_bf16(op_ctx *c)
{
    return conv3_grads_bf16(c, 1, 1);
}
static lw_val b_conv3_pads_bf16(op_ctx *c)
{
    return conv3_grads_bf16(c, 0, 2);
}
static lw_val b_conv3_pads_u8(op_ctx *c)
{
    const lw_attr_conv a = {
        .kh = 3, .kw = 3, .stride = 2, .pad_l = 2, .pad_b = 2, .h = 8, .w = 7, .c = 24, .o = 19};
    lw_val q = pair(c, 2.0f / 255, 118);
    lw_val x = lw_cast(G, op_f32(c, false, -1, 1, DIMS(2, 8, 7, 24)), LW_U8, q);
    return lw_graph_op(
        G, LW_OP_CONV2D,
        (lw_val[]){x, op_f32(c, false, -1, 1, DIMS(19, 3, 3, 24)), LW_NOVAL, LW_NOVAL, q}, 5, &a,
        sizeof a);
}
static lw_val b_linear_u8(op_ctx *c)
{
    lw_val q = pair(c, 2.0f / 255, 100);
    lw_val x = lw_cast(G, op_f32(c, false, -1, 1, DIMS(3, 7, 20)), LW_U8, q);
    const lw_attr_matmul a = {.trans_b = 1};
    return lw_graph_op(G, LW_OP_MATMUL,
                       (lw_val[]){x, op_f32(c, false, -1, 1, DIMS(37, 20)),
                                  op_f32(c, false, -1, 1, DIMS(37)), LW_NOVAL, q},
                       5, &a, sizeof a);
}
/* A group norm that writes bytes, and a convolution that reads them. */
static lw_val b_norm_conv_u8(op_ctx *c)
{
    const lw_attr_norm n = {.groups = 4, .eps = 1e-5f, .act = LW_ACT_SILU, .store = LW_U8};
    const lw_attr_conv a = {AROUND(3, 1), .h = 7, .w = 5, .c = 24, .o = 19};
    lw_val q = pair(c, 4.0f / 255, 18);
    lw_val x = op_f32(c, false, -2, 3, DIMS(2, 7, 5, 24)), one = op_f32(c, false, .5f, 1, DIMS(24));
    lw_val y = lw_graph_op(G, LW_OP_GROUP_NORM, (lw_val[]){x, one, one, LW_NOVAL, LW_NOVAL, q}, 6,
                           &n, sizeof n);
    return lw_graph_op(G, LW_OP_CONV2D,
                       (lw_val[]){y, op_f32(c, false, -1, 1, DIMS(19, 3, 3, 24)), LW_NOVAL,
                                  op_f32(c, false, -1, 1, DIMS(2, 7, 5, 19)), q},
                       5, &a, sizeof a);
}

/* Values of bf16 between products: what one writes and another adds, norms and concatenations of them. */
static lw_val widen(op_ctx *c, lw_val v)
{
    return lw_cast(G, v, LW_F32, LW_NOVAL);
}
static lw_val b_conv3_to_bf16(op_ctx *c)
{
    const lw_attr_conv a = {AROUND(3, 1),       .h = 7,          .w = 5, .c = 24, .o = 38,
                            .act = LW_ACT_RELU, .store = LW_BF16};
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(2, 7, 5, 24)));
    lw_val in[6] = {x,
                    op_f32(c, false, -.4f, .4f, DIMS(38, 3, 3, 24)),
                    op_f32(c, false, -1, 1, DIMS(38)),
                    bf16(c, op_f32(c, false, -1, 1, DIMS(2, 7, 5, 38))),
                    LW_NOVAL,
                    op_f32(c, false, -1, 1, DIMS(2, 38))};
    return widen(c, lw_graph_op(G, LW_OP_CONV2D, in, 6, &a, sizeof a));
}
static lw_val b_conv3_dx_to_bf16(op_ctx *c)
{
    const lw_attr_conv a = {AROUND(3, 2), .h = 9, .w = 8, .c = 10, .o = 24, .store = LW_BF16};
    lw_val dy = bf16(c, op_f32(c, false, -1, 1, DIMS(1, 5, 4, 24)));
    lw_val add = bf16(c, op_f32(c, false, -1, 1, DIMS(1, 9, 8, 10)));
    return widen(c, lw_graph_op(G, LW_OP_CONV2D_DX,
                                (lw_val[]){dy, op_f32(c, false, -1, 1, DIMS(24, 3, 3, 10)), add}, 3,
                                &a, sizeof a));
}
/* f32 from what is added in bf16, and bf16 from what is added in f32. */
static lw_val linear_adding(op_ctx *c, bool low, int32_t store)
{
    const lw_attr_matmul a = {.trans_b = 1, .act = LW_ACT_RELU, .store = store};
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(3, 7, 18)));
    lw_val add = op_f32(c, false, -1, 1, DIMS(3, 7, 37));
    add = low ? bf16(c, add) : add;
    lw_val in[4] = {x, op_f32(c, false, -1, 1, DIMS(37, 18)), LW_NOVAL, add};
    lw_val y = lw_graph_op(G, LW_OP_MATMUL, in, 4, &a, sizeof a);
    return store ? widen(c, y) : y;
}
static lw_val b_linear_adding_bf16(op_ctx *c)
{
    return linear_adding(c, true, 0);
}
static lw_val b_linear_to_bf16(op_ctx *c)
{
    return linear_adding(c, false, LW_BF16);
}
static lw_val b_conv3_u8_to_bf16(op_ctx *c)
{
    const lw_attr_conv a = {AROUND(3, 1), .h = 7, .w = 5, .c = 24, .o = 19, .store = LW_BF16};
    lw_val q = pair(c, 2.0f / 255, 118);
    lw_val x = lw_cast(G, op_f32(c, false, -1, 1, DIMS(2, 7, 5, 24)), LW_U8, q);
    lw_val add = bf16(c, op_f32(c, false, -1, 1, DIMS(2, 7, 5, 19)));
    lw_val in[5] = {x, op_f32(c, false, -1, 1, DIMS(19, 3, 3, 24)), LW_NOVAL, add, q};
    return widen(c, lw_graph_op(G, LW_OP_CONV2D, in, 5, &a, sizeof a));
}
/* Of both halves of a concatenation, one of which is written in place; groups straddle them. */
static lw_val joined_norm(op_ctx *c, int32_t groups, int32_t first, int32_t second, int32_t store)
{
    const lw_attr_norm n = {.groups = groups, .eps = 1e-5f, .act = LW_ACT_SILU, .store = store};
    const lw_attr_conv a = {
        .kh = 1, .kw = 1, .stride = 1, .h = 6, .w = 5, .c = 8, .o = first, .store = LW_BF16};
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(2, 6, 5, 8)));
    lw_val y = lw_graph_op(G, LW_OP_CONV2D,
                           (lw_val[]){x, op_f32(c, false, -1, 1, DIMS(first, 1, 1, 8))}, 2, &a,
                           sizeof a);
    lw_val z = lw_concat(G, y, bf16(c, op_f32(c, false, -2, 3, DIMS(2, 6, 5, second))), 3);
    lw_val one = op_f32(c, false, .5f, 1, DIMS(first + second));
    lw_val out = lw_graph_op(G, LW_OP_GROUP_NORM, (lw_val[]){z, one, one}, 3, &n, sizeof n);
    return store ? widen(c, out) : out;
}
static lw_val b_norm_of_bf16(op_ctx *c)
{
    return joined_norm(c, 3, 20, 28, 0);
}
static lw_val b_norm_of_bf16_odd(op_ctx *c)
{
    return joined_norm(c, 3, 9, 12, LW_BF16);
}
static lw_val b_norm_of_bf16_two(op_ctx *c)
{
    return joined_norm(c, 3, 10, 8, LW_BF16);
}
static lw_val b_norm_of_bf16_one(op_ctx *c)
{
    return joined_norm(c, 2, 4, 6, 0);
}
/* Tiles of GPUs, with what is added in bf16. */
static lw_val b_linear_tiles_adding_bf16(op_ctx *c)
{
    const lw_attr_matmul a = {.trans_b = true, .act = LW_ACT_SILU, .store = LW_BF16};
    lw_val x = bf16(c, op_f32(c, false, -1, 1, DIMS(130, 264)));
    lw_val in[4] = {x, fixed(c, lw_type_of(LW_F32, 2, 68, 264)), op_f32(c, false, -1, 1, DIMS(68)),
                    bf16(c, op_f32(c, false, -1, 1, DIMS(130, 68)))};
    return widen(c, lw_graph_op(G, LW_OP_MATMUL, in, 4, &a, sizeof a));
}
static lw_val b_concat_bf16(op_ctx *c)
{
    lw_val x = bf16(c, op_f32(c, false, -2, 3, DIMS(2, 3, 5))), y = lw_concat(G, x, x, 0);
    return widen(c, lw_concat(G, y, bf16(c, op_f32(c, false, -2, 3, DIMS(4, 3, 7))), 2));
}

static const op_case product_cases[] = {
    CASE("cast", b_cast, 0, 0), CASE("linear_bf16", b_linear_bf16, 2e-5, 0),
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
    CASE("conv3_splits_tiles", b_conv3_splits_tiles, 1e-4, 0),
    CASE("conv3_splits_tiles_bf16", b_conv3_splits_tiles_bf16, 1e-4, 0),
    CASE("conv3_deep_tiles", b_conv3_deep_tiles, 1e-4, 0),
    CASE("conv3_twice_tiles", b_conv3_twice_tiles, 1e-4, 0),
    CASE("conv3_deep_tiles_bf16", b_conv3_deep_tiles_bf16, 1e-4, 0),
    CASE("conv4_dx_tiles", b_conv4_dx_tiles, 5e-5, 0),
    CASE("conv4_dx_tiles_bf16", b_conv4_dx_tiles_bf16, 5e-5, 0),
    CASE("matmul_few_tiles_bf16", b_matmul_few_tiles_bf16, 5e-5, 0),
    CASE("matmul_tn_bf16", b_matmul_tn_bf16, 2e-5, 0), CASE("conv3_bf16", b_conv3_bf16, 5e-5, 0),
    CASE("conv3_grads_bf16", b_conv3_grads_bf16, 2e-4, 0),
    CASE("conv3_pads_bf16", b_conv3_pads_bf16, 2e-4, 0),
    CASE("conv3_pads_u8", b_conv3_pads_u8, 2e-5, 0), CASE("linear_u8", b_linear_u8, 1e-5, 0),
    CASE("linear_half_tiles_bf16", b_linear_half_tiles_bf16, 5e-5, 0),
    CASE("conv3_halo_one_bf16", b_conv3_halo_one, 5e-5, 0),
    CASE("conv3_halo_splits_bf16", b_conv3_halo_splits, 1e-4, 0),
    CASE("conv3_halo_eight_bf16", b_conv3_halo_eight, 1e-4, 0),
    CASE("conv1_tiles_bf16", b_conv1_tiles_bf16, 1e-4, 0),
    CASE("conv3_halo_line_bf16", b_conv3_halo_line, 1e-4, 0),
    CASE("conv3_halo_column_bf16", b_conv3_halo_column, 5e-5, 0),
    CASE("conv3_halo_whole_bf16", b_conv3_halo_whole, 1e-4, 0),
    CASE("conv3_halo_wide_bf16", b_conv3_halo_wide, 1e-4, 0),
    CASE("conv3_halo_two_bf16", b_conv3_halo_two, 5e-5, 0),
    CASE("conv3_halo_in_turn_bf16", b_conv3_halo_in_turn, 1e-4, 0),
    /* Tolerances: a bf16 by its last bit, behind a norm by what it reads. */
    CASE("conv3_to_bf16", b_conv3_to_bf16, 8e-3, 0),
    CASE("conv3_dx_to_bf16", b_conv3_dx_to_bf16, 8e-3, 0),
    CASE("linear_adding_bf16", b_linear_adding_bf16, 5e-5, 0),
    CASE("linear_to_bf16", b_linear_to_bf16, 8e-3, 0),
    CASE("conv3_u8_to_bf16", b_conv3_u8_to_bf16, 8e-3, 0),
    CASE("norm_of_bf16", b_norm_of_bf16, 3e-2, 0),
    CASE("norm_of_bf16_odd", b_norm_of_bf16_odd, 3e-2, 0),
    CASE("norm_of_bf16_two", b_norm_of_bf16_two, 3e-2, 0),
    CASE("norm_of_bf16_one", b_norm_of_bf16_one, 3e-2, 0),
    CASE("linear_tiles_adding_bf16", b_linear_tiles_adding_bf16, 8e-3, 0),
    CASE("concat_bf16", b_concat_bf16, 0, 0),
    CASE("norm_conv_u8", b_norm_conv_u8, 5e-2, 0), /* a rounding of the norm moves a byte by one */
};

#endif
