/* SPDX-License-Identifier: Apache-2.0 */
/* Peaks of plain C: separate multiplications and additions, one number at a time. */
#include "kernels/peak/peak.h"

enum { CHAINS = 12 };

void lw_peak_fma_ref(double *ops, float *sink, ptrdiff_t rounds)
{
    float acc[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        acc[i] = (float)i;
    for (ptrdiff_t r = 0; r < rounds; r++)
        for (int i = 0; i < CHAINS; i++)
            acc[i] = acc[i] * 0.999f + 1e-3f;
    *sink = 0.0f;
    for (int i = 0; i < CHAINS; i++)
        *sink += acc[i];
    *ops = 2.0 * CHAINS * (double)rounds;
}

void lw_peak_read_ref(float *sum, const float *x, ptrdiff_t n)
{
    float acc[4] = {0};
    for (ptrdiff_t i = 0; i < n; i += 4)
        for (int k = 0; k < 4; k++)
            acc[k] += x[i + k];
    *sum = acc[0] + acc[1] + acc[2] + acc[3];
}

void lw_peak_copy_ref(float *y, const float *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = x[i];
}
