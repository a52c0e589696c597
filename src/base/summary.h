/* SPDX-License-Identifier: Apache-2.0 */
/* What a number of samples say: mean, quantiles, spread. */
#ifndef LW_SUMMARY_H
#define LW_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

typedef struct lw_summary {
    int32_t n;
    double mean, std;                    /* std: with n - 1; NAN for one sample */
    double min, p10, p50, p90, p95, p99; /* linear between neighbours; NAN for none */
    double mad;                          /* median distance from the median */
} lw_summary;
lw_summary lw_summarize(const double *values, int32_t n); /* in any order; in their unit */
/* Of at least one number, summed in their order. */
double lw_mean_of(const double *v, size_t n);
/* Upwards; numbers only, no NaN. */
void lw_sort(double *v, size_t n);
/* Quantile q in [0, 1] of sorted values, linear between neighbours; NaN when n is 0. */
double lw_quantile(const double *sorted, size_t n, double q);
/* The first of n numbers that is an infinity or no number, or n. */
int64_t lw_first_not_finite(const float *x, int64_t n);
/* What it is: "nan", "inf" or "-inf". The sign of a NaN differs from one processor's arithmetic to another's. */
const char *lw_not_finite_text(double x);

#endif
