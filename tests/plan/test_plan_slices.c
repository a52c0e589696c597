/* SPDX-License-Identifier: Apache-2.0 */
/* Wide layers at a network's beginning, a few pictures at a time: the same bits, fewer bytes alive;
 * and where nothing is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan_util.h"

enum { BATCH = 5, MANY = 9, SIDE = 128, PIXELS = SIDE * SIDE, SMALL = 40 * 48 };

static const int ones[4] = {1, 1, 1, 1};

/* Pictures made larger, inverted residual blocks at full size, one value of them seen outside, then two halvings. */
static void build(plan_lab *l, int32_t batch)
{
    lw_graph *g = l->g;
    lw_val x = lw_resize(
        g, LAB_X(l, "x", batch, 40, 48, 3),
        (lw_attr_resize){
            .h = SIDE, .w = SIDE, .form = LW_RESAMPLE_TORCH, .filter = LW_FILTER_BILINEAR});
    lw_val h = lw_relu6(g, lw_conv2d_op(g, x, LAB_P(l, "stem", 8, 3, 3, 3), LW_NOVAL, 1, 1)), r = h;
    h = lw_relu6(g, lw_conv2d_op(g, h, LAB_P(l, "expand", 48, 1, 1, 8), LW_NOVAL, 1, 0));
    h = lw_relu6(g, lw_depthwise_op(g, h, LAB_P(l, "dw", 48, 3, 3, 1), LW_NOVAL, 1, ones));
    h = lw_add(g, lw_conv2d_op(g, h, LAB_P(l, "project", 8, 1, 1, 48), LAB_P(l, "b", 8), 1, 0), r);
    lab_output(l, "seen", h);
    h = lw_relu6(g, lw_conv2d_op(g, h, LAB_P(l, "expand2", 48, 1, 1, 8), LW_NOVAL, 1, 0));
    h = lw_pool2d(g, h, 3, 2, 1, true);
    h = lw_conv2d_op(g, h, LAB_P(l, "last", 4, 3, 3, 48), LW_NOVAL, 2, 1);
    lab_output(l, "y", lw_sqr(g, h));
}

static int count_batch(const lw_graph *g, lw_op op, int32_t batch)
{
    int n = 0;
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++) {
        const lw_node *node = lw_graph_node(g, k);
        n += node->op == op && lw_val_type(g, node->out[0]).dim[0] == batch;
    }
    return n;
}

/* The outputs of pictures [row, row + batch) of one long input. */
static void run(int threads, int32_t row, int32_t batch, float *y, float *seen)
{
    plan_lab l;
    lab_open(&l, threads, lw_isa_best());
    build(&l, batch);
    lab_compile(&l, 1);
    float *x = lw_exec_write(l.exec, "x");
    lw_rng_key key = lw_rng_key_of(3, lw_hash_name("x"));
    for (int32_t b = 0; b < batch; b++)
        for (int i = 0; i < SMALL * 3; i++)
            x[b * SMALL * 3 + i] = (float)lw_rng_uniform(key, 0, (uint64_t)(row + b), (uint64_t)i);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    memcpy(y, lw_exec_read(l.exec, "y"), sizeof *y * (size_t)batch * PIXELS / 16 * 4);
    memcpy(seen, lw_exec_read(l.exec, "seen"), sizeof *seen * (size_t)batch * PIXELS * 8);
    lab_close(&l);
}

static void test_same_bits(void **state)
{
    (void)state;
    enum { Y = PIXELS / 16 * 4, SEEN = PIXELS * 8 };
    LW_CLEANUP(lw_free) float *all = lw_calloc(BATCH * Y, sizeof *all);
    LW_CLEANUP(lw_free) float *one = lw_calloc(Y, sizeof *one);
    LW_CLEANUP(lw_free) float *seen = lw_calloc((size_t)BATCH * SEEN, sizeof *seen);
    LW_CLEANUP(lw_free) float *seen_one = lw_calloc(SEEN, sizeof *seen_one);
    assert_true(all && one && seen && seen_one);
    run(2, 0, BATCH, all, seen);
    for (int32_t b = 0; b < BATCH; b++) {
        run(1, b, 1, one, seen_one);
        assert_memory_equal(one, all + b * Y, sizeof *one * Y);
        assert_memory_equal(seen_one, seen + b * SEEN, sizeof *seen_one * SEEN);
    }
}

