/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches in the background. Batch `step` is a pure function of (dataset, batch size, seed, flip,
 * shift, step): sample g = step * B + i stands in epoch g / E at place g mod E, E = rows rounded down to
 * whole batches (so the rest of an epoch is dropped; all rows when there are fewer than B); the
 * order of an epoch is lw_rng_permute keyed by (seed, "data.order", epoch), a flip is one word of
 * (seed, "data.flip", epoch, row), a shift one of (seed, "data.shift", epoch, row).
 */
#ifndef LW_DATA_LOADER_H
#define LW_DATA_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "data/data_set.h"

typedef struct lw_batch {
    int64_t step;
    int32_t size, h, w, channels;
    float *images;   /* [size][h][w][channels] in [-1, 1] */
    int32_t *labels; /* [size] */
    int64_t *rows;   /* [size] global sample number step * size + i */
    int64_t *index;  /* [size] row of the dataset */
    bool *flip;      /* [size] mirrored */
} lw_batch;

int lw_batch_init(lw_batch *out, int32_t size, int32_t h, int32_t w, int32_t channels);
/* Numbers of a picture. */
static inline int64_t lw_batch_row_size(const lw_batch *b)
{
    return (int64_t)b->h * b->w * b->channels;
}
void lw_batch_clear(lw_batch *b);

typedef struct lw_loader_opts {
    int32_t batch_size;
    uint64_t seed;
    bool flip; /* mirror each picture with probability 1/2 */
    int32_t
        shift; /* move each by up to so many pixels, fewer than half a side, up or down and left or
                      right, its mirror image behind it: a crop of the picture with that border */
    bool ordered;       /* rows in the order of the data, not shuffled */
    int64_t start_step; /* first batch; resuming needs nothing else */
    int64_t end_step;   /* batches are start_step..end_step-1; 0: without end */
    int32_t slots;      /* batches in flight; 0: 3 */
} lw_loader_opts;

/* Where sample g is: epoch and row. */
void lw_loader_place(const lw_dataset *d, const lw_loader_opts *o, int64_t g, int64_t *epoch,
                     int64_t *row);
/* Fills a batch of the right size on this thread. */
void lw_loader_fill(const lw_dataset *d, const lw_loader_opts *o, int64_t step, lw_batch *dst);

/* Starts the thread. The dataset must outlive the loader. */
typedef struct lw_loader lw_loader;
int lw_loader_new(const lw_dataset *d, const lw_loader_opts *o, lw_loader **out);
void lw_loader_free(lw_loader **pp);
/* Next batch, valid until the next call. 0 ok, 1 after end_step. */
int lw_loader_next(lw_loader *l, const lw_batch **out);

#endif
