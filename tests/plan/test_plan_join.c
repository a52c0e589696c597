/* SPDX-License-Identifier: Apache-2.0 */
/* Linear layers on the same rows become one product: which do, which must not, that bits stay and that
 * weights which change are followed; and the memory it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan_util.h"

enum { BLOCKS = 5, ROWS = 3, K = 40, SIDE = 4 };

/* Channels of block i: layers of different widths. */
static int32_t channels(int i)
{
    return i % 2 ? 16 : 8;
}

/* Rows that a layer reads: the same of all, or of each its own, which hold the same numbers. */
static lw_val rows_for(plan_lab *l, lw_val *shared, int i, bool apart)
{
    char name[8];
    snprintf(name, sizeof name, "t%d", i);
    if (apart || !lw_val_ok(*shared))
        *shared = lw_silu(l->g, LAB_X(l, apart ? name : "t", ROWS, K));
    return *shared;
}

/* Blocks as a U-Net has them: a convolution, its norm with scale and shift from the rows, or in every
 * third block the rows added behind the convolution. */
static void build(plan_lab *l, bool apart)
{
    lw_graph *g = l->g;
    lw_val h = LAB_X(l, "x", ROWS, SIDE, SIDE, 4), t = LW_NOVAL;
    for (int i = 0; i < BLOCKS; i++) {
        const char *up = lw_scope_pushf(g, "block%d", i);
        const int32_t c = channels(i);
        const bool film = i % 3 != 2;
        lw_norm_opts norm = {.groups = 4, .act = LW_ACT_SILU};
        lw_val e = lw_linear(&l->b, "time", rows_for(l, &t, i, apart), film ? 2 * c : c, true);
        h = lw_conv2d(&l->b, "conv", h, c, (lw_conv_opts){.kernel = 3, .pad = 1});
        if (film) {
            norm.scale = lw_slice(g, e, 1, 0, c);
            norm.shift = lw_slice(g, e, 1, c, 2 * c);
        } else {
            h = lw_add(g, h, e);
        }
        h = lw_group_norm(&l->b, "norm", h, norm);
        lw_scope_set(g, up);
    }
    lab_output(l, "y", h);
}

static int count_slices_of(const lw_graph *g, lw_op op)
{
    int n = 0;
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++) {
        const lw_node *node = lw_graph_node(g, k);
        n += node->op == LW_OP_SLICE && lw_val_node(g, node->in[0])->op == op;
    }
    return n;
}

/* One product, its weights and biases joined in pairs; a block's own slices are of the whole. */
static void test_joined(void **state)
{
    plan_lab *l = *state;
    build(l, false);
    LW_CLEANUP(lw_graph_free) lw_graph *before = lab_passes(l, "fuse");
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "join");
    assert_int_equal(lab_count(before, LW_OP_MATMUL), BLOCKS);
    assert_int_equal(lab_count(g, LW_OP_MATMUL), 1);
    assert_int_equal(lab_count(g, LW_OP_CONCAT), 2 * (BLOCKS - 1));
    assert_int_equal(lab_count(g, LW_OP_PARAM), lab_count(before, LW_OP_PARAM));
    assert_int_equal(lab_count(g, LW_OP_SLICE), 2 * (BLOCKS - 1) + 1);
    assert_int_equal(count_slices_of(g, LW_OP_MATMUL), lab_count(g, LW_OP_SLICE));
    const lw_node *n = lab_node(g, LW_OP_MATMUL, 0);
    assert_int_equal(lw_type_last(lw_val_type(g, n->out[0])), 16 + 32 + 8 + 32 + 16);
    assert_int_equal(lw_val_type(g, n->in[1]).dim[0], 16 + 32 + 8 + 32 + 16);
    assert_string_equal(n->scope, "time");
    LW_CLEANUP(lw_graph_free) lw_graph *packed = lab_passes(l, "pack");
    assert_int_equal(lw_val_node(packed, lab_node(packed, LW_OP_MATMUL, 0)->in[1])->op, LW_OP_PACK);
    assert_int_equal(lab_count(packed, LW_OP_PACK), BLOCKS + 1);
}

static void same_numbers(void **state)
{
    plan_lab *l = *state;
    build(l, false);
    lab_same_numbers(l);
}

