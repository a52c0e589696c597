/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features of real pictures for the drift loss: computed once and kept when they fit and pictures
 * are not changed at load, else computed for the rows of each step.
 */
#ifndef LW_RECIPE_REALS_H
#define LW_RECIPE_REALS_H

#include "data/data.h"
#include "models/models.h"
#include "plan/plan.h"
#include "recipes/recipe_observer.h"

typedef struct lw_reals lw_reals;

typedef struct lw_reals_opts {
    int64_t cache_bytes; /* keep all features when they take no more */
    uint64_t seed;
    bool flip;         /* mirror rows at random: nothing is kept */
    int32_t batch;     /* rows encoded at a time */
    int32_t precision; /* lw_num: that of the generated pictures' features */
} lw_reals_opts;

/* Borrows device, data, encoder, keys. */
int lw_reals_new(lw_device *dev, const lw_dataset *d, const lw_encoder *e,
                 const lw_feature_set *keys, const lw_reals_opts *o, const lw_observer *obs,
                 lw_reals **out);
void lw_reals_free(lw_reals **pp);
bool lw_reals_kept(const lw_reals *r);
size_t lw_reals_bytes(const lw_reals *r);
/* Features of rows [n] of the data at `step`: dst[k] is [n][slots][c] of key k. */
int lw_reals_fetch(lw_reals *r, int64_t step, const int64_t *rows, int64_t n, float *const *dst);

#endif
