/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel distance: sums of (x y / dim + 1)^3 over pairs of rows of subsets of two sets.
 *
 *    K = kernel of a block of pairs, from one product; of subsets S with rows in[i][s] of 0 and 1
 *    sum over i, j in s of K[i][j] = sum over i of in[i][s] (K in)[i][s], a second, small product
 *
 * so that a pair is computed once however many subsets have it. Where the sets are so large that
 * their subsets hold fewer pairs, each subset is such a set of its own, of its rows gathered.
 */
#include <math.h>
#include <string.h>

#include "eval/eval.h"
#include "eval/eval_dense.h"

#define ROWS LW_GEMM_M
#define COLUMNS LW_GEMM_N

typedef struct side {
    const float *x; /* [n][dim] */
    int64_t n;
    const double *in; /* [n][sets]; NULL: one subset, of all */
} side;

typedef struct scratch {
    double *kernel; /* [ROWS][COLUMNS] */
    double *sums;   /* [ROWS][sets] */
    double *pack;   /* of a product */
} scratch;

enum { AB, AA, BB, KINDS };
typedef struct pairs_job {
    side side[2];
    int32_t dim, sets;
    int64_t first[KINDS + 1]; /* task of each kind of pairs: a block of ROWS times COLUMNS */
    const scratch *work;      /* of each worker */
    double *out;              /* [tasks][sets] */
} pairs_job;

/* Products to kernels. same: pairs of different rows, each seen once and counted twice. */
static void to_kernel(double *k, int64_t m, int64_t n, int32_t dim, bool same, int64_t ahead)
{
    const double twice = same ? 2 : 1;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double v = k[i * COLUMNS + j] / dim + 1;
            k[i * COLUMNS + j] = same && ahead + j <= i ? 0 : twice * v * v * v;
        }
}

static void add_all(const double *k, int64_t m, int64_t n, double *out)
{
    for (int64_t i = 0; i < m; i++) {
        double row = 0;
        for (int64_t j = 0; j < n; j++)
            row += k[i * COLUMNS + j];
        *out += row;
    }
}

static void add_sets(const scratch *s, const double *in_p, int64_t m, const double *in_q, int64_t n,
                     int32_t sets, double *out)
{
    lw_operand k = LW_ROWS(s->kernel, COLUMNS), in = LW_COLUMNS(in_q, sets);
    memset(s->sums, 0, (size_t)(m * sets) * sizeof *s->sums);
    lw_dense_best()->gemm(s->sums, sets, 1, &k, m, &in, sets, n, s->pack);
    for (int64_t i = 0; i < m; i++)
        for (int32_t e = 0; e < sets; e++)
            out[e] += in_p[i * sets + e] * s->sums[i * sets + e];
}

static void pairs_task(void *arg, int64_t task, int worker)
{
    const pairs_job *j = arg;
    const scratch *s = &j->work[worker];
    const int kind = task < j->first[AA] ? AB : task < j->first[BB] ? AA : BB;
    const side *p = &j->side[kind == BB], *q = &j->side[kind != AA];
    int64_t block = task - j->first[kind], across = LW_CEIL_DIV(q->n, COLUMNS);
    int64_t i = block / across * ROWS, at = block % across * COLUMNS;
    int64_t m = LW_MIN(ROWS, p->n - i), n = LW_MIN(COLUMNS, q->n - at);
    double *out = j->out + task * j->sets;
    if (kind != AB && at + n <= i)
        return;
    lw_operand x = {.f32 = p->x + i * j->dim, .row = j->dim, .col = 1},
               y = {.f32 = q->x + at * j->dim, .row = j->dim, .col = 1};
    memset(s->kernel, 0, (size_t)(ROWS * COLUMNS) * sizeof *s->kernel);
    lw_dense_best()->gemm(s->kernel, COLUMNS, 1, &x, m, &y, n, j->dim, s->pack);
    to_kernel(s->kernel, m, n, j->dim, kind != AB, at - i);
    if (p->in)
        add_sets(s, p->in + i * j->sets, m, q->in + at * j->sets, n, j->sets, out);
    else
        add_all(s->kernel, m, n, out);
}

/* Sums of each kind over the pairs of each subset: sum [KINDS][sets]. */
static int sum_pairs(lw_pool *pool, const scratch *work, const side *a, const side *b, int32_t dim,
                     int32_t sets, double *sum)
{
    pairs_job j = {.side = {*a, *b}, .dim = dim, .sets = sets, .work = work};
    const int64_t ra = LW_CEIL_DIV(a->n, ROWS), rb = LW_CEIL_DIV(b->n, ROWS);
    const int64_t ca = LW_CEIL_DIV(a->n, COLUMNS), cb = LW_CEIL_DIV(b->n, COLUMNS);
    const int64_t count[KINDS] = {ra * cb, ra * ca, rb * cb};
    for (int kind = 0; kind < KINDS; kind++)
        j.first[kind + 1] = j.first[kind] + count[kind];
    LW_CLEANUP(lw_free)
    double *out = lw_calloc((size_t)j.first[KINDS] * (size_t)sets, sizeof *out);
    if (!out)
        return LW_ENOMEM;
    j.out = out;
    LW_TRY(lw_pool_run_asking(pool, j.first[KINDS], pairs_task, &j));
    memset(sum, 0, KINDS * (size_t)sets * sizeof *sum);
    for (int kind = 0; kind < KINDS; kind++)
        for (int64_t t = j.first[kind]; t < j.first[kind + 1]; t++)
            for (int32_t e = 0; e < sets; e++)
                sum[kind * sets + e] += out[t * sets + e];
    return 0;
}

