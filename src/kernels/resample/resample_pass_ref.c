/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of a resize, the oracle: whole numbers are exact, sums of floats are double. */
#include "kernels/resample/resample.h"

/* One output: inputs x[0], x[step], ... under the weights of output o. */
static uint8_t sum_u8(const uint8_t *x, ptrdiff_t step, const lw_resample_axis *a, ptrdiff_t o)
{
    int64_t sum = (int64_t)1 << (LW_RESAMPLE_BITS - 1);
    for (ptrdiff_t j = 0; j < a->count[o]; j++)
        sum += (int64_t)a->fixed[o * a->taps + j] * x[j * step];
    sum >>= LW_RESAMPLE_BITS;
    return (uint8_t)LW_MIN(LW_MAX(sum, 0), 255);
}

static float sum_f32(const float *x, ptrdiff_t step, const lw_resample_axis *a, ptrdiff_t o)
{
    double sum = 0.0;
    for (ptrdiff_t j = 0; j < a->count[o]; j++)
        sum += (double)a->weight[o * a->taps + j] * (double)x[j * step];
    return (float)sum;
}

#define ACROSS(name, real, sum)                                                       \
    void name(void *to, const void *from, const lw_resample_pass *p, ptrdiff_t begin, \
              ptrdiff_t end, void *scratch)                                           \
    {                                                                                 \
        const lw_resample_axis *a = p->axis;                                          \
        real *y = to;                                                                 \
        const real *x = from;                                                         \
        (void)scratch;                                                                \
        for (ptrdiff_t r = begin; r < end; r++)                                       \
            for (ptrdiff_t i = 0; i < a->n * p->c; i++) {                             \
                ptrdiff_t o = i / p->c, at = a->start[o] * p->c + i % p->c;           \
                y[r * p->y_pitch + i] = sum(x + r * p->x_pitch + at, p->c, a, o);     \
            }                                                                         \
    }

#define DOWN(name, real, sum)                                                                    \
    void name(void *to, const void *from, const lw_resample_pass *p, ptrdiff_t begin,            \
              ptrdiff_t end)                                                                     \
    {                                                                                            \
        const lw_resample_axis *a = p->axis;                                                     \
        real *y = to;                                                                            \
        const real *x = from;                                                                    \
        for (ptrdiff_t o = begin; o < end; o++)                                                  \
            for (ptrdiff_t i = 0; i < p->c; i++)                                                 \
                y[o * p->y_pitch + i] = sum(x + a->start[o] * p->x_pitch + i, p->x_pitch, a, o); \
    }

ACROSS(lw_resample_across_u8_ref, uint8_t, sum_u8)
ACROSS(lw_resample_across_f32_ref, float, sum_f32)
DOWN(lw_resample_down_u8_ref, uint8_t, sum_u8)
DOWN(lw_resample_down_f32_ref, float, sum_f32)
