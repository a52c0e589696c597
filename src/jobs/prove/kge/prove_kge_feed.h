/* SPDX-License-Identifier: Apache-2.0 */
/* What a leaf of embedding training reads: a pure function of (seed, its number) and the facts. */
#ifndef LW_PROVE_KGE_FEED_H
#define LW_PROVE_KGE_FEED_H

#include "jobs/prove/kge/kge_job.h"

/* Where the step's inputs lie. */
typedef struct lw_kge_inputs {
    int32_t *entities, *relations;
    float *side, *allowed;
} lw_kge_inputs;

typedef struct lw_kge_feed {
    const lw_kb *kb;
    int32_t batch, negatives, candidates; /* candidates: negatives, or all entities */
    bool filter, inverse;
    uint64_t seed;
    int64_t examples;      /* facts, twice */
    int32_t *first, *next; /* columns of each entity among the negatives: lists, -1 ends */
    int64_t *zero;         /* places of `allowed` that are 0 now */
    size_t n_zero, cap_zero;
} lw_kge_feed;

int lw_kge_feed_init(lw_kge_feed *f);
void lw_kge_feed_clear(lw_kge_feed *f);
/* leaf: counted from step 0. `allowed` must be the memory of the call before. */
int lw_kge_feed_fill(lw_kge_feed *f, int64_t leaf, const lw_kge_inputs *in);

#endif
