/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one training loop. A job says how a step is fed and what its exec computes; the loop does
 * the rest: schedule, accumulation, clipping, AdamW and averaging, logs, sample grids, evaluation,
 * checkpoints, interruption. A job whose step is more than one update (proximal policy
 * optimisation) does it all in `advance` and has everything else from the loop. Everything that
 * happens at step s is a pure function of (config, seed, data, s, state), so N steps, stop, resume,
 * N more steps are the bits of 2N steps.
 */
#ifndef LW_TRAIN_LOOP_H
#define LW_TRAIN_LOOP_H

#include "plan/plan.h"
#include "formats/formats.h"
#include "train/train_config.h"
#include "train/train_leaves.h"
#include "base/observer.h"
#include "store/store.h"

/* What a step came to, for the logs. */
typedef struct lw_train_step {
    double loss, grad_norm, lr;
} lw_train_step;

/* Seconds. */
typedef struct lw_train_pace {
    double step, evaluate;
} lw_train_pace;

/* A column of metrics.jsonl that report.html draws. */
typedef struct lw_train_curve {
    const char *column, *title;
    bool from_zero, sparse; /* sparse: not in every row, drawn with dots */
    const char *beside;     /* sparse: a column drawn with it, to compare, or NULL */
} lw_train_curve;

/* What belongs together in a step of a leaf: a part of its graph, forward and backward. */
typedef struct lw_train_part {
    char name[48];               /* "encoder", "field s2.loc"; "" what is in none */
    double flops[2], seconds[2]; /* forward, backward; seconds 0: not measured */
} lw_train_part;
enum { LW_TRAIN_PARTS = 64 }; /* what there is no room for is in the last */

/* One after another in a step; [0] as it is cut now, [1] in its smallest parts. */
typedef struct lw_train_phase {
    const char *name;
    size_t bytes[2];
    double flops[2], seconds[2];
} lw_train_phase;
/* Something that a step's size is a product of. */
typedef struct lw_train_factor {
    const char *name;
    double value, halved; /* halved: share of the step's arithmetic that goes with half of it */
} lw_train_factor;
enum { LW_TRAIN_PHASES = 8, LW_TRAIN_FACTORS = 8 };

/* What a run needs and did. */
typedef struct lw_train_result {
    const char *unit; /* what samples are: "pictures" */
    int64_t parameters, steps, first_step;
    double loss, seconds, samples_per_second;
    lw_train_work work; /* of all processes that worked on the run */
    double flops_per_step;
    size_t bytes_slabs, bytes_frame, bytes_derived; /* predicted before anything runs */
    size_t bytes_kept;                              /* that the job keeps beside these */
    char note[384];                                 /* what it keeps, or why not; "" */
    size_t bytes_frozen;                            /* weights that are not trained: encoders */
    double predicted_step_seconds;
    lw_train_part part[LW_TRAIN_PARTS];
    int32_t n_parts;                       /* 0: the step has one */
    lw_train_phase phase[LW_TRAIN_PHASES]; /* of --dry-run */
    lw_train_factor factor[LW_TRAIN_FACTORS];
    int32_t n_phases, n_factors;
    double distances; /* that the factors make */
    /* of --profile, a step's: feeding, plans, update of the weights */
    double fed_seconds, run_seconds, update_seconds;
    const char *best_metric; /* NULL: no checkpoint was kept as the best */
    int64_t best_step;
    double best_reporting;
    int64_t minutes_steps; /* steps that --minutes resolved to; 0: not asked */
} lw_train_result;

enum { LW_TRAIN_PLOTS = 3 };

