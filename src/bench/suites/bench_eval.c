/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distances between sets of features, at Inception's 2,048: sums of a covariance, the Frechet
 * distance of two full covariances and of 1,000 rows each, the sliced Wasserstein distance, the kernel
 * distance; and a whole verdict (bench_verdict.c). The
 * second set is twice the first one, so that Frechet's answer is known: |mean|^2 + the trace of the
 * covariance.
 */
#include <math.h>

#include "bench/bench_case.h"
#include "eval/eval.h"

enum { DIM = 2048, ROWS = 4096, FEW = 1000, SLICED_ROWS = 2000, SLICED_DIM = 512 };

typedef struct distance_case {
    lw_pool *pool;
    float *a, *b; /* [ROWS][DIM] */
    lw_stats *of_a, *of_b;
    double value;
} distance_case;

static void distance_case_clear(distance_case *c)
{
    lw_free(&c->a);
    lw_free(&c->b);
    lw_stats_free(&c->of_a);
    lw_stats_free(&c->of_b);
}

static int distance_case_init(distance_case *c)
{
    lw_rng_key key = lw_rng_key_of(1, lw_hash_name("bench.distance"));
    c->a = lw_calloc((size_t)ROWS * DIM, sizeof *c->a);
    c->b = lw_calloc((size_t)ROWS * DIM, sizeof *c->b);
    if (!c->a || !c->b)
        return LW_ENOMEM;
    for (int64_t i = 0; i < (int64_t)ROWS * DIM; i++) {
        c->a[i] = (float)lw_rng_uniform(key, 0, (uint64_t)i, 0) * (float)(1 + i % 7);
        c->b[i] = 2 * c->a[i];
    }
    return 0;
}

static int sums_of(lw_pool *pool, const float *x, int64_t n, lw_stats **out)
{
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_TRY(lw_stats_new(DIM, &s));
    LW_TRY(lw_stats_add(pool, s, x, n));
    *out = lw_steal(&s);
    return 0;
}

static int covariance_call(void *self)
{
    distance_case *c = self;
    lw_stats_free(&c->of_a);
    return sums_of(c->pool, c->a, ROWS, &c->of_a);
}

static int frechet_call(void *self)
{
    distance_case *c = self;
    return lw_frechet(c->pool, c->of_a, c->of_b, &c->value);
}

static int sliced_call(void *self)
{
    distance_case *c = self;
    return lw_sliced_wasserstein(c->pool, c->a, SLICED_ROWS, c->b, SLICED_ROWS, SLICED_DIM,
                                 LW_SLICED_DIRECTIONS, 0, &c->value);
}

/* What `fid --kid` asks for, of as many rows: every pair is computed once. */
static int kid_call(void *self)
{
    distance_case *c = self;
    lw_kid_value v;
    LW_TRY(lw_kid(c->pool, c->a, ROWS, c->b, ROWS, DIM, 100, 1000, 0, false, &v));
    c->value = v.mean;
    return 0;
}

static int measure(lw_bench_run *r, distance_case *c, const char *name, int (*call)(void *),
                   double flops, double error)
{
    return lw_bench_measure(r,
                            &(lw_bench_work){.name = name,
                                             .method = "f64",
                                             .call = call,
                                             .self = c,
                                             .flops = flops,
                                             .memory = sizeof(double) * DIM * DIM * 4,
                                             .error = error,
                                             .against = isnan(error) ? NULL : "closed form"},
                            NULL);
}

/* The distance of n rows to twice themselves, and how far it is from what it must be. */
static int measure_frechet(lw_bench_run *r, distance_case *c, const char *name, int64_t n,
                           double flops)
{
    double error = (double)__builtin_nan(""), want = 0;
    LW_CLEANUP(lw_free) double *mean = lw_calloc(DIM, sizeof *mean);
    if (!mean)
        return LW_ENOMEM;
    lw_stats_free(&c->of_a);
    lw_stats_free(&c->of_b);
    LW_TRY(sums_of(c->pool, c->a, n, &c->of_a));
    LW_TRY(sums_of(c->pool, c->b, n, &c->of_b));
    if (r->config->reference) {
        LW_TRY(lw_stats_get(c->of_a, mean, NULL));
        LW_TRY(lw_stats_trace(c->of_a, &want));
        for (int i = 0; i < DIM; i++)
            want += mean[i] * mean[i];
        LW_TRY(frechet_call(c));
        error = fabs(c->value - want) / want;
    }
    return measure(r, c, name, frechet_call, flops, error);
}

static int measure_sliced(lw_bench_run *r, distance_case *c, const char *name)
{
    double none = (double)__builtin_nan("");
    return measure(r, c, name, sliced_call, 4.0 * SLICED_ROWS * SLICED_DIM * LW_SLICED_DIRECTIONS,
                   none);
}

static int measure_distances(lw_bench_run *r)
{
    const double d = DIM, n = FEW, none = (double)__builtin_nan("");
    bool cov = lw_bench_wants(r, "covariance_4096x2048"),
         full = lw_bench_wants(r, "frechet_2048_full"),
         few = lw_bench_wants(r, "frechet_2048_of_1000"), sliced = lw_bench_wants(r, "sliced_2000"),
         kid = lw_bench_wants(r, "kid_2048_of_4096");
    LW_CLEANUP(distance_case_clear) distance_case c = {.pool = r->dev->pool};
    if (!cov && !full && !few && !sliced && !kid)
        return 0;
    LW_TRY(distance_case_init(&c));
    if (cov)
        LW_TRY(measure(r, &c, "covariance_4096x2048", covariance_call, ROWS * d * d, none));
    if (full) /* two Cholesky factors, a product, a reduction to a band */
        LW_TRY(
            measure_frechet(r, &c, "frechet_2048_full", ROWS, d * d * d * (2. / 3 + 2 + 8. / 3)));
    if (few)
        LW_TRY(measure_frechet(r, &c, "frechet_2048_of_1000", FEW, n * n * (2 * d + n * 8 / 3)));
    if (sliced)
        LW_TRY(measure_sliced(r, &c, "sliced_2000"));
    return kid ? measure(r, &c, "kid_2048_of_4096", kid_call, 4.0 * ROWS * ROWS * d, none) : 0;
}

int lw_bench_suite_eval(lw_bench_run *r)
{
    LW_TRY(measure_distances(r));
    return lw_bench_whole_verdict(r);
}
