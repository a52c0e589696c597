/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Frechet distance of feature rows as a loss (arXiv 2604.28190 trains generators on it). With
 * Lr Lr^T the reference's covariance and Q = (X - mean) Lr / sqrt(n - 1) [n][rank], the trace of
 * (Cr^1/2 C Cr^1/2)^1/2 is the sum of the singular values of Q, whose gradient is Q's polar factor
 * U V^T. It is made as Q (Q^T Q + eps^2 I)^-1/2 or (Q Q^T + eps^2 I)^-1/2 Q, whichever is the
 * smaller matrix: fewer rows than dimensions need nothing else. By C the gradient is
 * Lr (Q^T Q)^-1/2 Lr^T = Cr^1/2 (Cr^1/2 C Cr^1/2)^-1/2 Cr^1/2.
 */
#include <math.h>
#include <string.h>

#include "eval/eval.h"
#include "eval/eval_dense.h"
#include "eval/eval_resample.h"

struct lw_frechet_loss {
    int32_t dim, rank;
    double trace, *mean;
    double *lt, *l; /* Lr^T [rank][dim], Lr [dim][rank] */
};

/* What one call works on. */
typedef struct work {
    int64_t n, k;     /* k: the smaller of n and rank */
    double *mean, *x; /* of the rows; [n][dim] less the mean, over sqrt(n - 1) */
    double *q, *qt;   /* [n][rank], [rank][n] */
    double *gram, *f; /* [k][k]: eigenvectors; the inverse square root */
    double *values, *root;
    double *polar; /* [n][rank] */
} work;

static void work_clear(work *w)
{
    double **const all[] = {&w->mean, &w->x,      &w->q,    &w->qt,   &w->gram,
                            &w->f,    &w->values, &w->root, &w->polar};
    for (size_t i = 0; i < LW_COUNT(all); i++)
        lw_free(all[i]);
}

static int work_new(const lw_frechet_loss *l, int64_t n, work *w)
{
    size_t rows = (size_t)n, d = (size_t)l->dim, r = (size_t)l->rank, k = LW_MIN(rows, r);
    *w = (work){.n = n, .k = (int64_t)k};
    w->mean = lw_calloc(d, sizeof(double));
    w->x = lw_calloc(rows * d, sizeof(double));
    w->q = lw_calloc(rows * r + 1, sizeof(double));
    w->qt = lw_calloc(rows * r + 1, sizeof(double));
    w->gram = lw_calloc(k * k + 1, sizeof(double));
    w->f = lw_calloc(k * k + 1, sizeof(double));
    w->values = lw_calloc(k + 1, sizeof(double));
    w->root = lw_calloc(k + 1, sizeof(double));
    w->polar = lw_calloc(rows * r + 1, sizeof(double));
    return w->mean && w->x && w->q && w->qt && w->gram && w->f && w->values && w->root && w->polar
               ? 0
               : LW_ENOMEM;
}

/* [rows][columns] as [columns][rows]. */
static void turn(const double *a, int64_t rows, int64_t columns, double *out)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            out[j * rows + i] = a[i * columns + j];
}

void lw_frechet_loss_free(lw_frechet_loss **pp)
{
    lw_frechet_loss *l = *pp;
    if (!l)
        return;
    lw_free(&l->mean);
    lw_free(&l->lt);
    lw_free(&l->l);
    lw_free(pp);
}

int lw_frechet_loss_new(const lw_stats *reference, lw_frechet_loss **out)
{
    LW_CLEANUP(lw_frechet_loss_free) lw_frechet_loss *l = lw_calloc(1, sizeof *l);
    if (!l)
        return LW_ENOMEM;
    size_t d = (size_t)lw_stats_dim(reference);
    l->dim = (int32_t)d;
    l->mean = lw_calloc(d, sizeof *l->mean);
    l->lt = lw_calloc(d * d, sizeof *l->lt);
    l->l = lw_calloc(d * d, sizeof *l->l);
    if (!l->mean || !l->lt || !l->l)
        return LW_ENOMEM;
    LW_TRY(lw_stats_get(reference, l->mean, l->lt));
    LW_TRY(lw_stats_trace(reference, &l->trace));
    LW_TRY(lw_factor(NULL, l->lt, l->dim, &l->rank));
    turn(l->lt, l->rank, l->dim, l->l);
    *out = lw_steal(&l);
    return 0;
}

