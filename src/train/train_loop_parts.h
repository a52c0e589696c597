/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the loop's files: a training under way. train_loop.c is its life; train_step.c makes a step, train_record.c
 * writes what came of it (logs, grids, checkpoints, summary), train_goal.c says how long it will take.
 */
#ifndef LW_TRAIN_LOOP_PARTS_H
#define LW_TRAIN_LOOP_PARTS_H

#include "train/train_best.h"
#include "train/train_loop.h"
#include "train/train_run_dir.h"

/* What is decided when a run is opened, by the checkpoint it goes on from if it does, and by --minutes. */
typedef struct lw_train_state {
    int64_t steps;       /* its goal; 0: --minutes will say */
    int64_t first;       /* steps done before this process */
    bool in_place;       /* goes on in its own directory */
    int64_t goal_before; /* steps that a changed schedule was for, else 0 */
    double seconds;      /* of training before this process */
    lw_train_work work;  /* of all processes */
    json_t *
        pending; /* in place: log row of step `first` whose measures an interrupt cut off, or NULL */
    bool pending_grid; /* in place: so was the grid of that step */
    bool
        left_undone; /* in place: all steps are done, but its process ended before all was written */
    json_t *best;    /* in place: which checkpoint is the best one, or NULL */
    json_t *init;    /* the weights it began with and their hash, or NULL */
    json_t *rescheduled; /* where the learning rate's schedule was changed: array, or NULL */
    json_t *recipe;      /* what the checkpoint keeps of the job's `extra`, or NULL */
} lw_train_state;

struct lw_training {
    lw_train_job job;
    const lw_train_config *c;
    const lw_observer *obs;
    lw_train_state state;
    lw_run_dir dir;
    lw_leaf_sum sum;
    lw_train_step last;
    double started, logged_at;
    int64_t logged_step, done;
    int64_t saved;             /* step of the newest checkpoint of this directory, -1: none */
    bool better;               /* the row just measured is that of the best weights so far */
    bool in_turns;             /* alternates with the training it is compared with */
    double end;                /* by the clock, of a run that --minutes measured; 0: none */
    double pace;               /* seconds of its steps */
    bool begun, over, nothing; /* over: the last step is made; nothing: it was before */
    double paused;             /* when the last slice ended */
    lw_train_result result;
};

/* ---- train_resume.c -------------------------------------------------------------------------- */

/* What can be said before any data is opened (lw_train_run); of the job name and follows_goal. No file is changed.
 * *over: nothing is left to do, and *out says what the run came to. */
int lw_train_check(const lw_train_config *c, const lw_train_job *job, const lw_observer *obs,
                   lw_train_result *out, bool *over);
/* Loads the checkpoint a config resumes from, if it does, into the job's store. --resume in a directory without any
 * checkpoint starts at step 0. LW_EUSAGE as lw_train_check, and for other names or leaves of another size. */
int lw_train_resume(const lw_train_config *c, const lw_train_job *job, lw_train_state *out);
void lw_train_state_clear(lw_train_state *s);
/* Whether a run's summary.json, which is written behind everything else, is of so many steps. */
bool lw_train_is_concluded(const char *run, int64_t steps);
/* Says that `goal` steps are done, and fills in what summary.json says that the run came to. */
int lw_train_nothing_left(const lw_train_config *c, int64_t goal, const lw_observer *obs,
                          lw_train_result *out);

/* ---- train_init.c --------------------------------------------------------------------------- */

/* The model of --init-from, which must be named. */
int lw_train_init_find(const lw_train_config *c, lw_model_place *out);
/* Step 0 of a run with --init-from: fills the job's store, average included, and says from where; *origin: that and the
 * hash of the weights, for checkpoints. LW_EFORMAT names the tensors that do not fit; LW_EUSAGE a key of config.json by
 * which the same tensors would mean something else. */
int lw_train_init(const lw_train_config *c, const lw_train_job *job, const lw_observer *obs,
                  json_t **origin);

/* ---- train_parts.c --------------------------------------------------------------------------- */

/* Of all plans of a step by part; times where they were profiled. 0: none has a part. */
int32_t lw_train_parts(const lw_train_job *j, lw_train_part part[LW_TRAIN_PARTS]);
/* Prepares the job and times forward and backward of c->profile steps, behind one for warm-up. */
int lw_loop_profile(lw_training *l);

/* ---- train_step.c ---------------------------------------------------------------------------- */

/* Feeds and replays all leaves of a step: gradients and loss, nothing is updated. */
int lw_loop_forward_backward(lw_training *l, int64_t step);
int lw_loop_update(lw_training *l, int64_t step);
/* That and the update, or the job's `advance`; counted in state.work. */
int lw_loop_step(lw_training *l, int64_t step);

/* ---- train_record.c -------------------------------------------------------------------------- */

/* A row of metrics.jsonl, with held-out measures when `evaluate`. LW_ESTOPPED: kept as pending. */
int lw_loop_log(lw_training *l, int64_t step, bool evaluate);
/* A row with its measures: is it that of the best weights so far? Says them. */
int lw_loop_measures(lw_training *l, int64_t step, const json_t *row);
int lw_loop_grid(lw_training *l, int64_t step);
int lw_loop_save(lw_training *l, int64_t step);
/* The loss of the newest row of metrics.jsonl. */
int lw_loop_last_loss(const lw_training *l, double *out);
/* Files of the job's own, then summary.json. */
int lw_loop_summary(const lw_training *l, const lw_train_result *r);

/* ---- train_goal.c ---------------------------------------------------------------------------- */

/* Before anything runs. */
void lw_train_predict(const lw_train_job *job, const lw_train_config *c, lw_train_result *out);
/* --minutes to steps, by a pace measured now. */
int lw_loop_resolve_minutes(lw_training *l);
/* Notes a schedule that changes here: from now on it is part of what made the run. */
int lw_loop_note_schedule(lw_training *l);
/* config.yaml, with the steps that --minutes came to and the changes of the schedule. */
int lw_loop_write_config(lw_training *l);

#endif