/* What a job gives to the loop. Callbacks get `self`; those marked optional may be NULL. */
enum { LW_TRAIN_SIDES = 3 };
typedef struct lw_train_job lw_train_job;
struct lw_train_job {
    const char *name; /* "train drift" */
    void *self;
    /* Optional: opens data, network and plan, and fills in what is of them. */
    int (*set_up)(void *self, lw_train_job *job);
    void (*close)(void *self); /* optional: frees self, whatever of it is there */
    bool follows_goal;         /* more than the learning rate follows the steps asked for */
    const char
        *also_long; /* ", --epochs N": options that say how long, beside steps and minutes; NULL */
    lw_device *dev;
    lw_store *store;
    lw_exec *step;      /* forward and backward: fills the gradient slab; output "loss" */
    bool encoded_first; /* the forward half of a leaf runs twice a step: also before the others */
    lw_exec *side[LW_TRAIN_SIDES]; /* further plans of a step, or NULL */
    int64_t side_runs[LW_TRAIN_SIDES];
    const lw_plan *plan;
    lw_leaves leaves;    /* the step's plan is of one */
    uint64_t names;      /* of the dataset's names: its lw_kb_names, else 0 */
    uint64_t sources;    /* lw_train_depends: what steps depend on beside options; 0: not said */
    const char *unit;    /* what samples are, in the plural; NULL: samples. Logs name the rate by
                                 it: lw_train_rate_name */
    json_t *model;       /* config.json of the checkpoint's model folder */
    const char *weights; /* its weights file; NULL: diffusers' name */
    const lw_naming *namings; /* of files it may begin from (--init-from); NULL: its own names */
    json_t *files;            /* {name: content} beside config.json, or NULL */
    json_t *extra;            /* kept in state.json under "recipe_state"; may be NULL */
    const lw_train_curve *curves; /* ended by a NULL column; NULL: the loss */
    size_t kept_bytes;        /* that the job keeps beside the loop: features, latents, frames */
    size_t frozen_bytes;      /* of weights that it does not train */
    double side_flops;        /* of a leaf, beside those of the plan */
    const char *note;         /* what both are about, or NULL */
    const char *best;         /* metric whose least value's checkpoint is kept: its columns
                                     METRIC_choosing and METRIC_reporting come from evaluate; NULL */
    const char *best_measure; /* what its values depend on beside the weights */
    const char *loss_note;    /* one sentence about what the loss means, or NULL */
    const char *film_caption; /* of what grid draws, on the page; NULL: LW_FILM_CAPTION */
    int32_t film_lines;       /* of a grid; 0: LW_FILM_LINES */
    int (*predict)(void *self, lw_train_result *out); /* optional: corrects --dry-run */
    /* Optional: what checkpoints kept of `extra`, which may lack anything. */
    int (*restore)(void *self, const json_t *extra);
    /* Optional: slow work before the first step, and what of the job it decides. */
    int (*prepare)(void *self, lw_train_job *job);
    /* Optional: before the leaves of a step of a run of `goal` steps (0: not fixed yet). */
    void (*place)(void *self, int64_t step, int64_t goal);
    int (*feed)(void *self, int64_t leaf); /* fills the exec's inputs; counted from step 0 */
    /* Optional, instead of feed, replay and update: all of a step of a run of `goal` steps.
     * LW_ENUMERIC by lw_train_not_finite; LW_ESTOPPED when it was cut off and the store is as it was
     * before. */
    int (*advance)(void *self, int64_t step, int64_t goal, lw_train_step *out);
    /* With advance: seconds a step and evaluate take, for --minutes (`budget` seconds); leaves the
     * store as it was. */
    int (*measure)(void *self, double budget, lw_train_pace *out);
    int (*report)(void *self, json_t *row); /* optional: more columns */
    /* Optional: files of its own beside summary.json, when a run is over. */
    int (*conclude)(void *self, const lw_train_result *r);
    int (*grid)(void *self, int64_t step,
                const char *png_path); /* optional: pictures of the average. LW_ESTOPPED: none */
    /* Optional: slow measures. LW_ESTOPPED when they were cut off: they are taken, of the same
     * weights, when the run goes on. */
    int (*evaluate)(void *self, int64_t step, json_t *row);
    /* Optional: sets what follows from the averaged weights (statistics of BatchNorm), before they are
     * measured or saved. */
    int (*settle)(void *self);
    void (*tell)(const json_t *row, lw_str *out);             /* optional: measures in words */
    int (*plot)(const char *run, lw_str svg[LW_TRAIN_PLOTS]); /* optional: more curves, or empty */
};

