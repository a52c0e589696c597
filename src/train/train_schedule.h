/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rate and averaging decay as pure functions of the step, so that resuming needs
 * no state. */
#ifndef LW_TRAIN_SCHEDULE_H
#define LW_TRAIN_SCHEDULE_H

#include "train/train_config.h"

/* Step counts from 0, of `steps` in all. Linear warm-up over warmup_steps, then constant or cosine to lr_floor at the
 * end. */
double lw_schedule_lr(const lw_train_config *c, int64_t steps, int64_t step);
/* min(decay, (1 + s) / (10 + s)) with s optimiser steps done including this one: short runs would
 * otherwise show their initial weights. */
double lw_schedule_ema(double decay, int64_t step);

#endif
