/* SPDX-License-Identifier: Apache-2.0 */
/* The demonstration: trainings that resume, then the comparison. */
#include "jobs/demo/demo_job.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "formats/formats.h"
#include "jobs/encoder/encoder_job.h"
#include "train/train_run_dir.h"
#include "train/train_turns.h"

typedef struct demo {
    const lw_demo_config *c;
    const lw_observer *obs;
    lw_demo_recipe r;
    lw_str dir[LW_DEMO_STAGES], judge_data, reader_data, commands;
    int32_t side;
    double minutes;
    char what[32];             /* what goes on, for the observer */
    json_t *begun;             /* demo.json: what the directory was begun with */
    lw_str command[2];         /* of both, which their summaries quote in the end */
    int64_t steps[2], goal[2]; /* done so far; of the two */
    lw_demo_forecast forecast[LW_DEMO_STAGES];
} demo;

/* ---- a stage's callbacks, under the stage's own name ------------------------------------ */

static void on_progress(void *self, const char *what, int64_t done, int64_t total, const char *note)
{
    const demo *d = self;
    bool own = lw_str_starts(what, "train ") || lw_str_starts(what, "compare");
    lw_observe_progress(d->obs, own ? d->what : what, done, total, note);
}

/* Checkpoints are no news here. */
static void on_say(void *self, const char *line)
{
    if (!lw_str_starts(line, "checkpoint "))
        lw_observe_say(((const demo *)self)->obs, "%s", line);
}

static bool on_stop(void *self)
{
    return lw_observe_stop(((const demo *)self)->obs);
}

/* ---- stages ----------------------------------------------------------------------------- */

static int train(demo *d, lw_demo_stage_id id, const lw_observer *obs, lw_train_result *r)
{
    switch (id) {
    case LW_DEMO_ENCODER:
        return lw_train_encoder(&d->r.encoder, obs, r);
    case LW_DEMO_JUDGE:
        return lw_train_encoder(&d->r.judge, obs, r);
    case LW_DEMO_READER:
        return lw_train_encoder(&d->r.reader, obs, r);
    case LW_DEMO_DRIFT:
        return lw_train_drift(&d->r.drift, obs, r);
    default:
        return lw_train_ddpm(&d->r.ddpm, obs, r);
    }
}

static int run_stage(demo *d, lw_demo_stage_id id)
{
    lw_train_config *t = lw_demo_train(&d->r, id);
    LW_CLEANUP(lw_str_clear) lw_str command = {0};
    const lw_observer obs = {
        .self = d, .progress = on_progress, .say = on_say, .should_stop = on_stop};
    lw_train_result r;
    lw_demo_command(t->options, &command);
    lw_str_add(&d->commands, lw_str_c(&command));
    t->command_line = lw_str_c(&command);
    snprintf(d->what, sizeof d->what, "%d/6 train %s", (int)id + 1, lw_demo_stage_name(id));
    if (!d->c->dry_run && lw_demo_goes_on(t)) {
        lw_observe_say(d->obs, "%d/6 %s is already trained", (int)id + 1, lw_demo_stage_name(id));
        return 0;
    }
    d->forecast[id].minutes = t->minutes;
    if (d->c->dry_run && id == LW_DEMO_DRIFT) {
        lw_observe_say(d->obs, "%s: %.2f minutes; a step can be timed once its encoder is there",
                       lw_demo_stage_name(id), t->minutes);
        return 0;
    }
    LW_TRY(train(d, id, &obs, &r));
    d->forecast[id].step_seconds = r.predicted_step_seconds;
    d->forecast[id].flops_per_step = r.flops_per_step;
    if (d->c->dry_run)
        lw_observe_say(d->obs, "%s: %.2f minutes at about %.3g s a step of %.3g GFLOP",
                       lw_demo_stage_name(id), t->minutes, r.predicted_step_seconds,
                       r.flops_per_step * 1e-9);
    return 0;
}

/* ---- the two generators ----------------------------------------------------------------- */

enum { SLICE_SECONDS = 2, LEAST_SLICES = 20 };

static const char *const pair_name[2] = {"drift", "ddpm"};

