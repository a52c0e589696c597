/* SPDX-License-Identifier: Apache-2.0 */
/* Two trainings that take turns: the bits and logs of two whole ones, and each its own time. */
#include "jobs/train_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "formats/formats.h"
#include "session/session_generator.h"
#include "train/train_config.h"
#include "train/train_loop.h"
#include "train/train_turns.h"
#include "jobs/ddpm/ddpm_job.h"
#include "jobs/drift/drift_job.h"

static lw_train_config train_of(const char *dir, int64_t steps)
{
    return (lw_train_config){.data = "synth:16",
                             .output_dir = dir,
                             .steps = steps,
                             .batch_size = 4,
                             .grad_accum_steps = 1,
                             .learning_rate = 2e-3,
                             .adam_beta1 = 0.9,
                             .adam_beta2 = 0.99,
                             .adam_eps = 1e-8,
                             .scheduler = LW_SCHEDULE_COSINE,
                             .ema_decay = 0.99,
                             .log_every = 1,
                             .save_every = 4,
                             .sample_every = 4,
                             .eval_every = 0,
                             .seed = 3,
                             .threads = 2};
}

static const lw_net_config net = {.base_channels = 8,
                                  .channel_mult = {1, 2},
                                  .n_channel_mult = 2,
                                  .num_res_blocks = 1,
                                  .attn_resolutions = {8},
                                  .n_attn_resolutions = 1,
                                  .heads = 2,
                                  .norm_groups = 4,
                                  .noise_shape = "full"};

static lw_ddpm_config ddpm_of(const char *dir, int64_t steps)
{
    return (lw_ddpm_config){.train = train_of(dir, steps),
                            .pictures = {.limit = 64},
                            .net = net,
                            .timesteps = 50,
                            .eval_steps = 2};
}

static lw_drift_config drift_of(const char *dir, int64_t steps)
{
    return (lw_drift_config){.train = train_of(dir, steps),
                             .pictures = {.limit = 64},
                             .net = net,
                             .temperatures = {0.2f},
                             .n_temperatures = 1,
                             .normalize_over_x = true,
                             .groups = 2,
                             .negatives_per_group = 4,
                             .positives_per_group = 8,
                             .feature_cache_mb = 64};
}

#define RUNS(call)                       \
    do {                                 \
        if ((call) < 0)                  \
            fail_msg("%s", lw_errmsg()); \
    } while (0)

enum { STEPS = 9 };
static const double pause = 0.4;

static void test_bits_of_whole_runs(void **state)
{
    (void)state;
    lw_train_result whole[2], sliced[2];
    lw_training *a = NULL, *b = NULL;
    const lw_ddpm_config ddpm = ddpm_of("ddpm_sliced", STEPS);
    const lw_drift_config drift = drift_of("drift_sliced", STEPS - 2);
    const lw_ddpm_config ddpm_whole = ddpm_of("ddpm_whole", STEPS);
    const lw_drift_config drift_whole = drift_of("drift_whole", STEPS - 2);
    RUNS(lw_train_ddpm(&ddpm_whole, NULL, &whole[0]));
    RUNS(lw_train_drift(&drift_whole, NULL, &whole[1]));
    double began = lw_now();
    RUNS(lw_train_ddpm_open(&ddpm, NULL, &a));
    RUNS(lw_train_drift_open(&drift, NULL, &b));
    for (int64_t i = 0; i < 2; i++) { /* what is measured before changes nothing */
        lw_train_work w;
        RUNS(lw_training_replay(a, i, &w));
        RUNS(lw_training_replay(b, i, &w));
        assert_true(w.wall > 0 && w.cpu > 0);
    }
    for (int64_t until = 2; until <= STEPS + 1; until += 2) {
        RUNS(lw_training_advance(a, until));
        assert_int_equal(lw_training_done(a), LW_MIN(until, STEPS));
        RUNS(lw_training_advance(b, until));
        lw_sleep(until == 2 ? pause : 0.0);
    }
    RUNS(lw_training_close(&a, 0, &sliced[0]));
    RUNS(lw_training_close(&b, 0, &sliced[1]));
    lab_same_checkpoint("ddpm_whole", "ddpm_sliced");
    lab_same_checkpoint("drift_whole", "drift_sliced");
    lab_same_logs("ddpm_whole", "ddpm_sliced");
    lab_same_logs("drift_whole", "drift_sliced");
    /* the pause and the other's time are in neither */
    double passed = lw_now() - began;
    assert_true(sliced[0].seconds + sliced[1].seconds < passed - 0.9 * pause);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(whole[i].steps, sliced[i].steps);
        assert_true(sliced[i].work.wall > 0 && sliced[i].work.wall < sliced[i].seconds);
        assert_true(sliced[i].work.cpu > 0.2 * sliced[i].work.wall / 2);
    }
}

