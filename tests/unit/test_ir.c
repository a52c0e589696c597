/* SPDX-License-Identifier: Apache-2.0 */
/* ir: types, the append-only graph, scopes, the sticky first error, broadcasting, shape rules,
 * costs, text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ir.h"

#define F(...) lw_type_of(LW_F32, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), __VA_ARGS__)

#define TO(high, wide, how, ...) \
    ((lw_attr_resize){           \
        .h = high, .w = wide, .form = LW_RESAMPLE_##how, .filter = LW_FILTER_##__VA_ARGS__})

/* ---- types ----------------------------------------------------------------------------------- */

static void test_types(void **state)
{
    (void)state;
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    lw_type t = F(2, 16, 16, 32), scalar = {.dtype = LW_F32};
    assert_int_equal(lw_type_count(t), 2 * 16 * 16 * 32);
    assert_int_equal(lw_type_bytes(t), 4 * 2 * 16 * 16 * 32);
    assert_int_equal(lw_type_last(t), 32);
    assert_int_equal(lw_type_count(scalar), 1);
    assert_int_equal(lw_type_last(scalar), 1);
    assert_int_equal(lw_type_count(F(65536, 65536)),
                     (int64_t)1 << 32); /* counts are 64 bits wide */
    assert_true(lw_type_eq(t, F(2, 16, 16, 32)));
    assert_false(lw_type_eq(t, F(2, 16, 16, 31)));
    assert_false(lw_type_eq(F(4), F(4, 1)));
    assert_false(lw_type_eq(F(4), lw_type_of(LW_I32, 1, 4)));
    lw_type_print(&s, t);
    lw_type_print(&s, lw_type_of(LW_I64, 1, 7));
    lw_type_print(&s, scalar);
    assert_string_equal(lw_str_c(&s), "f32[2,16,16,32]i64[7]f32[]");
    static const size_t size[] = {
        [LW_F32] = 4, [LW_BF16] = 2, [LW_F64] = 8, [LW_I32] = 4, [LW_I64] = 8, [LW_U8] = 1};
    for (int d = LW_F32; d <= LW_U8; d++)
        assert_int_equal(lw_dtype_size((lw_dtype)d), size[d]);
}

/* ---- graph ----------------------------------------------------------------------------------- */

static int open_graph(void **state)
{
    lw_graph *g = NULL;
    int rc = lw_graph_new(&g);
    *state = g;
    return rc;
}

static int close_graph(void **state)
{
    lw_graph *g = *state;
    lw_graph_free(&g);
    return 0;
}

static void test_graph_grows(void **state)
{
    lw_graph *g = *state;
    lw_val x = lw_input(g, "x", F(2, 3)), y = lw_silu(g, x), z = lw_add(g, x, y);
    assert_int_equal(lw_graph_node_count(g), 3);
    assert_int_equal(lw_graph_val_count(g), 3);
    assert_true(lw_val_node(g, z)->in[1].id == y.id && lw_val_node(g, z)->index == 2);
    assert_int_equal(lw_val_slot(g, z), 0);
    assert_int_equal(lw_val_type(g, LW_NOVAL).dtype, LW_DT_NONE);
    for (int i = 0; i < 5000; i++) /* pointers to nodes stay good while it grows */
        y = lw_silu(g, y);
    assert_true(lw_val_node(g, z)->in[1].id == 2);
    lw_val stats[LW_STATS];
    lw_feature_stats(g, lw_input(g, "image", F(1, 8, 8, 3)), stats);
    assert_int_equal(lw_val_slot(g, stats[LW_STAT_STD4]), LW_STAT_STD4);
    assert_true(lw_type_eq(lw_val_type(g, stats[LW_STAT_MEAN2]), F(1, 16, 3)));
}

static void test_scopes(void **state)
{
    lw_graph *g = *state;
    assert_string_equal(lw_scope(g), "");
    assert_string_equal(lw_scope_name(g, "w"), "w");
    const char *top = lw_scope_push(g, "down_blocks.0");
    const char *in = lw_scope_pushf(g, "resnets.%d", 3);
    assert_string_equal(lw_scope(g), "down_blocks.0.resnets.3");
    assert_string_equal(lw_scope_name(g, "w"), "down_blocks.0.resnets.3.w");
    lw_val x = lw_input(g, "x", F(2));
    lw_scope_set(g, in);
    assert_string_equal(lw_scope(g), "down_blocks.0");
    const char *before = lw_scope_part(g, "encoder"); /* parts are in scopes, not in names */
    lw_scope_push(g, "layer1");
    assert_string_equal(lw_scope(g), "encoder:layer1");
    assert_string_equal(lw_scope_name(g, "w"), "layer1.w");
    lw_scope_top(g);
    assert_string_equal(lw_scope(g), "encoder:");
    assert_string_equal(lw_scope_name(g, "w"), "w");
    lw_scope_set(g, before);
    lw_scope_set(g, top);
    assert_string_equal(lw_scope(g), "");
    assert_string_equal(lw_val_node(g, x)->scope, "down_blocks.0.resnets.3");
}

static void test_first_error_sticks(void **state)
{
    lw_graph *g = *state;
    lw_val x = lw_input(g, "x", F(2, 3));
    lw_graph_output_add(g, "good", x, LW_NOVAL);
    const char *up = lw_scope_push(g, "head");
    assert_false(lw_val_ok(lw_reshape(g, x, F(7))));
    lw_scope_set(g, up);
    uint32_t nodes = lw_graph_node_count(g);
    assert_false(lw_val_ok(lw_silu(g, x))); /* nothing is added any more, nothing crashes */
    assert_false(lw_val_ok(lw_reshape(g, x, F(1, 2, 3, 4))));
    assert_null(lw_graph_add(g, LW_OP_SOFTMAX, &x, 1, NULL, 0));
    lw_graph_output_add(g, "late", x, LW_NOVAL);
    assert_int_equal(lw_graph_node_count(g), nodes);
    assert_int_equal(lw_graph_output_count(g), 1);
    lw_errclear();
    assert_int_equal(lw_graph_error(g), LW_ESHAPE);
    assert_string_equal(lw_errmsg(),
                        "head: reshape(f32[2,3]): reshape must keep the number of elements");
    assert_false(lw_val_ok(lw_graph_fail(g, LW_EUSAGE, "second")));
    assert_int_equal(lw_graph_error(g), LW_ESHAPE);
}

