/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a frozen BatchNorm normalises with: mean and variance of its input over training pictures,
 * under the averaged weights. They are made when weights are measured or saved ("precise
 * BatchNorm", Wu and Johnson 2021) rather than averaged along the way, so they belong to these
 * weights exactly, and no step depends on them.
 */
#ifndef LW_ENCODER_SETTLE_H
#define LW_ENCODER_SETTLE_H

#include "models/models.h"
#include "train/pictures/train_pictures.h"

typedef struct lw_settle lw_settle;
/* Borrows both; p's store is declared. Uses about 4,096 training pictures as they are, in an order
 * that the seed decides. */
int lw_settle_new(const lw_encoder_config *net, const lw_picture_run *p, lw_settle **out);
void lw_settle_free(lw_settle **pp);
/* Sets running_mean and running_var of every BatchNorm, unless the weights are those of the last
 * call. */
int lw_settle_run(lw_settle *s);

#endif
