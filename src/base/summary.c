/* SPDX-License-Identifier: Apache-2.0 */
/* What samples say: quantiles and spread. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void lw_sort(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
}

double lw_quantile(const double *sorted, size_t n, double q)
{
    if (n == 0)
        return (double)NAN;
    double at = q * (double)(n - 1);
    size_t i = LW_MIN((size_t)at, n - 1), j = LW_MIN(i + 1, n - 1);
    return sorted[i] + (at - (double)i) * (sorted[j] - sorted[i]);
}

double lw_mean_of(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n;
}

static void set_spread(const double *v, int32_t n, lw_summary *s)
{
    double squares = 0;
    s->mean = lw_mean_of(v, (size_t)n);
    for (int32_t i = 0; i < n; i++)
        squares += (v[i] - s->mean) * (v[i] - s->mean);
    s->std = n > 1 ? sqrt(squares / (n - 1)) : (double)NAN;
}

lw_summary lw_summarize(const double *values, int32_t n)
{
    const double none = (double)NAN;
    lw_summary s = {n, none, none, none, none, none, none, none, none, none};
    LW_CLEANUP(lw_free) double *v = n > 0 ? lw_calloc((size_t)n, sizeof *v) : NULL;
    if (!v)
        return s;
    for (int32_t i = 0; i < n; i++)
        v[i] = values[i];
    lw_sort(v, (size_t)n);
    set_spread(v, n, &s);
    s.min = v[0];
    s.p10 = lw_quantile(v, (size_t)n, 0.10);
    s.p50 = lw_quantile(v, (size_t)n, 0.50);
    s.p90 = lw_quantile(v, (size_t)n, 0.90);
    s.p95 = lw_quantile(v, (size_t)n, 0.95);
    s.p99 = lw_quantile(v, (size_t)n, 0.99);
    for (int32_t i = 0; i < n; i++)
        v[i] = fabs(values[i] - s.p50);
    lw_sort(v, (size_t)n);
    s.mad = lw_quantile(v, (size_t)n, 0.50);
    return s;
}

int64_t lw_first_not_finite(const float *x, int64_t n)
{
    int64_t i = 0;
    while (i < n && isfinite(x[i]))
        i++;
    return i;
}

const char *lw_not_finite_text(double x)
{
    return isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}