/* One bar for both: steps of the two together. */
static void on_pair_progress(void *self, const char *what, int64_t done, int64_t total,
                             const char *note)
{
    demo *d = self;
    char text[128];
    int i = lw_str_eq(what, "train ddpm");
    if (!i && !lw_str_eq(what, "train drift")) {
        lw_observe_progress(d->obs, what, done, total, note);
        return;
    }
    d->steps[i] = done;
    d->goal[i] = total;
    snprintf(text, sizeof text, "%s %s", i ? "DDPM" : "drift", note ? note : "");
    lw_observe_progress(d->obs, d->what, d->steps[0] + d->steps[1], d->goal[0] + d->goal[1], text);
}

/* Opens a generator's training unless it is finished: *out stays NULL then. */
static int open_one(demo *d, int i, const lw_observer *obs, lw_training **out)
{
    lw_demo_stage_id id = i ? LW_DEMO_DDPM : LW_DEMO_DRIFT;
    lw_train_config *t = lw_demo_train(&d->r, id);
    lw_str *command = &d->command[i];
    lw_demo_command(t->options, command);
    lw_str_add(&d->commands, lw_str_c(command));
    if (lw_demo_goes_on(t)) {
        lw_observe_say(d->obs, "%d/6 %s is already trained", (int)id + 1, lw_demo_stage_name(id));
        return 0;
    }
    t->command_line = lw_str_c(command);
    t->steps =
        json_integer_value(json_object_get(json_object_get(d->begun, "steps"), pair_name[i]));
    return i ? lw_train_ddpm_open(&d->r.ddpm, obs, out)
             : lw_train_drift_open(&d->r.drift, obs, out);
}

/* Fixes the steps of both, once: they are the demonstration's, not a process's. */
static int fix_goals(demo *d, lw_training *const t[2], double seconds)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    if (!t[0] || !t[1] || lw_training_goal(t[0]) > 0 || lw_training_goal(t[1]) > 0)
        return 0;
    LW_TRY(lw_turns_goals(t, seconds, d->obs, d->goal));
    for (int i = 0; i < 2; i++)
        lw_training_set_goal(t[i], d->goal[i]);
    lw_observe_say(d->obs,
                   "drift and DDPM take turns, %.3g minutes each: %lld and %lld steps of %.3g and "
                   "%.3g s",
                   seconds / 60, (long long)d->goal[0], (long long)d->goal[1],
                   seconds / (double)d->goal[0], seconds / (double)d->goal[1]);
    json_object_set_new(d->begun, "steps",
                        json_pack("{s:I, s:I}", pair_name[0], (json_int_t)d->goal[0], pair_name[1],
                                  (json_int_t)d->goal[1]));
    return lw_json_save(lw_path_join(&path, d->c->output_dir, "demo.json"), d->begun);
}

static int run_pair(demo *d)
{
    const lw_observer obs = {
        .self = d, .progress = on_pair_progress, .say = on_say, .should_stop = on_stop};
    lw_training *t[2] = {NULL, NULL};
    double seconds = 60 * d->r.drift.train.minutes;
    int rc = 0;
    snprintf(d->what, sizeof d->what, "4,5/6 train in turns");
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = open_one(d, i, &obs, &t[i]);
    if (rc == 0)
        rc = fix_goals(d, t, seconds);
    if (rc == 0) {
        for (int i = 0; i < 2; i++) {
            d->steps[i] = t[i] ? lw_training_done(t[i]) : 0;
            d->goal[i] = t[i] ? lw_training_goal(t[i]) : 0;
        }
        return lw_turns_run(t, seconds, LW_MIN(SLICE_SECONDS, seconds / LEAST_SLICES));
    }
    lw_training_close(&t[0], rc, NULL);
    lw_training_close(&t[1], rc, NULL);
    return rc;
}

/* Some seconds each for two, none for the others. */
static int make_battery(demo *d)
{
    static const double share = 0.03, most = 10.0 / 60;
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    const lw_observer obs = {
        .self = d, .progress = on_progress, .say = on_say, .should_stop = on_stop};
    snprintf(d->what, sizeof d->what, "networks of the verdict");
    return lw_demo_battery(d->c, &d->r, lw_path_join(&dir, d->c->output_dir, "battery"), d->side,
                           LW_MIN(share * d->minutes, most), &obs, &d->commands);
}

