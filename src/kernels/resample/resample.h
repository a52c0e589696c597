/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resample: bilinear resizing of channels-last images as
 * torch.nn.functional.interpolate(mode="bilinear", align_corners=False, antialias=False):
 * half-pixel centres, coordinates clamped at the border.
 *
 *   source = max(0, (o + 1/2) H / OH - 1/2)
 *   i0 = floor(source), i1 = min(i0 + 1, H - 1), t = source - i0; j0, j1, u across likewise
 *   y = (1-t) ((1-u) x[i0,j0] + u x[i0,j1]) + t ((1-u) x[i1,j0] + u x[i1,j1])
 *
 * Cost: four reads, mostly from a cache, and 4 bytes written an output element. Bound by memory;
 * it has no figure of its own.
 */
#ifndef LW_KERNELS_RESAMPLE_H
#define LW_KERNELS_RESAMPLE_H

#include <stddef.h>

typedef struct lw_resize_shape {
    ptrdiff_t h, w, c; /* x [B, h, w, c] */
    ptrdiff_t oh, ow;  /* y [B, oh, ow, c] */
} lw_resize_shape;

/* y from x; range over the B * OH rows of y. */
typedef void lw_resize_fn(float *y, const float *x, const lw_resize_shape *s, ptrdiff_t begin,
                          ptrdiff_t end);
/* dx from dy, overwritten; range over samples (each is summed in row order of dy). */
typedef void lw_resize_grad_fn(float *dx, const float *dy, const lw_resize_shape *s,
                               ptrdiff_t begin, ptrdiff_t end);

struct lw_resample_kernels {
    lw_resize_fn *bilinear;
    lw_resize_grad_fn *bilinear_grad;
};

#define K(isa, field, function) \
    extern __typeof__(*((struct lw_resample_kernels *)0)->field) function;
#include "kernels/resample/resample.def"
#undef K

#endif
