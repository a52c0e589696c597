/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "eval/eval.h"

int32_t lw_argmax(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        best = x[k] > x[best] ? k : best;
    return (int32_t)best;
}

static double largest(const double *z, int64_t n)
{
    double top = z[0];
    for (int64_t i = 1; i < n; i++)
        top = LW_MAX(top, z[i]);
    return top;
}

void lw_softmax_of(const double *z, int64_t n, double *p)
{
    double top = largest(z, n), sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += p[i] = exp(z[i] - top);
    for (int64_t i = 0; i < n; i++)
        p[i] /= sum;
}

void lw_log_softmax_of(const double *z, int64_t n, double *out)
{
    double top = largest(z, n), sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(z[i] - top);
    for (int64_t i = 0; i < n; i++)
        out[i] = z[i] - top - log(sum);
}

double lw_entropy_of(const double *p, int64_t n)
{
    double h = 0;
    for (int64_t i = 0; i < n; i++)
        h -= p[i] > 0 ? p[i] * log(p[i]) : 0;
    return h;
}
