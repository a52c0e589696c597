/* SPDX-License-Identifier: Apache-2.0 */
/* Where training queries come from: true ones, those of them that are open yet, and corruptions. */
#ifndef LW_PROVE_PPO_SOURCE_H
#define LW_PROVE_PPO_SOURCE_H

#include "jobs/prove/ppo/ppo_job.h"

typedef struct lw_ppo_source {
    const lw_kb *kb;
    const lw_atom *query; /* true ones; with a curriculum, those of shorter proofs first */
    int32_t n;
    int32_t open;     /* of them, in this iteration: the first so many are drawn from */
    int32_t shortest; /* at least so many: those with the shortest proofs */
    const lw_corruptor *corruptor;
    bool heads, tails; /* which of them to corrupt */
    int32_t neg_ratio; /* corrupted ones for each true one */
    double hard;       /* share of corruptions that the rules prove, where there are any */
    const lw_least_model *least; /* what they prove; needed for `hard` */
} lw_ppo_source;

/* Query number `turn` of a player: draws keyed by (seed, iteration, row); *positive: it is a true one. */
lw_atom lw_ppo_source_draw(const lw_ppo_source *s, uint64_t seed, uint32_t iteration, uint64_t row,
                           int32_t turn, bool *positive);
/*
 * Opens queries as the run goes on: of n queries in the order of their proofs' lengths the first
 *   max(shortest, ceil(n at / (share goal)))
 *
 * in iteration `at` of `goal`, all of them behind `share` of the run. share 0: all at once.
 */
void lw_ppo_source_open(lw_ppo_source *s, double share, int64_t at, int64_t goal);
/* Sorts q by the length of the shortest proof (without the query as a fact), those without one last;
 * *shortest: how many have the least length. LW_ENOMEM. */
int lw_ppo_source_sort(const lw_least_model *least, lw_queries *q, int32_t *shortest);

#endif
