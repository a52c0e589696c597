/* SPDX-License-Identifier: Apache-2.0 */
/* Nearest rows, rows too close to each other, and precision and recall from both. */
#include <math.h>
#include <string.h>

#include "eval/eval.h"
#include "eval/eval_block.h"

typedef struct near_job {
    const lw_pairs *p;
    int32_t k;
    bool skip_self;
    double *best;   /* [m][k] squared, ascending */
    int64_t *index; /* [m][k] */
} near_job;

static void near_row(void *arg, int64_t i, int64_t j0, int64_t nj, const float *dots)
{
    const near_job *job = arg;
    const lw_pairs *p = job->p;
    double *best = job->best + i * job->k;
    int64_t *index = job->index + i * job->k;
    for (int64_t j = j0; j < j0 + nj; j++) {
        if ((job->skip_self && i == j) || lw_pairs_bound(p, i, j, dots[j - j0]) >= best[job->k - 1])
            continue;
        double d = lw_square_distance(p->q + i * p->dim, p->r + j * p->dim, p->dim);
        if (d >= best[job->k - 1]) /* equal: the lower row stays */
            continue;
        int32_t at = job->k - 1;
        for (; at > 0 && best[at - 1] > d; at--) {
            best[at] = best[at - 1];
            index[at] = index[at - 1];
        }
        best[at] = d;
        index[at] = j;
    }
}

int lw_nearest(lw_pool *pool, const float *q, int64_t m, const float *r, int64_t n, int32_t dim,
               int32_t k, bool skip_self, double *distance, int64_t *index)
{
    if (k < 1 || k > n - skip_self)
        return lw_fail(LW_EUSAGE, "nearest neighbours: %d asked for of %lld rows", k,
                       (long long)(n - skip_self));
    LW_CLEANUP(lw_pairs_clear) lw_pairs p = {0};
    LW_TRY(lw_pairs_init(&p, q, m, r, n, dim));
    LW_CLEANUP(lw_free)
    int64_t *own = index ? NULL : lw_calloc((size_t)LW_MAX(m, 1) * (size_t)k, sizeof *own);
    if (!index && !own)
        return LW_ENOMEM;
    for (int64_t i = 0; i < m * k; i++)
        distance[i] = (double)INFINITY;
    near_job job = {&p, k, skip_self, distance, index ? index : own};
    LW_TRY(lw_pairs_run(pool, &p, near_row, &job));
    for (int64_t i = 0; i < m * k; i++)
        distance[i] = sqrt(distance[i]);
    return 0;
}

typedef struct close_job {
    const lw_pairs *p;
    double eps2;
    int64_t *count; /* [n] rows close to row i */
} close_job;

static void close_row(void *arg, int64_t i, int64_t j0, int64_t nj, const float *dots)
{
    const close_job *job = arg;
    const lw_pairs *p = job->p;
    for (int64_t j = j0; j < j0 + nj; j++)
        if (i != j && lw_pairs_bound(p, i, j, dots[j - j0]) < job->eps2)
            job->count[i] += lw_square_distance(p->q + i * p->dim, p->r + j * p->dim, p->dim) <
                             job->eps2;
}

int lw_close_pairs(lw_pool *pool, const float *x, int64_t n, int32_t dim, double eps,
                   int64_t *pairs, int64_t *rows)
{
    LW_CLEANUP(lw_pairs_clear) lw_pairs p = {0};
    LW_TRY(lw_pairs_init(&p, x, n, x, n, dim));
    LW_CLEANUP(lw_free) int64_t *count = lw_calloc((size_t)LW_MAX(n, 1), sizeof *count);
    if (!count)
        return LW_ENOMEM;
    close_job job = {&p, eps * eps, count};
    LW_TRY(lw_pairs_run(pool, &p, close_row, &job));
    int64_t both = 0, some = 0;
    for (int64_t i = 0; i < n; i++) {
        both += count[i];
        some += count[i] > 0;
    }
    *pairs = both / 2; /* each pair was seen from both ends */
    *rows = some;
    return 0;
}

typedef struct inside_job {
    const lw_pairs *p;
    const double *radius2; /* [n] of the balls around r */
    uint8_t *inside;       /* [m] */
} inside_job;

static void inside_row(void *arg, int64_t i, int64_t j0, int64_t nj, const float *dots)
{
    const inside_job *job = arg;
    const lw_pairs *p = job->p;
    for (int64_t j = j0; j < j0 + nj && !job->inside[i]; j++)
        if (lw_pairs_bound(p, i, j, dots[j - j0]) <= job->radius2[j])
            job->inside[i] = lw_square_distance(p->q + i * p->dim, p->r + j * p->dim, p->dim) <=
                             job->radius2[j];
}

/* Share of rows of q inside some ball around a row of r that reaches to its k-th neighbour in r. */
static int covered_share(lw_pool *pool, const float *q, int64_t m, const float *r, int64_t n,
                         int32_t dim, int32_t k, double *out)
{
    LW_CLEANUP(lw_free) double *near = lw_calloc((size_t)n * (size_t)k, sizeof *near);
    LW_CLEANUP(lw_free) double *radius2 = lw_calloc((size_t)n, sizeof *radius2);
    LW_CLEANUP(lw_free) int64_t *index = lw_calloc((size_t)n * (size_t)k, sizeof *index);
    LW_CLEANUP(lw_free) uint8_t *inside = lw_calloc((size_t)m, 1);
    if (!near || !radius2 || !index || !inside)
        return LW_ENOMEM;
    LW_TRY(lw_nearest(pool, r, n, r, n, dim, k, true, near, index));
    for (int64_t j = 0; j < n; j++) /* from the row itself: no rounding of a root and back */
        radius2[j] = lw_square_distance(r + j * dim, r + index[j * k + k - 1] * dim, dim);
    LW_CLEANUP(lw_pairs_clear) lw_pairs p = {0};
    LW_TRY(lw_pairs_init(&p, q, m, r, n, dim));
    inside_job job = {&p, radius2, inside};
    LW_TRY(lw_pairs_run(pool, &p, inside_row, &job));
    int64_t count = 0;
    for (int64_t i = 0; i < m; i++)
        count += inside[i];
    *out = (double)count / (double)m;
    return 0;
}

int lw_precision_recall(lw_pool *pool, const float *gen, int64_t m, const float *real, int64_t n,
                        int32_t dim, int32_t k, double *precision, double *recall)
{
    double p, r;
    if (k < 1 || m <= k || n <= k)
        return lw_fail(
            LW_EUSAGE,
            "precision and recall: %lld generated and %lld real rows are too few for k = %d",
            (long long)m, (long long)n, k);
    LW_TRY(covered_share(pool, gen, m, real, n, dim, k, &p));
    LW_TRY(covered_share(pool, real, n, gen, m, dim, k, &r));
    *precision = p;
    *recall = r;
    return 0;
}
