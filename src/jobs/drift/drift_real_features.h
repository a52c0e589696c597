/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features of real pictures for the drift loss: computed once and kept when they fit and pictures
 * are not changed at load, else computed for the rows of each step.
 */
#ifndef LW_DRIFT_REAL_FEATURES_H
#define LW_DRIFT_REAL_FEATURES_H

#include "data/data.h"
#include "session/session_forward.h"

typedef struct lw_real_features lw_real_features;

typedef struct lw_real_features_opts {
    int64_t cache_bytes; /* keep all features when they take no more */
    uint64_t seed;
    bool flip;         /* mirror rows at random: nothing is kept */
    int32_t batch;     /* rows encoded at a time */
    int32_t precision; /* lw_num: that of the generated pictures' features */
    lw_dtype type;     /* features are LW_F32, or rounded to LW_BF16, kept or not */
} lw_real_features_opts;

/* What features of all pictures take, whether they are kept, and the arithmetic of encoding `rows`
 * pictures at a time. */
typedef struct lw_real_features_cost {
    size_t bytes;
    bool kept;
    double flops;
} lw_real_features_cost;

/* Borrows device, data, encoder, keys. Encodes nothing yet. */
int lw_real_features_new(lw_device *dev, const lw_dataset *d, const lw_network *e,
                         const lw_feature_set *keys, const lw_real_features_opts *o,
                         lw_real_features **out);
lw_real_features_cost lw_real_features_get_cost(const lw_real_features *r, int64_t rows);
/* Encodes what is kept. LW_ESTOPPED when the observer asks to stop. */
int lw_real_features_fill(lw_real_features *r, const lw_observer *obs);
void lw_real_features_free(lw_real_features **pp);
/* Features of rows [n] of the data, draws first, first + 1, ... of `step`: dst[k] is [n][slots][c]
 * of key k, of the type asked for. */
int lw_real_features_fetch(lw_real_features *r, int64_t step, int64_t first, const int64_t *rows,
                           int64_t n, void *const *dst);

#endif
