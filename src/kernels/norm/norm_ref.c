/* SPDX-License-Identifier: Apache-2.0 */
/* Reference group norm in plain loops with double accumulators, for float and for double data; task
 * split. */
#include "kernels/norm/norm.h"

#include <math.h>

static double norm_act(double u, lw_act act)
{
    if (act == LW_ACT_SILU)
        return u / (1.0 + exp(-u));
    return act == LW_ACT_RELU && !(u > 0) ? 0.0 : u;
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

/* Coefficients a, b, sums s1, s2 and mean, rstd by channel, rounded up to whole vectors. */
size_t lw_norm_scratch(const lw_norm_shape *s)
{
    return (size_t)(8 * (s->c + 64));
}

/* A task should be worth more than a hand-over between threads and read whole cache lines. */
ptrdiff_t lw_norm_tasks(const lw_norm_shape *s)
{
    ptrdiff_t tasks = s->hw * s->c / 32768, lines = s->c / 16;
    if (tasks > lines)
        tasks = lines;
    if (tasks > s->groups)
        tasks = s->groups;
    if (tasks > 16)
        tasks = 16;
    return tasks < 1 ? 1 : tasks;
}

void lw_norm_range(const lw_norm_shape *s, ptrdiff_t task, ptrdiff_t *g0, ptrdiff_t *g1)
{
    ptrdiff_t tasks = lw_norm_tasks(s);
    *g0 = s->groups * task / tasks;
    *g1 = s->groups * (task + 1) / tasks;
}
