/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frechet distance of two Gaussians. Each covariance is factored C = L L^T, without the directions
 * that are zero to rounding; then tr (C1^1/2 C2 C1^1/2)^1/2 is the sum of the singular values of
 * L1^T L2. Taking square roots before multiplying keeps the digits that squaring would lose.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/eval.h"
#include "eval/eval_dense.h"

/* One Gaussian: mean, trace and L^T [rank][dim]. */
typedef struct gaussian {
    int32_t dim, rank;
    double trace;
    double *mean, *l;
} gaussian;

static void gaussian_clear(gaussian *g)
{
    lw_free(&g->mean);
    lw_free(&g->l);
}

/* Factors cov, which is in l and is overwritten by L^T. */
static int factor(gaussian *g)
{
    size_t d = (size_t)g->dim;
    for (size_t i = 0; i < d * d; i++)
        if (!isfinite(g->l[i]) || !isfinite(g->mean[i / d]))
            return lw_fail(LW_ENUMERIC,
                           "Frechet distance: mean or covariance of feature %zu is not finite",
                           i / d);
    g->trace = 0;
    for (size_t i = 0; i < d; i++)
        g->trace += g->l[i * d + i];
    return lw_factor(g->l, g->dim, &g->rank);
}

static int gaussian_alloc(gaussian *g, int32_t dim)
{
    *g = (gaussian){.dim = dim};
    g->mean = lw_calloc((size_t)dim, sizeof *g->mean);
    g->l = lw_calloc((size_t)dim * (size_t)dim, sizeof *g->l);
    return g->mean && g->l ? 0 : LW_ENOMEM;
}

static int gaussian_of_stats(gaussian *g, const lw_stats *s)
{
    LW_TRY(gaussian_alloc(g, lw_stats_dim(s)));
    LW_TRY(lw_stats_get(s, g->mean, g->l));
    return factor(g);
}

static int gaussian_of_rows(gaussian *g, const float *rows, int64_t n, int32_t dim)
{
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_TRY(lw_stats_new(dim, &s));
    LW_TRY(lw_stats_add(s, rows, n));
    return gaussian_of_stats(g, s);
}

/* Sum of the singular values of L1^T L2. */
static int coupling(const gaussian *a, const gaussian *b, double *out)
{
    int64_t r1 = a->rank, r2 = b->rank;
    LW_CLEANUP(lw_free) double *m = lw_calloc((size_t)r1 * (size_t)r2, sizeof *m);
    if (!m)
        return LW_ENOMEM;
    lw_dense_best()->add_dots(m, r2, 1, a->l, a->dim, r1, b->l, b->dim, r2, a->dim);
    return lw_nuclear_norm(m, a->rank, b->rank, out);
}

static int distance(const gaussian *a, const gaussian *b, double *out)
{
    if (a->dim != b->dim)
        return lw_fail(LW_ESHAPE, "Frechet distance between %d and %d features", a->dim, b->dim);
    double norm, sum = 0;
    LW_TRY(coupling(a, b, &norm));
    for (int32_t i = 0; i < a->dim; i++)
        sum += (a->mean[i] - b->mean[i]) * (a->mean[i] - b->mean[i]);
    *out = LW_MAX(sum + (a->trace + b->trace - 2 * norm), 0.0);
    return 0;
}

int lw_frechet(const lw_stats *a, const lw_stats *b, double *out)
{
    LW_CLEANUP(gaussian_clear) gaussian x = {0};
    LW_CLEANUP(gaussian_clear) gaussian y = {0};
    LW_TRY(gaussian_of_stats(&x, a));
    LW_TRY(gaussian_of_stats(&y, b));
    return distance(&x, &y, out);
}

int lw_frechet_arrays(int32_t dim, const double *mean_a, const double *cov_a, const double *mean_b,
                      const double *cov_b, double *out)
{
    LW_CLEANUP(lw_stats_free) lw_stats *a = NULL;
    LW_CLEANUP(lw_stats_free) lw_stats *b = NULL;
    LW_TRY(lw_stats_from(dim, 2, mean_a, cov_a, &a));
    LW_TRY(lw_stats_from(dim, 2, mean_b, cov_b, &b));
    return lw_frechet(a, b, out);
}