/* y of a run with weights of one seed, and of a second one after all weights have changed. */
static void run_twice(int threads, lw_num num, bool apart, float *y)
{
    plan_lab l;
    lab_open(&l, threads, lw_isa_best());
    build(&l, apart);
    assert_int_equal(lw_store_fix(l.store), 0);
    lw_store_init(l.store, 3);
    if (lw_compile(l.g, l.dev, &(lw_compile_opts){.opt = 1, .precision = num}, &l.plan) < 0)
        fail_msg("%s", lw_errmsg());
    assert_int_equal(lab_count(l.plan->graph, LW_OP_MATMUL), apart ? BLOCKS : 1);
    assert_int_equal(lw_exec_new(l.plan, LW_SLAB_PARAM, &l.exec), 0);
    for (int i = 0; i < l.plan->n_input; i++) {
        const lw_plan_port *port = &l.plan->input[i];
        float *x = lw_exec_write(l.exec, port->name);
        for (int64_t e = 0; e < lw_type_count(port->type); e++)
            x[e] = (float)(e % 11) * 0.2f - 1.0f;
    }
    for (int run = 0; run < 2; run++) {
        assert_int_equal(lw_exec_run(l.exec, NULL), 0);
        const int64_t n = lw_type_count(lw_exec_type(l.exec, "y"));
        memcpy(y + run * n, lw_exec_read(l.exec, "y"), sizeof *y * (size_t)n);
        lw_store_init(l.store, 5);
        lw_store_touch(l.store, LW_SLAB_PARAM);
    }
    lab_close(&l);
}

static void test_same_bits(void **state)
{
    enum { N = 2 * ROWS * SIDE * SIDE * 8 };
    static const lw_num nums[] = {LW_NUM_F32, LW_NUM_BF16};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(nums); i++) {
        float joined[N] = {0}, apart[N] = {0};
        run_twice(2, nums[i], false, joined);
        run_twice(1, nums[i], true, apart);
        assert_memory_equal(joined, apart, sizeof joined);
        assert_memory_not_equal(joined, joined + N / 2, sizeof joined / 2);
    }
}

/* ---- what stays as it is --------------------------------------------------------------------- */

static int products_left(plan_lab *l)
{
    lw_graph *g = lab_passes(l, "join");
    const int n = lab_count(g, LW_OP_MATMUL);
    lw_graph_free(&g);
    return n;
}

static lw_val layer(plan_lab *l, const char *name, lw_val x, int32_t n, bool bias)
{
    const int32_t k = lw_type_last(lw_val_type(l->g, x));
    char b[16];
    snprintf(b, sizeof b, "%s_bias", name);
    return lw_linear_op(l->g, x, LAB_P(l, name, n, k), bias ? LAB_P(l, b, n) : LW_NOVAL);
}

/* Two that would be joined, but for one reason each. */
static void test_left_alone(void **state)
{
    plan_lab *l = *state;
    lw_graph *g = l->g;
    lw_val t = LAB_X(l, "t", ROWS, K), u = LAB_X(l, "u", ROWS, K), y = LAB_X(l, "zero", ROWS, 8);
    lw_val seen = layer(l, "seen", t, 8, true);
    y = lw_add(g, y, lw_sqr(g, layer(l, "a", t, 8, true)));
    y = lw_add(g, y, lw_sqr(g, layer(l, "rows", u, 8, true)));            /* others */
    y = lw_add(g, y, lw_sqr(g, layer(l, "bias", t, 8, false)));           /* no bias */
    y = lw_add(g, y, lw_sqr(g, lw_relu(g, layer(l, "act", t, 8, true)))); /* a curve */
    y = lw_sqr(g, lw_add(g, y, layer(l, "residual", t, 8, true)));        /* and this adds to y */
    y = lw_add(g, lw_sqr(g, seen), y);                                    /* the caller reads it */
    for (int i = 0; i < 2; i++) { /* too thin, not of four */
        const int32_t n[] = {4, 6};
        char thin[2][8];
        for (int k = 0; k < 2; k++) {
            snprintf(thin[k], sizeof thin[k], "thin%d%d", i, k);
            y = lw_add(g, y, lw_sum(g, lw_sqr(g, layer(l, thin[k], t, n[i], true)), LW_OVER_ALL));
        }
    }
    lab_output(l, "seen", seen);
    lab_output(l, "y", y);
    assert_int_equal(products_left(l), 6 + 4);
    lab_same_numbers(l);
}

/* Tokens and what is prepared. */
static void test_not_a_row_per_sample(void **state)
{
    plan_lab *l = *state;
    lw_graph *g = l->g;
    lw_val x = LAB_X(l, "x", 2, 5, K), p = LAB_P(l, "p", 1, K);
    for (int i = 0; i < 2; i++) {
        lw_val at = i ? p : x;
        lw_val a = layer(l, i ? "pa" : "a", at, 8, true), b = layer(l, i ? "pb" : "b", at, 8, true);
        lab_output(l, i ? "z" : "y", lw_mul(g, lw_sqr(g, a), lw_silu(g, lw_sqr(g, b))));
    }
    assert_int_equal(products_left(l), 4);
}

