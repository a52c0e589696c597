/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions strip by strip: the bits of single ones, whatever the strips, the batch and the
 * threads; and which become a chain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan_util.h"

enum { BATCH = 3, HIGH = 45, WIDE = 11, OUT = 11 * 3 * 10 };

static const int ones[4] = {1, 1, 1, 1}, twos[4] = {2, 2, 2, 2}, same[4] = {0, 1, 1, 0};

/* A stem, a block with a residual, one of stride 2 with a 5x5 filter, one that is not expanded: four
 * chains. */
static void build(plan_lab *l, int32_t batch)
{
    lw_graph *g = l->g;
    lw_val x = LAB_X(l, "x", batch, HIGH, WIDE, 3);
    lw_val h = lw_relu6(g, lw_conv2d_pad(g, x, LAB_P(l, "stem", 10, 3, 2, 3), LW_NOVAL, 1, same));
    h = lw_relu6(g,
                 lw_depthwise_op(g, h, LAB_P(l, "d0", 10, 3, 3, 1), LAB_P(l, "b0", 10), 1, ones));
    h = lw_conv2d_op(g, h, LAB_P(l, "p0", 6, 1, 1, 10), LAB_P(l, "c0", 6), 1, 0);
    lw_val r = h;
    h = lw_relu6(g, lw_conv2d_op(g, h, LAB_P(l, "e1", 37, 1, 1, 6), LAB_P(l, "a1", 37), 1, 0));
    h = lw_relu6(g, lw_depthwise_op(g, h, LAB_P(l, "d1", 37, 3, 3, 1), LW_NOVAL, 1, ones));
    h = lw_add(g, lw_conv2d_op(g, h, LAB_P(l, "p1", 6, 1, 1, 37), LAB_P(l, "c1", 6), 1, 0), r);
    h = lw_silu(g, lw_conv2d_op(g, h, LAB_P(l, "e2", 20, 1, 1, 6), LAB_P(l, "a2", 20), 1, 0));
    h = lw_relu(g, lw_depthwise_op(g, h, LAB_P(l, "d2", 20, 5, 5, 1), LAB_P(l, "b2", 20), 2, twos));
    h = lw_conv2d_op(g, h, LAB_P(l, "p2", 8, 1, 1, 20), LW_NOVAL, 1, 0);
    h = lw_sqr(g, h); /* no epilogue: the next chain begins behind it */
    h = lw_depthwise_op(g, h, LAB_P(l, "d3", 8, 3, 3, 1), LAB_P(l, "b3", 8), 2, ones);
    lab_output(l, "y", lw_conv2d_op(g, h, LAB_P(l, "p3", 10, 1, 1, 8), LW_NOVAL, 1, 0));
}

static bool any_chain(void *self, const lw_attr_conv_chain *a, int32_t pictures)
{
    (void)self;
    return a->n >= 2 && pictures > 0;
}

/* Pictures [row, row + batch) of one long input; near_one 0: no chains. */
static void run(lw_isa isa, int threads, int32_t row, int32_t batch, int64_t near_one, float *y)
{
    plan_lab l;
    lab_open_conv(&l, threads, isa, LW_CONV_MODE_DIRECT);
    l.dev->chain = near_one ? any_chain : NULL;
    l.dev->near_one = near_one;
    build(&l, batch);
    lab_compile(&l, 1);
    float *x = lw_exec_write(l.exec, "x");
    lw_rng_key key = lw_rng_key_of(3, lw_hash_name("x"));
    for (int64_t i = 0; i < (int64_t)batch * HIGH * WIDE * 3; i++)
        x[i] = (float)lw_rng_uniform(key, 0, 7, (uint64_t)(i + (int64_t)row * HIGH * WIDE * 3)) -
               0.5f;
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_int_equal(lw_type_count(lw_exec_type(l.exec, "y")), batch * OUT);
    memcpy(y, lw_exec_read(l.exec, "y"), sizeof *y * (size_t)batch * OUT);
    lab_close(&l);
}