/* The run directory of the checkpoint that a config resumes from, whose config.yaml says what its
 * steps were; "" when it starts at step 0, or from a checkpoint outside any run. */
int lw_train_origin(const lw_train_config *c, lw_str *run);

/* The model whose weights the first step of this process begins with: the checkpoint that it goes on
 * from, else that of --init-from. path stays empty where there is none. */
int lw_train_begins_with(const lw_train_config *c, lw_model_place *out);

/* Compiles a training graph as the config says (--precision, --recompute) and makes its exec (NULL:
 * none is wanted). */
int lw_train_compile(const lw_train_config *c, lw_device *dev, const lw_graph *g, lw_plan **plan,
                     lw_exec **exec);

/* For set_up: steps depend on what has this hash, in the order of calls (data; a frozen network, NULL where it has no
 * weights, which takes memory, too). A checkpoint keeps what all come to, and a run does not go on with other
 * data of the same name. */
void lw_train_depends(lw_train_job *job, uint64_t hash);
void lw_train_freezes(lw_train_job *job, const lw_store *frozen);

/* All of it: what can be said before any data is opened (how long to train; whether output_dir is
 * free, or holds the run that goes on; whether the checkpoint to go on from is of this job, seed and
 * precision and has steps left), set_up, with dry_run a prediction, else the steps up to the goal,
 * after those that a checkpoint brings. Closes the job in any case. LW_EUSAGE: says which option;
 * LW_ESTOPPED after saving when the observer asked to stop; LW_ENUMERIC names the step when the loss
 * is not finite (nothing is saved then). */
int lw_train_run(const lw_train_job *job, const lw_train_config *c, const lw_observer *obs,
                 lw_train_result *out);

/* The same in slices, so that two trainings can take turns; bits and logs are those of one whole
 * run, and times are without what lies between slices. c must outlive it. The job is closed with it,
 * or when it fails. With c->dry_run only predicts: only lw_training_run, which says what. */
typedef struct lw_training lw_training;
int lw_training_open(const lw_train_job *job, const lw_train_config *c, const lw_observer *obs,
                     lw_training **out);
/* Time of forward and backward of a step, before the first slice of a run that begins: nothing
 * is updated. Feeds it as step `step`. */
int lw_training_replay(lw_training *t, int64_t step, lw_train_work *out);
/* Goes on until `until` steps are done, or all. LW_ESTOPPED as lw_train_run. */
int lw_training_advance(lw_training *t, int64_t until);
int64_t lw_training_done(const lw_training *t);           /* steps */
int64_t lw_training_goal(const lw_training *t);           /* steps; 0: not fixed yet */
void lw_training_set_goal(lw_training *t, int64_t steps); /* before the first slice */
/* A checkpoint of what is done: the training it takes turns with has ended early. */
int lw_training_save(lw_training *t);
/* rc: what the last slice returned; 0: summary.json is written. *out may be NULL. Returns rc, or
 * what failed while closing. Accepts NULL. */
int lw_training_close(lw_training **t, int rc, lw_train_result *out);
/* All of it, and closes. */
int lw_training_run(lw_training **t, lw_train_result *out);

/* LW_ENUMERIC: says what (a noun and a verb, "the loss is") at which step (counted from 1), the
 * first bad gradient, and what to do. */
int lw_train_not_finite(const char *name, const lw_store *store, int64_t step, const char *what);

/* What logs call the rate of samples that are `unit`: "images_per_sec" of pictures, "choices_per_sec" of choices. */
const char *lw_train_rate_name(const char *unit);

#endif
