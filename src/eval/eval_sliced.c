/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sliced Wasserstein distance. Along one direction the nearest way to carry one set of numbers to
 * another is in order, so each direction costs a projection, two sorts and one walk. A replicate
 * is the sorted numbers of a with other weights: it costs one walk over them, and nothing else.
 */
#include <math.h>
#include <string.h>

#include "eval/eval_dense.h"
#include "eval/eval_resample.h"

enum { GROUP = 48 }; /* directions projected at once */

/* A number and where it came from. */
typedef struct place {
    double x;
    int32_t row;
} place;

typedef struct sliced_job {
    const float *a, *b; /* [n][dim], [m][dim] */
    int64_t n, m;
    int32_t dim, directions, replicates;
    const double *axes;    /* [directions][dim] */
    const int32_t *counts; /* [replicates][n] */
    double *square;        /* [directions][1 + replicates] */
    struct workspace *work;
} sliced_job;

/* What a worker needs. */
typedef struct workspace {
    double *pack;   /* of a product */
    double *a, *b;  /* [GROUP][n], [GROUP][m] projections */
    place *pa, *pb; /* [n], [m] of one direction, sorted */
    place *spare_a, *spare_b;
    double *through; /* [n + 1] integral of b's quantile function up to i / n, times n */
} workspace;

/* ---- directions ---- */

/* Element e of direction i: a normal number by Box and Muller, of (seed, i, e) alone. */
static double normal(lw_rng_key key, int64_t i, int64_t e)
{
    const double tau = 6.283185307179586;
    double u = lw_rng_uniform(key, 0, (uint64_t)i, 2 * (uint64_t)e),
           v = lw_rng_uniform(key, 0, (uint64_t)i, 2 * (uint64_t)e + 1);
    return sqrt(-2 * log(1 - u)) * cos(tau * v);
}

static double *unit_vectors(int32_t directions, int32_t dim, uint64_t seed)
{
    lw_rng_key key = lw_rng_key_of(seed, lw_hash_name("eval.sliced"));
    double *axes = lw_calloc((size_t)directions * (size_t)dim, sizeof *axes);
    for (int64_t i = 0; axes && i < directions; i++) {
        double *v = axes + i * dim, sum = 0;
        for (int64_t e = 0; e < dim; e++) {
            v[e] = normal(key, i, e);
            sum += v[e] * v[e];
        }
        for (int64_t e = 0; e < dim; e++)
            v[e] /= sqrt(sum);
    }
    return axes;
}

/* ---- one direction ---- */

/* out [group][n]: rows x along `group` directions. */
static void project(const sliced_job *job, const float *x, int64_t n, const double *axes,
                    int64_t group, double *pack, double *out)
{
    lw_operand a = LW_ROWS(axes, job->dim), b = {.f32 = x, .row = job->dim, .col = 1};
    memset(out, 0, (size_t)(group * n) * sizeof *out);
    lw_dense_best()->gemm(out, n, 1, &a, group, &b, n, job->dim, pack);
}

/* A number's bits as an integer of the same order. */
static uint64_t rank_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* x [n] in order, equal ones by row: by bytes, lowest first (Knuth, volume 3, 5.2.5). The two
 * buffers change places as it goes: `out` is the one that holds them. */
static void sort_places(const double *x, int64_t n, place **out, place **spare)
{
    enum { BYTES = sizeof(double), VALUES = 256 };
    int64_t count[BYTES][VALUES];
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = rank_of(x[i]);
        (*out)[i] = (place){x[i], (int32_t)i};
        for (int b = 0; b < BYTES; b++)
            count[b][key >> 8 * b & 255]++;
    }
    for (int b = 0; b < BYTES; b++) {
        int64_t at = 0;
        if (count[b][rank_of(x[0]) >> 8 * b & 255] == n)
            continue; /* one byte for all */
        for (int v = 0; v < VALUES; v++) {
            int64_t of_value = count[b][v];
            count[b][v] = at;
            at += of_value;
        }
        for (int64_t i = 0; i < n; i++)
            (*spare)[count[b][rank_of((*out)[i].x) >> 8 * b & 255]++] = (*out)[i];
        place *sorted = *spare;
        *spare = *out;
        *out = sorted;
    }
}