/* Every builder hands an invalid operand through without a word: the first error is the cause. */
static void test_invalid_operands_pass_through(void **state)
{
    lw_graph *g = *state;
    lw_val x = lw_input(g, "x", F(2, 4, 4, 3)), no = LW_NOVAL;
    lw_val out[LW_STATS];
    int zero[3] = {0};
    assert_false(lw_val_ok(lw_add(g, x, no)) || lw_val_ok(lw_add(g, no, x)) ||
                 lw_val_ok(lw_silu(g, no)));
    assert_false(lw_val_ok(lw_scale(g, no, 2)) || lw_val_ok(lw_broadcast(g, no, F(3))) ||
                 lw_val_ok(lw_sum_to(g, no, F(3))));
    assert_false(lw_val_ok(lw_matmul(g, x, no, false, false)) ||
                 lw_val_ok(lw_linear_op(g, no, x, no)));
    assert_false(lw_val_ok(lw_conv2d_op(g, no, x, no, 1, 1)) ||
                 lw_val_ok(lw_group_norm_op(g, x, no, no, no, no, 1, 1, 0)));
    assert_false(lw_val_ok(lw_attention(g, no, 1)) || lw_val_ok(lw_softmax(g, no)) ||
                 lw_val_ok(lw_cross_entropy(g, x, no)));
    assert_false(lw_val_ok(lw_mean(g, no, LW_OVER_ALL)) || lw_val_ok(lw_reshape(g, no, F(1))) ||
                 lw_val_ok(lw_concat(g, x, no, 0)));
    assert_false(lw_val_ok(lw_slice(g, no, 0, 0, 1)) || lw_val_ok(lw_pad(g, no, zero, zero)) ||
                 lw_val_ok(lw_pool2d(g, no, 2, 2, 0, true)));
    assert_false(lw_val_ok(lw_upsample(g, no, 2)) || lw_val_ok(lw_subsample(g, no, 2)) ||
                 lw_val_ok(lw_patches(g, no, 2)) ||
                 lw_val_ok(lw_resize(g, no, TO(2, 2, TORCH, BILINEAR))));
    assert_false(lw_val_ok(lw_embedding(g, no, x)) || lw_val_ok(lw_dropout(g, no, no, 0.5f)));
    lw_feature_stats(g, no, out);
    assert_false(lw_val_ok(out[0]));
    assert_int_equal(lw_graph_error(g), 0);
}

/* ---- broadcasting ---------------------------------------------------------------------------- */

static void test_operand_modes(void **state)
{
    lw_graph *g = *state;
    const struct {
        lw_type operand, whole;
        lw_ew_mode mode;
    } rows[] = {
        {F(2, 4, 5, 3), F(2, 4, 5, 3), LW_EW_FULL},
        {F(1), F(2, 4, 5, 3), LW_EW_SCALAR},
        {F(1, 1, 1, 1), F(2, 4, 5, 3), LW_EW_SCALAR},
        {F(3), F(2, 4, 5, 3), LW_EW_CHANNEL},
        {F(1, 1, 1, 3), F(2, 4, 5, 3), LW_EW_CHANNEL},
        {F(2, 1, 1, 1), F(2, 4, 5, 3), LW_EW_BATCH},
        {F(2), F(2, 4, 5, 3), LW_EW_BATCH},
        {F(2, 3), F(2, 4, 5, 3), LW_EW_BC},
        {F(2, 1, 1, 3), F(2, 4, 5, 3), LW_EW_BC},
        {F(2, 4, 5, 1), F(2, 4, 5, 3), LW_EW_ROW},
        {F(2, 4, 5), F(2, 4, 5, 3), LW_EW_ROW},
        {F(4), F(4, 4), LW_EW_CHANNEL},
        {F(4, 1), F(4, 4), LW_EW_BATCH},
        {F(1, 4), F(4, 4), LW_EW_CHANNEL},
        {F(5, 1), F(5, 7), LW_EW_BATCH},
        {F(12), F(3, 4), LW_EW_FULL},
    };
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        lw_val a = lw_input(g, "a", rows[i].operand), b = lw_input(g, "b", rows[i].whole);
        lw_val y = lw_mul(g, b, a);
        if (lw_graph_error(g) < 0)
            fail_msg("row %zu: %s", i, lw_errmsg());
        assert_int_equal(((const lw_attr_ew *)lw_val_node(g, y)->attr)->mode[1], rows[i].mode);
        assert_true(lw_type_eq(lw_val_type(g, y), rows[i].whole));
        lw_val back = lw_sum_to(g, y, rows[i].operand); /* and every broadcast has its reverse */
        if (lw_graph_error(g) < 0)
            fail_msg("row %zu: %s", i, lw_errmsg());
        assert_true(lw_type_eq(lw_val_type(g, back), rows[i].operand));
    }
}

