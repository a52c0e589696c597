/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two trainings that take turns in one process, so that whatever else the machine does hits both
 * alike: equal work by construction, not by a rate measured before.
 */
#ifndef LW_TRAIN_TURNS_H
#define LW_TRAIN_TURNS_H

#include "train/train_loop.h"

/* Steps that take `seconds` for either, from paces that are measured in turns. For trainings before
 * their first step. LW_ESTOPPED when the observer asks for it. */
int lw_turns_goals(lw_training *const t[2], double seconds, const lw_observer *obs,
                   int64_t goal[2]);
/* Runs and closes both, each the same fraction of its own steps a slice; a slice of one is about
 * `slice` of its `seconds`. One that is NULL is left out. When one ends early, the other is saved
 * as well. */
int lw_turns_run(lw_training *t[2], double seconds, double slice);

#endif
