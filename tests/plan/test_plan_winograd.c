/* SPDX-License-Identifier: Apache-2.0 */
/* Plans whose convolutions use Winograd's tiles: against the oracle, forward and every gradient;
 * the same bits for any number of threads and any batch; what the plan says of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "store/store.h"

#include "plan/plan_util.h"

/* The loss and all gradients of one training step of the small U-Net; the result is
 * the caller's. */
static float *train_step(int threads, lw_isa isa, lw_conv_mode conv, int opt, int64_t *n)
{
    plan_lab l;
    lab_open_conv(&l, threads, isa, conv);
    lab_unet_train(&l, 3);
    lab_compile(&l, opt);
    lab_fill(&l);
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){.seed = 5, .step = 2}), 0);
    const float *g = lw_store_slab(l.store, LW_SLAB_GRAD, n);
    float *out = lw_calloc((size_t)*n + 1, sizeof *out);
    assert_non_null(out);
    memcpy(out, g, (size_t)*n * sizeof *g);
    memcpy(out + *n, lw_exec_read(l.exec, "loss"), sizeof *g);
    *n += 1;
    lab_close(&l);
    return out;
}

static void test_training_against_oracle(void **state)
{
    (void)state;
    int64_t n, m;
    LW_CLEANUP(lw_free) float *want = train_step(1, LW_ISA_REF, LW_CONV_MODE_DIRECT, 0, &n);
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        LW_CLEANUP(lw_free)
        float *direct = train_step(1, isa, LW_CONV_MODE_DIRECT, 1, &m);
        LW_CLEANUP(lw_free)
        float *tiles = train_step(1, isa, LW_CONV_MODE_WINOGRAD, 1, &m);
        assert_int_equal(n, m);
        double far = lab_distance(want, tiles, n);
        print_message("%s: all gradients, direct %.2e, Winograd %.2e from the oracle\n",
                      lw_isa_name(isa), lab_distance(want, direct, n), far);
        assert_true(far < 3e-6);
        assert_true(memcmp(direct, tiles, (size_t)n * sizeof *tiles) != 0);
    }
}

static void test_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 5};
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        LW_CLEANUP(lw_free) float *first = NULL;
        for (size_t i = 0; i < LW_COUNT(threads); i++) {
            int64_t n;
            LW_CLEANUP(lw_free)
            float *x = train_step(threads[i], isa, LW_CONV_MODE_WINOGRAD, 1, &n);
            if (!first)
                first = lw_steal(&x);
            else
                assert_memory_equal(first, x, (size_t)n * sizeof *x);
        }
    }
}

/* y of the rows from `row` on, of inputs that depend on the row alone. */
static void sample(lw_isa isa, int32_t batch, int32_t row, float *y)
{
    plan_lab l;
    lab_open_conv(&l, 2, isa, LW_CONV_MODE_WINOGRAD);
    lab_unet_sample(&l, batch);
    lab_compile(&l, 1);
    static const char *const names[] = {"x", "classes", "latent"};
    for (size_t i = 0; i < LW_COUNT(names); i++) {
        lw_type t = lw_exec_type(l.exec, names[i]);
        int64_t per_row = lw_type_count(t) / batch;
        void *p = lw_exec_write(l.exec, names[i]);
        lw_rng_key key = lw_rng_key_of(9, lw_hash_name(names[i]));
        for (int64_t e = 0; e < per_row * batch; e++) {
            uint64_t row_of = (uint64_t)(row + e / per_row), at = (uint64_t)(e % per_row);
            if (t.dtype == LW_F32)
                ((float *)p)[e] = (float)lw_rng_uniform(key, 0, row_of, at);
            else
                ((int32_t *)p)[e] = (int32_t)(row_of % 4);
        }
    }
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){.seed = 1}), 0);
    lw_type t = lw_exec_type(l.exec, "y");
    memcpy(y, lw_exec_read(l.exec, "y"), (size_t)lw_type_count(t) * sizeof *y);
    lab_close(&l);
}

static void test_batch(void **state)
{
    (void)state;
    enum { ROW = 8 * 8 * 3, ROWS = 7 };
    static float all[ROWS * ROW], part[ROWS * ROW];
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        sample(isa, ROWS, 0, all);
        sample(isa, 4, 0, part);
        sample(isa, 1, 4, part + 4 * ROW);
        sample(isa, 2, 5, part + 5 * ROW);
        assert_memory_equal(all, part, sizeof all);
    }
}

/* Transformed weights are made in the prepare segment, once per version, and are what the plan says
 * they take. */