int lw_frechet_rows(const float *rows, int64_t n, const lw_stats *reference, double *out)
{
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_TRY(lw_stats_new(lw_stats_dim(reference), &s));
    LW_TRY(lw_stats_add(s, rows, n));
    return lw_frechet(s, reference, out);
}

/* ---- bootstrap ---- */

typedef struct boot_job {
    const float *rows; /* [n][dim] */
    int64_t n;
    int32_t dim;
    const gaussian *reference;
    lw_rng_key key;
    double *value; /* [replicates] */
    int *rc;
} boot_job;

static int replicate(const boot_job *job, int64_t which, double *out)
{
    size_t d = (size_t)job->dim;
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_CLEANUP(gaussian_clear) gaussian g = {0};
    LW_TRY(lw_stats_new(job->dim, &s));
    for (int64_t i = 0; i < job->n; i++) {
        uint32_t row = lw_rng_below(job->key, (uint32_t)which, (uint64_t)i, 0, (uint32_t)job->n);
        LW_TRY(lw_stats_add(s, job->rows + (size_t)row * d, 1));
    }
    LW_TRY(gaussian_of_stats(&g, s));
    return distance(&g, job->reference, out);
}

static void boot_task(void *arg, int64_t task, int worker)
{
    boot_job *job = arg;
    (void)worker;
    job->rc[task] = replicate(job, task, &job->value[task]);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorted v [n] at quantile p, linear between ranks. */
static double quantile(const double *v, int32_t n, double p)
{
    double at = p * (n - 1);
    int32_t low = (int32_t)at;
    return low + 1 < n ? v[low] + (at - low) * (v[low + 1] - v[low]) : v[n - 1];
}

int lw_frechet_bootstrap(const float *rows, int64_t n, const lw_stats *reference,
                         int32_t replicates, double level, uint64_t seed, lw_pool *pool,
                         lw_interval *out)
{
    int32_t dim = lw_stats_dim(reference);
    if (replicates < 20 || !(level > 0 && level < 1) || n > UINT32_MAX)
        return lw_fail(LW_EUSAGE,
                       "bootstrap of %lld rows: %d replicates (20 or more), level %g (in 0..1)",
                       (long long)n, replicates, level);
    LW_CLEANUP(gaussian_clear) gaussian ref = {0};
    LW_CLEANUP(gaussian_clear) gaussian g = {0};
    LW_CLEANUP(lw_free) double *value = lw_calloc((size_t)replicates, sizeof *value);
    LW_CLEANUP(lw_free) int *rc = lw_calloc((size_t)replicates, sizeof *rc);
    if (!value || !rc)
        return LW_ENOMEM;
    LW_TRY(gaussian_of_stats(&ref, reference));
    LW_TRY(gaussian_of_rows(&g, rows, n, dim));
    double v;
    LW_TRY(distance(&g, &ref, &v));
    boot_job job = {rows,  n, dim, &ref, lw_rng_key_of(seed, lw_hash_name("eval.bootstrap")),
                    value, rc};
    LW_TRY(lw_pool_run_asking(pool, replicates, boot_task, &job));
    for (int32_t i = 0; i < replicates; i++)
        if (rc[i] < 0) /* the message stayed on the worker's thread */
            return lw_fail(rc[i], "bootstrap: replicate %d failed: %s", i, lw_errname(rc[i]));
    qsort(value, (size_t)replicates, sizeof *value, by_value);
    double q_lo = quantile(value, replicates, (1 - level) / 2),
           q_hi = quantile(value, replicates, (1 + level) / 2);
    double middle = quantile(value, replicates, .5);
    *out = (lw_interval){v, LW_MAX(v + (q_lo - middle), 0.0), v + (q_hi - middle)};
    return 0;
}
