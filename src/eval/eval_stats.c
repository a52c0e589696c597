/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mean and covariance as rows stream by. Rows are shifted by the first one (so that nothing large
 * cancels) and multiplied in blocks of fixed size: where calls cut the rows makes no difference to
 * any bit. As long as there are no more rows than features they are kept as they are: a covariance
 * of n rows has rank n - 1, and the rows are its factor.
 */
#include <math.h>
#include <string.h>

#include "eval/eval.h"
#include "eval/eval_dense.h"
#include "eval/eval_stats.h"

enum { BLOCK = LW_GEMM_DEPTH, MAX_DIM = 16384 };

struct lw_stats {
    int32_t dim;
    int64_t n;
    double *shift;  /* [dim] the first row */
    double *sum;    /* [dim] of shifted rows of whole blocks */
    double *square; /* [dim][dim] upper triangle of sum of x x^T, whole blocks; NULL: none yet */
    double *block;  /* [room][dim] shifted rows waiting */
    size_t room;
    int32_t waiting;
    double *mean, *cov; /* set: given as they are (lw_stats_from) */
};

void lw_stats_free(lw_stats **pp)
{
    if (!*pp)
        return;
    lw_free(&(*pp)->shift);
    lw_free(&(*pp)->sum);
    lw_free(&(*pp)->square);
    lw_free(&(*pp)->block);
    lw_free(&(*pp)->mean);
    lw_free(&(*pp)->cov);
    lw_free(pp);
}

static int check_dim(int32_t dim)
{
    if (dim < 1 || dim > MAX_DIM)
        return lw_fail(LW_EUSAGE, "statistics of %d features: 1..%d are possible", dim, MAX_DIM);
    return 0;
}

int lw_stats_new(int32_t dim, lw_stats **out)
{
    LW_TRY(check_dim(dim));
    LW_CLEANUP(lw_stats_free) lw_stats *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    size_t d = (size_t)dim;
    s->dim = dim;
    s->shift = lw_calloc(d, sizeof *s->shift);
    s->sum = lw_calloc(d, sizeof *s->sum);
    if (!s->shift || !s->sum)
        return LW_ENOMEM;
    *out = lw_steal(&s);
    return 0;
}

int lw_stats_from(int32_t dim, int64_t n, const double *mean, const double *cov, lw_stats **out)
{
    LW_TRY(check_dim(dim));
    size_t d = (size_t)dim;
    for (size_t i = 0; i < d * d; i++)
        if (!isfinite(cov[i]) || !isfinite(mean[i / d]))
            return lw_fail(LW_ENUMERIC,
                           "statistics: mean or covariance of feature %zu is not finite", i / d);
    LW_CLEANUP(lw_stats_free) lw_stats *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    s->dim = dim;
    s->n = n;
    s->mean = lw_calloc(d, sizeof *s->mean);
    s->cov = lw_calloc(d * d, sizeof *s->cov);
    if (!s->mean || !s->cov)
        return LW_ENOMEM;
    memcpy(s->mean, mean, d * sizeof *mean);
    memcpy(s->cov, cov, d * d * sizeof *cov);
    *out = lw_steal(&s);
    return 0;
}

int64_t lw_stats_count(const lw_stats *s)
{
    return s->n;
}

int32_t lw_stats_dim(const lw_stats *s)
{
    return s->dim;
}

/* sum += rows, upper triangle of square += rows^T rows, of k shifted rows. */
static int accumulate(lw_pool *pool, const double *block, int32_t k, int64_t dim, double *sum,
                      double *square)
{
    for (int32_t r = 0; r < k; r++)
        for (int64_t i = 0; i < dim; i++)
            sum[i] += block[r * dim + i];
    lw_operand x = LW_COLUMNS(block, dim);
    return lw_gemm(pool, square, dim, 1, x, dim, x, dim, k, true);
}

/* Whole blocks of what waits into the sums. */
static int add_blocks(lw_pool *pool, lw_stats *s)
{
    size_t d = (size_t)s->dim;
    int32_t whole = s->waiting / BLOCK * BLOCK;
    if (!s->square && !(s->square = lw_calloc(d * d, sizeof *s->square)))
        return LW_ENOMEM;
    for (int32_t at = 0; at < whole; at += BLOCK)
        LW_TRY(accumulate(pool, s->block + (size_t)at * d, BLOCK, s->dim, s->sum, s->square));
    s->waiting -= whole;
    memmove(s->block, s->block + (size_t)whole * d, (size_t)s->waiting * d * sizeof *s->block);
    if (s->room > BLOCK) { /* no longer one for every feature */
        LW_CLEANUP(lw_free) double *less = lw_calloc(BLOCK * d, sizeof *less);
        if (!less)
            return LW_ENOMEM;
        memcpy(less, s->block, (size_t)s->waiting * d * sizeof *less);
        lw_free(&s->block);
        s->block = lw_steal(&less);
        s->room = BLOCK;
    }
    return 0;
}

/* One row of either type: exactly one of f and d is given. */
static int add_row(lw_pool *pool, lw_stats *s, const float *f, const double *d)
{
    size_t dim = (size_t)s->dim, wait = s->square ? BLOCK : LW_MAX(dim + 1, (size_t)BLOCK);
    if ((size_t)s->waiting == s->room) {
        size_t values = s->room * dim, more = LW_MIN(LW_MAX(2 * s->room, (size_t)16), wait);
        LW_TRY(lw_grow(&s->block, &values, more * dim, sizeof *s->block));
        s->room = LW_MIN(values / dim, wait);
    }
    double *to = s->block + (size_t)s->waiting * dim;
    for (int32_t i = 0; i < s->dim; i++) {
        double x = f ? (double)f[i] : d[i];
        if (!isfinite(x))
            return lw_fail(LW_ENUMERIC, "statistics: feature %d of row %lld is %g", i,
                           (long long)s->n, x);
        if (s->n == 0)
            s->shift[i] = x;
        to[i] = x - s->shift[i];
    }
    s->n++;
    return (size_t)++s->waiting == wait ? add_blocks(pool, s) : 0;
}