/* Windows of one row and of many; strips that end anywhere. */
static void test_same_bits(void **state)
{
    (void)state;
    static const int64_t near[] = {1, 9000, 30000, 1 << 20};
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        float want[BATCH * OUT], y[BATCH * OUT];
        run(isa, 1, 0, BATCH, 0, want);
        for (size_t i = 0; i < LW_COUNT(near); i++) {
            memset(y, 0xff, sizeof y);
            run(isa, 1 + (int)i % 3, 0, BATCH, near[i], y);
            assert_memory_equal(y, want, sizeof y);
            run(isa, 2, 1, 1, near[i], y); /* one picture in several parts */
            assert_memory_equal(y, want + OUT, sizeof *y * OUT);
        }
    }
}

static void test_what_becomes_one(void **state)
{
    (void)state;
    plan_lab l;
    lab_open_conv(&l, 1, LW_ISA_REF, LW_CONV_MODE_DIRECT);
    l.dev->chain = any_chain;
    build(&l, BATCH);
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(&l, "chain");
    assert_int_equal(lab_count(g, LW_OP_CONV_CHAIN), 4);
    assert_int_equal(lab_count(g, LW_OP_DEPTHWISE) + lab_count(g, LW_OP_CONV2D), 0);
    const lw_node *block = lab_node(g, LW_OP_CONV_CHAIN, 1);
    const lw_attr_conv_chain *a = block->attr;
    assert_true(a->n == 3 && a->depthwise[1] && !a->depthwise[0] && !a->depthwise[2]);
    assert_true(lw_val_ok(block->in[1]) && block->in[1].id == block->in[0].id);
    assert_int_equal(((const lw_attr_conv_chain *)lab_node(g, LW_OP_CONV_CHAIN, 3)->attr)->n, 2);
    lab_close(&l);
}

/* What others read stays; small values, tiles of Winograd and gradients are no chains either. */
static void test_what_does_not(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        plan_lab l;
        lab_open(&l, 1, lw_isa_best());
        lw_graph *g = l.g;
        int side = way == 0 ? 16 : 96;
        lw_val x = LAB_X(&l, "x", 4, side, side, 32);
        lw_val w = LAB_P(&l, "e", 48, way == 1 ? 3 : 1, way == 1 ? 3 : 1, 32);
        lw_val e = lw_conv2d_op(g, x, w, LW_NOVAL, 1, way == 1);
        lw_val d = lw_depthwise_op(g, e, LAB_P(&l, "d", 48, 3, 3, 1), LW_NOVAL, 1, ones);
        lab_output(&l, "y", d);
        if (way == 2)
            lab_output(&l, "seen", e);
        LW_CLEANUP(lw_graph_free) lw_graph *to = lab_passes(&l, "chain");
        bool tiles = way == 1 && lw_isa_best() == LW_ISA_REF; /* which has none */
        assert_int_equal(lab_count(to, LW_OP_CONV_CHAIN), tiles ? 1 : 0);
        lab_close(&l);
    }
}

/* The device's own rule: values between of more than four caches of a worker. */
static void test_what_pays(void **state)
{
    (void)state;
    for (int32_t batch = 1; batch <= 4; batch += 3) {
        plan_lab l;
        lab_open(&l, 1, LW_ISA_REF);
        lw_val x = LAB_X(&l, "x", batch, 96, 96, 8);
        lw_val e = lw_conv2d_op(l.g, x, LAB_P(&l, "e", 48, 1, 1, 8), LW_NOVAL, 1, 0);
        lab_output(&l, "y",
                   lw_depthwise_op(l.g, e, LAB_P(&l, "d", 48, 3, 3, 1), LW_NOVAL, 1, ones));
        LW_CLEANUP(lw_graph_free) lw_graph *to = lab_passes(&l, "chain");
        assert_int_equal(lab_count(to, LW_OP_CONV_CHAIN), batch == 4);
        lab_close(&l);
    }
}

/* By the device's rule at the machine's level, the first picture's results: a depthwise layer, then a 1x1 one that makes
 * `wide` channels. */
