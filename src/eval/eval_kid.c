/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel distance: sums of (x y / dim + 1)^3 over pairs of rows, block by block. */
#include <math.h>
#include <string.h>

#include "eval/eval.h"
#include "eval/eval_dense.h"

enum { ROWS = 192 };

/* Rows of one set, or some of them. */
typedef struct side {
    const float *x;
    int64_t n;            /* rows in sum */
    const int64_t *which; /* [n] their numbers, or NULL: all in order */
} side;

typedef struct scratch {
    double *p, *q; /* [ROWS][dim] */
    double *dots;  /* [ROWS][ROWS] */
    double *pack;  /* of a product */
} scratch;

static void take(const side *s, int64_t at, int64_t k, int32_t dim, double *to)
{
    for (int64_t i = 0; i < k; i++) {
        const float *row = s->x + (s->which ? s->which[at + i] : at + i) * dim;
        for (int64_t e = 0; e < dim; e++)
            to[i * dim + e] = (double)row[e];
    }
}

/* Sum of the kernel over rows p0.. of p and all of q; with `same`, over pairs of different rows, each
 * seen once and counted twice. */
static double kernel_sum(const side *p, const side *q, bool same, int64_t p0, int32_t dim,
                         const scratch *s)
{
    const lw_dense *dense = lw_dense_best();
    int64_t np = LW_MIN((int64_t)ROWS, p->n - p0);
    double sum = 0;
    take(p, p0, np, dim, s->p);
    for (int64_t q0 = same ? p0 : 0; q0 < q->n; q0 += ROWS) {
        int64_t nq = LW_MIN((int64_t)ROWS, q->n - q0);
        take(q, q0, nq, dim, s->q);
        lw_operand x = LW_ROWS(s->p, dim), y = LW_ROWS(s->q, dim);
        memset(s->dots, 0, (size_t)(ROWS * ROWS) * sizeof *s->dots);
        dense->gemm(s->dots, ROWS, 1, &x, np, &y, nq, dim, s->pack);
        for (int64_t i = 0; i < np; i++) {
            double row = 0;
            for (int64_t j = same && q0 == p0 ? i + 1 : 0; j < nq; j++) {
                double k = s->dots[i * ROWS + j] / dim + 1;
                row += k * k * k;
            }
            sum += same ? 2 * row : row;
        }
    }
    return sum;
}

/* The unbiased estimate from the three sums. */
static double discrepancy(double aa, double bb, double ab, double n, double m)
{
    return aa / (n * (n - 1)) + bb / (m * (m - 1)) - 2 * ab / (n * m);
}

typedef struct kid_job {
    const float *a, *b;
    int64_t n, m;
    int32_t dim, rows;
    lw_rng_key key;
    int64_t blocks_a, blocks_b; /* of ROWS rows */
    double *out;                /* one of each task */
    scratch *work;              /* of each worker */
    int64_t *which;             /* [workers][2][rows] */
} kid_job;

/* One subset of both sets. */
static void subset_task(void *arg, int64_t task, int worker)
{
    const kid_job *job = arg;
    int64_t *wa = job->which + (int64_t)worker * 2 * job->rows, *wb = wa + job->rows;
    lw_rng_key other = {{job->key.k[0] ^ 1, job->key.k[1]}};
    for (int64_t i = 0; i < job->rows; i++) {
        wa[i] = (int64_t)lw_rng_permute(job->key, (uint32_t)task, (uint64_t)job->n, (uint64_t)i);
        wb[i] = (int64_t)lw_rng_permute(other, (uint32_t)task, (uint64_t)job->m, (uint64_t)i);
    }
    side a = {job->a, job->rows, wa}, b = {job->b, job->rows, wb};
    double aa = 0, bb = 0, ab = 0, r = job->rows;
    for (int64_t at = 0; at < job->rows; at += ROWS) {
        aa += kernel_sum(&a, &a, true, at, job->dim, &job->work[worker]);
        bb += kernel_sum(&b, &b, true, at, job->dim, &job->work[worker]);
        ab += kernel_sum(&a, &b, false, at, job->dim, &job->work[worker]);
    }
    job->out[task] = discrepancy(aa, bb, ab, r, r);
}