static void test_what_does_not_broadcast(void **state)
{
    (void)state;
    const lw_type pairs[][2] = {
        {F(2, 4, 5, 3), F(4, 5, 3)},    {F(2, 4, 5, 3), F(5)},          {F(2, 3), F(3, 2)},
        {F(2, 4, 5, 3), F(1, 4, 5, 3)}, {F(2, 4, 5, 3), F(2, 4, 1, 3)}, {F(4, 1), F(1, 5)}};
    for (size_t i = 0; i < LW_COUNT(pairs); i++) {
        lw_graph *g = NULL;
        assert_int_equal(lw_graph_new(&g), 0);
        lw_add(g, lw_input(g, "a", pairs[i][0]), lw_input(g, "b", pairs[i][1]));
        if (lw_graph_error(g) != LW_ESHAPE)
            fail_msg("pair %zu was accepted", i);
        lw_graph_free(&g);
    }
}

/* ---- shape rules ----------------------------------------------------------------------------- */

#define X(name, ...) lw_input(g, name, F(__VA_ARGS__))
#define I(name, n) lw_input(g, name, lw_type_of(LW_I32, 1, n))
#define BYTES(name, ...) \
    lw_input(g, name,    \
             lw_type_of(LW_U8, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), __VA_ARGS__))
#define WRONG(name, expr)         \
    static void name(lw_graph *g) \
    {                             \
        (void)(expr);             \
    }
/* A convolution with one input more, which only passes give it. */
static lw_val conv_with(lw_graph *g, int at, lw_val extra)
{
    const lw_node *n =
        lw_val_node(g, lw_conv2d_op(g, X("a", 2, 5, 5, 3), X("w", 4, 3, 3, 3), LW_NOVAL, 1, 1));
    lw_val in[LW_MAX_IN] = {n->in[0], n->in[1]};
    in[at] = extra;
    return lw_graph_op(g, LW_OP_CONV2D, in, at + 1, n->attr, n->attr_size);
}

static lw_val halves(lw_graph *g, lw_val x)
{
    return lw_graph_op(g, LW_OP_UPSAMPLE_GRAD, &x, 1, &(lw_attr_factor){.k = 2},
                       sizeof(lw_attr_factor));
}

WRONG(w_rank, lw_input(g, "a", (lw_type){.dtype = LW_F32, .rank = LW_MAX_RANK + 1}))
WRONG(w_wide, lw_relu(g, X("a", LW_MAX_DIM + 1)))
WRONG(w_reshape_type, lw_reshape(g, X("a", 4), lw_type_of(LW_I32, 1, 4)))
WRONG(w_concat_before, lw_concat(g, X("a", 2, 5), X("b", 2, 5), -3))
WRONG(w_concat_type, lw_concat(g, X("a", 5), I("b", 5), 0))
WRONG(w_slice_before, lw_slice(g, X("a", 2, 5), 1, -1, 3))
WRONG(w_crop_pad,
      lw_pad(g, X("a", 1, 4, 4, 8), (int[3]){1 << 30, 0, 0}, (int[3]){-(1 << 30), 0, 0}))
WRONG(w_far_column_pads, lw_conv2d_pad(g, X("a", 1, 4, 4, 8), X("w", 8, 3, 3, 8), LW_NOVAL, 1,
                                       (int[4]){1, 2147483647, 1, 2147483647}))
WRONG(w_conv_narrow, lw_conv2d_op(g, X("a", 2, 5, 2, 3), X("w", 4, 3, 3, 3), LW_NOVAL, 1, 0))
WRONG(w_conv_residual, conv_with(g, 3, X("r", 2, 25, 4)))
WRONG(w_conv_image_bias, conv_with(g, 5, X("r", 2, 3)))
WRONG(w_conv_project, conv_with(g, LW_CONV_PROJECT_X, X("p", 2, 5, 5, 7)))
WRONG(w_transpose_pad,
      lw_conv_transpose2d_op(g, X("a", 2, 5, 5, 3), X("w", 3, 3, 3, 5), LW_NOVAL, 1, -1, 0))
WRONG(w_transpose_far_pad,
      lw_conv_transpose2d_op(g, X("a", 2, 5, 5, 3), X("w", 3, 3, 3, 5), LW_NOVAL, 1, 2147483647, 0))
WRONG(w_transpose_stride, lw_conv_transpose2d_op(g, X("a", 2, 65537, 1, 3), X("w", 3, 3, 3, 5),
                                                 LW_NOVAL, 65536, 1, 0)) /* 2^32 + 1 */
WRONG(w_transpose_output_pad,
      lw_conv_transpose2d_op(g, X("a", 2, 5, 5, 3), X("w", 3, 3, 3, 5), LW_NOVAL, 2, 1, -1))
WRONG(w_pool_stride, lw_pool2d(g, X("a", 2, 5, 5, 3), 3, 0, 0, true))
WRONG(w_pool_pad, lw_pool2d(g, X("a", 2, 5, 5, 3), 3, 2, 2, true))
WRONG(w_pool_low, lw_pool2d(g, X("a", 2, 2, 5, 3), 3, 2, 0, true))
WRONG(w_halves, halves(g, X("a", 2, 4, 5, 3)))
WRONG(w_patches_rank, lw_patches(g, X("a", 2, 4, 12), 2))
WRONG(w_output_into, lw_graph_output_add(g, "y", X("a", 2, 3), X("b", 3, 2)))
WRONG(w_output_none, lw_graph_output_add(g, "y", LW_NOVAL, LW_NOVAL))
WRONG(w_inner, lw_matmul(g, X("a", 2, 3), X("b", 4, 5), false, false))
WRONG(w_bias, lw_linear_op(g, X("a", 2, 3), X("b", 4, 3), X("c", 5)))
WRONG(w_no_size, lw_relu(g, X("a", 2, 0)))
WRONG(w_negative, lw_relu(g, X("a", 2, -3)))
WRONG(w_beyond, lw_relu(g, X("a", 65536, 65536, 65536, 65536)))
WRONG(w_wraps, lw_upsample(g, X("a", 1, 1, 65536, 4), 65536))
WRONG(w_far_pads, lw_conv2d_pad(g, X("a", 1, 4, 4, 8), X("w", 8, 3, 3, 8), LW_NOVAL, 1,
                                (int[4]){2147483647, 1, 2147483647, 1}))