/* ---- settings --------------------------------------------------------------------------- */

/* Side and labels of the data, from a look at it. Judge and reader learn from other pools of drawn
 * pictures, when the data is drawn. */
static int look_at_data(demo *d)
{
    LW_CLEANUP(lw_data_close) lw_dataset *set = NULL;
    const lw_data_opts o = {.split = LW_SPLIT_HELDOUT, .obs = d->obs};
    LW_TRY(lw_data_open(d->c->data, &o, &set));
    if (!set->labelled)
        return lw_fail(
            LW_EUSAGE,
            "--data %s: the demonstration asks generators for classes, this data has no labels",
            d->c->data);
    if (set->h < 16 || set->h > 64)
        return lw_fail(
            LW_EUSAGE,
            "--data %s: pictures of %dx%d; the demonstration's networks are for 16 to 64",
            d->c->data, set->h, set->w);
    d->side = set->h;
    bool drawn = lw_str_starts(d->c->data, "synth") && !strstr(d->c->data, "seed=");
    lw_str_addf(&d->judge_data, "%s%s", d->c->data, drawn ? ",seed=7" : "");
    lw_str_addf(&d->reader_data, "%s%s", d->c->data, drawn ? ",seed=8" : "");
    return 0;
}

/* Runs of the names of stages, where no demonstration was begun, are somebody's. */
static int check_runs(const demo *d)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    for (int i = 0; i < LW_DEMO_STAGES; i++)
        if (lw_run_dir_there(
                lw_path_join(&path, d->c->output_dir, lw_demo_stage_name((lw_demo_stage_id)i))))
            return lw_fail(LW_EUSAGE,
                           "%s holds a run that is no part of a demonstration: choose another "
                           "--output-dir",
                           lw_str_c(&path));
    return 0;
}

/* What a directory was begun with must stay: half of one demonstration and half of another prove
 * nothing. */
static int check_directory(demo *d)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    static const char *const keys[] = {"data", "minutes", "seed", "recipe"};
    json_t *recipe = json_object(),
           *mine = json_pack("{s:s, s:f, s:I, s:o}", "data", d->c->data, "minutes", d->minutes,
                             "seed", (json_int_t)d->c->seed, "recipe", recipe);
    LW_CLEANUP(lw_json_drop) json_t *there = NULL;
    bool same = true;
    d->begun = mine;
    for (int i = 0; i < LW_DEMO_STAGES; i++)
        json_object_set(recipe, lw_demo_stage_name((lw_demo_stage_id)i), d->c->recipe->options[i]);
    LW_TRY(lw_mkdirs(d->c->output_dir));
    lw_path_join(&path, d->c->output_dir, "demo.json");
    if (!lw_path_exists(lw_str_c(&path))) {
        LW_TRY(check_runs(d));
        return lw_json_save(lw_str_c(&path), mine);
    }
    LW_TRY(lw_json_load(lw_str_c(&path), &there));
    for (size_t i = 0; i < LW_COUNT(keys); i++)
        same &= json_equal(json_object_get(mine, keys[i]), json_object_get(there, keys[i]));
    json_object_set(mine, "steps", json_object_get(there, "steps"));
    if (same)
        return 0;
    return lw_fail(LW_EUSAGE,
                   "%s holds a demonstration of other settings (--data %s --minutes %g --seed "
                   "%lld, and a recipe "
                   "that demo.json has): choose another --output-dir, or remove it",
                   d->c->output_dir, json_string_value(json_object_get(there, "data")),
                   json_number_value(json_object_get(there, "minutes")),
                   (long long)json_integer_value(json_object_get(there, "seed")));
}

/* A network outside both losses measures both while they train; no step depends on it. */
static int measure_by(demo *d, const char *judge)
{
    d->r.drift.heldout.eval_encoder = d->r.ddpm.heldout.eval_encoder = judge;
    LW_TRY(lw_demo_say(d->r.options[LW_DEMO_DRIFT], "eval-encoder", json_string(judge)));
    return lw_demo_say(d->r.options[LW_DEMO_DDPM], "eval-encoder", json_string(judge));
}