/* A number of "work" in a run's summary.json. */
static double work_of(const char *run, const char *key)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    RUNS(lw_json_load(lw_path_join(&path, run, "summary.json"), &j));
    return json_number_value(json_object_get(json_object_get(j, "work"), key));
}

/* Stopped within a slice and gone on with: the same bits, and the times of both processes. */
static bool stop_now(void *self)
{
    return --*(int *)self < 0;
}

static void test_times_add_up(void **state)
{
    (void)state;
    lw_train_result r;
    lw_training *t = NULL;
    int left = 4;
    const lw_observer obs = {.self = &left, .should_stop = stop_now};
    lw_ddpm_config c = ddpm_of("ddpm_stopped", STEPS);
    RUNS(lw_train_ddpm_open(&c, &obs, &t));
    RUNS(lw_training_advance(t, 2));
    int rc = lw_training_advance(t, STEPS);
    assert_int_equal(rc, LW_ESTOPPED);
    assert_int_equal(lw_training_close(&t, rc, &r), LW_ESTOPPED);
    assert_int_equal(lab_last_step("ddpm_stopped"), 4);
    double before = r.work.wall, cpu = r.work.cpu;
    assert_true(before > 0);
    c.train.resume = true;
    RUNS(lw_train_ddpm(&c, NULL, &r));
    lab_same_checkpoint("ddpm_whole", "ddpm_stopped");
    assert_true(r.work.wall > before && r.work.cpu > cpu);
    assert_true(work_of("ddpm_stopped", "wall_s") > before);
    assert_true(work_of("ddpm_stopped", "cpu_s") > cpu);
}

/* Interrupted anywhere, both are saved, and the same two go on to the same bits. */
static void test_interrupted_in_turns(void **state)
{
    (void)state;
    for (int rest = 1; rest < 14; rest += 11) {
        int left = rest;
        const lw_observer obs = {.self = &left, .should_stop = stop_now};
        lw_training *t[2] = {NULL, NULL};
        lw_ddpm_config ddpm = ddpm_of("ddpm_turns", STEPS);
        lw_drift_config drift = drift_of("drift_turns", STEPS - 2);
        RUNS(lw_train_ddpm_open(&ddpm, &obs, &t[0]));
        RUNS(lw_train_drift_open(&drift, &obs, &t[1]));
        assert_int_equal(lw_turns_run(t, 4, 1), LW_ESTOPPED);
        assert_null(t[0]);
        assert_null(t[1]);
        ddpm.train.resume = true;
        drift.train.resume = lab_last_step("drift_turns") > 0;
        assert_true(lab_last_step("ddpm_turns") > 0);
        RUNS(lw_train_ddpm_open(&ddpm, NULL, &t[0]));
        RUNS(lw_train_drift_open(&drift, NULL, &t[1]));
        assert_int_equal(lw_training_done(t[0]), lab_last_step("ddpm_turns"));
        RUNS(lw_turns_run(t, 4, 1));
        lab_same_checkpoint("ddpm_whole", "ddpm_turns");
        lab_same_checkpoint("drift_whole", "drift_turns");
        lab_same_logs("ddpm_whole", "ddpm_turns");
        lab_same_logs("drift_whole", "drift_turns");
        RUNS(lw_remove_tree("ddpm_turns"));
        RUNS(lw_remove_tree("drift_turns"));
    }
}