static void test_where_it_is_cut(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    l.dev->chain = NULL;
    l.dev->near_all = 64 << 20; /* 12 MiB a slice, whose widest step takes 6 a picture */
    build(&l, MANY);
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(&l, "slices");
    assert_int_equal(lab_count(g, LW_OP_DEPTHWISE), 5); /* slices of 2, 2, 2, 2 and 1 pictures */
    assert_int_equal(count_batch(g, LW_OP_DEPTHWISE, 2), 4);
    assert_int_equal(count_batch(g, LW_OP_RESIZE, 2), 4);
    assert_int_equal(lab_count(g, LW_OP_POOL), 5);
    assert_int_equal(lab_count(g, LW_OP_PACK), 6);       /* every weight once */
    assert_int_equal(lab_count(g, LW_OP_CONCAT), 8);     /* of `last`, and what is seen */
    assert_int_equal(count_batch(g, LW_OP_EW, MANY), 1); /* the square */
    lab_close(&l);
}

/* Behind the last wide step the next product's operand would be least to join, but it is narrow. */
static void test_narrow_operands(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, lw_isa_best());
    lw_graph *g = l.g;
    lw_val h = LAB_X(&l, "x", 4, SIDE, SIDE, 8);
    for (int i = 0; i < 3; i++) {
        char wide[8], back[8];
        snprintf(wide, sizeof wide, "w%d", i);
        snprintf(back, sizeof back, "b%d", i);
        h = lw_relu(g, lw_conv2d_op(g, h, LAB_P(&l, wide, 48, 1, 1, 8), LW_NOVAL, 1, 0));
        h = lw_pool2d(g, h, 3, 1, 1, true);
        h = lw_conv2d_op(g, h, LAB_P(&l, back, 8, 1, 1, 48), LW_NOVAL, 1, 0);
    }
    lab_output(&l, "y", lw_conv2d_op(g, h, LAB_P(&l, "last", 16, 1, 1, 8), LW_NOVAL, 2, 0));
    assert_int_equal(lw_store_fix(l.store), 0);
    const lw_compile_opts o = {.opt = 1, .precision = LW_NUM_BF16};
    if (lw_compile(l.g, l.dev, &o, &l.plan) < 0)
        fail_msg("%s", lw_errmsg());
    lab_close(&l);
}

static int slices_of(lw_graph *g)
{
    int n = lab_count(g, LW_OP_SLICE);
    lw_graph_free(&g);
    return n;
}

/* One picture; small pictures; a gradient. */
static void test_where_nothing_is(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        plan_lab l;
        lab_open(&l, 1, LW_ISA_REF);
        if (way == 0)
            build(&l, 1);
        else if (way == 1)
            lab_unet_sample(&l, 32);
        else
            lab_unet_train(&l, 3);
        LW_CLEANUP(lw_graph_free) lw_graph *fused = lab_passes(&l, "pack");
        assert_int_equal(slices_of(lab_passes(&l, "slices")), lab_count(fused, LW_OP_SLICE));
        lab_close(&l);
    }
}

/* One prepared row a picture is as long as the batch: what reads it is not cut. */
static void test_rows_of_pictures(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, lw_isa_best());
    lw_val h = LAB_X(&l, "x", 4, SIDE, SIDE, 64), row = LAB_P(&l, "row", 4, 64);
    for (int i = 0; i < 12; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        h = lw_ew1(l.g, LW_EW_tanh,
                   lw_conv2d_op(l.g, h, LAB_P(&l, name, 64, 1, 1, 64), LW_NOVAL, 1, 0));
        h = i == 7 ? lw_add(l.g, h, row) : h;
    }
    lab_output(&l, "y", lw_pool2d(l.g, lw_pool2d(l.g, h, 8, 8, 0, false), 8, 8, 0, false));
    lab_compile(&l, 1);
    lab_fill(&l);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    lab_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_where_it_is_cut),
        cmocka_unit_test(test_narrow_operands), cmocka_unit_test(test_where_nothing_is),
        cmocka_unit_test(test_rows_of_pictures)};
    return cmocka_run_group_tests_name("plan_slices", tests, NULL, NULL);
}
