/* SPDX-License-Identifier: Apache-2.0 */
/* The two generators' trainers. */
#ifndef LW_RECIPE_DDPM_H
#define LW_RECIPE_DDPM_H

#include "recipes/recipe_config.h"
#include "recipes/recipe_observer.h"
#include "recipes/recipe_trainer.h"

/* Trains, or with dry_run only predicts. The config is by value: what --minutes or a resumed
 * checkpoint decide is seen in *out. */
int lw_train_ddpm(lw_ddpm_config c, const lw_observer *obs, lw_train_result *out);
int lw_train_drift(lw_drift_config c, const lw_observer *obs, lw_train_result *out);
/* The same ready to be run, in slices if need be; closing it frees all. */
int lw_train_ddpm_open(const lw_ddpm_config *c, const lw_observer *obs, lw_training **out);
int lw_train_drift_open(const lw_drift_config *c, const lw_observer *obs, lw_training **out);
int lw_train_encoder(lw_train_encoder_config c, const lw_observer *obs, lw_train_result *out);

#endif
