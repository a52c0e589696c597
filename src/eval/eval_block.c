/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of dot products, and distances measured exactly. */
#include "eval/eval_block.h"

#include <math.h>

#include "base/base.h"
#include "eval/eval_dense.h"

enum { Q_BLOCK = 32, R_BLOCK = 512 };

double lw_square_distance(const float *a, const float *b, int32_t dim)
{
    double sum[4] = {0, 0, 0, 0};
    int32_t i = 0;
    for (; i + 4 <= dim; i += 4)
        for (int k = 0; k < 4; k++) {
            double d = (double)a[i + k] - (double)b[i + k];
            sum[k] += d * d;
        }
    for (; i < dim; i++)
        sum[0] += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static double *square_norms(const float *x, int64_t n, int32_t dim)
{
    double *out = lw_calloc((size_t)LW_MAX(n, 1), sizeof *out);
    for (int64_t i = 0; out && i < n; i++)
        for (int32_t k = 0; k < dim; k++)
            out[i] += (double)x[i * dim + k] * (double)x[i * dim + k];
    return out;
}

void lw_pairs_clear(lw_pairs *p)
{
    lw_free(&p->q_norm);
    lw_free(&p->r_norm);
}

int lw_pairs_init(lw_pairs *p, const float *q, int64_t m, const float *r, int64_t n, int32_t dim)
{
    if (m < 0 || n < 0 || dim < 1)
        return lw_fail(LW_EUSAGE, "distances of %lld and %lld rows of %d numbers: out of range",
                       (long long)m, (long long)n, dim);
    LW_CLEANUP(lw_pairs_clear) lw_pairs made = {.q = q, .r = r, .m = m, .n = n, .dim = dim};
    made.q_norm = square_norms(q, m, dim);
    made.r_norm = square_norms(r, n, dim);
    if (!made.q_norm || !made.r_norm)
        return LW_ENOMEM;
    for (int64_t i = 0; i < m; i++)
        if (!isfinite(made.q_norm[i]))
            return lw_fail(LW_ENUMERIC, "distances: row %lld of the first set is not finite",
                           (long long)i);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(made.r_norm[i]))
            return lw_fail(LW_ENUMERIC, "distances: row %lld of the second set is not finite",
                           (long long)i);
    *p = made;
    made = (lw_pairs){0};
    return 0;
}

double lw_pairs_bound(const lw_pairs *p, int64_t i, int64_t j, float dot)
{
    /* |computed - true product| <= dim u / (1 - dim u) |q| |r| for any order of summing, u = 2^-24
     * (Higham, Accuracy and Stability, 3.1); twice that, doubled in the square, with room for the
     * doubles. */
    double u = 0x1p-24 * (p->dim + 2),
           slack = 2.1 * u / (1 - u) * sqrt(p->q_norm[i] * p->r_norm[j]);
    return p->q_norm[i] + p->r_norm[j] - 2 * (double)dot - slack -
           1e-12 * (p->q_norm[i] + p->r_norm[j]);
}

typedef struct pairs_job {
    const lw_pairs *p;
    lw_pairs_fn *fn;
    void *arg;
    float *dots; /* [workers][Q_BLOCK][R_BLOCK] */
} pairs_job;

static void pairs_task(void *arg, int64_t task, int worker)
{
    const pairs_job *job = arg;
    const lw_pairs *p = job->p;
    const lw_dense *dense = lw_dense_best();
    float *dots = job->dots + (size_t)worker * Q_BLOCK * R_BLOCK;
    int64_t i0 = task * Q_BLOCK, ni = LW_MIN((int64_t)Q_BLOCK, p->m - i0);
    for (int64_t j0 = 0; j0 < p->n; j0 += R_BLOCK) {
        int64_t nj = LW_MIN((int64_t)R_BLOCK, p->n - j0);
        dense->dots(dots, R_BLOCK, p->q + i0 * p->dim, p->dim, ni, p->r + j0 * p->dim, p->dim, nj,
                    p->dim);
        for (int64_t i = 0; i < ni; i++)
            job->fn(job->arg, i0 + i, j0, nj, dots + i * R_BLOCK, worker);
    }
}

int lw_pairs_run(lw_pool *pool, const lw_pairs *p, lw_pairs_fn *fn, void *arg)
{
    size_t workers = pool ? (size_t)lw_pool_size(pool) : 1;
    LW_CLEANUP(lw_free) float *dots = lw_calloc(workers * Q_BLOCK * R_BLOCK, sizeof *dots);
    if (!dots)
        return LW_ENOMEM;
    pairs_job job = {p, fn, arg, dots};
    return lw_pool_run_asking(pool, LW_CEIL_DIV(p->m, Q_BLOCK), pairs_task, &job);
}
