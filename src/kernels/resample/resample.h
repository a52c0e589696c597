/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resample: pictures at another size, channels last. Any form and filter of resample_axis.h, one
 * pass along the lines of a picture (across), one over them (down).
 *
 *   y[o] = sum of weight[o][j] x[start[o] + j]      j < count[o]
 *
 * Inside networks the two f32 passes, and under transposed weights their gradient. Before networks
 * all of them, through resample_picture.h. The u8 passes are exact: the same bits at every level
 * and as Pillow's,
 *
 *   y = clip((2^21 + sum of fixed weight * x) >> 22, 0, 255)
 *
 * Cost: a product and a sum a tap and an output element, bound by these: 500 x 375 pixels to
 * 299 x 224, bicubic, are 0.3 ms on one thread with AVX-512.
 */
#ifndef LW_KERNELS_RESAMPLE_H
#define LW_KERNELS_RESAMPLE_H

#include "kernels/resample/resample_axis.h"

/* One pass over lines of pixels. The pointer x is that of the first input that the axis uses. */
typedef struct lw_resample_pass {
    const lw_resample_axis *axis; /* not one that copies */
    ptrdiff_t c;                  /* across: channels of a pixel; down: elements of a line */
    ptrdiff_t x_pitch, y_pitch;   /* elements between lines */
} lw_resample_pass;

/*
 * across: lines [begin, end) of y [n, c] from the same lines of x [span, c]. scratch holds
 * lw_resample_across_scratch bytes. down: lines [begin, end) of y, [n] of them, from lines of x,
 * [span] of them. Elements are uint8_t (_u8) or float (_f32).
 */
typedef void lw_resample_across_fn(void *y, const void *x, const lw_resample_pass *p,
                                   ptrdiff_t begin, ptrdiff_t end, void *scratch);
typedef void lw_resample_down_fn(void *y, const void *x, const lw_resample_pass *p, ptrdiff_t begin,
                                 ptrdiff_t end);
/* For elements of `size` bytes, at any level. */
static inline size_t lw_resample_across_scratch(const lw_resample_axis *a, ptrdiff_t c, size_t size)
{
    return (size_t)(LW_ROUND_UP(a->span * c, 4) + LW_ROUND_UP(a->n * c, 4)) * 16 * size;
}

struct lw_resample_kernels {
    lw_resample_across_fn *across_u8, *across_f32;
    lw_resample_down_fn *down_u8, *down_f32;
};

#define K(family, isa, field, function) \
    extern __typeof__(*((struct lw_resample_kernels *)0)->field) function;
#include "kernels/resample/resample.def"
#undef K

#endif