/* Mean, and rows less it over sqrt(n - 1); returns the trace of their covariance. */
static double centre(const float *rows, int64_t n, int64_t d, work *w)
{
    double trace = 0, scale = 1 / sqrt((double)(n - 1));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++)
            w->mean[j] += (double)rows[i * d + j];
    for (int64_t j = 0; j < d; j++)
        w->mean[j] /= (double)n;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) {
            double x = ((double)rows[i * d + j] - w->mean[j]) * scale;
            w->x[i * d + j] = x;
            trace += x * x;
        }
    return trace;
}

/* The polar factor of q, and the sum of the roots of its squared singular values + eps^2. */
static int polar(const lw_frechet_loss *l, double eps, work *w, double *sum)
{
    const lw_dense *dense = lw_dense_best();
    int64_t n = w->n, r = l->rank, d = l->dim, k = w->k;
    LW_TRY(lw_gemm(NULL, w->q, r, 1, LW_ROWS(w->x, d), n, LW_ROWS(l->lt, d), r, d, false));
    turn(w->q, n, r, w->qt);
    const double *small = r <= n ? w->qt : w->q; /* the side with fewer rows */
    int64_t across = r <= n ? n : r;
    lw_operand of_gram = LW_ROWS(small, across);
    LW_TRY(lw_gemm(NULL, w->gram, k, 1, of_gram, k, of_gram, k, across, false));
    LW_TRY(lw_eigen(w->gram, (int32_t)k, w->values));
    *sum = 0;
    for (int64_t i = 0; i < k; i++) {
        w->root[i] = sqrt(LW_MAX(w->values[i], 0.0) + eps * eps);
        *sum += w->root[i];
    }
    for (int64_t t = 0; t < k; t++) {
        const double *v = w->gram + t * k;
        for (int64_t i = 0; i < k; i++)
            dense->more(w->f + i * k, v[i] / w->root[t], v, k);
    }
    if (r <= n)
        return lw_gemm(NULL, w->polar, r, 1, LW_ROWS(w->q, r), n, LW_ROWS(w->f, r), r, r, false);
    return lw_gemm(NULL, w->polar, r, 1, LW_ROWS(w->f, n), n, LW_ROWS(w->qt, n), r, n, false);
}

int lw_frechet_gradient(const lw_frechet_loss *l, const float *rows, int64_t n, double *value,
                        double *gradient)
{
    static const double smallest = 1e-7; /* eps over the scale of Q's singular values */
    LW_CLEANUP(work_clear) work w = {0};
    int64_t d = l->dim;
    if (n < 2)
        return lw_fail(LW_EUSAGE, "gradient of a Frechet distance: %lld rows, needs 2",
                       (long long)n);
    for (int64_t i = 0; i < n * d; i++)
        if (!isfinite((double)rows[i]))
            return lw_fail(LW_ENUMERIC,
                           "gradient of a Frechet distance: feature %lld of row %lld is not finite",
                           (long long)(i % d), (long long)(i / d));
    LW_TRY(work_new(l, n, &w));
    double sum = 0, apart = 0, trace = centre(rows, n, d, &w);
    double eps = LW_MAX(smallest * sqrt(trace * l->trace), 1e-150);
    LW_TRY(polar(l, eps, &w, &sum));
    memset(gradient, 0, (size_t)(n * d) * sizeof *gradient);
    LW_TRY(lw_gemm(NULL, gradient, d, -2, LW_ROWS(w.polar, l->rank), n, LW_ROWS(l->l, l->rank), d,
                   l->rank, false));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++)
            gradient[i * d + j] = (gradient[i * d + j] + 2 * w.x[i * d + j]) /
                                      sqrt((double)(n - 1)) +
                                  2 * (w.mean[j] - l->mean[j]) / (double)n;
    for (int64_t j = 0; j < d; j++)
        apart += (w.mean[j] - l->mean[j]) * (w.mean[j] - l->mean[j]);
    *value = LW_MAX(apart + trace + l->trace - 2 * sum, 0.0);
    return 0;
}

