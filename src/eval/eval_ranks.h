/* SPDX-License-Identifier: Apache-2.0 */
/* Private: ranks of rows, also of rows that were drawn several times. */
#ifndef LW_EVAL_RANKS_H
#define LW_EVAL_RANKS_H

#include "eval/eval.h"

/* Sorted once; drawing rows anew leaves the order as it is. */
typedef struct lw_ranking {
    int64_t n;
    struct lw_ranked {
        double value;
        int64_t at;
    } * sorted;
} lw_ranking;
int lw_ranking_init(lw_ranking *r, const double *x, int64_t n);
void lw_ranking_clear(lw_ranking *r);
/* Ranks 1, 2, .. of all rows, each of them counts[i] times there (NULL: once), ties at their mean. */
void lw_ranking_ranks(const lw_ranking *r, const int32_t *counts, double *out);
/* Pearson's, of rows that are counts[i] times there; NaN when one side does not vary. */
double lw_correlation(const double *a, const double *b, const int32_t *counts, int64_t n);

#endif
