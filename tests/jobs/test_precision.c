/* SPDX-License-Identifier: Apache-2.0 */
/* Training in bf16: ten-step losses within 2 % of f32, less memory, a warning when a run changes
 * its element type; ranges of activations. */
#include "jobs/train_fixture.h"
#include "jobs/quantize/quantize_ranges.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A small U-Net wide enough that most products are narrow. */
#define NET                                                                                  \
    " --data synth:16 --limit 256 --base-channels 32 --channel-mult 1,2 --num-res-blocks 1 " \
    "--attn-resolutions 8 --heads 2 --norm-groups 8 --learning-rate 5e-4 --warmup-steps 0"   \
    " --steps 10 --log-every 1"
#define DDPM "train ddpm --batch-size 8 --no-zero-init-output" NET
#define DRIFT                                                                           \
    "train drift --groups 2 --negatives-per-group 4 --positives-per-group 8 --encoder " \
    "base_encoder" NET

static int make_encoder(void **state)
{
    if (lab_enter(state) < 0)
        return -1;
    return lab_run(TINY_ENCODER " --steps 8 --output-dir base_encoder") == 0 ? 0 : -1;
}

/* Trains both, compares the loss of every step. */
static void check_losses(const char *name, const char *args)
{
    char f32[64], bf16[64];
    double worst = 0.0;
    snprintf(f32, sizeof f32, "%s_f32", name);
    snprintf(bf16, sizeof bf16, "%s_bf16", name);
    lab_expect(0, "%s --precision f32 --output-dir %s", args, f32);
    lab_expect(0, "%s --precision bf16 --output-dir %s", args, bf16);
    for (int i = 0; i < 10; i++) {
        double a = lab_metric(f32, "loss", i), b = lab_metric(bf16, "loss", i);
        worst = fmax(worst, fabs(a - b) / a);
    }
    print_message("%s: losses of ten steps in bf16 within %.3f %% of f32\n", name, 100 * worst);
    assert_true(worst < 0.02);
    assert_true(lab_metric(f32, "grad_norm", 0) != lab_metric(bf16, "grad_norm", 0));
}

static void test_ddpm_losses(void **state)
{
    (void)state;
    check_losses("ddpm", DDPM);
}

static void test_drift_losses(void **state)
{
    (void)state;
    check_losses("drift", DRIFT);
}

/* Also of a checkpoint that lies outside its run, where no config.yaml says it. */
static void test_other_precision_is_refused(void **state)
{
    (void)state;
    lab_expect(0, TINY_DDPM " --precision bf16 --steps 2 --output-dir first");
    lab_expect(2, TINY_DDPM " --precision f32 --steps 3 --resume-from "
                            "first/checkpoints/step_0000002 --output-dir second");
    assert_non_null(strstr(lab_err, "--precision f32 (was bf16)"));
    assert_int_equal(rename("first/checkpoints/step_0000002", "step_0000002"), 0);
    lab_expect(2, TINY_DDPM " --precision f32 --steps 3 --resume-from step_0000002 --output-dir s");
    assert_non_null(strstr(lab_err, "trained with --precision bf16, not f32"));
    lab_expect(0, TINY_DDPM " --precision bf16 --steps 3 --resume-from step_0000002 "
                            "--output-dir third");
    assert_null(strstr(lab_err, "--precision"));
}

/* ---- ranges of int8 -------------------------------------------------------------------------- */

/* The bins of all values as the definition says, whatever the parts they came in. */
static void check_bins(const lw_ranges *r, const float *x, int64_t n)
{
    static int64_t want[LW_RANGE_BINS];
    int64_t finite = 0;
    memset(want, 0, sizeof want);
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            want[LW_RANGE_BINS / 2 + (int)floor((double)x[i] / r->width)]++;
            finite++;
        }
    assert_memory_equal(want, r->bin, sizeof want);
    assert_int_equal(r->n, finite);
    assert_int_equal(r->not_finite, n - finite);
}

static void test_ranges(void **state)
{
    (void)state;
    enum { N = 4099 };
    static lw_ranges r, zeros;
    static float x[N];
    lw_rng_key key = lw_rng_key_of(3, 4);
    for (int i = 0; i < N; i++) /* parts ever wider, with both zeros, tiny numbers, borders */
        x[i] = (float)((lw_rng_uniform(key, 0, 0, (uint64_t)i) - 0.3) * (1 + i / 7 * 0.01));
    x[5] = NAN;
    x[700] = -INFINITY;
    x[9] = -1e-30f;
    x[10] = -0.0f;
    x[11] = 0.5f;
    x[12] = -0.25f;
    for (int64_t at = 0; at < N;) {
        int64_t part = LW_MIN(1 + at / 2, N - at);
        lw_ranges_add(&r, x + at, part);
        check_bins(&r, x, at += part);
    }
    lw_edge_seen e = {0};
    lw_ranges_choose(&r, LW_RANGE_MINMAX, 0, &e);
    assert_true(e.lo < -1 && e.hi > 4 && e.scale > 0 && e.zero > 0 && e.zero < 255);
    assert_true(fabs((double)e.scale * 255 - ((double)e.hi - (double)e.lo)) < 1e-5);
    static const float nothing[3];
    lw_ranges_add(&zeros, nothing, 3);
    lw_ranges_choose(&zeros, LW_RANGE_MSE, 0, &e);
    assert_true(zeros.n == 3 && e.scale > 0 && e.error == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ddpm_losses),
        cmocka_unit_test(test_drift_losses),
        cmocka_unit_test(test_other_precision_is_refused),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests_name("precision", tests, make_encoder, lab_leave);
}
