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

struct lw_training {
    lw_train_job own; /* `job` */
    const lw_train_job *job;
    lw_train_config *c;
    const lw_observer *obs;
    lw_run_dir dir;
    lw_leaf_sum sum;
    int64_t floats;
    lw_train_step last;
    double started, logged_at;
    int64_t logged_step, first_step, done;
    int64_t saved;      /* step of the newest checkpoint of this directory, -1: none */
    lw_train_keep keep; /* row of step `done` whose measures an interrupt cut off; schedules */
    bool better;        /* the row just measured is that of the best weights so far */
    double end;         /* by the clock, of a run that --minutes measured; 0: none */
    double pace;        /* seconds of its steps */
    bool begun, over, nothing; /* over: the last step is made; nothing: it was before */
    double paused;             /* when the last slice ended */
    lw_train_work work_done;
    lw_train_result result;
};

/* ---- train_step.c ---------------------------------------------------------------------------- */

/* Feeds and replays all leaves of a step: gradients and loss, nothing is updated. */
int lw_loop_forward_backward(lw_training *l, int64_t step);
/* That and the update, or the job's `advance`; counted in work_done. */
int lw_loop_step(lw_training *l, int64_t step);

/* ---- train_record.c -------------------------------------------------------------------------- */

/* A row of metrics.jsonl, with held-out measures when `evaluate`. LW_ESTOPPED: kept as pending. */
int lw_loop_log(lw_training *l, int64_t step, bool evaluate);
/* A row with its measures: is it that of the best weights so far? Says them. */
int lw_loop_measures(lw_training *l, int64_t step, const json_t *row);
int lw_loop_grid(lw_training *l, int64_t step);
int lw_loop_save(lw_training *l, int64_t step);
int lw_loop_summary(const lw_training *l, const lw_train_result *r);

/* ---- train_goal.c ---------------------------------------------------------------------------- */

/* --minutes to steps, by a pace measured now. */
int lw_loop_resolve_minutes(lw_training *l);
/* Notes a schedule that changes here: from now on it is part of what made the run. */
int lw_loop_note_schedule(lw_training *l);
/* config.yaml with the steps that --minutes came to and the changes of its schedule. */
int lw_loop_complete_config(const lw_training *l);

#endif