static int add_rows(lw_pool *pool, lw_stats *s, const float *f, const double *d, int64_t n)
{
    if (s->cov)
        return lw_fail(LW_EUSAGE, "statistics given as mean and covariance take no further rows");
    for (int64_t i = 0; i < n; i++)
        LW_TRY(add_row(pool, s, f ? f + i * s->dim : NULL, d ? d + i * s->dim : NULL));
    return 0;
}

int lw_stats_add(lw_pool *pool, lw_stats *s, const float *rows, int64_t n)
{
    return add_rows(pool, s, rows, NULL, n);
}

int lw_stats_add_f64(lw_stats *s, const double *rows, int64_t n)
{
    return add_rows(NULL, s, NULL, rows, n);
}

static int get_streamed(lw_pool *pool, const lw_stats *s, double *mean, double *cov)
{
    size_t d = (size_t)s->dim;
    LW_CLEANUP(lw_free) double *sum = lw_calloc(d, sizeof *sum);
    LW_CLEANUP(lw_free) double *square = lw_calloc(d * d, sizeof *square);
    if (!sum || !square)
        return LW_ENOMEM;
    memcpy(sum, s->sum, d * sizeof *sum);
    if (s->square)
        memcpy(square, s->square, d * d * sizeof *square);
    for (int32_t at = 0; at < s->waiting; at += BLOCK)
        LW_TRY(accumulate(pool, s->block + (size_t)at * d, LW_MIN(s->waiting - at, BLOCK), s->dim,
                          sum, square));
    double n = (double)s->n;
    for (size_t i = 0; i < d; i++) {
        if (mean)
            mean[i] = s->shift[i] + sum[i] / n;
        for (size_t j = i; cov && j < d; j++)
            cov[i * d + j] = cov[j * d + i] = (square[i * d + j] - sum[i] * (sum[j] / n)) / (n - 1);
    }
    return 0;
}

static int check_count(const lw_stats *s)
{
    if (s->n < 2)
        return lw_fail(LW_EUSAGE, "statistics of %lld rows: a covariance needs 2", (long long)s->n);
    return 0;
}

/* What the rows themselves say: l [n][dim], each less the mean. */
static void centre_rows(const lw_stats *s, double *mean, double *l, double *trace)
{
    size_t d = (size_t)s->dim, n = (size_t)s->n;
    double root = sqrt((double)(n - 1)), sum = 0;
    memset(mean, 0, d * sizeof *mean);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < d; j++)
            mean[j] += s->block[i * d + j];
    for (size_t j = 0; j < d; j++)
        mean[j] /= (double)n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < d; j++) {
            double x = (s->block[i * d + j] - mean[j]) / root;
            l[i * d + j] = x;
            sum += x * x;
        }
    for (size_t j = 0; j < d; j++)
        mean[j] += s->shift[j];
    *trace = sum;
}

int lw_stats_factor(lw_pool *pool, const lw_stats *s, lw_factored *out)
{
    size_t d = (size_t)s->dim;
    bool few = !s->cov && s->n <= s->dim;
    LW_TRY(check_count(s));
    LW_CLEANUP(lw_factored_clear) lw_factored f = {.dim = s->dim};
    f.mean = lw_calloc(d, sizeof *f.mean);
    f.l = lw_calloc((few ? (size_t)s->n : d) * d, sizeof *f.l);
    if (!f.mean || !f.l)
        return LW_ENOMEM;
    if (few) {
        centre_rows(s, f.mean, f.l, &f.trace);
        f.rows = (int32_t)s->n;
        f.rank = f.rows - 1;
    } else {
        LW_TRY(s->cov ? lw_stats_get(s, f.mean, f.l) : get_streamed(pool, s, f.mean, f.l));
        for (size_t i = 0; i < d * d; i++)
            if (!isfinite(f.l[i]) || !isfinite(f.mean[i / d]))
                return lw_fail(LW_ENUMERIC,
                               "Frechet distance: mean or covariance of feature %zu is not finite",
                               i / d);
        for (size_t i = 0; i < d; i++)
            f.trace += f.l[i * d + i];
        LW_TRY(lw_factor(pool, f.l, s->dim, &f.rows));
        f.rank = f.rows;
    }
    *out = f;
    f = (lw_factored){0};
    return 0;
}

void lw_factored_clear(lw_factored *f)
{
    lw_free(&f->mean);
    lw_free(&f->l);
}

int lw_stats_get(const lw_stats *s, double *mean, double *cov)
{
    size_t d = (size_t)s->dim;
    LW_TRY(check_count(s));
    if (!s->cov)
        return get_streamed(NULL, s, mean, cov);
    if (mean)
        memcpy(mean, s->mean, d * sizeof *mean);
    if (cov)
        memcpy(cov, s->cov, d * d * sizeof *cov);
    return 0;
}

int lw_stats_trace(const lw_stats *s, double *out)
{
    size_t d = (size_t)s->dim;
    LW_CLEANUP(lw_free) double *cov = lw_calloc(d * d, sizeof *cov);
    if (!cov)
        return LW_ENOMEM;
    LW_TRY(lw_stats_get(s, NULL, cov));
    double sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += cov[i * d + i];
    *out = sum;
    return 0;
}
