/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demonstration: trains an encoder, a judge, a reader, a class-conditional drifting generator
 * and a DDPM with the same U-Net, as a recipe says, the last two in turns (train_turns.h), and
 * compares these two. Stages that are finished in the output directory are not trained again.
 */
#ifndef LW_DEMO_JOB_H
#define LW_DEMO_JOB_H

#include "jobs/compare/compare_job.h"
#include "jobs/ddpm/ddpm_job.h"
#include "jobs/drift/drift_job.h"
#include "jobs/encoder/encoder_job.h"

typedef enum lw_demo_stage_id {
    LW_DEMO_ENCODER,
    LW_DEMO_JUDGE,
    LW_DEMO_READER,
    LW_DEMO_DRIFT,
    LW_DEMO_DDPM,
    LW_DEMO_STAGES
} lw_demo_stage_id;

/* What is trained, how, and in what shares of the time (train.minutes of each). What a run is told
 * only by the demonstration is not of a recipe: data, directory, seed, the encoder of the loss. */
typedef struct lw_demo_recipe {
    lw_train_encoder_config encoder, judge, reader;
    lw_drift_config drift;
    lw_ddpm_config ddpm;
    json_t *options[LW_DEMO_STAGES]; /* the same, as options of `leeway train` */
} lw_demo_recipe;

enum { LW_DEMO_N_FID = 1000, LW_DEMO_N_DDPM = 500 };
#define LW_DEMO_LATENCY_SECONDS 0.5

typedef struct lw_demo_config {
    const char *data; /* spec; labelled */
    const char *output_dir;
    const char *encoder;     /* for Frechet distances instead of the judge's features, or NULL */
    const char *recipe_file; /* of the recipe, where it is no built-in one */
    const lw_demo_recipe *recipe; /* borrowed */
    double minutes; /* of all trainings together; 0: 6 for pictures of 16x16, 30 for larger ones */
    int64_t n_fid, n_ddpm;  /* pictures scored; 0: LW_DEMO_N_FID, LW_DEMO_N_DDPM */
    double latency_seconds; /* of a timed cell; 0: LW_DEMO_LATENCY_SECONDS */
    int64_t seed;
    int32_t threads;
    int32_t conv; /* lw_conv_mode */
    bool dry_run; /* only says what would be trained */
} lw_demo_config;

/* What a dry run says of a training; step_seconds 0: a step cannot be timed yet. */
typedef struct lw_demo_forecast {
    double minutes, step_seconds, flops_per_step;
} lw_demo_forecast;

typedef struct lw_demo_result {
    lw_compare_result compare;
    lw_demo_forecast stage[LW_DEMO_STAGES]; /* of a dry run, which fills minutes besides */
    double minutes, seconds;                /* planned training, whole time */
    bool barred; /* the bar was set for this data and recipe: pass means something */
    bool pass;   /* drift meets every line, the judge is fit, controls fail, real pictures pass */
} lw_demo_result;

int lw_job_demo(const lw_demo_config *c, const lw_observer *obs, lw_demo_result *out);

/* ---- demo_settings.c: the trainings ---------------------------------------------- */

const char *lw_demo_stage_name(
    lw_demo_stage_id id); /* "encoder", "judge", "reader", "drift", "ddpm" */
lw_train_config *lw_demo_train(lw_demo_recipe *r, lw_demo_stage_id id);
/* *r: a copy of the recipe with all that the demonstration says, in configs and options; whoever
 * calls drops its options (lw_demo_drop). Judge and reader learn from specs of their own, borrowed. */
int lw_demo_settle(lw_demo_recipe *r, const lw_demo_config *c, const char *judge_data,
                   const char *reader_data, double minutes);
void lw_demo_drop(lw_demo_recipe *r);
/* An option of a stage: of the command that the page shows, and of the run's config.yaml. `value` is
 * taken. */
int lw_demo_say(json_t *options, const char *key, json_t *value);
/* "leeway train drift --data ..." appended, from those options. */
void lw_demo_command(const json_t *options, lw_str *out);
/* Whether a stage is trained. One that was interrupted is to go on from its checkpoint, or from step 0 where it has none
 * yet (t->resume); what else lies there is the training's to refuse: it may be somebody's. */
bool lw_demo_goes_on(lw_train_config *t);

/* ---- demo_battery.c: the networks of the verdict ---------------------------------- */

/* Makes those that are not there yet in `dir`, two of them in `minutes` of training each, and appends
 * their commands. A dry run only says how long. */
int lw_demo_battery(const lw_demo_config *c, const lw_demo_recipe *r, const char *dir, int side,
                    double minutes, const lw_observer *obs, lw_str *commands);

#endif