static int init(demo *d)
{
    LW_TRY(look_at_data(d));
    d->minutes = d->c->minutes > 0 ? d->c->minutes : d->side <= 16 ? 6.0 : 30.0;
    if (!d->c->dry_run)
        LW_TRY(check_directory(d));
    LW_TRY(lw_demo_settle(&d->r, d->c, lw_str_c(&d->judge_data), lw_str_c(&d->reader_data),
                          d->minutes));
    for (int i = 0; i < LW_DEMO_STAGES; i++) {
        lw_train_config *t = lw_demo_train(&d->r, (lw_demo_stage_id)i);
        t->output_dir = lw_path_join(&d->dir[i], d->c->output_dir,
                                     lw_demo_stage_name((lw_demo_stage_id)i));
        t->part_of = "../report.html"; /* where the comparison will be */
        t->options = d->r.options[i];
        LW_TRY(lw_demo_say(d->r.options[i], "output-dir", json_string(t->output_dir)));
    }
    d->r.drift.encoder = lw_str_c(&d->dir[LW_DEMO_ENCODER]);
    LW_TRY(lw_demo_say(d->r.options[LW_DEMO_DRIFT], "encoder", json_string(d->r.drift.encoder)));
    return measure_by(d, lw_str_c(&d->dir[LW_DEMO_JUDGE]));
}

/* What was asked of the comparison alone. */
static int64_t n_fid(const lw_demo_config *c)
{
    return c->n_fid ? c->n_fid : LW_DEMO_N_FID;
}

static int64_t n_ddpm(const lw_demo_config *c)
{
    return c->n_ddpm ? c->n_ddpm : LW_DEMO_N_DDPM;
}

static double latency_seconds(const lw_demo_config *c)
{
    return c->latency_seconds > 0 ? c->latency_seconds : LW_DEMO_LATENCY_SECONDS;
}

/* "leeway demo ...", with every option that is not at its default. */
static void all_of_it(const demo *d, lw_str *out)
{
    const lw_demo_config *c = d->c;
    char buf[32];
    lw_str_addf(out, "leeway demo --data %s", c->data);
    if (c->recipe_file)
        lw_str_addf(out, " --recipe %s", c->recipe_file);
    lw_str_addf(out, " --minutes %g --seed %lld", d->minutes, (long long)c->seed);
    if (c->encoder)
        lw_str_addf(out, " --encoder %s", c->encoder);
    if (n_fid(c) != LW_DEMO_N_FID)
        lw_str_addf(out, " --num-images %lld", (long long)n_fid(c));
    if (n_ddpm(c) != LW_DEMO_N_DDPM)
        lw_str_addf(out, " --n-ddpm %lld", (long long)n_ddpm(c));
    if (latency_seconds(c) != LW_DEMO_LATENCY_SECONDS)
        lw_str_addf(out, " --latency-seconds %s", lw_f64_text(buf, latency_seconds(c)));
    lw_str_addf(out, " --output-dir %s\n", c->output_dir);
}

/* ---- the comparison --------------------------------------------------------------------- */

/* "leeway compare ..." of all that differs from its defaults. */
static void add_compare(const lw_compare_config *c, lw_str *out)
{
    char buf[32];
    lw_str_addf(out, "leeway compare --drift %s --ddpm %s --judge %s --reader %s", c->drift,
                c->ddpm, c->judge, c->reader);
    if (c->encoder)
        lw_str_addf(out, " --encoder %s", c->encoder);
    lw_str_addf(out,
                "%s%s \\\n    --num-images %lld --n-ddpm %lld --score-steps "
                "1,2,5,10,20,100,200 \\\n    --ancestral-steps 10,20,50,100,250 "
                "--latency-seconds %s",
                c->n_alpha ? " --alpha 2" : "", c->n_guidance_scale ? " --guidance-scale 2" : "",
                (long long)c->n_fid, (long long)c->n_ddpm, lw_f64_text(buf, c->latency_seconds));
    if (c->seed)
        lw_str_addf(out, " --seed %lld", (long long)c->seed);
    lw_str_addf(out, " --output-dir %s\n", c->output_dir);
}

