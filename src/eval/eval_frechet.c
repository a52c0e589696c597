/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frechet distance of two Gaussians. Each covariance is factored C = L L^T, without the directions
 * that are zero to rounding; then tr (C1^1/2 C2 C1^1/2)^1/2 is the sum of the singular values of
 * L1^T L2. Taking square roots before multiplying keeps the digits that squaring would lose.
 */
#include <math.h>

#include "eval/eval.h"
#include "eval/eval_dense.h"
#include "eval/eval_stats.h"

/* Sum of the singular values of L1^T L2. */
static int coupling(lw_pool *pool, const lw_factored *a, const lw_factored *b, double *out)
{
    int64_t r1 = a->rows, r2 = b->rows;
    LW_CLEANUP(lw_free) double *m = lw_calloc((size_t)r1 * (size_t)r2, sizeof *m);
    if (!m)
        return LW_ENOMEM;
    LW_TRY(lw_gemm(pool, m, r2, 1, LW_ROWS(a->l, a->dim), r1, LW_ROWS(b->l, b->dim), r2, a->dim,
                   false));
    return lw_nuclear_norm(pool, m, a->rows, b->rows, out);
}

int lw_frechet_factored(lw_pool *pool, const lw_factored *a, const lw_factored *b,
                        lw_frechet_parts *out)
{
    if (a->dim != b->dim)
        return lw_fail(LW_ESHAPE, "Frechet distance between %d and %d features", a->dim, b->dim);
    double norm, sum = 0;
    LW_TRY(coupling(pool, a, b, &norm));
    for (int32_t i = 0; i < a->dim; i++)
        sum += (a->mean[i] - b->mean[i]) * (a->mean[i] - b->mean[i]);
    double rest = a->trace + b->trace - 2 * norm;
    *out = (lw_frechet_parts){LW_MAX(sum + rest, 0.0), sum, rest, a->dim, a->rank, b->rank};
    return 0;
}

int lw_frechet_detail(lw_pool *pool, const lw_stats *a, const lw_stats *b, lw_frechet_parts *out)
{
    LW_CLEANUP(lw_factored_clear) lw_factored x = {0};
    LW_CLEANUP(lw_factored_clear) lw_factored y = {0};
    LW_TRY(lw_stats_factor(pool, a, &x));
    LW_TRY(lw_stats_factor(pool, b, &y));
    return lw_frechet_factored(pool, &x, &y, out);
}

int lw_frechet(lw_pool *pool, const lw_stats *a, const lw_stats *b, double *out)
{
    lw_frechet_parts parts;
    LW_TRY(lw_frechet_detail(pool, a, b, &parts));
    *out = parts.distance;
    return 0;
}

int lw_frechet_arrays(int32_t dim, const double *mean_a, const double *cov_a, const double *mean_b,
                      const double *cov_b, double *out)
{
    LW_CLEANUP(lw_stats_free) lw_stats *a = NULL;
    LW_CLEANUP(lw_stats_free) lw_stats *b = NULL;
    LW_TRY(lw_stats_from(dim, 2, mean_a, cov_a, &a));
    LW_TRY(lw_stats_from(dim, 2, mean_b, cov_b, &b));
    return lw_frechet(NULL, a, b, out);
}

int lw_frechet_rows(const float *rows, int64_t n, const lw_stats *reference, double *out)
{
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_TRY(lw_stats_new(lw_stats_dim(reference), &s));
    LW_TRY(lw_stats_add(NULL, s, rows, n));
    return lw_frechet(NULL, s, reference, out);
}
