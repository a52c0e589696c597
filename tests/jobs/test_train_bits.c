/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bits of training: the same for any number of threads at every ISA level, and the same when a
 * run is stopped after N steps, by SIGINT, or killed at any moment, and resumed.
 */
#include "jobs/train_fixture.h"

#include <signal.h>
#include <stdio.h>

#include "base/base.h"

static const struct {
    const char *name, *args;
    const char *extra; /* work between the steps, left out where kernels are slow */
} methods[] = {
    {"encoder", TINY_ENCODER " --objective mae --flip", ""},
    {"classify", TINY_ENCODER " --objective classify --input-noise 0.2", "--eval-every 4"},
    {"sgd",
     TINY_ENCODER " --objective classify --optimizer sgd --momentum 0.8 --learning-rate 0.1 "
                  "--crop-padding 2",
     ""},
    {"judge", TINY_ENCODER " --objective judge --input-noise 0.1", ""},
    {"ddpm", TINY_DDPM " --grad-accum-steps 2", "--sample-every 4 --ddim-steps 2"},
    {"drift", TINY_DRIFT " --encoder base_encoder --scheduler cosine --warmup-steps 2",
     "--eval-every 4 --eval-samples 64"},
    {"pixels",
     TINY_DRIFT " --encoder none --flip --no-class-conditional --groups 1 --grad-accum-steps 2",
     ""},
    {"ddpm_bf16",
     TINY_DDPM " --precision bf16 --prediction v_prediction --beta-schedule cosine --snr-gamma 5",
     "--sample-every 4 --ddim-steps 2"},
    {"flow", TINY_FLOW " --time-distribution logit_normal --flip --class-dropout-prob 0.3",
     "--sample-every 4 --eval-steps 2 --eval-every 4 --eval-samples 64"},
    {"drift_bf16", TINY_DRIFT " --encoder base_encoder --precision bf16", ""},
};

/* The drift runs' own encoder, trained for a moment. */
static int make_encoder(void **state)
{
    if (lab_enter(state) < 0)
        return -1;
    return lab_run(TINY_ENCODER " --steps 8 --output-dir base_encoder") == 0 ? 0 : -1;
}

/* Trains at the level that LW_ISA says with 1, 2 (ddpm: 3) and 5 threads. */
static void check_threads(size_t m, lw_isa isa)
{
    const char *extra = isa == LW_ISA_REF ? "" : methods[m].extra;
    int steps = isa == LW_ISA_REF ? 2 : 6;
    char one[64], many[64];
    snprintf(one, sizeof one, "%s_%d_1", methods[m].name, isa);
    lab_expect(0, "%s %s --steps %d --log-every 1 --threads 1 --output-dir %s", methods[m].args,
               extra, steps, one);
    for (int t = 2; t <= 5; t++) {
        if (t == 4 || (t == 3 && m != 3) || (t == 2 && isa == LW_ISA_REF))
            continue;
        snprintf(many, sizeof many, "%s_%d_%d", methods[m].name, isa, t);
        lab_expect(0, "%s %s --steps %d --log-every 1 --threads %d --output-dir %s",
                   methods[m].args, extra, steps, t, many);
        lab_same_checkpoint(one, many);
        lab_same_logs(one, many);
    }
}

static void test_threads(void **state)
{
    (void)state;
    char env[32];
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        snprintf(env, sizeof env, "LW_ISA=%s", lw_isa_name(isa));
        lab_env = env;
        for (size_t m = 0; m < LW_COUNT(methods); m++)
            check_threads(m, isa);
    }
    lab_env = NULL;
}

/* As if the run had been killed behind its first checkpoint: the later ones are gone, the logs are
 * not. */
static void forget_after(const char *run, const char *const *steps, size_t n)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char name[64];
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "checkpoints/%s", steps[i]);
        assert_int_equal(lw_remove_tree(lw_path_join(&path, run, name)), 0);
    }
}