WRONG(w_conv_empty, lw_conv2d_op(g, X("a", 2, 0, 4, 8), X("w", 8, 3, 3, 8), LW_NOVAL, 1, 2))
WRONG(w_conv_rank, lw_conv2d_op(g, X("a", 2, 3, 3), X("w", 4, 3, 3, 3), LW_NOVAL, 1, 1))
WRONG(w_conv_channels, lw_conv2d_op(g, X("a", 2, 5, 5, 3), X("w", 4, 3, 3, 6), LW_NOVAL, 1, 1))
WRONG(w_conv_small, lw_conv2d_op(g, X("a", 2, 2, 2, 3), X("w", 4, 3, 3, 3), LW_NOVAL, 1, 0))
WRONG(w_conv_pad,
      lw_conv2d_pad(g, X("a", 2, 5, 5, 3), X("w", 4, 3, 3, 3), LW_NOVAL, 1, (int[4]){0, 0, -1, 0}))
WRONG(w_transpose,
      lw_conv_transpose2d_op(g, X("a", 2, 1, 1, 3), X("w", 3, 3, 3, 5), LW_NOVAL, 1, 2, 0))
WRONG(w_output_pad,
      lw_conv_transpose2d_op(g, X("a", 2, 5, 5, 3), X("w", 3, 3, 3, 5), LW_NOVAL, 2, 1, 2))
WRONG(w_depthwise,
      lw_depthwise_op(g, X("a", 2, 5, 5, 3), X("w", 4, 3, 3, 1), LW_NOVAL, 1, (int[4]){0}))
WRONG(w_depthwise_weight,
      lw_depthwise_op(g, X("a", 2, 5, 5, 3), X("w", 3, 3, 3, 3), LW_NOVAL, 1, (int[4]){0}))
WRONG(w_conv_bias, lw_conv2d_op(g, X("a", 2, 5, 5, 3), X("w", 4, 3, 3, 3), X("b", 3), 1, 1))
WRONG(w_bias_type, lw_linear_op(g, X("a", 2, 3), X("b", 4, 3), BYTES("c", 4)))
WRONG(w_conv_bias_type,
      lw_conv2d_op(g, X("a", 2, 5, 5, 3), X("w", 4, 3, 3, 3), BYTES("b", 4), 1, 1))
WRONG(w_conv_weight_type,
      lw_conv2d_op(g, X("a", 2, 5, 5, 3), BYTES("w", 4, 3, 3, 3), LW_NOVAL, 1, 1))
WRONG(w_transpose_bias_type,
      lw_conv_transpose2d_op(g, X("a", 2, 5, 5, 3), X("w", 3, 3, 3, 4), BYTES("b", 4), 1, 1, 0))
WRONG(w_depthwise_bias_type,
      lw_depthwise_op(g, X("a", 2, 5, 5, 3), X("w", 3, 3, 3, 1), BYTES("b", 3), 1, (int[4]){0}))
WRONG(w_depthwise_weight_type,
      lw_depthwise_op(g, X("a", 2, 5, 5, 3), BYTES("w", 3, 3, 3, 1), LW_NOVAL, 1, (int[4]){0}))
WRONG(w_norm_gamma_type, lw_group_norm_op(g, X("a", 2, 5, 6), BYTES("s", 6), X("t", 6), LW_NOVAL,
                                          LW_NOVAL, 2, 1e-5f, 0))
WRONG(w_norm_beta_type, lw_group_norm_op(g, X("a", 2, 5, 6), X("s", 6), BYTES("t", 6), LW_NOVAL,
                                         LW_NOVAL, 2, 1e-5f, 0))
WRONG(w_norm_scale_type, lw_group_norm_op(g, X("a", 2, 5, 6), X("s", 6), X("t", 6),
                                          BYTES("u", 2, 6), LW_NOVAL, 2, 1e-5f, 0))
WRONG(w_norm_residual_type,
      lw_layer_norm_op(g, X("a", 2, 6), X("s", 6), X("t", 6), BYTES("r", 2, 6), 1e-5f))
WRONG(w_rms_gamma_type, lw_rms_norm_op(g, X("a", 2, 6), BYTES("s", 6), 1e-5f))
WRONG(w_norm_groups,
      lw_group_norm_op(g, X("a", 2, 5, 6), X("s", 6), X("t", 6), LW_NOVAL, LW_NOVAL, 4, 1e-5f, 0))
WRONG(w_norm_gamma,
      lw_group_norm_op(g, X("a", 2, 5, 6), X("s", 5), X("t", 6), LW_NOVAL, LW_NOVAL, 2, 1e-5f, 0))
WRONG(w_norm_scale,
      lw_group_norm_op(g, X("a", 2, 5, 6), X("s", 6), X("t", 6), X("u", 6), LW_NOVAL, 2, 1e-5f, 0))
WRONG(w_attention, lw_attention(g, X("a", 2, 5, 24), 3))
WRONG(w_attention_batch, lw_cross_attention(g, X("a", 2, 5, 24), X("b", 3, 5, 48), 2))
WRONG(w_attention_keys,
      lw_attention_qkv(g, X("a", 2, 5, 24), X("b", 2, 7, 24), X("d", 2, 6, 24), 2))
WRONG(w_attention_width,
      lw_attention_qkv(g, X("a", 2, 5, 24), X("b", 2, 7, 24), X("d", 2, 7, 12), 2))
WRONG(w_attention_no_keys,
      lw_attention_qkv(g, X("a", 2, 5, 24), X("b", 2, 0, 24), X("d", 2, 0, 24), 2))
