/* SPDX-License-Identifier: Apache-2.0 */
/* conv, reference, f32: the oracle and the portable path; the loops are in conv_ref.inc.
 * Packed weights are a plain copy of w; tasks take equal shares of image rows or filters. */
#define REF_A float
#define REF_B float
#define REF_VALUE(v) ((double)(v))
#define REF_WEIGHT(v) ((double)(v))
#include "kernels/conv/conv_ref.inc"

void lw_conv_pack_ref(float *packed, const float *w, const lw_conv_shape *s, lw_conv_pass pass,
                      int64_t task)
{
    int64_t tasks = lw_conv_pack_tasks(s, pass), n = (int64_t)s->O * s->KH * s->KW * s->C;
    for (int64_t i = n * task / tasks; i < n * (task + 1) / tasks; i++)
        packed[i] = w[i];
}

void lw_conv_forward_ref(float *y, const float *x, const float *packed, const lw_conv_shape *s,
                         const lw_epilogue *e, int64_t task)
{
    forward_pass(y, x, packed, NULL, s, e, task);
}

void lw_conv_data_grad_ref(float *dx, const float *dy, const float *packed, const lw_conv_shape *s,
                           const lw_epilogue *e, int64_t task)
{
    data_pass(dx, dy, packed, NULL, s, e, task);
}

void lw_conv_weight_grad_ref(float *dw, float *db, const float *dy, const float *x,
                             const lw_conv_shape *s, int accumulate, float *partials, int64_t task)
{
    (void)partials; /* one pass: each task owns some filters */
    weight_pass(dw, db, dy, x, s, accumulate, task);
}

void lw_conv_weight_grad_combine_ref(float *dw, float *db, const lw_conv_shape *s, int accumulate,
                                     const float *partials, int64_t task)
{
    (void)dw, (void)db, (void)s, (void)accumulate, (void)partials, (void)task;
}
