/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of attention. */
#ifndef LW_TESTS_OP_ATTENTION_H
#define LW_TESTS_OP_ATTENTION_H

#include "ops/op_build.h"

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
#define ATTENTION_SIZES(SIZE) \
    SIZE(3, 1, 2, 4)          \
    SIZE(2, 15, 3, 20)        \
    SIZE(1, 63, 2, 32)        \
    SIZE(1, 64, 1, 40)        \
    SIZE(1, 65, 2, 64)        \
    SIZE(1, 66, 1, 72)        \
    SIZE(1, 129, 1, 128) SIZE(1, 257, 1, 64) SIZE(1, 18, 2, 42) SIZE(1, 18, 1, 132)
ATTENTION_SIZES(ATTENTION)
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
#define ATTENTION_BF16_SIZES(SIZE) \
    SIZE(2, 1, 2, 8)               \
    SIZE(1, 15, 3, 16)             \
    SIZE(2, 16, 1, 24)             \
    SIZE(1, 17, 2, 40)             \
    SIZE(1, 63, 1, 64)             \
    SIZE(1, 64, 2, 72)             \
    SIZE(1, 65, 1, 128)            \
    SIZE(1, 257, 1, 64)            \
    SIZE(1, 129, 1, 20)            \
    SIZE(1, 18, 1, 42)             \
    SIZE(1, 18, 1, 136) SIZE(1, 290, 2, 12) SIZE(1, 66, 132, 40) SIZE(1, 100, 132, 40)
ATTENTION_BF16_SIZES(ATTENTION_BF16)
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

#define ATTENTION_ROW(samples, tokens, heads, hd)              \
    CASE("attention_" #samples "_" #tokens "_" #heads "_" #hd, \
         b_attention_##samples##_##tokens##_##heads##_##hd, 2e-5, 0),
#define ATTENTION_BF16_ROW(samples, tokens, heads, hd)                 \
    CASE("attention_" #samples "_" #tokens "_" #heads "_" #hd "_bf16", \
         b_attention_##samples##_##tokens##_##heads##_##hd##_bf16, 8e-3, 0),
static const op_case attention_cases[] = {
    CASE("attention", b_attention, 2e-5, 5e-3),
    CASE("attention_pool", b_attention_pool, 2e-5, 5e-3),
    CASE("attention_qkv", b_attention_qkv, 2e-5, 5e-3),
    CASE("attention_shared", b_attention_shared, 2e-5, 5e-3),
    CASE("attention_windows", b_attention_windows, 2e-5, 0),
    CASE("attention_pool_wide", b_attention_pool_wide, 2e-5, 0),
    CASE("attention_qkv_wide", b_attention_qkv_wide, 2e-5, 0),
    CASE("attention_windows_wide", b_attention_windows_wide, 2e-5, 0),
    CASE("attention_steep", b_attention_steep, 5e-4, 0),
    CASE("attention_pool_bf16", b_attention_pool_bf16, 8e-3, 0),
    CASE("attention_qkv_bf16", b_attention_qkv_bf16, 8e-3, 0),
    CASE("attention_windows_bf16", b_attention_windows_bf16, 4e-3, 0),
    ATTENTION_SIZES(ATTENTION_ROW) ATTENTION_BF16_SIZES(ATTENTION_BF16_ROW)};

#endif
