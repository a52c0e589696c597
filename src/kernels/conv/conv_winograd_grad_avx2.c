/* SPDX-License-Identifier: Apache-2.0 */
/* The body of conv_winograd_grad_body.inc for f32 at this ISA level, and what combines partial sums of either type. */
#include "kernels/conv/conv_winograd_elem_f32.h"
#include "kernels/conv/conv_winograd_grad_body.inc"

void LWV(lw_winograd_weight_grad_combine)(float *dw, float *db, const lw_conv_shape *s,
                                          int accumulate, const float *partials, int64_t task)
{
    lw_wino_grad z = lw_wino_grad_of(s);
    LWV(lw_wgrad_combine)
    (dw, db, (int64_t)s->O * 9 * s->C, s->O, &z.split, accumulate, partials, task);
}
