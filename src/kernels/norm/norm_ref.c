/* SPDX-License-Identifier: Apache-2.0 */
/* Reference group norm in plain loops with double accumulators, for float and for double data; task
 * split. */
#include "kernels/norm/norm.h"

#include <math.h>

static double norm_act(double u, lw_act act)
{
    if (act == LW_ACT_SILU)
        return u / (1.0 + exp(-u));
    return act == LW_ACT_RELU && u < 0 ? 0.0 : u;
}

static double norm_slope(double u, lw_act act)
{
    if (act == LW_ACT_SILU) {
        double q = 1.0 / (1.0 + exp(-u));
        return q * (1.0 + u * (1.0 - q));
    }
    return act == LW_ACT_RELU && !(u > 0) ? 0.0 : 1.0;
}

#define LW_REAL float
#define LW_REF(name) name##_ref
#include "kernels/norm/norm_ref.inc"
#undef LW_REAL
#undef LW_REF
#define LW_REAL double
#define LW_REF(name) name##_f64
#include "kernels/norm/norm_ref.inc"

static double x_at(const void *x, ptrdiff_t at, const lw_norm_shape *s)
{
    return s->x_num == LW_NUM_BF16 ? (double)lw_bf16_to_f32(((const lw_bf16 *)x)[at])
                                   : (double)((const float *)x)[at];
}

/* Mean and rstd of group g, in double as forward has them. */
static void group_stats(double *mean, double *rstd, const void *x, const lw_norm_shape *s,
                        ptrdiff_t g)
{
    ptrdiff_t per = s->c / s->groups;
    double n = (double)(s->hw * per), sum = 0, sq = 0;
    for (ptrdiff_t p = 0; p < s->hw; p++)
        for (ptrdiff_t c = g * per; c < (g + 1) * per; c++)
            sum += x_at(x, p * s->x_pitch + c, s);
    *mean = s->rms ? 0 : sum / n;
    for (ptrdiff_t p = 0; p < s->hw; p++)
        for (ptrdiff_t c = g * per; c < (g + 1) * per; c++) {
            double d = x_at(x, p * s->x_pitch + c, s) - *mean;
            sq += d * d;
        }
    *rstd = 1.0 / sqrt(sq / n + (double)s->eps);
}

static void store_narrow(void *y, ptrdiff_t at, float v, lw_num num, const float *pair)
{
    if (num != LW_NUM_S8) {
        if (num == LW_NUM_F32)
            ((float *)y)[at] = v;
        else
            ((lw_bf16 *)y)[at] = lw_bf16_of_f32(v);
        return;
    }
    v *= 1.0f / pair[0];
    v = v > -pair[1] ? v : -pair[1];
    v = v < 255.0f - pair[1] ? v : 255.0f - pair[1];
    ((uint8_t *)y)[at] = (uint8_t)((int32_t)lrintf(v) + (int32_t)pair[1]);
}

void lw_norm_forward_narrow_ref(void *y, float *mean, float *rstd, const void *x,
                                const float *gamma, const float *beta, const float *scale,
                                const float *shift, lw_num num, const float *pair,
                                const lw_norm_shape *s, ptrdiff_t g0, ptrdiff_t g1, float *scratch)
{
    ptrdiff_t per = s->c / s->groups;
    (void)scratch;
    for (ptrdiff_t g = g0; g < g1; g++) {
        double m, r;
        group_stats(&m, &r, x, s, g);
        mean[g] = (float)m;
        rstd[g] = (float)r;
        for (ptrdiff_t p = 0; p < s->hw; p++)
            for (ptrdiff_t c = g * per; c < (g + 1) * per; c++) {
                double u = (x_at(x, p * s->x_pitch + c, s) - m) * r * norm_at_ref(gamma, c, 1.0);
                u = (u + norm_at_ref(beta, c, 0.0)) * (1.0 + norm_at_ref(scale, c, 0.0));
                u += norm_at_ref(shift, c, 0.0);
                store_narrow(y, p * s->y_pitch + c, (float)norm_act(u, s->act), num, pair);
            }
    }
}

void lw_norm_rows_ref(void *y, lw_bf16 *also, float *mean, float *rstd, const float *x,
                      const float *gamma, const float *beta, const float *scale, const float *shift,
                      lw_num num, const lw_norm_shape *s, ptrdiff_t rows)
{
    const float no_scale[2] = {1, 0}; /* rows are f32 or bf16 */
    for (ptrdiff_t i = 0; i < rows; i++) {
        const float *up = scale ? scale + i * s->c : NULL, *add = shift ? shift + i * s->c : NULL;
        if (num == LW_NUM_F32)
            lw_norm_forward_ref((float *)y + i * s->y_pitch, mean + i, rstd + i, x + i * s->x_pitch,
                                gamma, beta, up, add, s, 0, 1, NULL);
        else
            lw_norm_forward_narrow_ref((lw_bf16 *)y + i * s->y_pitch, mean + i, rstd + i,
                                       x + i * s->x_pitch, gamma, beta, up, add, num, no_scale, s,
                                       0, 1, NULL);
        for (ptrdiff_t c = 0; also && c < s->c; c++)
            also[i * s->c + c] = lw_bf16_of_f32(((float *)y)[i * s->y_pitch + c]);
    }
}

/* Coefficients a, b, sums s1, s2 and mean, rstd by channel, rounded up to whole vectors. */
size_t lw_norm_scratch(const lw_norm_shape *s)
{
    return (size_t)(8 * (s->c + 64));
}

/* As many tasks as keep 64 threads busy, each worth much more than handing it out; where samples are few, smaller ones feed 16
 * threads. Of whole cache lines if half as many can be: pairs of lines first, since 32 of 384 channels fall on an eighth of a
 * cache's sets and bf16 takes half the bytes. */
ptrdiff_t lw_norm_tasks(const lw_norm_shape *s, ptrdiff_t samples)
{
    enum { LITTLE = 8192, MUCH = 16384, PAIR = 32, MOST = 16, THREADS = 64 };
    const ptrdiff_t n = s->hw * s->c, some = LW_MAX(samples, (ptrdiff_t)1);
    ptrdiff_t tasks = LW_MAX(LW_MIN(n / LITTLE, MOST / some),
                             LW_MIN(n / MUCH, LW_CEIL_DIV((ptrdiff_t)THREADS, some)));
    tasks = LW_MIN(LW_MIN(tasks, s->c / PAIR), LW_MIN(s->groups, (ptrdiff_t)MOST));
    for (ptrdiff_t channels = PAIR; channels >= PAIR / 2; channels /= 2)
        for (ptrdiff_t t = tasks; 2 * t >= tasks && t > 0; t--)
            if (s->groups % t == 0 && s->c % (t * channels) == 0)
                return t;
    return LW_MAX(tasks, (ptrdiff_t)1);
}

void lw_norm_range(const lw_norm_shape *s, ptrdiff_t tasks, ptrdiff_t task, ptrdiff_t *g0,
                   ptrdiff_t *g1)
{
    *g0 = s->groups * task / tasks;
    *g1 = s->groups * (task + 1) / tasks;
}
