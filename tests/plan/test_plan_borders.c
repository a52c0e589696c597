/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Borders: convolutions whose four sides have pads of their own, in every element type, beside sums
 * written out here. Operands lie on grids that u8, s8 and bf16 hold exactly, and so do all partial
 * sums: whatever multiplies them must come to the same numbers. The zero of u8 is in its middle, at
 * its ends and elsewhere, so that a border of bytes is not one of zero bytes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan_util.h"
#include "plan/plan.h"

enum { BATCH = 2, C = 32, O = 40, MOST = BATCH * 16 * 16 * O };

typedef struct borders {
    int32_t h, w, kh, kw, stride, pad[4]; /* top, left, bottom, right */
} borders;

static const borders cases[] = {
    {7, 6, 3, 3, 1, {2, 1, 0, 1}}, {8, 8, 3, 3, 1, {0, 0, 2, 2}}, {8, 8, 3, 3, 2, {0, 0, 1, 1}},
    {9, 5, 3, 3, 2, {2, 0, 0, 1}}, {5, 6, 5, 4, 3, {4, 0, 1, 3}}, {6, 7, 1, 1, 1, {1, 0, 0, 2}},
    {1, 9, 3, 3, 1, {0, 2, 2, 0}}, {3, 4, 3, 3, 1, {5, 0, 0, 4}}, {8, 9, 4, 2, 1, {3, 1, 0, 0}},
};

/* What is multiplied: x = (u - zero) / 64, w = k / 128 with 127 in every filter, bias = k / 8192. */
static float x_of(int64_t i, int32_t zero)
{
    return (float)((int32_t)((uint64_t)i * 2654435761u >> 7 & 255) - zero) / 64.0f;
}

static float w_of(int64_t i, int64_t of_filter)
{
    const int32_t k = (int32_t)((uint64_t)i * 40503u >> 3 & 255) - 128;
    return (float)(i % of_filter == 0 ? 127 : LW_MAX(k, -127)) / 128.0f;
}

static float bias_of(int64_t o)
{
    return (float)(o * 37 % 101 - 50) / 8192.0f;
}

/* Element e of the result, as the formula has it. */
static double sum_at(const borders *b, int32_t oh, int32_t ow, int64_t e, int32_t zero)
{
    const int64_t o = e % O, image = e / O / ow / oh, of_filter = (int64_t)b->kh * b->kw * C;
    const int32_t y0 = (int32_t)(e / O / ow % oh) * b->stride - b->pad[0];
    const int32_t x0 = (int32_t)(e / O % ow) * b->stride - b->pad[1];
    double sum = (double)bias_of(o);
    for (int32_t i = 0; i < b->kh; i++)
        for (int32_t j = 0; j < b->kw; j++) {
            const int32_t y = y0 + i, x = x0 + j;
            if (y < 0 || y >= b->h || x < 0 || x >= b->w)
                continue;
            for (int64_t c = 0; c < C; c++)
                sum += (double)x_of(((image * b->h + y) * b->w + x) * C + c, zero) *
                       (double)w_of(o * of_filter + (i * b->kw + j) * C + c, of_filter);
        }
    return sum;
}

static void fill_store(lw_store *s)
{
    const int32_t weight = lw_store_find(s, "w"), bias = lw_store_find(s, "b");
    float *w = lw_store_edit(s, weight, LW_SLAB_PARAM), *b = lw_store_edit(s, bias, LW_SLAB_PARAM);
    const int64_t n = lw_store_at(s, weight)->count;
    for (int64_t i = 0; i < n; i++)
        w[i] = w_of(i, n / O);
    for (int64_t i = 0; i < O; i++)
        b[i] = bias_of(i);
    lw_store_touch(s, LW_SLAB_PARAM);
}

/* The element type that the convolution reads. */
static lw_dtype operand(const plan_lab *l)
{
    const lw_graph *g = l->plan->graph;
    return lw_val_type(g, lab_node(g, LW_OP_CONV2D, 0)->in[0]).dtype;
}