/* W2^2 of two sorted sets: each number of a has mass m, each of b mass n. */
static double wasserstein(const place *a, int64_t n, const place *b, int64_t m)
{
    double sum = 0;
    int64_t left_a = m, left_b = n;
    for (int64_t i = 0, j = 0; i < n && j < m;) {
        int64_t mass = LW_MIN(left_a, left_b);
        double d = a[i].x - b[j].x;
        sum += (double)mass * (d * d);
        left_a -= mass;
        left_b -= mass;
        if (left_a == 0) {
            left_a = m;
            i++;
        }
        if (left_b == 0) {
            left_b = n;
            j++;
        }
    }
    return sum / ((double)n * (double)m);
}

/* through[i]: n times the integral of b's quantile function, less `middle`, over 0 .. i / n; the
 * result: the mean square about it. */
static double integrate(const place *b, int64_t m, int64_t n, double middle, double *through)
{
    double sum = 0, square = 0;
    int64_t j = 0, left = n;
    through[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t need = m; need > 0;) {
            int64_t mass = LW_MIN(need, left);
            sum += (double)mass * (b[j].x - middle);
            need -= mass;
            left -= mass;
            if (left == 0) {
                left = n;
                j++;
            }
        }
        through[i + 1] = sum / (double)m;
    }
    for (j = 0; j < m; j++)
        square += (b[j].x - middle) * (b[j].x - middle);
    return square / (double)m;
}

/* W2^2 of every replicate: the sum over a's numbers x, each `count` times in order, of
 * count x^2 - 2 x (b's integral over its stretch), and b's mean square. */
static void replicate(const sliced_job *job, const workspace *w, double *square)
{
    double middle = w->pb[job->m / 2].x,
           rest = integrate(w->pb, job->m, job->n, middle, w->through);
    for (int32_t r = 0; r < job->replicates; r++) {
        const int32_t *counts = job->counts + (int64_t)r * job->n;
        double sum = 0;
        int64_t at = 0;
        for (int64_t i = 0; i < job->n; i++) {
            int64_t to = at + counts[w->pa[i].row];
            double x = w->pa[i].x - middle;
            sum += x * ((double)(to - at) * x - 2 * (w->through[to] - w->through[at]));
            at = to;
        }
        square[r] = LW_MAX(sum / (double)job->n + rest, 0.0);
    }
}

static void sliced_task(void *arg, int64_t task, int worker)
{
    const sliced_job *job = arg;
    workspace *w = &job->work[worker];
    int64_t first = task * GROUP, group = LW_MIN((int64_t)GROUP, job->directions - first);
    const double *axes = job->axes + first * job->dim;
    project(job, job->a, job->n, axes, group, w->pack, w->a);
    project(job, job->b, job->m, axes, group, w->pack, w->b);
    for (int64_t g = 0; g < group; g++) {
        double *square = job->square + (first + g) * (1 + job->replicates);
        sort_places(w->a + g * job->n, job->n, &w->pa, &w->spare_a);
        sort_places(w->b + g * job->m, job->m, &w->pb, &w->spare_b);
        square[0] = wasserstein(w->pa, job->n, w->pb, job->m);
        if (job->replicates)
            replicate(job, w, square + 1);
    }
}

/* ---- all of them ---- */

static int check_rows(const char *which, const float *x, int64_t n, int32_t dim)
{
    for (int64_t i = 0; i < n * dim; i++)
        if (!isfinite(x[i]))
            return lw_fail(LW_ENUMERIC,
                           "sliced Wasserstein distance: feature %lld of row %lld of the %s set "
                           "is not finite",
                           (long long)(i % dim), (long long)(i / dim), which);
    return 0;
}

static int check(const sliced_job *job)
{
    if (job->n < 1 || job->m < 1 || job->dim < 1 || job->directions < 1 || job->n > INT32_MAX ||
        job->m > INT32_MAX)
        return lw_fail(LW_EUSAGE,
                       "sliced Wasserstein distance of %lld and %lld rows of %d features along %d "
                       "directions: out of range",
                       (long long)job->n, (long long)job->m, job->dim, job->directions);
    LW_TRY(check_rows("first", job->a, job->n, job->dim));
    return check_rows("second", job->b, job->m, job->dim);
}