/* One block of rows of a against a, b against b, or a against b. */
static void all_task(void *arg, int64_t task, int worker)
{
    const kid_job *job = arg;
    side a = {job->a, job->n, NULL}, b = {job->b, job->m, NULL};
    int64_t t = task, na = job->blocks_a, nb = job->blocks_b;
    const side *p = t >= na && t < na + nb ? &b : &a, *q = t < na ? &a : &b;
    int64_t block = t < na ? t : t < na + nb ? t - na : t - na - nb;
    job->out[task] = kernel_sum(p, q, t < na + nb, block * ROWS, job->dim, &job->work[worker]);
}

static int of_all(lw_pool *pool, kid_job *job, double *out)
{
    int64_t na = job->blocks_a, nb = job->blocks_b;
    LW_CLEANUP(lw_free) double *sum = lw_calloc((size_t)(2 * na + nb), sizeof *sum);
    if (!sum)
        return LW_ENOMEM;
    job->out = sum;
    LW_TRY(lw_pool_run_asking(pool, 2 * na + nb, all_task, job));
    double part[3] = {0, 0, 0};
    for (int64_t t = 0; t < 2 * na + nb; t++)
        part[t < na ? 0 : t < na + nb ? 1 : 2] += sum[t];
    *out = discrepancy(part[0], part[1], part[2], (double)job->n, (double)job->m);
    return 0;
}

static int of_subsets(lw_pool *pool, kid_job *job, lw_kid_value *out)
{
    LW_CLEANUP(lw_free) double *each = lw_calloc((size_t)out->subsets, sizeof *each);
    if (!each)
        return LW_ENOMEM;
    job->out = each;
    LW_TRY(lw_pool_run_asking(pool, out->subsets, subset_task, job));
    double sum = 0, square = 0;
    for (int32_t i = 0; i < out->subsets; i++)
        sum += each[i];
    out->mean = sum / out->subsets;
    for (int32_t i = 0; i < out->subsets; i++)
        square += (each[i] - out->mean) * (each[i] - out->mean);
    out->sd = sqrt(square / out->subsets);
    return 0;
}

static int measure(lw_pool *pool, kid_job *job, bool all, lw_kid_value *out)
{
    size_t workers = pool ? (size_t)lw_pool_size(pool) : 1, dim = (size_t)job->dim;
    size_t block = ROWS * (2 * dim + ROWS) + lw_gemm_doubles(ROWS, ROWS);
    LW_CLEANUP(lw_free) double *memory = lw_calloc(workers * block, sizeof *memory);
    LW_CLEANUP(lw_free) scratch *work = lw_calloc(workers, sizeof *work);
    LW_CLEANUP(lw_free)
    int64_t *which = lw_calloc(workers * 2 * (size_t)job->rows, sizeof *which);
    if (!memory || !work || !which)
        return LW_ENOMEM;
    for (size_t i = 0; i < workers; i++) {
        double *at = memory + i * block;
        double *dots = at + 2 * ROWS * dim;
        work[i] = (scratch){at, at + ROWS * dim, dots, dots + ROWS * ROWS};
    }
    job->work = work;
    job->which = which;
    LW_TRY(of_subsets(pool, job, out));
    return all ? of_all(pool, job, &out->all) : 0;
}

int lw_kid(lw_pool *pool, const float *a, int64_t n, const float *b, int64_t m, int32_t dim,
           int32_t subsets, int32_t rows, uint64_t seed, bool all, lw_kid_value *out)
{
    if (n < 2 || m < 2 || dim < 1 || subsets < 1 || rows < 2)
        return lw_fail(LW_EUSAGE,
                       "kernel distance of %lld and %lld rows of %d features in %d subsets of %d: "
                       "two rows and one subset at least",
                       (long long)n, (long long)m, dim, subsets, rows);
    lw_kid_value made = {.all = (double)NAN,
                         .subsets = subsets,
                         .rows = (int32_t)LW_MIN((int64_t)rows, LW_MIN(n, m))};
    kid_job job = {.a = a,
                   .b = b,
                   .n = n,
                   .m = m,
                   .dim = dim,
                   .rows = made.rows,
                   .key = lw_rng_key_of(seed, lw_hash_name("eval.kid")),
                   .blocks_a = LW_CEIL_DIV(n, ROWS),
                   .blocks_b = LW_CEIL_DIV(m, ROWS)};
    LW_TRY(measure(pool, &job, all, &made));
    if (!isfinite(made.mean) || (all && !isfinite(made.all)))
        return lw_fail(LW_ENUMERIC, "kernel distance: a feature is not finite, or too large");
    *out = made;
    return 0;
}