/* Runs one convolution; returns how many results there are. */
static int64_t run(float *y, const borders *b, lw_isa isa, int threads, int opt, lw_num num,
                   int32_t zero)
{
    plan_lab l;
    const lw_edge_range edge = {"w", 1.0f / 64, zero};
    const lw_calibration c = {&edge, 1};
    lab_open_conv(&l, threads, isa, LW_CONV_MODE_DIRECT);
    lw_val w = LAB_P(&l, "w", O, b->kh, b->kw, C), bias = LAB_P(&l, "b", O);
    lab_output(
        &l, "y",
        lw_conv2d_pad(l.g, LAB_X(&l, "x", BATCH, b->h, b->w, C), w, bias, b->stride, b->pad));
    assert_int_equal(lw_store_fix(l.store), 0);
    const lw_compile_opts o = {
        .opt = opt, .precision = num, .calibration = num == LW_NUM_S8 ? &c : NULL};
    if (lw_compile(l.g, l.dev, &o, &l.plan) < 0)
        fail_msg("%s", lw_errmsg());
    assert_int_equal(lw_exec_new(l.plan, LW_SLAB_PARAM, &l.exec), 0);
    static const lw_dtype reads[] = {LW_F32, LW_BF16, LW_U8};
    if (operand(&l) != reads[num] && num == LW_NUM_S8) /* bf16 may be slower than f32 */
        fail_msg("the convolution reads %s", lw_dtype_name(operand(&l)));
    fill_store(l.store);
    float *x = lw_exec_write(l.exec, "x");
    for (int64_t i = 0; i < (int64_t)BATCH * b->h * b->w * C; i++)
        x[i] = x_of(i, zero);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    const lw_type t = lw_exec_type(l.exec, "y");
    const int64_t n = lw_type_count(t);
    assert_true(n <= MOST);
    memcpy(y, lw_exec_read(l.exec, "y"), (size_t)n * sizeof *y);
    lab_close(&l);
    return n;
}

static void check_case(const borders *b, lw_num num, int32_t zero)
{
    static float y[MOST];
    static double want[MOST];
    const int32_t oh = (b->h + b->pad[0] + b->pad[2] - b->kh) / b->stride + 1,
                  ow = (b->w + b->pad[1] + b->pad[3] - b->kw) / b->stride + 1;
    const int64_t n = (int64_t)BATCH * oh * ow * O;
    assert_true(n <= MOST);
    for (int64_t e = 0; e < n; e++)
        want[e] = sum_at(b, oh, ow, e, zero);
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa))
        for (int opt = 0; opt <= 1; opt++) {
            assert_int_equal(run(y, b, isa, 1 + opt * 2, opt, num, zero), n);
            for (int64_t e = 0; e < n; e++)
                if (!(fabs((double)y[e] - want[e]) <= 1e-6 * (1.0 + fabs(want[e]))))
                    fail_msg("case %td at %s, type %d, zero %d, opt %d: element %lld is %g, not %g",
                             b - cases, lw_isa_name(isa), num, zero, opt, (long long)e,
                             (double)y[e], want[e]);
        }
}

static void test_floats(void **state)
{
    (void)state;
    for (size_t i = 0; i < LW_COUNT(cases); i++)
        for (int num = LW_NUM_F32; num <= LW_NUM_BF16; num++)
            check_case(&cases[i], (lw_num)num, 128);
}

static void test_bytes(void **state)
{
    (void)state;
    static const int32_t zero[] = {0, 37, 128, 255};
    for (size_t i = 0; i < LW_COUNT(cases); i++)
        for (size_t k = 0; k < LW_COUNT(zero); k++)
            check_case(&cases[i], LW_NUM_S8, zero[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_floats), cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests_name("plan_borders", tests, NULL, NULL);
}
