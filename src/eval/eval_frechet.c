/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frechet distance of two Gaussians. Each covariance is factored C = L L^T, without the directions
 * that are zero to rounding; then tr (C1^1/2 C2 C1^1/2)^1/2 is the sum of the singular values of
 * L1^T L2. Taking square roots before multiplying keeps the digits that squaring would lose.
 */
#include <math.h>
#include <string.h>

#include "eval/eval.h"
#include "eval/eval_dense.h"
#include "eval/eval_resample.h"

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
static int factor(lw_pool *pool, gaussian *g)
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
    return lw_factor(pool, g->l, g->dim, &g->rank);
}

static int gaussian_alloc(gaussian *g, int32_t dim)
{
    *g = (gaussian){.dim = dim};
    g->mean = lw_calloc((size_t)dim, sizeof *g->mean);
    g->l = lw_calloc((size_t)dim * (size_t)dim, sizeof *g->l);
    return g->mean && g->l ? 0 : LW_ENOMEM;
}

static int gaussian_of_stats(lw_pool *pool, gaussian *g, const lw_stats *s)
{
    LW_TRY(gaussian_alloc(g, lw_stats_dim(s)));
    LW_TRY(lw_stats_get(s, g->mean, g->l));
    return factor(pool, g);
}

static int gaussian_of_rows(lw_pool *pool, gaussian *g, const float *rows, int64_t n, int32_t dim)
{
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_TRY(lw_stats_new(dim, &s));
    LW_TRY(lw_stats_add(pool, s, rows, n));
    return gaussian_of_stats(pool, g, s);
}

/* Sum of the singular values of L1^T L2. */
static int coupling(lw_pool *pool, const gaussian *a, const gaussian *b, double *out)
{
    int64_t r1 = a->rank, r2 = b->rank;
    LW_CLEANUP(lw_free) double *m = lw_calloc((size_t)r1 * (size_t)r2, sizeof *m);
    if (!m)
        return LW_ENOMEM;
    LW_TRY(lw_gemm(pool, m, r2, 1, LW_ROWS(a->l, a->dim), r1, LW_ROWS(b->l, b->dim), r2, a->dim,
                   false));
    return lw_nuclear_norm(pool, m, a->rank, b->rank, out);
}

static int distance(lw_pool *pool, const gaussian *a, const gaussian *b, lw_frechet_parts *out)
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
    LW_CLEANUP(gaussian_clear) gaussian x = {0};
    LW_CLEANUP(gaussian_clear) gaussian y = {0};
    LW_TRY(gaussian_of_stats(pool, &x, a));
    LW_TRY(gaussian_of_stats(pool, &y, b));
    return distance(pool, &x, &y, out);
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

/* ---- replicates ---- */

typedef struct boot_job {
    const float *rows; /* [n][dim] */
    int64_t n;
    int32_t dim;
    const gaussian *reference;
    const lw_draw *draw;
    double *value; /* [replicates] */
    int *rc;
} boot_job;

static int replicate(const boot_job *job, int64_t which, double *out)
{
    size_t d = (size_t)job->dim;
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_CLEANUP(gaussian_clear) gaussian g = {0};
    lw_frechet_parts parts;
    LW_TRY(lw_stats_new(job->dim, &s));
    for (int64_t i = 0; i < job->n; i++) {
        int64_t row = lw_draw_row(job->draw, (uint32_t)which, i);
        LW_TRY(lw_stats_add(NULL, s, job->rows + (size_t)row * d, 1));
    }
    LW_TRY(gaussian_of_stats(NULL, &g, s));
    LW_TRY(distance(NULL, &g, job->reference, &parts));
    *out = parts.distance;
    return 0;
}

static void boot_task(void *arg, int64_t task, int worker)
{
    boot_job *job = arg;
    (void)worker;
    job->rc[task] = replicate(job, task, &job->value[task]);
}

int lw_frechet_replicates(lw_pool *pool, const float *rows, int64_t n, const lw_stats *reference,
                          const lw_resampling *how, double *value, double *replicates)
{
    int32_t dim = lw_stats_dim(reference);
    lw_frechet_parts parts;
    LW_CLEANUP(lw_draw_clear) lw_draw draw = {0};
    LW_CLEANUP(gaussian_clear) gaussian ref = {0};
    LW_CLEANUP(gaussian_clear) gaussian g = {0};
    LW_TRY(lw_draw_init(&draw, how, n));
    LW_CLEANUP(lw_free) int *rc = lw_calloc((size_t)how->replicates, sizeof *rc);
    if (!rc)
        return LW_ENOMEM;
    LW_TRY(gaussian_of_stats(pool, &ref, reference));
    LW_TRY(gaussian_of_rows(pool, &g, rows, n, dim));
    LW_TRY(distance(pool, &g, &ref, &parts));
    boot_job job = {rows, n, dim, &ref, &draw, replicates, rc};
    LW_TRY(lw_pool_run_asking(pool, how->replicates, boot_task, &job));
    for (int32_t i = 0; i < how->replicates; i++)
        if (rc[i] < 0) /* the message stayed on the worker's thread */
            return lw_fail(rc[i], "bootstrap: replicate %d failed: %s", i, lw_errname(rc[i]));
    *value = parts.distance;
    return 0;
}

int lw_frechet_bootstrap(const float *rows, int64_t n, const lw_stats *reference,
                         int32_t replicates, double level, uint64_t seed, lw_pool *pool,
                         lw_interval *out)
{
    lw_resampling how = {.replicates = replicates, .seed = seed};
    double value;
    LW_CLEANUP(lw_free) double *each = lw_calloc((size_t)LW_MAX(replicates, 1), sizeof *each);
    if (!each)
        return LW_ENOMEM;
    LW_TRY(lw_frechet_replicates(pool, rows, n, reference, &how, &value, each));
    return lw_interval_of_replicates(value, each, replicates, level, out);
}
