/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Monte-Carlo uncertainty of frozen encoders: every picture goes T times through the network with noise
 * at its sites, K trials long, and is scored by how its features vary.
 *
 *   pictures, decoded once ─► prefix, once ─► K x T passes ─► scores [K][pictures] of every T
 *                                                         ─► is it the same in each trial?
 *
 * Masks are keyed by (seed, trial, site, picture, pass, element): a score does not depend on batch,
 * order, threads or the other pictures, and those of T = 4 are of the first four passes of T = 64.
 */
#ifndef LW_MC_JOB_H
#define LW_MC_JOB_H

#include "data/data.h"
#include "eval/eval.h"
#include "session/session.h"

enum { LW_MC_MODELS = 16, LW_MC_PASSES = 8, LW_MC_MAX_PASSES = 1 << 20, LW_MC_RESULTS = 96 };

/* Experiments; those up to exp5 may have settings of their own. */
#define LW_MC_EXPERIMENTS "exp0, exp0b, exp4, exp5, validity, errors"
enum { LW_MC_EXP0, LW_MC_EXP0B, LW_MC_EXP4, LW_MC_EXP5, LW_MC_OWN };

/* Of one experiment, where they differ from the others'; 0: as theirs. */
typedef struct lw_mc_own {
    const char *models[LW_MC_MODELS];
    int32_t n_models;
    int32_t passes[LW_MC_PASSES];
    int32_t n_passes, trials;
    int64_t num_images;
    bool at_most; /* of num_images */
} lw_mc_own;

typedef struct lw_mc_config {
    const char *data;                 /* data spec, or a folder of pictures */
    const char *manifest;             /* a JSON file that lists pictures of that folder; or NULL */
    const char *models[LW_MC_MODELS]; /* NAME=SOURCE or SOURCE */
    int32_t n_models;
    const char *output_dir;
    const char *only[8]; /* of LW_MC_EXPERIMENTS; none: exp0 */
    int32_t n_only;
    lw_mc_own own[LW_MC_OWN];
    int32_t passes[LW_MC_PASSES]; /* T, rising */
    int32_t n_passes;
    int32_t trials;
    double dropout;    /* probability, or share of a standard deviation */
    int32_t perturb;   /* lw_noise_kind */
    const char *sites; /* NULL: the network's usual list */
    const char *layer; /* NULL: pooled, or the first there is */
    int32_t split, on_error;
    int64_t num_images; /* 0: all */
    bool at_most;       /* all where there are fewer */
    int32_t image_size;
    const char *class_map;       /* JSON {picture or class: output or row of texts}; or NULL */
    const char *reference;       /* errors: a number, or counts, of each picture; or NULL */
    const char *text_embeddings; /* exp5: [classes, D] or [templates, classes, D] */
    const char *templates; /* exp5: how many of them, or their names with '|' between; NULL: all */
    double quantile;       /* exp5: share of pictures that is a tail */
    int32_t batch;         /* rows of a run; 0: measured */
    int32_t precision;
    int32_t save_every; /* trials */
    uint64_t memory;    /* kept values that take more lie on the disk; 0: half of the machine's */
    uint64_t seed;
    int32_t threads, conv;
    bool resume, dry_run;
    bool device_change;         /* resume though another kind of device began it */
    const char *command;        /* as it was called, for the page; NULL: unknown */
    int32_t one_pass;           /* lw_mc_method */
    const char *calibration;    /* data spec, its training rows; NULL: the pictures themselves */
    int64_t calibration_images; /* so many of them; 0: all */
    int64_t training_images;    /* that they stand for; 0: for themselves */
    double prior;               /* precision of the last layer's weights; 0: of largest evidence */
} lw_mc_config;

typedef enum lw_mc_method { LW_MC_NO_METHOD, LW_MC_LAPLACE } lw_mc_method;
#define LW_MC_METHODS "none|laplace"

/* What one pass says beside the many. */
typedef struct lw_mc_one_pass_result {
    bool done;
    char weight[96]; /* of the last layer */
    int32_t in, out;
    bool bias;
    int32_t texts; /* that pictures are compared with; 0: a classifier */
    double scale;
    bool sigmoid;
    lw_laplace_info fit;
    double calibrate, score; /* seconds */
    double mean[LW_LAPLACE_SCORES];
    /* Rank correlation with scores of T passes, means over trials. */
    double rho[LW_LAPLACE_SCORES][LW_PASS_SCORES][LW_MC_PASSES];
} lw_mc_one_pass_result;

typedef struct lw_mc_model_result {
    char name[64], network[32], layer[16], preparation[128], experiments[64];
    lw_str sites;             /* the list */
    char stored_dropout[160]; /* what the network's own files say: "attention_dropout 0" */
    int64_t parameters;
    int32_t n_sites, live, dim, batch;
    int32_t height, width;
    int64_t pictures;
    lw_passes_info cut;
    uint64_t weights, pixels,
        pixels_f32;        /* bytes: of the network, of all pictures as bytes, as f32 */
    uint64_t arrays, need; /* bytes: of scores, of all but what is mapped from files */
    double decode, compile, prefix, passes, scores; /* seconds */
    double seconds;                                 /* of all; of a dry run predicted */
    int32_t trials, trials_before;                  /* before: by the call that was interrupted */
    int32_t n_t, t[LW_MC_PASSES];
    lw_reliability pre[LW_MC_PASSES], post[LW_MC_PASSES];
    double mean_pre[LW_MC_PASSES], mean_post[LW_MC_PASSES]; /* scores, over pictures and trials */
    lw_mc_one_pass_result one_pass;
} lw_mc_model_result;

typedef struct lw_mc_result {
    lw_mc_model_result model[LW_MC_RESULTS]; /* once for each of the settings it ran with */
    int32_t n;
    char page[512]; /* report.html; "": it could not be made, as the log says */
    lw_str answer;  /* what it says first, a line for each model */
} lw_mc_result;
void lw_mc_result_clear(lw_mc_result *r);

/* LW_EUSAGE: an unknown site, experiment or output; what is half done is of another call. LW_ESTOPPED:
 * interrupted, trials that are done are kept for `resume`. */
int lw_job_mc(const lw_mc_config *c, const lw_observer *obs, lw_mc_result *out);
/* Where and what a model's run was, and its costs, as an object. */
json_t *lw_mc_costs_json(const lw_mc_model_result *m);
/* OUTPUT/report.html from the files in OUTPUT, of whatever calls; its path into *path, what it says
 * first appended to *answer, a line for each model. LW_EIO: no
 * such directory; LW_EUSAGE: no model there is finished; LW_EFORMAT: a file is damaged. */
int lw_job_mc_page(const char *output_dir, lw_str *path, lw_str *answer);

#endif