WRONG(w_attention_no_tokens, lw_attention(g, X("a", 2, 0, 24), 2))
WRONG(w_labels, lw_cross_entropy(g, X("a", 2, 5), I("l", 3)))
WRONG(w_concat, lw_concat(g, X("a", 2, 5), X("b", 3, 4), 1))
WRONG(w_concat_axis, lw_concat(g, X("a", 2, 5), X("b", 2, 5), 2))
WRONG(w_slice, lw_slice(g, X("a", 2, 5), 1, 3, 6))
WRONG(w_slice_empty, lw_slice(g, X("a", 2, 5), 1, 3, 3))
WRONG(w_pad, lw_pad(g, X("a", 2, 5, 5, 3), (int[3]){-3, 0, 0}, (int[3]){-2, 0, 0}))
WRONG(w_far_pad,
      lw_pad(g, X("a", 1, 4, 4, 8), (int[3]){2147483647, 0, 0}, (int[3]){2147483647, 0, 0}))
WRONG(w_wide_pad, lw_pad(g, X("a", 1, 4, 4, 8), (int[3]){0, 1 << 29, 0}, (int[3]){0, 1 << 29, 0}))
WRONG(w_rope_pieces, lw_rope(g, X("a", 2, 5, 8), X("t", 5, 0, 8)))
WRONG(w_rope_wraps, lw_rope(g, X("a", 1, 1, 8), X("t", 1, 65536, 65536)))
WRONG(w_pool, lw_pool2d(g, X("a", 2, 2, 2, 3), 3, 2, 0, true))
WRONG(w_upsample, lw_upsample(g, X("a", 2, 5), 2))
WRONG(w_factor, lw_upsample(g, X("a", 2, 5, 5, 3), 0))
WRONG(w_stride, lw_conv2d_op(g, X("a", 2, 5, 5, 3), X("w", 4, 3, 3, 3), LW_NOVAL, 0, 1))
WRONG(w_every, lw_subsample(g, X("a", 2, 5, 5, 3), 0))
WRONG(w_patches, lw_patches(g, X("a", 2, 5, 6, 3), 3))
WRONG(w_patches_padded, lw_patches_padded(g, X("a", 2, 4, 6, 3), 2, (const int[4]){1, 0, 0, 0}))
WRONG(w_patches_cut, lw_patches_padded(g, X("a", 2, 4, 6, 3), 2, (const int[4]){0, -2, 0, 0}))
WRONG(w_patches_wrap, lw_patches_back(g, X("a", 1, 1, 16), 65536, 65536, 65536))
WRONG(w_patches_many, lw_patches(g, X("a", 1, 65536, 65536, 1), 1))
WRONG(w_patches_wide, lw_patches(g, X("a", 1, 32768, 32768, 1), 32768))
WRONG(w_resize, lw_resize(g, X("a", 2, 5, 5, 3), TO(0, 4, TORCH, BILINEAR)))
WRONG(w_resize_filter, lw_resize(g, X("a", 2, 5, 5, 3), TO(3, 4, TORCH, BOX)))
WRONG(w_resize_form, lw_resize(g, X("a", 2, 5, 5, 3), TO(3, 4, PILLOW, BILINEAR)))
WRONG(w_resize_scale,
      lw_resize(g, X("a", 2, 5, 5, 3), TO(3, 4, TORCH, BICUBIC, .scale = {0.59, 0.8})))
WRONG(w_resize_scales,
      lw_resize(g, X("a", 2, 5, 5, 3), TO(3, 4, TORCH, BICUBIC, .scale = {0.61, 0})))
WRONG(w_embedding, lw_embedding(g, X("a", 2, 5), X("i", 3)))
WRONG(w_rows, lw_random(g, "s", LW_RANDOM_NORMAL, 0, F(3, 4), I("i", 3)))
WRONG(w_no_rows, lw_random(g, "s", LW_RANDOM_NORMAL, 0, F(3, 4), LW_NOVAL))
WRONG(w_random_type,
      lw_random(g, "s", LW_RANDOM_BELOW, 5, F(3), lw_input(g, "r", lw_type_of(LW_I64, 1, 3))))
WRONG(w_dropout, lw_dropout(g, X("a", 3, 4), lw_input(g, "r", lw_type_of(LW_I64, 1, 3)), 1.0f))
WRONG(w_ew_type, lw_silu(g, I("i", 3)))
WRONG(w_middle, lw_sum(g, X("a", 3), LW_OVER_MIDDLE))
WRONG(w_drift,
      lw_drift_field(g, X("a", 4, 2, 3), X("p", 6, 2, 3), LW_NOVAL, LW_NOVAL,
                     &(lw_attr_drift){
                         .groups = 2, .n = 2, .np = 4, .slots = 2, .c = 3, .n_tau = 1, .tau = {.1}})
          .loss)
WRONG(w_tau,
      lw_drift_field(g, X("a", 4, 2, 3), X("p", 8, 2, 3), LW_NOVAL, LW_NOVAL,
                     &(lw_attr_drift){.groups = 2, .n = 2, .np = 4, .slots = 2, .c = 3, .n_tau = 1})
          .loss)

#define FIELD(x, p, ...)                                                   \
    lw_drift_field(g, x, p, LW_NOVAL, LW_NOVAL,                            \
                   &(lw_attr_drift){.n_tau = 1, .tau = {.1}, __VA_ARGS__}) \
        .loss
WRONG(w_no_positives,
      FIELD(X("a", 4, 2, 3), X("p", 0, 2, 3), .groups = 1, .n = 4, .slots = 2, .c = 3))
