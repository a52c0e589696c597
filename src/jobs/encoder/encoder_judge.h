/* SPDX-License-Identifier: Apache-2.0 */
/* What a judge learns from: pictures and junk. */
#ifndef LW_ENCODER_JUDGE_H
#define LW_ENCODER_JUDGE_H

#include "train/pictures/train_pictures.h"

/* Fills the step's inputs with a leaf: a quarter is junk, labelled as the class behind those of the data. */
int lw_judge_feed(lw_picture_run *p, lw_junk *junk, int64_t leaf);

#endif