/* ---- replicates by the influence of rows ------------------------------------------------------ */

/* influence [n], from the gradient [n][dim] by the rows: there G (x - mean) is its part that the
 * covariance gives, times (n - 1) / 2, and 2 (mean - mean_r) / n its mean over the rows. */
static void find_influence(const float *rows, int64_t n, int32_t dim, const double *gradient,
                           const double *mean, double *influence)
{
    double total = 0;
    LW_ASSERT(n > 1, "%lld rows", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        double shift = 0, square = 0;
        for (int32_t k = 0; k < dim; k++) {
            double x = (double)rows[i * dim + k] - mean[k], by_mean = mean[dim + k];
            shift += (double)n * by_mean * x;
            square += 0.5 * (double)(n - 1) * (gradient[i * dim + k] - by_mean) * x;
        }
        influence[i] = shift + square;
        total += square / (double)n;
    }
    for (int64_t i = 0; i < n; i++)
        influence[i] -= total;
}

/* mean [2][dim]: of the rows, of their gradients. */
static void find_means(const float *rows, int64_t n, int32_t dim, const double *gradient,
                       double *mean)
{
    for (int64_t i = 0; i < n; i++)
        for (int32_t k = 0; k < dim; k++) {
            mean[k] += (double)rows[i * dim + k] / (double)n;
            mean[dim + k] += gradient[i * dim + k] / (double)n;
        }
}

static int draw_all(const lw_resampling *how, int64_t n, double value, const double *influence,
                    double *replicates)
{
    LW_CLEANUP(lw_draw_clear) lw_draw d = {0};
    LW_CLEANUP(lw_free) int32_t *counts = lw_calloc((size_t)n, sizeof *counts);
    if (!counts)
        return LW_ENOMEM;
    LW_TRY(lw_draw_init(&d, how, n));
    for (int32_t r = 0; r < how->replicates; r++) {
        double sum = 0;
        lw_draw_counts(&d, (uint32_t)r, counts);
        for (int64_t i = 0; i < n; i++)
            sum += (counts[i] - 1) * influence[i];
        replicates[r] = fmax(value + sum / (double)n, 0);
    }
    return 0;
}

int lw_frechet_linear(const float *rows, int64_t n, const lw_stats *reference,
                      const lw_frechet_loss *loss, const lw_resampling *how, double *value,
                      double *replicates)
{
    int32_t dim = lw_stats_dim(reference);
    double smooth, exact;
    LW_TRY(lw_frechet_rows(rows, n, reference, &exact));
    LW_CLEANUP(lw_free) double *gradient = lw_calloc((size_t)(n * dim), sizeof *gradient);
    LW_CLEANUP(lw_free) double *mean = lw_calloc(2 * (size_t)dim, sizeof *mean);
    LW_CLEANUP(lw_free) double *influence = lw_calloc((size_t)n, sizeof *influence);
    if (!gradient || !mean || !influence)
        return LW_ENOMEM;
    LW_TRY(lw_frechet_gradient(loss, rows, n, &smooth, gradient));
    find_means(rows, n, dim, gradient, mean);
    find_influence(rows, n, dim, gradient, mean, influence);
    LW_TRY(draw_all(how, n, exact, influence, replicates));
    *value = exact;
    return 0;
}
