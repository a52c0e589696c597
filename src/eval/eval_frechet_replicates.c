/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frechet distances of rows drawn anew. The reference C2 = L L^T stays, so each row x is turned into
 * y = L^T (x - mean) once. A replicate is weights of rows: its sum of singular values is that of its
 * centred and weighted y, of fewer rows than the reference's rank directly, of more through the
 * Cholesky factor of their products. It costs distinct rows * rank^2 + 3 rank^3 operations or so.
 */
#include <math.h>
#include <string.h>

#include "eval/eval_dense.h"
#include "eval/eval_resample.h"
#include "eval/eval_stats.h"

typedef struct boot_job {
    const float *rows; /* [n][dim] */
    int64_t n;
    int32_t dim, rank;
    const double *mean;     /* [dim] of the rows */
    const double *apart;    /* [dim] that less the reference's */
    const double *square;   /* [n] |x - mean|^2 */
    const double *y;        /* [n][rank] */
    double reference_trace; /* of its covariance */
    const lw_draw *draw;
    double *value; /* [replicates] */
    int *rc;
} boot_job;

/* |mean* - reference mean|^2 and the trace of the replicate's covariance. */
static void moments(const boot_job *job, const int32_t *counts, double *shift, double *means,
                    double *trace)
{
    double n = (double)job->n, sum = 0, own = 0, between = 0;
    memset(shift, 0, (size_t)job->dim * sizeof *shift);
    for (int64_t i = 0; i < job->n; i++) {
        if (counts[i] == 0)
            continue;
        double w = counts[i];
        const float *x = job->rows + i * job->dim;
        sum += w * job->square[i];
        for (int32_t j = 0; j < job->dim; j++)
            shift[j] += w * ((double)x[j] - job->mean[j]);
    }
    for (int32_t j = 0; j < job->dim; j++) {
        double s = shift[j] / n, d = job->apart[j] + s;
        own += s * s;
        between += d * d;
    }
    *means = between;
    *trace = (sum - n * own) / (n - 1);
}

/* Row i of y less its weighted mean m, times sqrt(count / (n - 1)). */
static void weighted_row(const boot_job *job, int64_t i, int32_t count, const double *m, double *to)
{
    double w = sqrt((double)count / (double)(job->n - 1));
    for (int32_t k = 0; k < job->rank; k++)
        to[k] = w * (job->y[i * job->rank + k] - m[k]);
}

/* Products of all weighted rows, factored: rows of z become its factor's. */
static int factor_products(const boot_job *job, const int32_t *counts, const double *m,
                           int32_t *rows, double *z)
{
    int64_t r = job->rank, waiting = 0;
    LW_CLEANUP(lw_free) double *block = lw_calloc((size_t)(LW_GEMM_DEPTH * r), sizeof *block);
    if (!block)
        return LW_ENOMEM;
    lw_operand x = LW_COLUMNS(block, r);
    for (int64_t i = 0; i < job->n; i++) {
        if (counts[i] > 0)
            weighted_row(job, i, counts[i], m, block + waiting++ * r);
        if (waiting == LW_GEMM_DEPTH || (i == job->n - 1 && waiting > 0)) {
            LW_TRY(lw_gemm(NULL, z, r, 1, x, r, x, r, waiting, true));
            waiting = 0;
        }
    }
    return lw_factor(NULL, z, job->rank, rows);
}

static int norm_of(const boot_job *job, const int32_t *counts, double *out)
{
    int64_t r = job->rank, distinct = 0;
    for (int64_t i = 0; i < job->n; i++)
        distinct += counts[i] > 0;
    LW_CLEANUP(lw_free) double *m = lw_calloc((size_t)r, sizeof *m);
    LW_CLEANUP(lw_free)
    double *z = lw_calloc((size_t)LW_MIN(distinct, r) * (size_t)r, sizeof *z);
    if (!m || !z)
        return LW_ENOMEM;
    for (int64_t i = 0; i < job->n; i++)
        for (int64_t k = 0; counts[i] > 0 && k < r; k++)
            m[k] += counts[i] * job->y[i * r + k];
    for (int64_t k = 0; k < r; k++)
        m[k] /= (double)job->n;
    int32_t rows = 0;
    if (distinct > r)
        LW_TRY(factor_products(job, counts, m, &rows, z));
    for (int64_t i = 0; distinct <= r && i < job->n; i++)
        if (counts[i] > 0)
            weighted_row(job, i, counts[i], m, z + rows++ * r);
    return lw_nuclear_norm(NULL, z, rows, job->rank, out);
}