static void test_prepared(void **state)
{
    (void)state;
    size_t derived[2];
    for (int tiles = 0; tiles < 2; tiles++) {
        plan_lab l;
        lab_open_conv(&l, 1, lw_isa_best(), tiles ? LW_CONV_MODE_WINOGRAD : LW_CONV_MODE_DIRECT);
        lw_val x = LAB_X(&l, "x", 2, 8, 8, 32);
        lab_output(&l, "y", lw_conv2d(&l.b, "conv", x, 32, (lw_conv_opts){.kernel = 3, .pad = 1}));
        lab_compile(&l, 1);
        derived[tiles] = lw_plan_get_info(l.plan).derived_bytes;
        assert_int_equal(lw_plan_get_info(l.plan).n_prepare, 1);
        assert_int_equal(lw_plan_get_info(l.plan).n_steps, 1);
        lab_close(&l);
    }
    assert_int_equal(derived[0], 9 * 32 * 32 * sizeof(float));
    assert_int_equal(derived[1], 36 * 32 * 32 * sizeof(float));
}

/* Floats of prepared filters of a 3x3 convolution that halves the resolution, or follows its doubling. */
static size_t prepared(bool up, int side, lw_num num, lw_conv_mode conv)
{
    enum { CHANNELS = 64 };
    plan_lab l;
    lab_open_conv(&l, 1, LW_MIN(lw_isa_best(), LW_ISA_AVX2), conv);
    lw_val x = LAB_X(&l, "x", 2, side, side, CHANNELS);
    x = up ? lw_upsample(l.g, x, 2) : x;
    lab_output(
        &l, "y",
        lw_conv2d_op(l.g, x, LAB_P(&l, "w", CHANNELS, 3, 3, CHANNELS), LW_NOVAL, up ? 1 : 2, 1));
    lab_compile_as(&l, &(lw_compile_opts){.opt = 1, .precision = num});
    const size_t bytes = lw_plan_get_info(l.plan).derived_bytes;
    lab_close(&l);
    return bytes / (CHANNELS * CHANNELS * sizeof(float));
}

/* 36 numbers a pair of channels, whatever precision is asked for, where there are the tiles of conv_rescale.h. */
static void test_changes_of_resolution(void **state)
{
    (void)state;
    if (lw_isa_best() < LW_ISA_AVX2)
        skip();
    for (int up = 0; up < 2; up++) {
        const int side = up ? 8 : 16, odd = up ? 5 : 10;
        const size_t sums = up ? 16 : 0; /* of an upsampled picture's filters, kept beside */
        assert_int_equal(prepared(up, side, LW_NUM_F32, LW_CONV_MODE_AUTO), 36 + sums);
        assert_int_equal(prepared(up, side, LW_NUM_BF16, LW_CONV_MODE_AUTO), 36 + sums);
        assert_int_equal(prepared(up, side, LW_NUM_F32, LW_CONV_MODE_DIRECT), up ? 16 + sums : 9);
        assert_int_equal(prepared(up, odd, LW_NUM_F32, LW_CONV_MODE_AUTO), up ? 36 : 9);
        assert_int_equal(prepared(up, odd, LW_NUM_F32, LW_CONV_MODE_WINOGRAD), 36 + sums);
    }
}

/* Of few tiles filters are packed as they are, which nobody can tell from the bits. */
static void test_few_tiles(void **state)
{
    (void)state;
    enum { CHANNELS = 96, ROW = 8 * 8 * CHANNELS };
    static float first[ROW];
    for (lw_isa isa = lw_isa_next(LW_ISA_REF); isa < LW_ISA_COUNT; isa = lw_isa_next(isa))
        for (int32_t batch = 1; batch <= 2; batch++) {
            plan_lab l;
            lab_open_conv(&l, 2, isa, LW_CONV_MODE_WINOGRAD);
            lw_val x = LAB_X(&l, "x", batch, 8, 8, CHANNELS);
            lw_conv_opts how = {.kernel = 3, .pad = 1};
            lab_output(&l, "y", lw_conv2d(&l.b, "conv", x, CHANNELS, how));
            lab_compile(&l, 1);
            lab_fill(&l);
            assert_int_equal(lw_exec_run(l.exec, &(lw_tick){.seed = 1}), 0);
            assert_int_equal(lw_plan_get_info(l.plan).derived_bytes,
                             (batch == 1 ? 9 : 36) * CHANNELS * CHANNELS * sizeof(float));
            if (batch == 1)
                memcpy(first, lw_exec_read(l.exec, "y"), sizeof first);
            else
                assert_memory_equal(first, lw_exec_read(l.exec, "y"), sizeof first);
            lab_close(&l);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_against_oracle),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_changes_of_resolution),
        cmocka_unit_test(test_few_tiles),
    };
    return cmocka_run_group_tests_name("plan_winograd", tests, NULL, NULL);
}