static void workspace_clear(workspace *w)
{
    lw_free(&w->pack);
    lw_free(&w->a);
    lw_free(&w->b);
    lw_free(&w->pa);
    lw_free(&w->pb);
    lw_free(&w->spare_a);
    lw_free(&w->spare_b);
    lw_free(&w->through);
}

static int workspace_init(workspace *w, const sliced_job *job)
{
    size_t n = (size_t)job->n, m = (size_t)job->m;
    w->pack = lw_calloc(lw_gemm_doubles(GROUP, LW_GEMM_N), sizeof *w->pack);
    w->a = lw_calloc(GROUP * n, sizeof *w->a);
    w->b = lw_calloc(GROUP * m, sizeof *w->b);
    w->pa = lw_calloc(n, sizeof *w->pa);
    w->pb = lw_calloc(m, sizeof *w->pb);
    w->spare_a = lw_calloc(n, sizeof *w->spare_a);
    w->spare_b = lw_calloc(m, sizeof *w->spare_b);
    w->through = lw_calloc(n + 1, sizeof *w->through);
    bool all = w->pack && w->a && w->b && w->pa && w->pb && w->spare_a && w->spare_b && w->through;
    return all ? 0 : LW_ENOMEM;
}

/* Every direction, then their means in order: out [1 + replicates]. */
static int run(lw_pool *pool, sliced_job *job, uint64_t seed, double *out)
{
    int workers = pool ? lw_pool_size(pool) : 1, rc = 0;
    int64_t each = 1 + job->replicates;
    LW_CLEANUP(lw_free) double *axes = unit_vectors(job->directions, job->dim, seed);
    LW_CLEANUP(lw_free)
    double *square = lw_calloc((size_t)job->directions * (size_t)each, sizeof *square);
    LW_CLEANUP(lw_free) workspace *work = lw_calloc((size_t)workers, sizeof *work);
    if (!axes || !square || !work)
        return LW_ENOMEM;
    job->axes = axes;
    job->square = square;
    job->work = work;
    for (int i = 0; i < workers && rc == 0; i++)
        rc = workspace_init(&work[i], job);
    if (rc == 0)
        rc = lw_pool_run_asking(pool, LW_CEIL_DIV(job->directions, GROUP), sliced_task, job);
    for (int i = 0; i < workers; i++)
        workspace_clear(&work[i]);
    LW_TRY(rc);
    for (int64_t r = 0; r < each; r++) {
        double sum = 0;
        for (int64_t i = 0; i < job->directions; i++)
            sum += square[i * each + r];
        out[r] = sqrt(sum / job->directions);
    }
    return 0;
}

int lw_sliced_wasserstein(lw_pool *pool, const float *a, int64_t n, const float *b, int64_t m,
                          int32_t dim, int32_t directions, uint64_t seed, double *out)
{
    sliced_job job = {.a = a, .b = b, .n = n, .m = m, .dim = dim, .directions = directions};
    double value;
    LW_TRY(check(&job));
    LW_TRY(run(pool, &job, seed, &value));
    *out = value;
    return 0;
}

int lw_sliced_replicates(lw_pool *pool, const float *a, int64_t n, const float *b, int64_t m,
                         int32_t dim, int32_t directions, uint64_t seed, const lw_resampling *how,
                         double *value, double *replicates)
{
    sliced_job job = {.a = a, .b = b, .n = n, .m = m, .dim = dim, .directions = directions};
    LW_CLEANUP(lw_draw_clear) lw_draw draw = {0};
    LW_TRY(check(&job));
    LW_TRY(lw_draw_init(&draw, how, n));
    size_t k = (size_t)how->replicates;
    LW_CLEANUP(lw_free) int32_t *counts = lw_calloc(k * (size_t)n, sizeof *counts);
    LW_CLEANUP(lw_free) double *out = lw_calloc(1 + k, sizeof *out);
    if (!counts || !out)
        return LW_ENOMEM;
    for (uint32_t r = 0; r < k; r++)
        lw_draw_counts(&draw, r, counts + (int64_t)r * n);
    job.replicates = how->replicates;
    job.counts = counts;
    LW_TRY(run(pool, &job, seed, out));
    *value = out[0];
    memcpy(replicates, out + 1, k * sizeof *replicates);
    return 0;
}