/* 12 steps at once == 12 steps, back to 4, 8 more on another number of threads. */
static void test_resume(void **state)
{
    (void)state;
    static const char *const later[] = {"step_0000008", "step_0000012"};
    char whole[64], parts[64];
    for (size_t m = 0; m < LW_COUNT(methods); m++) {
        snprintf(whole, sizeof whole, "%s_whole", methods[m].name);
        snprintf(parts, sizeof parts, "%s_parts", methods[m].name);
        for (int i = 0; i < 2; i++)
            lab_expect(0, "%s %s --steps 12 --log-every 2 --save-every 4 --output-dir %s",
                       methods[m].args, methods[m].extra, i ? parts : whole);
        forget_after(parts, later, LW_COUNT(later));
        assert_int_equal(lab_last_step(parts), 4);
        lab_expect(
            0, "%s %s --steps 12 --log-every 2 --save-every 4 --resume --threads 3 --output-dir %s",
            methods[m].args, methods[m].extra, parts);
        lab_same_checkpoint(whole, parts);
        lab_same_logs(whole, parts);
        lab_expect(0, "%s --steps 12 --log-every 2 --resume --output-dir %s", methods[m].args,
                   parts);
        lab_same_checkpoint(whole, parts); /* nothing was left to do */
        lab_same_logs(whole, parts);
    }
}

static void test_more_steps(void **state)
{
    (void)state;
    lab_expect(0, TINY_DDPM " --steps 10 --log-every 1 --output-dir long");
    lab_expect(0, TINY_DDPM " --steps 5 --log-every 1 --output-dir short");
    lab_expect(0, TINY_DDPM " --steps 10 --log-every 1 --resume --output-dir short");
    lab_same_checkpoint("long", "short");
    lab_same_logs("long", "short");
    /* From another run's checkpoint into a fresh directory: weights go on, the logs are those of
     * the new run. */
    lab_expect(0,
               TINY_DDPM " --steps 10 --log-every 1 --resume-from short/checkpoints/step_0000005 "
                         "--output-dir branch");
    lab_same_checkpoint("long", "branch");
    assert_true(lab_metric("branch", "step", -1) == 6.0);
}

#define LONG_DDPM                                                                       \
    TINY_DDPM " --steps 100 --log-every 1 --save-every 11 --keep-last-k-checkpoints 2 " \
              "--output-dir "
#define LONG_DRIFT \
    TINY_DRIFT " --encoder base_encoder --steps 40 --log-every 1 --save-every 7 --output-dir "

/* Seconds of a run that nobody disturbs: what the moments of the others are drawn from. */
static double calm_seconds(const char *args)
{
    double start = lw_now();
    lab_expect(0, "%s", args);
    return lw_now() - start;
}

/* A moment within a run; later and later, so that it ends on any machine. */
static double moment(double calm, int attempt)
{
    return calm * (0.1 + 0.3 * lab_uniform()) * (1.0 + attempt / 6.0);
}

static void test_interrupted(void **state)
{
    (void)state;
    int stopped = 0, rc = -1;
    double calm = calm_seconds(LONG_DDPM "calm");
    for (int i = 0; i < 40 && rc != 0; i++) {
        int sig = i % 2 ? SIGINT : SIGTERM;
        rc = lab_run_until(moment(calm, i), sig,
                           i ? LONG_DDPM "stopped --resume" : LONG_DDPM "stopped");
        if (rc == 130) { /* saved: everything up to the last logged step */
            stopped++;
            assert_int_equal(lab_last_step("stopped"), (int64_t)lab_metric("stopped", "step", 0));
        } else if (rc != 0 && rc != 1000 + sig) { /* that came before the handler was there */
            fail_msg("exit code %d: %s", rc, lab_err);
        }
    }
    assert_int_equal(rc, 0);
    assert_true(stopped > 0);
    lab_same_checkpoint("calm", "stopped");
    lab_same_logs("calm", "stopped");
}

static void kill_until_done(const char *args, const char *resume, double calm, const char *run,
                            const char *twin)
{
    int killed = 0, rc = -1;
    for (int i = 0; i < 60 && rc != 0; i++) {
        rc = lab_run_until(moment(calm, i), SIGKILL, i ? resume : args);
        if (rc != 0 && rc != 1000 + SIGKILL)
            fail_msg("exit code %d: %s", rc, lab_err);
        killed += rc != 0;
    }
    assert_int_equal(rc, 0);
    assert_true(killed > 0);
    lab_same_checkpoint(twin, run);
    lab_same_logs(twin, run);
}

static void test_killed(void **state)
{
    (void)state;
    double ddpm = calm_seconds(LONG_DDPM "calm_twin"),
           drift = calm_seconds(LONG_DRIFT "calm_drift");
    kill_until_done(LONG_DDPM "killed", LONG_DDPM "killed --resume", ddpm, "killed", "calm_twin");
    kill_until_done(LONG_DRIFT "killed_drift", LONG_DRIFT "killed_drift --resume", drift,
                    "killed_drift", "calm_drift");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_resume),
        cmocka_unit_test(test_more_steps), cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_killed),
    };
    return cmocka_run_group_tests_name("train_bits", tests, make_encoder, lab_leave);
}
