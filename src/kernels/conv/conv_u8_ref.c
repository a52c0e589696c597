/* SPDX-License-Identifier: Apache-2.0 */
/* conv, reference, u8 images and s8 weights; sums of whole numbers are exact in double. */
#define REF_A uint8_t
#define REF_B int8_t
#define REF_VALUE(v) ((double)(v))
#define REF_WEIGHT(v) ((double)(v))
#include "kernels/conv/conv_ref.inc"

void lw_conv_pack_s8_ref(void *packed, const float *w, const lw_conv_shape *s, lw_conv_pass pass,
                         const float *scale, int64_t task)
{
    int8_t *out = packed;
    int64_t tasks = lw_conv_pack_tasks(s, pass);
    int64_t filter = (int64_t)s->KH * s->KW * s->C, n = s->O * filter;
    for (int64_t i = n * task / tasks; i < n * (task + 1) / tasks; i++)
        out[i] = lw_s8_of_f32(w[i], scale[pass == LW_CONV_FORWARD ? i / filter : i % s->C]);
}

void lw_conv_forward_u8_ref(void *y, const uint8_t *x, const void *packed, const lw_quant *q,
                            const lw_conv_shape *s, const lw_epilogue *e, int64_t task)
{
    forward_pass(y, x, packed, q, s, e, task);
}

void lw_conv_data_grad_u8_ref(void *dx, const uint8_t *dy, const void *packed, const lw_quant *q,
                              const lw_conv_shape *s, const lw_epilogue *e, int64_t task)
{
    data_pass(dx, dy, packed, q, s, e, task);
}
