/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --keep-best: which checkpoint had the least METRIC_choosing so far, and what METRIC_reporting,
 * taken of other pictures, says of it. Kept in state.json as {metric, measure, step, choosing,
 * reporting, floor} and on disk as checkpoints/best.
 */
#ifndef LW_TRAIN_BEST_H
#define LW_TRAIN_BEST_H

#include "formats/formats.h"

/* Compares a row with *best (NULL: none yet), which it replaces when *better. Nothing happens
 * without a metric, or when the row lacks its columns. `measure`: all that values depend on beside
 * the weights. */
int lw_best_take(json_t **best, const char *metric, const char *measure, int64_t step,
                 const json_t *row, bool *better);
/* Of a run that goes on: points checkpoints/best where the checkpoint's state says (it may be of
 * later steps, which are made again). Begins anew, with a warning, when that one is gone or was
 * chosen by another measure. */
int lw_best_restore(const char *run, const char *measure, json_t **best);

#endif