WRONG(w_no_groups, FIELD(X("a", 0, 2, 3), X("p", 0, 2, 3), .n = 4, .np = 4, .slots = 2, .c = 3))
WRONG(w_no_slots, FIELD(X("a", 4, 0, 3), X("p", 4, 0, 3), .groups = 1, .n = 4, .np = 4, .c = 3))
WRONG(w_groups_wrap, FIELD(X("a", 0, 2, 3), X("p", 0, 2, 3), .groups = 65536, .n = 65536,
                           .np = 65536, .slots = 2, .c = 3))
WRONG(w_no_step, lw_at_step(g, X("t", 0, 4)))
WRONG(w_heat, lw_drift_through(
                  g, X("a", 4, 2, 3), X("p", 8, 2, 3), LW_NOVAL, LW_NOVAL, LW_NOVAL, X("heat", 2),
                  &(lw_attr_drift){
                      .groups = 2, .n = 2, .np = 4, .slots = 2, .c = 3, .n_tau = 1, .tau = {.1}})
                  .loss)

static const struct {
    void (*build)(lw_graph *g);
    const char *says; /* part of the message; shapes of the operands are in it too */
} shape_errors[] = {
    {w_rank, "7 dimensions: at most 6"},
    {w_wide, "must be 1 to"},
    {w_reshape_type, "the number of elements"},
    {w_concat_before, "one rank"},
    {w_concat_type, "one rank"},
    {w_slice_before, "outside its dimension"},
    {w_crop_pad, "padding is too large"},
    {w_far_column_pads, "padding is too large"},
    {w_conv_narrow, "smaller than the kernel"},
    {w_conv_residual, "residual must have the result's shape"},
    {w_conv_image_bias, "image bias must be"},
    {w_conv_project, "its weight belong together"},
    {w_transpose_pad, "padding -1 leaves nothing"},
    {w_transpose_far_pad, "leaves nothing of 5x5"},
    {w_transpose_stride, "stride 65536 of 65537x1 is too large"},
    {w_transpose_output_pad, "output padding below it"},
    {w_pool_stride, "does not fit"},
    {w_pool_pad, "does not fit"},
    {w_pool_low, "does not fit"},
    {w_halves, "multiple of the factor"},
    {w_patches_rank, "[B,H,W,C] or their rows"},
    {w_output_into, "of its type"},
    {w_output_none, "has no value"},
    {w_inner, "f32[2,3], f32[4,5]): inner"},
    {w_bias, "bias"},
    {w_conv_empty, "no pixels"},
    {w_conv_rank, "[B,H,W,C]"},
    {w_conv_channels, "[B,H,W,C]"},
    {w_conv_small, "smaller than the kernel"},
    {w_conv_pad, "padding must not be negative"},
    {w_transpose, "leaves nothing"},
    {w_output_pad, "output padding below it"},
    {w_depthwise, "[B,H,W,C]"},
    {w_depthwise_weight, "[C,KH,KW,1]"},
    {w_conv_bias, "bias"},
    {w_bias_type, "f32"},
    {w_conv_bias_type, "weight and bias must be f32"},
    {w_conv_weight_type, "weight and bias must be f32"},
    {w_transpose_bias_type, "weight and bias must be f32"},
    {w_depthwise_bias_type, "weight and bias must be f32"},
    {w_depthwise_weight_type, "weight and bias must be f32"},
    {w_norm_gamma_type, "must be f32"},
    {w_norm_beta_type, "must be f32"},
    {w_norm_scale_type, "must be f32"},
    {w_norm_residual_type, "must be f32"},
    {w_rms_gamma_type, "must be f32"},
    {w_norm_groups, "groups"},
    {w_norm_gamma, "gamma"},
    {w_norm_scale, "[B,C]"},
    {w_attention, "heads"},
    {w_attention_batch, "[B,Tk,2C]"},
    {w_attention_keys, "twice [B,Tk,C]"},
    {w_attention_width, "twice [B,Tk,C]"},
    {w_attention_no_keys, "a key at least"},
    {w_attention_no_tokens, "a key at least"},
    {w_labels, "i32 [M]"},
    {w_concat, "outside the axis"},
    {w_concat_axis, "one rank"},
    {w_slice, "outside its dimension"},
    {w_slice_empty, "outside its dimension"},
    {w_pad, "nothing left"},
    {w_far_pad, "too large"},
    {w_wide_pad, "too large"},
    {w_rope_pieces, "[T,P,D]"},
    {w_rope_wraps, "[T,P,D]"},
    {w_pool, "does not fit"},
    {w_upsample, "[B,H,W,C]"},
    {w_factor, "factor"},
    {w_stride, "stride"},
    {w_every, "factor"},
    {w_patches, "multiple of the factor"},
    {w_patches_padded, "multiple of the factor"},
    {w_patches_cut, "nothing of a picture is cut off"},
    {w_patches_wrap, "multiple of the factor"},
    {w_patches_many, "too many patches"},
    {w_patches_wide, "too many patches"},
    {w_no_size, "must be 1 to"},
    {w_negative, "must be 1 to"},
    {w_beyond, "elements"},
    {w_wraps, "factor is too large"},
    {w_far_pads, "padding is too large"},
    {w_resize, "positive"},
    {w_resize_filter, "no such filter"},
    {w_resize_form, "torch, float-aa or tf-inception"},
    {w_resize_scale, "floor(size * scale)"},
    {w_resize_scales, "floor(size * scale)"},
    {w_embedding, "i32 ids"},
    {w_rows, "i64"},
    {w_no_rows, "row ids"},
    {w_random_type, "i32"},
    {w_dropout, "0 <= p < 1"},
    {w_ew_type, "must be f32"},
    {w_middle, "[B,..,C]"},
    {w_drift, "pos [G*Np,T,C]"},
    {w_tau, "positive"},
    {w_no_positives, "a real one and a slot"},
    {w_no_groups, "needs a group"},
    {w_no_slots, "a real one and a slot"},
    {w_groups_wrap, "[G*N,T,C]"},
    {w_no_step, "of a row at least"},
    {w_heat, "multiplied by one number"},
};

