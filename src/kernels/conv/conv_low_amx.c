/* SPDX-License-Identifier: Apache-2.0 */
/* The body of conv_low_body.inc at this ISA level. */
#include "kernels/conv/conv_low_body.inc"

/* A pass of f32 operands that are split as they are copied. */
static void split_run(float *out, const float *in, const void *packed, const lw_conv_shape *s,
                      lw_conv_pass pass, const lw_epilogue *e, int64_t task)
{
    const bool forward = pass == LW_CONV_FORWARD;
    lw_tile_room room;
    _Alignas(64) float copy[LW_CONV_COPY];
    lw_conv_job j = {.in = in,
                     .packed = packed,
                     .out = out,
                     .e = e,
                     .num = LW_NUM_BF16X3,
                     .tiles = &lw_tiles_bf16x3_amx,
                     .room = lw_tiles_begin(&room),
                     .copy = copy,
                     .copy_words = LW_CONV_COPY,
                     .split = lw_bf16x3_split_amx,
                     .zeros = zeros,
                     .in_pitch = forward ? s->ldx : s->ldy,
                     .out_pitch = forward ? s->ldy : s->ldx,
                     .out_h = forward ? s->OH : s->H,
                     .out_w = forward ? s->OW : s->W};
    lw_conv_run_avx512(&j, s, pass, task);
    lw_tiles_end();
}

void lw_conv_forward_bf16x3_amx(float *y, const float *x, const void *packed,
                                const lw_conv_shape *s, const lw_epilogue *e, int64_t task)
{
    split_run(y, x, packed, s, LW_CONV_FORWARD, e, task);
}

void lw_conv_data_grad_bf16x3_amx(float *dx, const float *dy, const void *packed,
                                  const lw_conv_shape *s, const lw_epilogue *e, int64_t task)
{
    split_run(dx, dy, packed, s, LW_CONV_DATA_GRAD, e, task);
}
