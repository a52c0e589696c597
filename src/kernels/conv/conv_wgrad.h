/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the conv family: the sizes of a weight gradient. */
#ifndef LW_KERNELS_CONV_WGRAD_H
#define LW_KERNELS_CONV_WGRAD_H

#include "kernels/conv/conv.h"
#include "kernels/gemm/gemm_wgrad.h"

static inline lw_wgrad lw_conv_wgrad(const lw_conv_shape *s)
{
    return (lw_wgrad){.images = s->B,
                      .OH = s->OH,
                      .OW = s->OW,
                      .H = s->H,
                      .W = s->W,
                      .C = s->C,
                      .O = s->O,
                      .KH = s->KH,
                      .KW = s->KW,
                      .stride = s->stride,
                      .pad_top = s->pad_top,
                      .pad_left = s->pad_left,
                      .ldx = s->ldx,
                      .ldy = s->ldy};
}

#endif
