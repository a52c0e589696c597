/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demonstration: trains an encoder, a judge, a reader, a class-conditional drifting generator
 * and a DDPM with the same U-Net, in turns (train_turns.h), and compares the two. Stages that are
 * finished in the output directory are not trained again.
 */
#ifndef LW_DEMO_JOB_H
#define LW_DEMO_JOB_H

#include "jobs/compare/compare_job.h"
#include "jobs/ddpm/ddpm_job.h"
#include "jobs/drift/drift_job.h"
#include "jobs/encoder/encoder_job.h"

typedef struct lw_demo_config {
    const char *data; /* spec; labelled */
    const char *output_dir;
    const char *encoder; /* for Frechet distances instead of the judge's features, or NULL */
    double minutes; /* of all trainings together; 0: 6 for pictures of 16x16, 30 for larger ones */
    int64_t n_fid, n_ddpm;  /* pictures scored; 0: 1000 and 500 */
    double latency_seconds; /* of a timed cell; 0: 0.5 */
    int64_t seed;
    int32_t threads;
    int32_t conv; /* lw_conv_mode */
    bool dry_run; /* only says what would be trained */
} lw_demo_config;

typedef struct lw_demo_result {
    lw_compare_result compare;
    double minutes, seconds; /* planned training, whole time */
    bool barred;             /* the bar was set for this data: pass means something */
    bool pass; /* drift meets every line, the judge is fit, controls fail, real pictures pass */
} lw_demo_result;

int lw_job_demo(const lw_demo_config *c, const lw_observer *obs, lw_demo_result *out);

/* ---- demo_settings.c: the trainings ---------------------------------------------- */

typedef enum lw_demo_stage_id {
    LW_DEMO_ENCODER,
    LW_DEMO_JUDGE,
    LW_DEMO_READER,
    LW_DEMO_DRIFT,
    LW_DEMO_DDPM,
    LW_DEMO_STAGES
} lw_demo_stage_id;

typedef struct lw_demo_settings {
    lw_train_encoder_config encoder, judge, reader;
    lw_drift_config drift;
    lw_ddpm_config ddpm;
    int64_t limit;                /* training pictures used */
    double share[LW_DEMO_STAGES]; /* of the minutes */
} lw_demo_settings;

/* side: of the pictures. The specs of what judge and reader learn from are borrowed: pools of their
 * own where the data has any, else the generators' training pictures. */
void lw_demo_settings_fill(lw_demo_settings *s, const lw_demo_config *c, const char *judge_data,
                           const char *reader_data, int32_t side, double minutes);
/* The options of a stage as `leeway train` takes them; new reference. */
json_t *lw_demo_options(const lw_demo_settings *s, lw_demo_stage_id id);
/* "leeway train drift --data ..." appended, from those options. */
void lw_demo_command(const json_t *options, lw_str *out);
/* The options of a `train encoder`; new reference. */
json_t *lw_demo_encoder_options(const lw_train_encoder_config *e);

/* ---- demo_battery.c: the networks of the verdict ---------------------------------- */

/* Makes those that are not there yet in `dir`, two of them in `minutes` of training each, and appends
 * their commands. A dry run only says how long. */
int lw_demo_battery(const lw_demo_config *c, const lw_demo_settings *s, const char *dir, int side,
                    double minutes, const lw_observer *obs, lw_str *commands);

const char *lw_demo_stage_name(
    lw_demo_stage_id id); /* "encoder", "judge", "reader", "drift", "ddpm" */

#endif