static void test_shape_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < LW_COUNT(shape_errors); i++) {
        lw_graph *g = NULL;
        assert_int_equal(lw_graph_new(&g), 0);
        lw_scope_push(g, "here");
        shape_errors[i].build(g);
        if (lw_graph_error(g) != LW_ESHAPE)
            fail_msg("row %zu (%s): code %d", i, shape_errors[i].says, lw_graph_error(g));
        if (!strstr(lw_errmsg(), shape_errors[i].says) || !lw_str_starts(lw_errmsg(), "here: "))
            fail_msg("row %zu (%s): '%s'", i, shape_errors[i].says, lw_errmsg());
        lw_graph_free(&g);
    }
}

static void test_shapes(void **state)
{
    lw_graph *g = *state;
    lw_val x = X("x", 2, 9, 7, 6), r = lw_input(g, "r", lw_type_of(LW_I64, 1, 2));
    const struct {
        lw_val v;
        lw_type want;
    } rows[] = {
        {lw_linear_op(g, x, X("w", 5, 6), LW_NOVAL), F(2, 9, 7, 5)},
        {lw_matmul(g, X("a", 4, 3), X("b", 4, 5), true, false), F(3, 5)},
        {lw_conv2d_op(g, x, X("c", 5, 3, 3, 6), LW_NOVAL, 2, 1), F(2, 5, 4, 5)},
        {lw_conv2d_op(g, x, X("c", 5, 1, 1, 6), LW_NOVAL, 1, 0), F(2, 9, 7, 5)},
        {lw_conv2d_pad(g, x, X("c", 5, 3, 3, 6), LW_NOVAL, 2, (int[4]){0, 0, 1, 1}), F(2, 4, 3, 5)},
        {lw_attention(g, X("q", 2, 10, 24), 2), F(2, 10, 8)},
        {lw_cross_attention(g, X("q1", 2, 3, 8), X("kv", 2, 10, 16), 2), F(2, 3, 8)},
        {lw_mean(g, x, LW_OVER_ALL), F(1)},
        {lw_mean(g, x, LW_OVER_LAST), F(2, 9, 7, 1)},
        {lw_mean(g, x, LW_OVER_ROWS), F(6)},
        {lw_mean(g, x, LW_OVER_MIDDLE), F(2, 6)},
        {lw_mean(g, x, LW_OVER_BATCH), F(2)},
        {lw_concat(g, x, X("y", 2, 9, 7, 1), -1), F(2, 9, 7, 7)},
        {lw_slice(g, x, -1, 1, 4), F(2, 9, 7, 3)},
        {lw_subsample(g, x, 2), F(2, 5, 4, 6)},
        {lw_upsample(g, x, 3), F(2, 27, 21, 6)},
        {lw_pool2d(g, x, 3, 2, 1, true), F(2, 5, 4, 6)},
        {lw_resize(g, x, TO(3, 4, TORCH, BILINEAR)), F(2, 3, 4, 6)},
        {lw_embedding(g, X("t", 10, 4), I("i", 3)), F(3, 4)},
        {lw_pad(g, x, (int[3]){1, 0, 2}, (int[3]){0, -1, 0}), F(2, 10, 6, 8)},
        {lw_cross_entropy(g, X("l", 3, 5), I("i", 3)), F(3)},
        {lw_dropout(g, x, r, 0.5f), F(2, 9, 7, 6)},
    };
    if (lw_graph_error(g) < 0)
        fail_msg("%s", lw_errmsg());
    for (size_t i = 0; i < LW_COUNT(rows); i++)
        if (!lw_type_eq(lw_val_type(g, rows[i].v), rows[i].want))
            fail_msg("row %zu", i);
    /* What changes nothing adds nothing. */
    assert_int_equal(lw_reshape(g, x, F(2, 9, 7, 6)).id, x.id);
    assert_int_equal(lw_broadcast(g, x, F(2, 9, 7, 6)).id, x.id);
    assert_int_equal(lw_resize(g, x, TO(9, 7, TORCH, BILINEAR)).id, x.id);
    /* with scales of its own a picture of the same size is another */
    assert_int_not_equal(lw_resize(g, x, TO(9, 7, TORCH, BICUBIC, .scale = {1.05, 1.05})).id, x.id);
    assert_int_equal(lw_upsample(g, x, 1).id, x.id);
    assert_int_equal(lw_dropout(g, x, r, 0.0f).id, x.id);
}

/* As much on both sides as there can be, the odd one behind; never less than none. */
static void test_pads_same(void **state)
{
    (void)state;
    static const int32_t rows[][5] = {
        {5, 3, 1, 1, 1}, {4, 2, 1, 0, 1}, {6, 3, 2, 0, 1}, {6, 1, 3, 0, 0}, {5, 5, 2, 2, 2}};
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        int32_t before = -7, after = -7;
        lw_conv_pads_same(rows[i][0], rows[i][1], rows[i][2], &before, &after);
        assert_true(before == rows[i][3] && after == rows[i][4]);
    }
}

/* ---- costs and text -------------------------------------------------------------------------- */

static lw_cost cost_of(lw_graph *g, lw_val v)
{
    lw_cost c = {0};
    lw_op_get(lw_val_node(g, v)->op)->cost(g, lw_val_node(g, v), &c);
    return c;
}