/* The unbiased estimate from the sums of subset e. */
static double discrepancy(const double *sum, int32_t sets, int32_t e, int64_t rows_a,
                          int64_t rows_b)
{
    double n = (double)rows_a, m = (double)rows_b;
    return sum[AA * sets + e] / (n * (n - 1)) + sum[BB * sets + e] / (m * (m - 1)) -
           2 * sum[AB * sets + e] / (n * m);
}

typedef struct kid_job {
    lw_pool *pool;
    side side[2];
    int32_t dim, subsets, rows; /* rows of each subset */
    lw_rng_key key[2];          /* draws */
    scratch *work;
} kid_job;

static int64_t drawn(const kid_job *j, int k, int32_t subset, int64_t i)
{
    return (int64_t)lw_rng_permute(j->key[k], (uint32_t)subset, (uint64_t)j->side[k].n,
                                   (uint64_t)i);
}

/* Every pair of all rows once; with `all` one more subset, of everything. */
static int by_membership(const kid_job *j, bool all, double *each, double *whole)
{
    const int32_t sets = j->subsets + all;
    side s[2] = {j->side[0], j->side[1]};
    LW_CLEANUP(lw_free)
    double *in = lw_calloc((size_t)(s[0].n + s[1].n) * (size_t)sets, sizeof *in);
    LW_CLEANUP(lw_free) double *sum = lw_calloc(KINDS * (size_t)sets, sizeof *sum);
    if (!in || !sum)
        return LW_ENOMEM;
    for (int k = 0; k < 2; k++) {
        double *of = in + (k ? s[0].n * sets : 0);
        for (int32_t e = 0; e < j->subsets; e++)
            for (int64_t i = 0; i < j->rows; i++)
                of[drawn(j, k, e, i) * sets + e] = 1;
        for (int64_t i = 0; all && i < s[k].n; i++)
            of[i * sets + j->subsets] = 1;
        s[k].in = of;
    }
    LW_TRY(sum_pairs(j->pool, j->work, &s[0], &s[1], j->dim, sets, sum));
    for (int32_t e = 0; e < j->subsets; e++)
        each[e] = discrepancy(sum, sets, e, j->rows, j->rows);
    if (all)
        *whole = discrepancy(sum, sets, j->subsets, s[0].n, s[1].n);
    return 0;
}

/* Each subset from its own rows. */
static int by_gathering(const kid_job *j, double *each)
{
    const size_t dim = (size_t)j->dim, set = (size_t)j->rows * dim;
    LW_CLEANUP(lw_free) float *x = lw_calloc(2 * set, sizeof *x);
    double sum[KINDS];
    if (!x)
        return LW_ENOMEM;
    const side s[2] = {{x, j->rows, NULL}, {x + set, j->rows, NULL}};
    for (int32_t e = 0; e < j->subsets; e++) {
        for (int k = 0; k < 2; k++)
            for (int64_t i = 0; i < j->rows; i++)
                memcpy(x + (size_t)k * set + (size_t)i * dim,
                       j->side[k].x + drawn(j, k, e, i) * j->dim, dim * sizeof *x);
        LW_TRY(sum_pairs(j->pool, j->work, &s[0], &s[1], j->dim, 1, sum));
        each[e] = discrepancy(sum, 1, 0, j->rows, j->rows);
    }
    return 0;
}

static int measure(kid_job *j, bool all, lw_kid_value *out)
{
    const double n = (double)j->side[0].n, m = (double)j->side[1].n, r = (double)j->rows;
    const size_t workers = j->pool ? (size_t)lw_pool_size(j->pool) : 1;
    const size_t kernel = ROWS * COLUMNS, sums = ROWS * ((size_t)j->subsets + 1);
    const size_t one = kernel + sums + lw_gemm_doubles(ROWS, COLUMNS);
    LW_CLEANUP(lw_free) double *memory = lw_calloc(workers * one, sizeof *memory);
    LW_CLEANUP(lw_free) scratch *work = lw_calloc(workers, sizeof *work);
    LW_CLEANUP(lw_free) double *each = lw_calloc((size_t)j->subsets, sizeof *each);
    if (!memory || !work || !each)
        return LW_ENOMEM;
    for (size_t i = 0; i < workers; i++)
        work[i] = (scratch){memory + i * one, memory + i * one + kernel,
                            memory + i * one + kernel + sums};
    j->work = work;
    if (all || (n + m) * (n + m) / 2 <= j->subsets * 2 * r * r)
        LW_TRY(by_membership(j, all, each, &out->all));
    else
        LW_TRY(by_gathering(j, each));
    for (int32_t i = 0; i < j->subsets; i++)
        out->mean += each[i] / j->subsets;
    for (int32_t i = 0; i < j->subsets; i++)
        out->sd += (each[i] - out->mean) * (each[i] - out->mean) / j->subsets;
    out->sd = sqrt(out->sd);
    return 0;
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
    const lw_rng_key key = lw_rng_key_of(seed, lw_hash_name("eval.kid"));
    kid_job job = {.pool = pool,
                   .side = {{a, n, NULL}, {b, m, NULL}},
                   .dim = dim,
                   .subsets = subsets,
                   .rows = made.rows,
                   .key = {key, {{key.k[0] ^ 1, key.k[1]}}}};
    LW_TRY(measure(&job, all, &made));
    if (!isfinite(made.mean) || (all && !isfinite(made.all)))
        return lw_fail(LW_ENUMERIC, "kernel distance: a feature is not finite, or too large");
    *out = made;
    return 0;
}
