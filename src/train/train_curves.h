/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Curves and pictures of one run directory, for the pages of `compare` and of the run itself. A
 * quantity that the run did not log leaves its string or picture empty, which is no error; a
 * damaged log is.
 */
#ifndef LW_TRAIN_CURVES_H
#define LW_TRAIN_CURVES_H

#include "report/report.h"

/* The loss over steps, logarithmic, smoothed where there are many rows. Appends an <svg>. */
int lw_curves_loss(const char *run, const char *title, lw_str *svg);
/* Drift runs: length of the raw drift of each temperature, and Frechet distance beside
 * its floor. */
int lw_curves_drift(const char *run, lw_str *raw, lw_str *fd);
/* Distances of held-out measures beside that of real pictures: metric fd or eval_fd. */
int lw_curves_heldout(const char *run, const char *metric, lw_str *svg);
/* Held-out distance in an encoder that neither was trained in ("eval_fd"; "fd" is in other features
 * for each method) of n runs over the time each was trained, where all logged it, beside that of
 * real pictures. n: 2 to LW_CURVES_RUNS. */
enum { LW_CURVES_RUNS = 4 };
int lw_curves_wall(const char *const *run, const char *const *name, int n, lw_str *svg);
/* Any other logged column. */
int lw_curves_column(const char *run, const char *key, const lw_plot *p, lw_str *svg);
/* A column that only some rows have, with another to compare it with, or NULL. */
int lw_curves_points(const char *run, const char *key, const char *beside, const lw_plot *p,
                     lw_str *svg);
/* The first of the `lines` lines of pictures of up to seven of samples/step_*.png, spread over the
 * training, one row each, named by their steps. Captions: of samples; of answers to pictures, by what they are beside. */
enum { LW_FILM_ROWS = 7, LW_FILM_LINES = 8 };
#define LW_FILM_AFTER "after as many training steps as stand at the left, averaged weights (EMA)"
#define LW_FILM_CAPTION "the same noise " LW_FILM_AFTER
#define LW_FILM_RETURNED "held-out pictures, each beside what comes back of it " LW_FILM_AFTER
#define LW_FILM_RESTORED \
    "held-out frames: damaged, the network's answer, clean; answers " LW_FILM_AFTER
typedef struct lw_film {
    lw_image picture;
    char step[LW_FILM_ROWS][24];
    const char *names[LW_FILM_ROWS]; /* of the rows: into step */
    int rows;
} lw_film;
int lw_curves_film(const char *run, int32_t lines, lw_film *film);
void lw_film_clear(lw_film *film);
/* For a page; caption may be NULL. */
lw_figure lw_film_figure(lw_film *film, const char *title, const char *caption);

#endif
