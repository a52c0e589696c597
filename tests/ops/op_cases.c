/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of every op, family by family. */
#include "ops/op_cases.h"

#include "ops/op_attention.h"
#include "ops/op_build.h"
#include "ops/op_convolutions.h"
#include "ops/op_norms.h"
#include "ops/op_products.h"

/* As a product of bf16 reads it. */
static lw_val b_ew_bf16(op_ctx *c)
{
    lw_val x = op_f32(c, false, -3, 3, DIMS(5, 67)), y = lw_silu(G, x);
    lw_attr_ew a = *(const lw_attr_ew *)lw_val_node(G, y)->attr;
    a.type.dtype = LW_BF16;
    return lw_cast(G, lw_graph_op(G, LW_OP_EW, &x, 1, &a, sizeof a), LW_F32, LW_NOVAL);
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

/* Tokens in a row, and the two axes of a picture. */
static lw_val b_rope(op_ctx *c)
{
    lw_val x = lw_rope(G, X(-1, 1, 2, 5, 36), op_f32(c, false, -1, 1, DIMS(5, 1, 18)));
    return lw_sqr(G, lw_rope(G, x, op_f32(c, false, -1, 1, DIMS(5, 2, 6))));
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
/* Rows of three blocks, the last of them short. */
static lw_val b_random_long(op_ctx *c)
{
    const lw_type t = lw_type_of(LW_F32, 3, 3, 129, 131);
    return lw_add(G, lw_random(G, "noise", LW_RANDOM_NORMAL, 0, t, op_rows(c, 3)),
                  lw_random(G, "u", LW_RANDOM_UNIFORM, 0, t, op_rows(c, 3)));
}
static lw_val b_dropout_long(op_ctx *c)
{
    return lw_sqr(G, lw_dropout(G, X(-1, 1, 3, 129, 131), op_rows(c, 3), .3f));
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

static const op_case other_cases[] = {
    CASE("ew_bf16", b_ew_bf16, 8e-3, 0),
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
    CASE("rope", b_rope, 1e-5, 3e-3),
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
    CASE("random_long", b_random_long, 1e-6, 0),
    CASE("dropout_long", b_dropout_long, 1e-5, 5e-3),
    CASE("stats", b_stats, 2e-5, 5e-3),
    CASE("drift_field", b_drift, 1e-4, 0),
    CASE("drift_wide", b_drift_wide, 1e-4, 0),
    CASE("resblock", b_unet_like, 5e-5, 2e-2),
};

#define CASES(table)           \
    {                          \
        table, LW_COUNT(table) \
    }
static const struct {
    const op_case *cases;
    size_t n;
} tables[] = {CASES(convolution_cases), CASES(product_cases), CASES(norm_cases),
              CASES(attention_cases), CASES(other_cases)};

const op_case *op_case_at(size_t i)
{
    for (size_t t = 0; t < LW_COUNT(tables); i -= tables[t++].n)
        if (i < tables[t].n)
            return &tables[t].cases[i];
    return NULL;
}
