/* SPDX-License-Identifier: Apache-2.0 */
/* What samples say: quantiles, spread, and whether two sets of them differ. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "recipes/recipe_bench.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted values, linear between neighbours. */
static double quantile(const double *sorted, int32_t n, double p)
{
    double at = p * (n - 1);
    int32_t i = LW_MIN((int32_t)at, n - 1), j = LW_MIN(i + 1, n - 1);
    return sorted[i] + (at - i) * (sorted[j] - sorted[i]);
}

static void set_mean(const double *v, int32_t n, lw_bench_stats *s)
{
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < n; i++)
        sum += v[i];
    s->mean = sum / n;
    for (int32_t i = 0; i < n; i++)
        squares += (v[i] - s->mean) * (v[i] - s->mean);
    s->std = n > 1 ? sqrt(squares / (n - 1)) : (double)NAN;
}

lw_bench_stats lw_bench_describe(const double *ms, int32_t n)
{
    const double none = (double)NAN;
    lw_bench_stats s = {n, none, none, none, none, none, none, none, none, none};
    LW_CLEANUP(lw_free) double *v = n > 0 ? lw_calloc((size_t)n, sizeof *v) : NULL;
    if (!v)
        return s;
    for (int32_t i = 0; i < n; i++)
        v[i] = ms[i];
    qsort(v, (size_t)n, sizeof *v, by_value);
    set_mean(v, n, &s);
    s.min = v[0];
    s.p10 = quantile(v, n, 0.10);
    s.p50 = quantile(v, n, 0.50);
    s.p90 = quantile(v, n, 0.90);
    s.p95 = quantile(v, n, 0.95);
    s.p99 = quantile(v, n, 0.99);
    for (int32_t i = 0; i < n; i++)
        v[i] = fabs(ms[i] - s.p50);
    qsort(v, (size_t)n, sizeof *v, by_value);
    s.mad = quantile(v, n, 0.50);
    return s;
}

const char *lw_bench_verdict_name(lw_bench_verdict v)
{
    static const char *const name[] = {"noise", "better", "regression", "new", "gone"};
    return name[v];
}

lw_bench_verdict lw_bench_judge(const lw_bench_stats *base, const lw_bench_stats *now)
{
    double spread = 3 * fmax(base->mad, now->mad);
    double margin = fmax(0.03 * base->p50, spread), margin_min = fmax(0.03 * base->min, spread);
    double d = now->p50 - base->p50, d_min = now->min - base->min;
    if (d > margin && d_min > margin_min)
        return LW_BENCH_WORSE;
    return d < -margin && d_min < -margin_min ? LW_BENCH_BETTER : LW_BENCH_NOISE;
}
