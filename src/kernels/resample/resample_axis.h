/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights of one axis of a picture that is resized: output o is a weighted sum of a few
 * neighbouring inputs. Which ones and how much depends on the form, because published numbers
 * depend on which resize made the pixels:
 *
 *   form          what it is                                           filters
 *   pillow        Pillow's Image.resize of 8-bit channels, bit for     all
 *                 bit, of versions before 13
 *   pillow-13     the same of version 13, which takes the passes of    all
 *                 some pictures in the other order
 *   float-aa      the same weights in float: torch's                   all
 *                 interpolate(antialias=True), Pillow's mode F
 *   torch         torch's interpolate, align_corners=False, no         bilinear, bicubic
 *                 antialias; bicubic has a = -0.75
 *   tf-inception  TensorFlow 1's resize_bilinear: output o is at       bilinear
 *                 input o from / to. It stands before the Inception
 *                 network of Frechet distances
 *
 * pillow and float-aa widen the filter by the scale when they shrink a picture (antialiasing), so
 * that every input counts; bicubic has a = -0.5 there. With s = from / to and f = max(s, 1):
 *
 *   centre = (o + 1/2) s        inputs i with |i + 1/2 - centre| < support f
 *   weight = filter((i + 1/2 - centre) / f), divided by the sum of the weights
 *
 * A scale given explicitly (torch's scale_factor) replaces from / to by its inverse; an axis that
 * keeps its size still copies, but under bicubic of torch: PyTorch 2 does so.
 *
 * pillow rounds weights to 22 bits behind the point. All arithmetic is in double, as Pillow's is;
 * the coordinates of torch are float, as torch's are.
 */
#ifndef LW_KERNELS_RESAMPLE_AXIS_H
#define LW_KERNELS_RESAMPLE_AXIS_H

#include "base/base.h"

enum { LW_RESAMPLE_BITS = 22 }; /* behind the point of fixed weights */

/* Outputs [at, at + n) of an axis of `from` inputs and `to` outputs. */
typedef struct lw_resample_axis {
    ptrdiff_t n, first, span; /* inputs [first, first + span) are used */
    ptrdiff_t taps;           /* pitch of the weights */
    bool copy;                /* output o is input o, there are no weights */
    int32_t *start, *count;   /* [n]: output o sums inputs first + start[o] + j, j < count[o] */
    int32_t *fixed;           /* [n][taps], in 2^-22: forms of u8 */
    float *weight;            /* [n][taps]: the others */
} lw_resample_axis;

typedef struct lw_resample_axis_spec {
    lw_resample_form form;
    lw_filter filter;
    ptrdiff_t from, to; /* at least 1 */
    ptrdiff_t at, n;    /* the outputs wanted; 0, 0: all */
    double scale;       /* 0: to / from; else to = floor(from scale) */
} lw_resample_axis_spec;

/* LW_EUNSUPPORTED: the form has no such filter; LW_ENOMEM. */
int lw_resample_axis_init(lw_resample_axis *a, const lw_resample_axis_spec *s);
/*
 * The transpose of a, all of whose outputs are wanted, over `from` inputs: what the gradient of the
 * inputs is summed from. Input i counts in consecutive outputs, because starts and ends ascend; in
 * none where pixels are left out, its gradient is 0.
 *
 *   t.weight[i][o] = a.weight[o][i]
 */
int lw_resample_axis_transpose(lw_resample_axis *t, const lw_resample_axis *a, ptrdiff_t from);
void lw_resample_axis_clear(lw_resample_axis *a);

#endif
