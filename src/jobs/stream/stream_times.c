/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of durations from bins of equal ratio. */
#include "jobs/stream/stream_times.h"

#include <math.h>

#define LEAST 1e-6
#define RATIO 1.01

void lw_times_add(lw_times *t, double seconds)
{
    double at = seconds > LEAST ? log(seconds / LEAST) / log(RATIO) : 0;
    t->bin[LW_MIN((int)at, LW_TIMES_BINS - 1)]++;
    t->n++;
    t->sum += seconds;
    t->max = seconds > t->max ? seconds : t->max;
}

/* The middle of the bin in which the sample of this rank lies, in ms. */
static double quantile(const lw_times *t, double q)
{
    const double rank = q * (double)(t->n - 1);
    double before = 0;
    for (int i = 0; i < LW_TIMES_BINS; i++) {
        before += t->bin[i];
        if (before > rank)
            return fmin(LEAST * pow(RATIO, i + 0.5), t->max) * 1e3;
    }
    return t->max * 1e3;
}

lw_stream_latency lw_times_latency(const lw_times *t)
{
    if (t->n == 0)
        return (lw_stream_latency){0};
    return (lw_stream_latency){.p50 = quantile(t, 0.5),
                               .p95 = quantile(t, 0.95),
                               .p99 = quantile(t, 0.99),
                               .max = t->max * 1e3,
                               .mean = t->sum / (double)t->n * 1e3};
}