static int compare(demo *d, lw_compare_result *out)
{
    const lw_compare_stage stages[] = {{"encoder (of drift)", lw_str_c(&d->dir[LW_DEMO_ENCODER])},
                                       {"judge", lw_str_c(&d->dir[LW_DEMO_JUDGE])},
                                       {"reader", lw_str_c(&d->dir[LW_DEMO_READER])}};
    lw_compare_config c = {
        .drift = lw_str_c(&d->dir[LW_DEMO_DRIFT]),
        .ddpm = lw_str_c(&d->dir[LW_DEMO_DDPM]),
        .output_dir = d->c->output_dir,
        .judge = lw_str_c(&d->dir[LW_DEMO_JUDGE]),
        .reader = lw_str_c(&d->dir[LW_DEMO_READER]),
        .encoder = d->c->encoder,
        .planted_steps = LW_ADVERSARIAL_STEPS,
        .n_fid = n_fid(d->c),
        .n_ddpm = n_ddpm(d->c),
        .ddim_steps = {50, 100, 1000},
        .n_ddim_steps = 3,
        .score_steps = {1, 2, 5, 10, 20, 100, 200},
        .n_score_steps = 7,
        .ancestral_steps = {10, 20, 50, 100, 250},
        .n_ancestral_steps = 5,
        .alpha = {2},
        .n_alpha = d->r.drift.alpha.dist ? 1 : 0, /* where drift was told strengths of guidance */
        .guidance_scale = {2},
        .n_guidance_scale = d->r.ddpm.class_dropout_prob > 0.0 ? 1 : 0, /* likewise DDPM */
        .latency_seconds = latency_seconds(d->c),
        .use_clipped_model_output = true,
        .ema = true,
        .seed = d->c->seed,
        .threads = d->c->threads,
        .conv = d->c->conv,
        .caveat =
            "DDPM's learning rate, schedule and average were not tuned. Drift's recipe was chosen "
            "in some fifteen trials on pictures of this kind; another set would test it harder.",
        .title = "Pictures in one step: a drifting generator beside DDPM",
        .stages = stages,
        .n_stages = 3};
    add_compare(&c, &d->commands);
    c.commands = lw_str_c(&d->commands);
    snprintf(d->what, sizeof d->what, "6/6 compare");
    const lw_observer obs = {
        .self = d, .progress = on_progress, .say = on_say, .should_stop = on_stop};
    return lw_job_compare(&c, &obs, out);
}

/* The bar was set for drawn digits of 16x16; elsewhere its numbers are only reported. */
static void decide(const demo *d, lw_demo_result *out)
{
    const lw_compare_result *r = &out->compare;
    out->barred = lw_str_starts(d->c->data, "synth") && d->side == 16 && !d->c->recipe_file;
    out->pass = r->bar_failed == 0 && r->exam.fit && r->controls_passed == 0 && r->real_passes;
}

static int run(demo *d, lw_demo_result *out)
{
    double start = lw_now();
    LW_TRY(init(d));
    lw_str_add(&d->commands, "# all of it:\n");
    all_of_it(d, &d->commands);
    lw_str_add(&d->commands, "# or step by step:\n");
    for (int i = 0; i < (d->c->dry_run ? LW_DEMO_STAGES : LW_DEMO_DRIFT); i++)
        LW_TRY(run_stage(d, (lw_demo_stage_id)i));
    LW_TRY(make_battery(d));
    if (!d->c->dry_run)
        LW_TRY(run_pair(d));
    out->minutes = d->minutes;
    memcpy(out->stage, d->forecast, sizeof out->stage);
    if (d->c->dry_run)
        return 0;
    LW_TRY(compare(d, &out->compare));
    decide(d, out);
    out->seconds = lw_now() - start;
    return 0;
}

int lw_job_demo(const lw_demo_config *c, const lw_observer *obs, lw_demo_result *out)
{
    demo d = {.c = c, .obs = obs};
    lw_demo_result result = {0};
    int rc = run(&d, &result);
    for (int i = 0; i < LW_DEMO_STAGES; i++)
        lw_str_clear(&d.dir[i]);
    lw_str_clear(&d.judge_data);
    lw_str_clear(&d.reader_data);
    lw_str_clear(&d.commands);
    lw_str_clear(&d.command[0]);
    lw_str_clear(&d.command[1]);
    lw_demo_drop(&d.r);
    lw_json_drop(&d.begun);
    if (rc == 0)
        *out = result;
    return rc;
}