static int replicate(const boot_job *job, int64_t which, double *out)
{
    LW_CLEANUP(lw_free) int32_t *counts = lw_calloc((size_t)job->n, sizeof *counts);
    LW_CLEANUP(lw_free) double *shift = lw_calloc((size_t)job->dim, sizeof *shift);
    double means, trace, norm = 0;
    if (!counts || !shift)
        return LW_ENOMEM;
    lw_draw_counts(job->draw, (uint32_t)which, counts);
    moments(job, counts, shift, &means, &trace);
    if (job->rank > 0)
        LW_TRY(norm_of(job, counts, &norm));
    *out = LW_MAX(means + (trace + job->reference_trace - 2 * norm), 0.0);
    return 0;
}

static void boot_task(void *arg, int64_t task, int worker)
{
    boot_job *job = arg;
    (void)worker;
    job->rc[task] = replicate(job, task, &job->value[task]);
}

/* y [n][rank] = L^T (x - mean). */
static int turn_rows(lw_pool *pool, const boot_job *job, const lw_factored *reference, double *y)
{
    int64_t r = job->rank, d = job->dim;
    LW_CLEANUP(lw_free) double *m = lw_calloc((size_t)LW_MAX(r, 1), sizeof *m);
    if (!m)
        return LW_ENOMEM;
    lw_operand x = {.f32 = job->rows, .row = d, .col = 1}, l = LW_ROWS(reference->l, d);
    LW_TRY(lw_gemm(pool, y, r, 1, x, job->n, l, r, d, false));
    LW_TRY(lw_gemm(pool, m, r, 1, LW_ROWS(job->mean, d), 1, l, r, d, false));
    for (int64_t i = 0; i < job->n; i++)
        for (int64_t k = 0; k < r; k++)
            y[i * r + k] -= m[k];
    return 0;
}

static int run(lw_pool *pool, boot_job *job, const lw_factored *reference, int32_t replicates)
{
    size_t n = (size_t)job->n, dim = (size_t)job->dim;
    LW_CLEANUP(lw_free) double *apart = lw_calloc(dim, sizeof *apart);
    LW_CLEANUP(lw_free) double *square = lw_calloc(n, sizeof *square);
    LW_CLEANUP(lw_free) double *y = lw_calloc(n * (size_t)LW_MAX(job->rank, 1), sizeof *y);
    LW_CLEANUP(lw_free) int *rc = lw_calloc((size_t)replicates, sizeof *rc);
    if (!apart || !square || !y || !rc)
        return LW_ENOMEM;
    for (size_t j = 0; j < dim; j++)
        apart[j] = job->mean[j] - reference->mean[j];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < dim; j++) {
            double x = (double)job->rows[i * dim + j] - job->mean[j];
            square[i] += x * x;
        }
    LW_TRY(turn_rows(pool, job, reference, y));
    job->apart = apart;
    job->square = square;
    job->y = y;
    job->rc = rc;
    LW_TRY(lw_pool_run_asking(pool, replicates, boot_task, job));
    for (int32_t i = 0; i < replicates; i++)
        if (rc[i] < 0) /* the message stayed on the worker's thread */
            return lw_fail(rc[i], "bootstrap: replicate %d failed: %s", i, lw_errname(rc[i]));
    return 0;
}

int lw_frechet_replicates(lw_pool *pool, const float *rows, int64_t n, const lw_stats *reference,
                          const lw_resampling *how, double *value, double *replicates)
{
    int32_t dim = lw_stats_dim(reference);
    lw_frechet_parts parts;
    LW_CLEANUP(lw_draw_clear) lw_draw draw = {0};
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_CLEANUP(lw_factored_clear) lw_factored of_reference = {0};
    LW_CLEANUP(lw_factored_clear) lw_factored of_rows = {0};
    LW_TRY(lw_draw_init(&draw, how, n));
    LW_TRY(lw_stats_new(dim, &s));
    LW_TRY(lw_stats_add(pool, s, rows, n));
    LW_TRY(lw_stats_factor(pool, s, &of_rows));
    LW_TRY(lw_stats_factor(pool, reference, &of_reference));
    LW_TRY(lw_frechet_factored(pool, &of_rows, &of_reference, &parts));
    boot_job job = {.rows = rows,
                    .n = n,
                    .dim = dim,
                    .rank = of_reference.rows,
                    .mean = of_rows.mean,
                    .reference_trace = of_reference.trace,
                    .draw = &draw,
                    .value = replicates};
    lw_free(&of_rows.l);
    LW_TRY(run(pool, &job, &of_reference, how->replicates));
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