static void test_costs(void **state)
{
    lw_graph *g = *state;
    lw_val x = X("x", 2, 4, 4, 8), w = X("w", 16, 3, 3, 8), m = X("m", 16, 8);
    assert_true(cost_of(g, lw_linear_op(g, x, m, LW_NOVAL)).flops == 2.0 * 32 * 8 * 16);
    assert_true(cost_of(g, lw_matmul(g, X("a", 5, 3), X("b", 5, 7), true, false)).flops ==
                2.0 * 5 * 3 * 7);
    /* padded taps are not work: 10 of 12 row taps and 10 of 12 column taps of a 4x4 picture */
    assert_true(cost_of(g, lw_conv2d_op(g, x, w, LW_NOVAL, 1, 1)).flops ==
                2.0 * 2 * 8 * 16 * 10 * 10);
    assert_true(cost_of(g, lw_silu(g, x)).bytes == 2.0 * 4 * 2 * 4 * 4 * 8);
    assert_true(cost_of(g, lw_reshape(g, x, F(256))).bytes == 0.0);
    assert_true(cost_of(g, lw_slice(g, x, -1, 2, 4)).bytes == 2.0 * 4 * 2 * 4 * 4 * 2);
    assert_true(cost_of(g, lw_attention(g, X("q", 1, 10, 24), 2)).flops == 2.0 * 2 * 10 * 10 * 8);
    lw_val pooled = lw_cross_attention(g, X("one", 1, 1, 8), X("kv", 1, 10, 16), 2);
    assert_true(cost_of(g, pooled).flops == 2.0 * 2 * 1 * 10 * 8);
}

static void test_text(void **state)
{
    lw_graph *g = *state;
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    lw_val x = X("x", 2, 4, 4, 8);
    lw_scope_push(g, "block");
    lw_val y = lw_conv2d_op(g, x, X("w", 16, 3, 3, 8), LW_NOVAL, 2, 1);
    lw_graph_output_add(g, "y", lw_scale(g, lw_mean(g, y, LW_OVER_MIDDLE), 0.5f), LW_NOVAL);
    lw_graph_print(&s, g);
    assert_string_equal(
        lw_str_c(&s),
        "%1 = input() {'x'} : f32[2,4,4,8]\n"
        "%2 = input() {'w'} : f32[16,3,3,8]  ; block\n"
        "%3 = conv2d(%1, %2, -) {3x3 8->16 stride 2 pad 1,1,1,1} : f32[2,2,2,16]  ; block\n"
        "%4 = reduce(%3) {mean over middle} : f32[2,16]  ; block\n"
        "%5 = ew(%4) {konst 0.5; mul r0 r1} : f32[2,16]  ; block\n"
        "output 'y' = %5\n");
}

/* ---- builder --------------------------------------------------------------------------------- */

typedef struct names {
    char name[8][64];
    lw_type type[8];
    lw_init init[8];
    int32_t n;
} names;

static int declare(void *self, const char *name, lw_type type, lw_init init, int32_t *index)
{
    names *s = self;
    for (int32_t i = 0; i < s->n; i++)
        if (strcmp(s->name[i], name) == 0) {
            *index = i;
            return lw_type_eq(s->type[i], type)
                       ? 0
                       : lw_fail(LW_ESHAPE, "'%s' exists at another type", name);
        }
    strncpy(s->name[s->n], name, sizeof s->name[0] - 1);
    s->type[s->n] = type;
    s->init[s->n] = init;
    *index = s->n++;
    return 0;
}

static void test_builder(void **state)
{
    lw_graph *g = *state;
    names s = {.n = 0};
    lw_params params = {.self = &s, .declare = declare, .frozen = true};
    lw_builder b = {.g = g, .params = &params};
    lw_val x = X("x", 2, 4, 4, 8);
    lw_scope_push(g, "mid");
    lw_conv2d(&b, "conv", x, 16, (lw_conv_opts){.kernel = 3, .pad = 1});
    lw_linear(&b, "fc", x, 3, false);
    lw_group_norm(&b, "norm", x, (lw_norm_opts){.groups = 2});
    static const char *const want[] = {"mid.conv.weight", "mid.conv.bias", "mid.fc.weight",
                                       "mid.norm.weight", "mid.norm.bias"};
    assert_int_equal(s.n, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(s.name[i], want[i]);
    assert_true(lw_type_eq(s.type[0], F(16, 3, 3, 8)) && lw_type_eq(s.type[2], F(3, 8)));
    assert_true(s.init[0].kind == LW_INIT_UNIFORM &&
                s.init[0].scale == (float)(1.0 / 8.48528137423857)); /* sqrt 72 */
    assert_true(s.init[3].kind == LW_INIT_ONES && s.init[4].kind == LW_INIT_ZEROS);
    /* The same name again is the same value, so that its gradients meet; another type is the
     * store's error. */
    lw_val again = lw_linear(&b, "fc", x, 3, false);
    assert_int_equal(lw_val_node(g, again)->in[1].id,
                     lw_val_node(g, lw_linear(&b, "fc", x, 3, false))->in[1].id);
    assert_int_equal(s.n, 5);
    assert_true(
        ((const lw_attr_param *)lw_val_node(g, lw_val_node(g, again)->in[1])->attr)->frozen);
    assert_false(lw_val_ok(lw_linear(&b, "fc", x, 4, false)));
    assert_int_equal(lw_graph_error(g), LW_ESHAPE);
    assert_non_null(strstr(lw_errmsg(), "mid.fc.weight"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_graph, close_graph)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        CASE(test_graph_grows),
        CASE(test_scopes),
        CASE(test_first_error_sticks),
        CASE(test_invalid_operands_pass_through),
        CASE(test_operand_modes),
        cmocka_unit_test(test_what_does_not_broadcast),
        cmocka_unit_test(test_shape_errors),
        CASE(test_shapes),
        cmocka_unit_test(test_pads_same),
        CASE(test_costs),
        CASE(test_text),
        CASE(test_builder),
    };
    return cmocka_run_group_tests_name("ir", tests, NULL, NULL);
}
