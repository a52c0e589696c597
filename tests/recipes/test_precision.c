/* SPDX-License-Identifier: Apache-2.0 */
/* Training in bf16: ten-step losses within 2 % of f32, less memory, a warning when a run changes
 * its element type. */
#include "recipes/recipe_lab.h"

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

static void test_other_precision_warns(void **state)
{
    (void)state;
    lab_expect(0, TINY_DDPM " --precision bf16 --steps 2 --output-dir first");
    lab_expect(0, TINY_DDPM " --precision f32 --steps 3 --resume-from "
                            "first/checkpoints/step_0000002 --output-dir second");
    assert_non_null(strstr(lab_err, "trained with --precision bf16, this is f32"));
    lab_expect(0, TINY_DDPM " --precision bf16 --steps 3 --resume-from "
                            "first/checkpoints/step_0000002 --output-dir third");
    assert_null(strstr(lab_err, "--precision"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ddpm_losses),
        cmocka_unit_test(test_drift_losses),
        cmocka_unit_test(test_other_precision_warns),
    };
    return cmocka_run_group_tests_name("precision", tests, make_encoder, lab_leave);
}