/* The goals come from one machine at one time: they say that both take the time given. */
static void test_goals(void **state)
{
    (void)state;
    lw_training *t[2] = {NULL, NULL};
    int64_t goal[2] = {0, 0};
    int none = 0;
    const lw_observer obs = {.self = &none, .should_stop = stop_now};
    lw_ddpm_config ddpm = ddpm_of("ddpm_goal", 0);
    lw_drift_config drift = drift_of("drift_goal", 0);
    ddpm.train.minutes = drift.train.minutes = 1;
    RUNS(lw_train_ddpm_open(&ddpm, NULL, &t[0]));
    RUNS(lw_train_drift_open(&drift, NULL, &t[1]));
    RUNS(lw_turns_goals(t, 60, NULL, goal));
    assert_true(goal[0] > 1 && goal[1] > 1);
    assert_int_equal(lw_turns_goals(t, 60, &obs, goal), LW_ESTOPPED);
    lw_training_set_goal(t[0], 2);
    assert_int_equal(lw_training_goal(t[0]), 2);
    for (int i = 0; i < 2; i++)
        lw_training_close(&t[i], LW_ESTOPPED, NULL);
}

/* Interrupted within steps, held-out measures and sample grids: what is there in the end is what a run in one go leaves. */
static void test_interrupted_anywhere(void **state)
{
    (void)state;
    lw_train_result r;
    lw_ddpm_config whole = ddpm_of("at_once", STEPS), parts = ddpm_of("in_parts", STEPS);
    int rc = LW_ESTOPPED, stops = 0, measured = 0, grids = 0;
    whole.train.eval_every = parts.train.eval_every = 2;
    whole.train.sample_every = parts.train.sample_every = 2;
    whole.heldout.samples = parts.heldout.samples = 16;
    RUNS(lw_train_ddpm(&whole, NULL, &r));
    for (; rc == LW_ESTOPPED; stops++) {
        LW_CLEANUP(lw_json_drop) json_t *j = NULL;
        int left = 1 + stops * 3 % 5 + stops / 3; /* at last enough for measures and grid */
        const lw_observer obs = {.self = &left, .should_stop = stop_now};
        parts.train.resume = stops > 0;
        rc = lw_train_ddpm(&parts, &obs, &r);
        if (lw_path_exists("in_parts/checkpoints/last") &&
            lw_json_load("in_parts/checkpoints/last/state.json", &j) == 0) {
            measured += json_object_get(json_object_get(j, "extra"), "pending_row") != NULL;
            grids += json_object_get(json_object_get(j, "extra"), "pending_grid") != NULL;
        }
        assert_in_range(stops, 0, 200);
    }
    RUNS(rc);
    print_message("stopped %d times, %d of them within measures, %d within grids\n", stops,
                  measured, grids);
    assert_true(stops > 3 && measured > 0 && grids > 0);
    lab_same_checkpoint("at_once", "in_parts");
    lab_same_logs("at_once", "in_parts");
    for (int step = 2; step <= STEPS; step += step < STEPS - 1 ? 2 : 1) {
        char name[2][64];
        for (int k = 0; k < 2; k++)
            snprintf(name[k], sizeof name[k], "%s/samples/step_%07d.png",
                     k ? "in_parts" : "at_once", step);
        if (!lw_path_exists(name[0]) || !lw_path_exists(name[1]))
            fail_msg("%s or %s is missing", name[0], name[1]);
    }
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    RUNS(lw_json_load("in_parts/checkpoints/last/state.json", &j));
    const json_t *extra = json_object_get(j, "extra");
    assert_null(json_object_get(extra, "pending_row"));
    assert_null(json_object_get(extra, "pending_grid"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_whole_runs),
        cmocka_unit_test(test_times_add_up),
        cmocka_unit_test(test_interrupted_in_turns),
        cmocka_unit_test(test_interrupted_anywhere),
        cmocka_unit_test(test_goals),
    };
    return cmocka_run_group_tests_name("turns", tests, lab_enter, lab_leave);
}
