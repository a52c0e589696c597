/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge: a classifier that may also say "this is no picture of the data". Its network, seed and
 * data are its own; no training of a generator ever sees it.
 */
#ifndef LW_RECIPE_JUDGE_H
#define LW_RECIPE_JUDGE_H

#include "recipes/recipe_ddpm.h"

/* Trains Leeway's encoder with classes + 1 outputs. A quarter of every batch is junk of the last
 * class: lw_junk_any, and blends of two pictures of one class; noise of a standard deviation up to
 * c.input_noise, uniform per picture, lies on all of them. Writes a run directory whose checkpoints
 * open as encoders; config.json says "leeway_judged_classes". c.objective is not read. LW_EUSAGE:
 * the data has no labels. */
int lw_train_judge(lw_train_encoder_config c, const lw_observer *obs, lw_train_result *out);

#endif
