/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a frozen encoder makes of real pictures, and where they may be mirrored of their mirror images
 * too: computed once and kept when it fits, else computed for the rows of each step. What is kept
 * lies in a file of the cache directory, so that a later run starts at once, or in memory; the bits
 * are the same.
 */
#ifndef LW_TRAIN_REAL_FEATURES_H
#define LW_TRAIN_REAL_FEATURES_H

#include "data/data.h"
#include "session/session_forward.h"

typedef struct lw_real_features lw_real_features;

typedef struct lw_real_features_opts {
    int64_t cache_bytes;       /* keep all features when they take no more */
    int64_t disk_bytes;        /* those of all runs together, on disk; 0: in memory */
    const lw_network *decoder; /* rows are latents, and features those of pictures decoded of them;
                                  NULL: of the rows */
    bool flip;                 /* mirrored pictures are wanted: rows n .. 2 n - 1 of data of n */
    int32_t precision;         /* lw_num: that of the generated pictures' features */
    int32_t conv;              /* lw_conv_mode of the device */
    lw_dtype type;             /* features are LW_F32, or rounded to LW_BF16, kept or not */
} lw_real_features_opts;

/* What features of all rows take, whether they are kept, and the arithmetic of encoding `rows`
 * pictures at a time. held: the process's own memory once they are made, which is nothing of a file,
 * and of features that are not kept the encoder's plan with its packed weights. */
typedef struct lw_real_features_cost {
    size_t bytes, held;
    bool kept;
    double flops;
    char where[160]; /* kept: "in memory", or the file's name and whether it is there */
} lw_real_features_cost;

/* Borrows device, data, encoder, keys. Encodes nothing yet. */
int lw_real_features_new(lw_device *dev, const lw_dataset *d, const lw_network *e,
                         const lw_feature_set *keys, const lw_real_features_opts *o,
                         lw_real_features **out);
lw_real_features_cost lw_real_features_get_cost(const lw_real_features *r, int64_t rows);
/* Bytes, pictures, and whether and where they are kept or which --feature-cache would keep them, for
 * --dry-run and the start of training. */
enum { LW_REAL_FEATURES_NOTE = 320 };
void lw_real_features_note(const lw_real_features *r, char note[LW_REAL_FEATURES_NOTE]);
/* Finds or encodes what is kept. LW_ESTOPPED when the observer asks to stop. */
int lw_real_features_fill(lw_real_features *r, const lw_observer *obs);
void lw_real_features_free(lw_real_features **pp);
/* Features of rows [n]: dst[k] is [n][slots][c] of key k, of the type asked for; NULL: not wanted. */
int lw_real_features_fetch(lw_real_features *r, const int64_t *rows, int64_t n, void *const *dst);

#endif
