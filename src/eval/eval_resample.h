/* SPDX-License-Identifier: Apache-2.0 */
/* Private: which rows a replicate has. */
#ifndef LW_EVAL_RESAMPLE_H
#define LW_EVAL_RESAMPLE_H

#include "eval/eval.h"

typedef struct lw_draw {
    int64_t n;
    lw_rng_key key;
    int64_t *order;       /* [n] rows by class; NULL without classes */
    int64_t *from, *size; /* [n] place and number of the class that place i is in */
} lw_draw;
/* LW_EUSAGE for too few replicates or a label out of range. */
int lw_draw_init(lw_draw *d, const lw_resampling *how, int64_t n);
void lw_draw_clear(lw_draw *d);
/* The row that stands in place i of a replicate. */
int64_t lw_draw_row(const lw_draw *d, uint32_t replicate, int64_t i);
/* How often each row stands in a replicate: counts [n]. */
void lw_draw_counts(const lw_draw *d, uint32_t replicate, int32_t *counts);

#endif
