/* SPDX-License-Identifier: Apache-2.0 */
/* Private: a covariance as a product, C = L L^T. */
#ifndef LW_EVAL_STATS_H
#define LW_EVAL_STATS_H

#include "eval/eval.h"

typedef struct lw_factored {
    int32_t dim, rows, rank; /* of C; rows of l, of which the rank may be one less */
    double trace;
    double *mean, *l; /* [dim]; L^T [rows][dim] */
} lw_factored;
void lw_factored_clear(lw_factored *f);
/* Of no more rows than features l is those rows, centred, over sqrt(n - 1): nothing is factored and
 * nothing lost. Otherwise by Cholesky with pivoting. */
int lw_stats_factor(lw_pool *pool, const lw_stats *s, lw_factored *out);
int lw_frechet_factored(lw_pool *pool, const lw_factored *a, const lw_factored *b,
                        lw_frechet_parts *out);

#endif
