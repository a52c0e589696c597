/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run directory and its logs: config.yaml, command.txt, env.json, metrics.jsonl, loss_log.csv,
 * tb/events..., samples/, checkpoints/, summary.json. Resuming cuts the logs back to the
 * checkpoint's step.
 */
#ifndef LW_TRAIN_RUN_DIR_H
#define LW_TRAIN_RUN_DIR_H

#include "formats/formats.h"
#include "train/train_config.h"

typedef struct lw_run_dir {
    char *path;
    lw_events *events;
    int lock; /* descriptor of the locked directory, -1: none */
} lw_run_dir;

/* Whether a directory holds a run. */
bool lw_run_dir_there(const char *path);
/* LW_EUSAGE when the directory holds a run, or another command's results of names that a run has. */
int lw_run_dir_refuse(const char *path);
/* Makes the directory and writes what does not change. step: the logs that are there go on behind
 * it; -1: LW_EUSAGE when the directory holds a run. LW_EUSAGE also when another process is at work
 * in it: nothing is overwritten. */
int lw_run_dir_open(const lw_train_config *c, const char *job, int threads, const char *isa,
                    int64_t step, lw_run_dir *out);
void lw_run_dir_close(lw_run_dir *d);

/* What the run was asked for, for TensorBoard: its config.yaml and each option by itself. */
int lw_run_dir_describe(lw_run_dir *d, const json_t *options, const char *yaml);
/* A picture that was written, name of the directory's, for TensorBoard. */
int lw_run_dir_picture(lw_run_dir *d, int64_t step, const char *name);
/* One row: {"step": .., "loss": .., ...} into metrics.jsonl and TensorBoard (numbers only, grouped as
 * train/, eval/ and drift/); the
 * note's columns step,loss,time_s and the rate (its column of row) into loss_log.csv when row has a
 * "loss". */
int lw_run_dir_log(lw_run_dir *d, int64_t step, const char *rate, const json_t *row);
/* path/name into s. */
const char *lw_run_dir_file(const lw_run_dir *d, lw_str *s, const char *name);

#endif