static void run_by_rule(int32_t batch, int wide, float *y)
{
    enum { SIDE = 48, CHANNELS = 96 };
    plan_lab l;
    lab_open(&l, 2, lw_isa_best());
    l.dev->near_one = 1 << 19; /* of one picture the values stay near, of four they do not */
    lw_val x = LAB_X(&l, "x", batch, SIDE, SIDE, CHANNELS);
    lw_val h = lw_depthwise_op(l.g, x, LAB_P(&l, "d", CHANNELS, 3, 3, 1), LW_NOVAL, 1, ones);
    h = lw_conv2d_op(l.g, lw_relu6(l.g, h), LAB_P(&l, "p", wide, 1, 1, CHANNELS), LW_NOVAL, 1, 0);
    lab_output(&l, "y", lw_pool2d(l.g, h, SIDE, SIDE, 0, false));
    lab_compile(&l, 1);
    float *in = lw_exec_write(l.exec, "x");
    for (int64_t i = 0; i < (int64_t)batch * SIDE * SIDE * CHANNELS; i++)
        in[i] = (float)(i % 251) / 251.0f - 0.5f;
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    memcpy(y, lw_exec_read(l.exec, "y"), sizeof *y * (size_t)wide);
    lab_close(&l);
}

/* A picture has its bits in any batch, whether its layers become a chain there or not. */
static void test_same_bits_by_rule(void **state)
{
    (void)state;
    for (int wide = 8; wide <= 64; wide *= 2) {
        float one[64], many[64];
        run_by_rule(1, wide, one);
        run_by_rule(4, wide, many);
        assert_memory_equal(one, many, sizeof *one * (size_t)wide);
    }
}

/* The first picture behind a convolution of stride 2, a depthwise one and one of 1x1. */
static void run_strided(int32_t batch, lw_conv_mode conv, float *y)
{
    enum { SIDE = 32, IN = 64, BETWEEN = 96, NARROW = 16 };
    plan_lab l;
    lab_open_conv(&l, 2, lw_isa_best(), conv);
    l.dev->near_one = 1 << 17; /* of one picture the values stay near, of six they do not */
    lw_val x = LAB_X(&l, "x", batch, SIDE, SIDE, IN);
    lw_val h = lw_conv2d_op(l.g, x, LAB_P(&l, "c", BETWEEN, 3, 3, IN), LW_NOVAL, 2, 1);
    h = lw_depthwise_op(l.g, lw_relu6(l.g, h), LAB_P(&l, "d", BETWEEN, 3, 3, 1), LW_NOVAL, 1, ones);
    h = lw_conv2d_op(l.g, h, LAB_P(&l, "p", NARROW, 1, 1, BETWEEN), LW_NOVAL, 1, 0);
    lab_output(&l, "y", lw_pool2d(l.g, h, SIDE / 2, SIDE / 2, 0, false));
    lab_compile(&l, 1);
    float *in = lw_exec_write(l.exec, "x");
    for (int64_t i = 0; i < (int64_t)batch * SIDE * SIDE * IN; i++)
        in[i] = (float)(i % 251) / 251.0f - 0.5f;
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    memcpy(y, lw_exec_read(l.exec, "y"), sizeof *y * NARROW);
    lab_close(&l);
}

/* Weights are packed before chains are looked for: one that is packed for tiles is none. */
static void test_tiles_of_stride_two(void **state)
{
    (void)state;
    float direct[16], one[16], many[16];
    run_strided(6, LW_CONV_MODE_DIRECT, direct);
    for (lw_conv_mode conv = LW_CONV_MODE_AUTO; conv <= LW_CONV_MODE_WINOGRAD; conv++) {
        run_strided(1, conv, one);
        run_strided(6, conv, many);
        assert_memory_equal(one, many, sizeof one);
        for (size_t i = 0; i < LW_COUNT(one); i++)
            assert_float_equal(one[i], direct[i], 1e-4f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),         cmocka_unit_test(test_what_becomes_one),
        cmocka_unit_test(test_what_does_not),     cmocka_unit_test(test_what_pays),
        cmocka_unit_test(test_same_bits_by_rule), cmocka_unit_test(test_tiles_of_stride_two)};
    return cmocka_run_group_tests_name("plan_chain", tests, NULL, NULL);
}
