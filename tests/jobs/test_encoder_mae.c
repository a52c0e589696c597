/* SPDX-License-Identifier: Apache-2.0 */
/* Training the published masked autoencoder: what changes from step to step, runs that resume, the encoder alone, its 86
 * keys in a drift step, refusals. */
#include "jobs/train_fixture.h"

#include <math.h>
#include <string.h>

#include "jobs/encoder/encoder_mae.h"

#define PUBLISHED                                                                             \
    "train encoder --arch resnet34-unet --data synth:16 --limit 64 --width 4 --batch-size 8 " \
    "--warmup-steps 2 --mask-schedule linear_warmup --mask-warmup-steps 4 --cls-ft-steps 3 "

static void test_schedules(void **state)
{
    lw_train_encoder_config c = {.mask_ratio = 0.6,
                                 .mask_warmup_steps = 10,
                                 .cls_ft_steps = 3000,
                                 .train = {.steps = 30000}};
    (void)state;
    assert_true(lw_encoder_mae_ratio(&c, 0) == 0.6);
    c.mask_schedule = LW_MASK_LINEAR;
    assert_true(lw_encoder_mae_ratio(&c, 0) == 0.0);
    assert_true(fabs(lw_encoder_mae_ratio(&c, 5) - 0.3) < 1e-12);
    assert_true(lw_encoder_mae_ratio(&c, 11) == 0.6);
    c.mask_schedule = LW_MASK_COSINE;
    assert_true(fabs(lw_encoder_mae_ratio(&c, 5) - 0.3) < 1e-12);
    assert_true(lw_encoder_mae_ratio(&c, 2) < 0.1 && lw_encoder_mae_ratio(&c, 8) > 0.5);
    assert_true(lw_encoder_mae_lambda(&c, 26999) == 0.0);
    assert_true(lw_encoder_mae_lambda(&c, 27000) == 0.0);
    assert_true(fabs(lw_encoder_mae_lambda(&c, 27250) - 0.025) < 1e-12);
    assert_true(lw_encoder_mae_lambda(&c, 29999) == 0.1);
}

static int64_t weights_size(const char *dir)
{
    LW_CLEANUP(lw_network_close) lw_network *n = NULL;
    assert_int_equal(lw_network_open(dir, true, &n), 0);
    return n->parameters;
}

static void test_runs(void **state)
{
    (void)state;
    lab_expect(0,
               PUBLISHED "--steps 8 --save-every 5 --export-encoder-path enc --output-dir whole");
    lab_expect(0, PUBLISHED "--steps 8 --threads 1 --resume-from whole/checkpoints/step_0000005 "
                            "--output-dir resumed");
    lab_same_checkpoint("whole", "resumed");
    assert_true(weights_size("enc") < weights_size("whole")); /* no decoder */
    /* its keys are the published ones; by default all that have room */
    lab_expect(0, TINY_DRIFT " --encoder enc --steps 1 --output-dir drift");
    assert_true(lab_metric("drift", "scale/layer1_blk2_mean_4", 0) > 0.0);
    assert_true(lab_metric("drift", "scale/global", 0) > 0.0);
    lab_expect(0, TINY_DRIFT " --encoder whole --steps 1 --output-dir again");
    assert_true(lab_metric("drift", "scale/layer4", 0) == lab_metric("again", "scale/layer4", 0));
    lab_expect(2, TINY_DRIFT " --encoder enc --feature-keys layer3_blk5_mean --steps 1 "
                             "--output-dir no");
    assert_non_null(strstr(lab_err, "did you mean 'layer3_blk"));
    assert_true(lab_one_line());
}

static void test_refusals(void **state)
{
    static const struct {
        const char *options, *says;
    } bad[] = {{"--arch resnet34-unet --objective classify", "only --objective mae"},
               {"--cls-ft-steps 1", "--cls-ft-steps: only --arch resnet34-unet"},
               {"--input-patchify-size 2", "--input-patchify-size: only --arch resnet34-unet"},
               {"--objective classify --mask-schedule cosine", "--mask-schedule: only --objective"},
               {"--mask-schedule cosine", "--mask-warmup-steps"},
               {"--mask-patch-size 3", "masked cells are 3x3: a side of 16"},
               {"--arch resnet34-unet --cls-ft-steps 2", "the last of --steps"},
               {"--arch resnet34-unet --input-patchify-size 4", "no multiple of 32"}};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        int rc = lab_run(TINY_ENCODER " %s --steps 1 --output-dir no", bad[i].options);
        if (rc != 2 && rc != 3)
            fail_msg("%s: %d", bad[i].options, rc);
        if (!strstr(lab_err, bad[i].says) || !lab_one_line())
            fail_msg("%s: '%s'", bad[i].options, lab_err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules),
                                       cmocka_unit_test(test_runs),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests_name("encoder_mae", tests, lab_enter, lab_leave);
}
