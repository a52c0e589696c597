/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: all dot products between two sets of rows, a block at a time, and exact distances.
 * Products are f32 and only rule candidates out: a pair whose lower bound is beyond what one looks
 * for is skipped, every other one is measured in double.
 */
#ifndef LW_EVAL_BLOCK_H
#define LW_EVAL_BLOCK_H

#include <stdint.h>

#include "base/thread/pool.h"

/* Squared distance in double; the order of the sum is fixed by dim alone. */
double lw_square_distance(const float *a, const float *b, int32_t dim);

typedef struct lw_pairs {
    const float *q, *r; /* [m][dim], [n][dim] */
    int64_t m, n;
    int32_t dim;
    double *q_norm, *r_norm; /* squared lengths */
} lw_pairs;
int lw_pairs_init(lw_pairs *p, const float *q, int64_t m, const float *r, int64_t n, int32_t dim);
void lw_pairs_clear(lw_pairs *p);
/* No pair (i, j) with this f32 product is nearer than the square root of this. */
double lw_pairs_bound(const lw_pairs *p, int64_t i, int64_t j, float dot);

/* Row i against rows j0..j0+nj-1, in order of j0 for each i; all calls of one i come from one
 * thread. */
typedef void lw_pairs_fn(void *arg, int64_t i, int64_t j0, int64_t nj, const float *dots,
                         int worker);
int lw_pairs_run(lw_pool *pool, const lw_pairs *p, lw_pairs_fn *fn, void *arg);

#endif
