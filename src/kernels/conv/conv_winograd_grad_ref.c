/* SPDX-License-Identifier: Apache-2.0 */
/* Weight gradients at the reference level: directly, as everything there. */
#include "kernels/conv/conv_winograd.h"

typedef struct direct_tasks {
    int64_t first, end;
} direct_tasks;

/* The tasks of a direct gradient that are done in one of these. */
static direct_tasks direct(const lw_conv_shape *s, int64_t task)
{
    const int64_t all = lw_conv_weight_grad_tasks(s), tasks = lw_winograd_weight_grad_tasks(s);
    return (direct_tasks){all * task / tasks, all * (task + 1) / tasks};
}

void lw_winograd_weight_grad_ref(float *dw, float *db, const void *dy, const void *x,
                                 const lw_conv_shape *s, int accumulate, float *partials,
                                 float *scratch, int64_t task)
{
    (void)scratch;
    const direct_tasks d = direct(s, task);
    for (int64_t t = d.first; t < d.end; t++)
        lw_conv_weight_grad_ref(dw, db, dy, x, s, accumulate, partials, t);
}

void lw_winograd_weight_grad_bf16_ref(float *dw, float *db, const void *dy, const void *x,
                                      const lw_conv_shape *s, int accumulate, float *partials,
                                      float *scratch, int64_t task)
{
    (void)scratch;
    const direct_tasks d = direct(s, task);
    for (int64_t t = d.first; t < d.end; t++)
        lw_conv_weight_grad_bf16_ref(dw, db, dy, x, s, accumulate, partials, t);
}

void lw_winograd_weight_grad_combine_ref(float *dw, float *db, const lw_conv_shape *s,
                                         int accumulate, const float *partials, int64_t task)
{
    lw_conv_weight_grad_combine_ref(dw, db, s, accumulate, partials, task);
}
