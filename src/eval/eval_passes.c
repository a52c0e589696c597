/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of pictures from the features of their noisy passes. */
#include "eval/eval_passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "eval/eval_dense.h"

const char *const lw_pass_score_name[LW_PASS_SCORES] = {
    "trace_pre",        "trace_post",      "angular_var",        "max_dim_var",
    "norm_var",         "mean_cosine_dev", "top_eigenvalue",     "effective_rank",
    "spectral_entropy", "top1_ratio",      "weighted_trace_pre", "topk64_trace_pre"};

/* One picture's passes in f64, and what is made of them. */
typedef struct passes {
    int32_t t, dim;
    double *pre, *post;    /* [t][dim]; centred after moments() */
    double *mean, *square; /* [dim]: means, sums of squared deviations */
    double *norm, *angle;  /* [t] */
    double *gram, *values; /* [t][t], [t] */
} passes;

static double dot(const double *a, const double *b, int64_t n)
{
    double s[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            s[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        s[0] += a[i] * b[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

static int make(passes *p, const float *x, double *block)
{
    int64_t n = (int64_t)p->t * p->dim;
    p->pre = block;
    p->post = p->pre + n;
    p->mean = p->post + n;
    p->square = p->mean + p->dim;
    p->norm = p->square + p->dim;
    p->angle = p->norm + p->t;
    p->values = p->angle + p->t;
    p->gram = p->values + p->t;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return lw_fail(LW_ENUMERIC, "number %lld of pass %lld is %g", (long long)(i % p->dim),
                           (long long)(i / p->dim), (double)x[i]);
        p->pre[i] = (double)x[i];
    }
    for (int32_t i = 0; i < p->t; i++) {
        const double *row = p->pre + (int64_t)i * p->dim;
        p->norm[i] = sqrt(dot(row, row, p->dim));
        double scale = 1 / fmax(p->norm[i], 1e-12);
        for (int32_t d = 0; d < p->dim; d++)
            p->post[(int64_t)i * p->dim + d] = row[d] * scale;
    }
    return 0;
}

/* Means of rows into p->mean, the rows less these, sums of squares into p->square; the sum of those. */
static double moments(passes *p, double *rows)
{
    double all = 0;
    for (int32_t d = 0; d < p->dim; d++)
        p->mean[d] = p->square[d] = 0;
    for (int32_t i = 0; i < p->t; i++)
        for (int32_t d = 0; d < p->dim; d++)
            p->mean[d] += rows[(int64_t)i * p->dim + d];
    for (int32_t d = 0; d < p->dim; d++)
        p->mean[d] /= p->t;
    for (int32_t i = 0; i < p->t; i++)
        for (int32_t d = 0; d < p->dim; d++) {
            double *v = &rows[(int64_t)i * p->dim + d];
            *v -= p->mean[d];
            p->square[d] += *v * *v;
        }
    for (int32_t d = 0; d < p->dim; d++)
        all += p->square[d];
    return all;
}

/* Variance (n - 1). */
static double variance(const double *x, int32_t n)
{
    double mean = 0, sum = 0;
    for (int32_t i = 0; i < n; i++)
        mean += x[i] / n;
    for (int32_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum / (n - 1);
}

/* Of post, not centred yet: variance of the angles, mean cosine. */
static void directions(passes *p, double out[LW_PASS_SCORES])
{
    double length = 0, cosines = 0;
    for (int32_t d = 0; d < p->dim; d++)
        p->mean[d] = 0;
    for (int32_t i = 0; i < p->t; i++)
        for (int32_t d = 0; d < p->dim; d++)
            p->mean[d] += p->post[(int64_t)i * p->dim + d];
    length = fmax(sqrt(dot(p->mean, p->mean, p->dim)), 1e-12);
    for (int32_t i = 0; i < p->t; i++) {
        double c = dot(p->post + (int64_t)i * p->dim, p->mean, p->dim) / length;
        cosines += c / p->t;
        p->angle[i] = acos(fmin(fmax(c, -1 + 1e-6), 1 - 1e-6));
    }
    out[LW_PASS_ANGULAR_VAR] = variance(p->angle, p->t);
    out[LW_PASS_MEAN_COSINE_DEV] = 1 - cosines;
}

static int downwards(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Eigenvalues of the covariance of centred rows, downwards, none below zero. */
static int spectrum(passes *p, const double *rows)
{
    for (int32_t i = 0; i < p->t; i++)
        for (int32_t j = i; j < p->t; j++) {
            double g = dot(rows + (int64_t)i * p->dim, rows + (int64_t)j * p->dim, p->dim);
            p->gram[i * p->t + j] = p->gram[j * p->t + i] = g / (p->t - 1);
        }
    LW_TRY(lw_eigen(p->gram, p->t, p->values));
    for (int32_t i = 0; i < p->t; i++)
        p->values[i] = fmax(p->values[i], 0);
    qsort(p->values, (size_t)p->t, sizeof *p->values, downwards);
    return 0;
}

static void spectrum_scores(const passes *p, double out[LW_PASS_SCORES])
{
    double total = 0, squares = 0, entropy = 0;
    for (int32_t i = 0; i < p->t; i++) {
        total += p->values[i];
        squares += p->values[i] * p->values[i];
    }
    bool none = total < 1e-15;
    for (int32_t i = 0; i < p->t && !none; i++) {
        double share = p->values[i] / total;
        entropy -= share > 1e-12 ? share * log(share) : 0;
    }
    out[LW_PASS_TOP_EIGENVALUE] = none ? 0 : p->values[0];
    out[LW_PASS_EFFECTIVE_RANK] = none ? 0 : total * total / squares;
    out[LW_PASS_SPECTRAL_ENTROPY] = entropy;
    out[LW_PASS_TOP1_RATIO] = none ? 0 : p->values[0] / total;
}

static void geometry_of(const passes *p, double squares, lw_pass_geometry *out)
{
    double all = 0, diagonal = 0;
    for (int32_t i = 0; i < p->t; i++)
        all += p->values[i] * p->values[i];
    for (int32_t d = 0; d < p->dim; d++) {
        double v = p->square[d] / (p->t - 1);
        diagonal += v * v;
    }
    *out = (lw_pass_geometry){.trace = squares / (p->t - 1) / p->dim,
                              .offdiag = sqrt(fmax(all - diagonal, 0)) / fmax(sqrt(all), 1e-12)};
    for (int32_t i = 0; i < LW_MIN(p->t, (int32_t)LW_PASS_EIGS); i++)
        out->eigs[i] = p->values[i];
}

static int score(passes *p, double out[LW_PASS_SCORES], double *mean, double *var,
                 lw_pass_geometry *geometry)
{
    directions(p, out);
    out[LW_PASS_NORM_VAR] = variance(p->norm, p->t);
    double squares = moments(p, p->post);
    out[LW_PASS_TRACE_POST] = squares / p->t / p->dim;
    if (geometry) {
        LW_TRY(spectrum(p, p->post));
        geometry_of(p, squares, &geometry[1]);
    }
    squares = moments(p, p->pre);
    out[LW_PASS_TRACE_PRE] = squares / p->t / p->dim;
    out[LW_PASS_MAX_DIM_VAR] = 0;
    for (int32_t d = 0; d < p->dim; d++) {
        mean[d] = p->mean[d];
        var[d] = p->square[d] / (p->t - 1);
        out[LW_PASS_MAX_DIM_VAR] = fmax(out[LW_PASS_MAX_DIM_VAR], var[d]);
    }
    LW_TRY(spectrum(p, p->pre));
    spectrum_scores(p, out);
    if (geometry)
        geometry_of(p, squares, &geometry[0]);
    return 0;
}

int lw_pass_scores(const float *x, int32_t t, int32_t dim, double out[LW_PASS_SCORES], double *mean,
                   double *var, lw_pass_geometry *geometry)
{
    passes p = {.t = t, .dim = dim};
    if (t < 2)
        return lw_fail(LW_EUSAGE, "a variance needs at least 2 passes");
    size_t n = 2 * (size_t)t * (size_t)dim + 2 * (size_t)dim + 3 * (size_t)t +
               (size_t)t * (size_t)t;
    LW_CLEANUP(lw_free) double *block = lw_calloc(n, sizeof *block);
    if (!block)
        return LW_ENOMEM;
    memset(out, 0, LW_PASS_SCORES * sizeof *out);
    LW_TRY(make(&p, x, block));
    return score(&p, out, mean, var, geometry);
}

/* ---- across pictures --------------------------------------------------------------------------- */

typedef struct dimension {
    double power; /* variance of its mean over pictures */
    int32_t at;
} dimension;

static int by_power(const void *a, const void *b)
{
    const dimension *x = a, *y = b;
    if (x->power != y->power)
        return x->power < y->power ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

int lw_pass_scores_across(const double *mean, const double *var, int64_t n, int32_t dim,
                          double (*scores)[LW_PASS_SCORES])
{
    LW_CLEANUP(lw_free) dimension *d = lw_calloc((size_t)dim, sizeof *d);
    double total = 0;
    int32_t k = LW_MIN(dim, (int32_t)LW_PASS_TOPK);
    if (!d)
        return LW_ENOMEM;
    for (int32_t j = 0; j < dim; j++) {
        double middle = 0, sum = 0;
        for (int64_t i = 0; i < n; i++)
            middle += mean[i * dim + j] / (double)n;
        for (int64_t i = 0; i < n; i++)
            sum += (mean[i * dim + j] - middle) * (mean[i * dim + j] - middle);
        d[j] = (dimension){n > 1 ? sum / (double)(n - 1) : 0, j};
        total += d[j].power;
    }
    for (int64_t i = 0; i < n; i++) {
        double weighted = 0;
        for (int32_t j = 0; j < dim; j++)
            weighted += var[i * dim + j] * (total < 1e-12 ? 1.0 / dim : d[j].power / total);
        scores[i][LW_PASS_WEIGHTED_TRACE] = weighted;
    }
    qsort(d, (size_t)dim, sizeof *d, by_power);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int32_t j = 0; j < k; j++)
            sum += var[i * dim + d[j].at];
        scores[i][LW_PASS_TOPK_TRACE] = sum / k;
    }
    return 0;
}
