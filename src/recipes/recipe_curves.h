/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Curves and pictures of one run directory, for the pages of `compare` and of the run itself. A
 * quantity that the run did not log leaves its string or picture empty, which is no error; a
 * damaged log is.
 */
#ifndef LW_RECIPE_CURVES_H
#define LW_RECIPE_CURVES_H

#include "report/report.h"

/* The loss over steps, logarithmic, smoothed where there are many rows. Appends an <svg>. */
int lw_curves_loss(const char *run, const char *title, lw_str *svg);
/* Drift runs: length of the raw drift of each temperature, and Frechet distance beside its floor.
 */
int lw_curves_drift(const char *run, lw_str *raw, lw_str *fd);
/* Any other logged column. */
int lw_curves_column(const char *run, const char *key, const lw_plot *p, lw_str *svg);
/* A column that only some rows have, with another to compare it with, or NULL. */
int lw_curves_points(const char *run, const char *key, const char *beside, const lw_plot *p,
                     lw_str *svg);
/* The first samples of up to six of samples/step_*.png, spread over the training, one row each. */
int lw_curves_film(const char *run, lw_image *film);

#endif
