/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortest proofs of many queries on all threads. Each query is searched on its own with the same
 * bounds, so results do not depend on the number of threads; when `memory_limit` does not hold a
 * search for every thread, fewer threads work.
 *
 * A least model decides first: what it has not has no proof, what it has deeper than max_depth none within
 * it, and neither is searched for; where a search meets one of its other limits, the model's length stands.
 */
#ifndef LW_LOGIC_DEPTHS_H
#define LW_LOGIC_DEPTHS_H

#include "logic/kb/logic_queries.h"
#include "logic/search/logic_least_model.h"
#include "logic/search/logic_search.h"

typedef struct lw_depths_options {
    lw_search_options search;    /* memory: bytes for one query; lowered to memory_limit if above */
    size_t memory_limit;         /* bytes for all searches together */
    const lw_least_model *model; /* with lengths; NULL, or max_fact_pairs is set: search alone */
    int32_t threads;
    void *self; /* given to tick */
    /* Between queries; false ends the work with LW_ESTOPPED. May be NULL. */
    bool (*tick)(void *self, int64_t done, int64_t total);
} lw_depths_options;

typedef struct lw_depths {
    lw_search_result *of; /* [n], one a query */
    int32_t n;
    int32_t threads;     /* that worked */
    size_t query_memory; /* bytes, bound of one search */
    double seconds;      /* wall time of all searches */
    int32_t most_depth;  /* of a proof, 0: no proof */
    int64_t *histogram;  /* [most_depth + 1]: proofs by depth; [0] queries without one */
    int64_t ends[LW_SEARCH_ENDS];
    int64_t deep; /* without a proof of max_depth steps, but with a longer one: the model's word */
    int64_t undecided;       /* neither proved nor, for sure, without a proof: a limit was met */
    int64_t by_model;        /* queries that the least model decided */
    lw_search_result sum;    /* its counts are totals, states the largest of one query */
    int64_t compared, equal; /* with published depths; -1 equals no proof found */
    int64_t deeper;          /* published beyond max_depth and not found: not compared */
} lw_depths;

int lw_depths_run(const lw_kb *kb, const lw_queries *q, const lw_depths_options *o, lw_depths *out);
void lw_depths_clear(lw_depths *d);

#endif
