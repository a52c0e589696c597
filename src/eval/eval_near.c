/* SPDX-License-Identifier: Apache-2.0 */
/* Nearest rows, rows too close to each other, and precision and recall from both. */
#include <math.h>

#include "eval/eval.h"
#include "eval/eval_block.h"

typedef struct near_job {
    const lw_pairs *p;
    int32_t k;
    bool skip_self;
    double *best;   /* [m][k] squared, ascending */
    int64_t *index; /* [m][k] */
} near_job;

static void near_row(void *arg, int64_t i, int64_t j0, int64_t nj, const float *dots, int worker)
{
    (void)worker;
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

static void close_row(void *arg, int64_t i, int64_t j0, int64_t nj, const float *dots, int worker)
{
    (void)worker;
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

/* Balls around rows, each reaching to its row's k-th neighbour, and who is in which. */
typedef struct balls_job {
    const lw_pairs *p;                 /* generated against real */
    const double *around_r, *around_q; /* [n], [m] squared radii */
    int32_t *in_real;                  /* [m] real balls that row i is in */
    uint8_t *met;                      /* [workers][n] 1: the real ball holds a generated row,
                                         2: a generated ball holds the real row */
} balls_job;

static void balls_row(void *arg, int64_t i, int64_t j0, int64_t nj, const float *dots, int worker)
{
    const balls_job *job = arg;
    const lw_pairs *p = job->p;
    uint8_t *met = job->met + (int64_t)worker * p->n;
    for (int64_t j = j0; j < j0 + nj; j++) {
        double most = LW_MAX(job->around_r[j], job->around_q[i]);
        if (lw_pairs_bound(p, i, j, dots[j - j0]) > most)
            continue;
        double d = lw_square_distance(p->q + i * p->dim, p->r + j * p->dim, p->dim);
        if (d <= job->around_r[j]) {
            job->in_real[i]++;
            met[j] |= 1;
        }
        if (d <= job->around_q[i])
            met[j] |= 2;
    }
}

/* Squared distance of each row to its k-th nearest other row. */
static int radii(lw_pool *pool, const float *x, int64_t n, int32_t dim, int32_t k, double *out)
{
    size_t size = (size_t)n * (size_t)k;
    LW_CLEANUP(lw_free) double *near = lw_calloc(size, sizeof *near);
    LW_CLEANUP(lw_free) int64_t *index = lw_calloc(size, sizeof *index);
    if (!near || !index)
        return LW_ENOMEM;
    LW_TRY(lw_nearest(pool, x, n, x, n, dim, k, true, near, index));
    for (int64_t j = 0; j < n; j++) /* from the row itself: no rounding of a root and back */
        out[j] = lw_square_distance(x + j * dim, x + index[j * k + k - 1] * dim, dim);
    return 0;
}

static void count_balls(const balls_job *job, int workers, int32_t k, lw_manifold *out)
{
    int64_t m = job->p->m, n = job->p->n, inside = 0, pairs = 0, reached = 0, held = 0;
    for (int64_t i = 0; i < m; i++) {
        inside += job->in_real[i] > 0;
        pairs += job->in_real[i];
    }
    for (int64_t j = 0; j < n; j++) {
        uint8_t met = 0;
        for (int w = 0; w < workers; w++)
            met |= job->met[w * n + j];
        held += met & 1;
        reached += met >> 1;
    }
    *out = (lw_manifold){.precision = (double)inside / (double)m,
                         .recall = (double)reached / (double)n,
                         .density = (double)pairs / ((double)m * k),
                         .coverage = (double)held / (double)n};
}

int lw_precision_recall(lw_pool *pool, const float *gen, int64_t m, const float *real, int64_t n,
                        int32_t dim, int32_t k, lw_manifold *out)
{
    int workers = pool ? lw_pool_size(pool) : 1;
    if (k < 1 || m <= k || n <= k)
        return lw_fail(
            LW_EUSAGE,
            "precision and recall: %lld generated and %lld real rows are too few for k = %d",
            (long long)m, (long long)n, k);
    LW_CLEANUP(lw_free) double *radius = lw_calloc((size_t)(n + m), sizeof *radius);
    LW_CLEANUP(lw_free) int32_t *in_real = lw_calloc((size_t)m, sizeof *in_real);
    LW_CLEANUP(lw_free) uint8_t *met = lw_calloc((size_t)n * (size_t)workers, 1);
    if (!radius || !in_real || !met)
        return LW_ENOMEM;
    LW_TRY(radii(pool, real, n, dim, k, radius));
    LW_TRY(radii(pool, gen, m, dim, k, radius + n));
    LW_CLEANUP(lw_pairs_clear) lw_pairs p = {0};
    LW_TRY(lw_pairs_init(&p, gen, m, real, n, dim));
    balls_job job = {&p, radius, radius + n, in_real, met};
    LW_TRY(lw_pairs_run(pool, &p, balls_row, &job));
    count_balls(&job, workers, k, out);
    return 0;
}
