/* SPDX-License-Identifier: Apache-2.0 */
/* Reference feature statistics in plain loops, for float and for double data; task split. */
#include "kernels/stats/stats.h"

#include <math.h>

#define LW_REAL float
#define LW_REF(name) name##_ref
#include "kernels/stats/stats_ref.inc"
#undef LW_REAL
#undef LW_REF
#define LW_REAL double
#define LW_REF(name) name##_f64
#include "kernels/stats/stats_ref.inc"

/* Whole cache lines of channels, at least 32768 elements a task. */
ptrdiff_t lw_stats_tasks(const lw_stats_shape *s)
{
    ptrdiff_t tasks = s->h * s->w * s->c / 32768, lines = (s->c + 15) / 16;
    if (tasks > lines)
        tasks = lines;
    if (tasks > 16)
        tasks = 16;
    return tasks < 1 ? 1 : tasks;
}

void lw_stats_range(const lw_stats_shape *s, ptrdiff_t task, ptrdiff_t *c0, ptrdiff_t *c1)
{
    ptrdiff_t tasks = lw_stats_tasks(s), lines = (s->c + 15) / 16;
    *c0 = lines * task / tasks * 16;
    *c1 = lines * (task + 1) / tasks * 16;
    if (*c1 > s->c)
        *c1 = s->c;
}