static void test_training(void **state)
{
    plan_lab *l = *state;
    build(l, false);
    lw_val loss = lw_mean(l->g, lw_sqr(l->g, lw_graph_output_at(l->g, 0)->val), LW_OVER_ALL);
    assert_int_equal(lw_grad_params(l->g, loss, LW_NOVAL), 0);
    LW_CLEANUP(lw_graph_free) lw_graph *before = lab_passes(l, "fuse");
    assert_int_equal(products_left(l), lab_count(before, LW_OP_MATMUL));
}

/* Activations that are the same are joined with them. */
static void test_activation(void **state)
{
    plan_lab *l = *state;
    lw_graph *g = l->g;
    lw_val t = LAB_X(l, "t", ROWS, K);
    lw_val a = lw_silu(g, layer(l, "a", t, 8, false)), b = lw_silu(g, layer(l, "b", t, 8, false));
    lab_output(l, "y", lw_mul(g, a, lw_sqr(g, b)));
    LW_CLEANUP(lw_graph_free) lw_graph *joined = lab_passes(l, "join");
    assert_int_equal(lab_count(joined, LW_OP_MATMUL), 1);
    assert_int_equal(lab_count(joined, LW_OP_CONCAT), 1);
    assert_int_equal(((const lw_attr_matmul *)lab_node(joined, LW_OP_MATMUL, 0)->attr)->act,
                     LW_ACT_SILU);
    lab_same_numbers(l);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Weights side by side are only read while they are packed: later ones lie there. What stays is as
 * much as without, but for the biases, which are joined behind them. */
static void test_memory(void **state)
{
    size_t derived[2], frame[2];
    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        plan_lab l;
        lab_open(&l, 1, LW_ISA_REF);
        lw_val t = LW_NOVAL, y = LAB_X(&l, "x", ROWS, 64);
        for (int i = 0; i < BLOCKS; i++) {
            char name[2][16];
            snprintf(name[0], sizeof name[0], "time%d", i);
            snprintf(name[1], sizeof name[1], "own%d", i);
            lw_val e = lw_linear(&l.b, name[0], rows_for(&l, &t, i, apart), 64, true);
            y = lw_sqr(l.g, lw_mul(l.g, y, e));
            y = lw_linear(&l.b, name[1], y, 64, true);
        }
        lab_output(&l, "y", y);
        lab_compile(&l, 1);
        derived[apart] = lw_plan_get_info(l.plan).derived_bytes;
        frame[apart] = lw_plan_get_info(l.plan).frame_bytes;
        lab_close(&l);
    }
    const size_t biases = sizeof(float) * BLOCKS * 64, rows = sizeof(float) * ROWS * 64;
    assert_true(derived[0] <= derived[1] + 4 * biases);
    assert_true(frame[0] <= frame[1] + 2 * BLOCKS * rows);
}

/* The steps of the shared U-Net. */
static void test_shared_unet(void **state)
{
    plan_lab *l = *state;
    lw_unet_config c = lw_unet_small();
    lw_network_in in = {.x = LAB_X(l, "x", 2, 32, 32, 3), .t = LAB_X(l, "t", 2)};
    l->b.training = false;
    lab_output(l, "y", lw_unet(&l->b, &c, in));
    LW_CLEANUP(lw_graph_free) lw_graph *before = lab_passes(l, "fuse");
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "join");
    assert_int_equal(lab_count(before, LW_OP_MATMUL) - lab_count(g, LW_OP_MATMUL), 22 - 1);
    assert_int_equal(lab_count(g, LW_OP_SLICE), 2 * 22);
    assert_int_equal(lw_compile(l->g, l->dev, NULL, &l->plan), 0);
    /* 38 M numbers, and no second copy of those that are joined */
    assert_in_range(lw_plan_get_info(l->plan).derived_bytes, 1, 41000000u * sizeof(float));
}

int main(void)
{
    const struct CMUnitTest tests[] = {LAB_CASE(test_joined),
                                       LAB_CASE(same_numbers),
                                       cmocka_unit_test(test_same_bits),
                                       LAB_CASE(test_left_alone),
                                       LAB_CASE(test_not_a_row_per_sample),
                                       LAB_CASE(test_training),
                                       LAB_CASE(test_activation),
                                       cmocka_unit_test(test_memory),
                                       LAB_CASE(test_shared_unet)};
    return cmocka_run_group_tests_name("plan_join", tests, NULL, NULL);
}
