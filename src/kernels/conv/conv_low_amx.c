/* SPDX-License-Identifier: Apache-2.0 */
/* The body of conv_low_body.inc at this ISA level. */
#include "kernels/conv/conv_low_body.inc"

static lw_conv_job split_job(float *out, const float *in, const void *packed, const lw_epilogue *e,
                             float *copy, lw_tile_room *room)
{
    return (lw_conv_job){.in = in,
                         .packed = packed,
                         .out = out,
                         .e = e,
                         .num = LW_NUM_BF16X3,
                         .tiles = &lw_tiles_bf16x3_amx,
                         .room = lw_tiles_begin(room),
                         .copy = copy,
                         .copy_words = LW_CONV_COPY,
                         .split = lw_bf16x3_split_amx,
                         .zeros = zeros};
}

void lw_conv_forward_bf16x3_amx(float *y, const float *x, const void *packed,
                                const lw_conv_shape *s, const lw_epilogue *e, int64_t task)
{
    lw_tile_room room;
    _Alignas(64) float copy[LW_CONV_COPY];
    lw_conv_job j = split_job(y, x, packed, e, copy, &room);
    j.in_pitch = s->ldx;
    j.out_pitch = s->ldy;
    j.out_h = s->OH;
    j.out_w = s->OW;
    lw_conv_run_avx512(&j, s, LW_CONV_FORWARD, task);
    lw_tiles_end();
}

void lw_conv_data_grad_bf16x3_amx(float *dx, const float *dy, const void *packed,
                                  const lw_conv_shape *s, const lw_epilogue *e, int64_t task)
{
    lw_tile_room room;
    _Alignas(64) float copy[LW_CONV_COPY];
    lw_conv_job j = split_job(dx, dy, packed, e, copy, &room);
    j.in_pitch = s->ldy;
    j.out_pitch = s->ldx;
    j.out_h = s->H;
    j.out_w = s->W;
    lw_conv_run_avx512(&j, s, LW_CONV_DATA_GRAD, task);
    lw_tiles_end();
}
