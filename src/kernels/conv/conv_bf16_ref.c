/* SPDX-License-Identifier: Apache-2.0 */
/* conv, reference, bf16 operands. */
#define REF_A lw_bf16
#define REF_B lw_bf16
#define REF_VALUE(v) ((double)lw_bf16_to_f32(v))
#define REF_WEIGHT(v) REF_VALUE(v)
#include "kernels/conv/conv_ref.inc"

void lw_conv_pack_bf16_ref(void *packed, const float *w, const lw_conv_shape *s, lw_conv_pass pass,
                           int64_t task)
{
    lw_bf16 *out = packed;
    int64_t tasks = lw_conv_pack_tasks(s, pass), n = (int64_t)s->O * s->KH * s->KW * s->C;
    for (int64_t i = n * task / tasks; i < n * (task + 1) / tasks; i++)
        out[i] = lw_bf16_of_f32(w[i]);
}

void lw_conv_forward_bf16_ref(void *y, const lw_bf16 *x, const void *packed, const lw_conv_shape *s,
                              const lw_epilogue *e, int64_t task)
{
    forward_pass(y, x, packed, NULL, s, e, task);
}

void lw_conv_data_grad_bf16_ref(void *dx, const lw_bf16 *dy, const void *packed,
                                const lw_conv_shape *s, const lw_epilogue *e, int64_t task)
{
    data_pass(dx, dy, packed, NULL, s, e, task);
}

void lw_conv_weight_grad_bf16_ref(float *dw, float *db, const lw_bf16 *dy, const lw_bf16 *x,
                                  const lw_conv_shape *s, int accumulate, float *partials,
                                  int64_t task)
{
    (void)partials;
    weight_pass(dw, db, dy, x, s, accumulate, task);
}
