/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooling: windows over and movement of channels-last images, and copies of rows. Tensors are dense
 * [B,H,W,C] f32 unless a pitch (elements between rows) is named. Ranges count what the comment
 * says. Gradients gather or run whole samples, so every element is summed in one fixed order. A
 * gradient overwrites its output.
 *
 *   avg, max     k x k windows, stride, zero padding `pad` (max: -inf; NaN is handed on);
 *                OH = (H + 2 pad - k) / stride + 1; max_bf16 and max_u8 the same of those types (of no byte: 0)
 *
 * The average divides by k * k (PyTorch's count_include_pad), or by what of the window lies inside
 * the picture. Global average pooling is
 * reduce.mid_sum with scale 1 / (H W); its gradient is ew's mode BC.
 *
 * Cost: 4 bytes read and 4 written an element; windows add k^2 operations. Bound by memory; it has
 * no figure of its own.
 */
#ifndef LW_KERNELS_POOLING_H
#define LW_KERNELS_POOLING_H

#include "base/base.h"

typedef struct lw_pooling_shape {
    ptrdiff_t h, w, c; /* input */
    ptrdiff_t oh, ow;  /* output */
    ptrdiff_t k, stride, pad;
    int inside; /* of averages: 0: divided by k * k; 1: by the pixels inside the picture */
} lw_pooling_shape;

/* y[b, oh, ow, c] from x[b, h, w, c]; range over the B * OH output rows. */
typedef void lw_pooling_fn(float *y, const float *x, const lw_pooling_shape *s, ptrdiff_t begin,
                           ptrdiff_t end);
typedef void lw_pooling_bf16_fn(lw_bf16 *y, const lw_bf16 *x, const lw_pooling_shape *s,
                                ptrdiff_t begin, ptrdiff_t end);
typedef void lw_pooling_u8_fn(uint8_t *y, const uint8_t *x, const lw_pooling_shape *s,
                              ptrdiff_t begin, ptrdiff_t end);
/* dx from dy; range over the B * H input rows. */
typedef void lw_pooling_avg_grad_fn(float *dx, const float *dy, const lw_pooling_shape *s,
                                    ptrdiff_t begin, ptrdiff_t end);
/* dx from dy and x: each window's gradient goes to its first maximum (or first NaN); range over
 * samples. */
typedef void lw_pooling_max_grad_fn(float *dx, const float *dy, const float *x,
                                    const lw_pooling_shape *s, ptrdiff_t begin, ptrdiff_t end);

/* Nearest upsampling by k: y[b, h*k, w*k, c] = x[b, h, w, c]; h, w of x; range over B * H rows of
 * x. */
typedef void lw_upsample_fn(float *y, const float *x, ptrdiff_t h, ptrdiff_t w, ptrdiff_t c,
                            ptrdiff_t k, ptrdiff_t begin, ptrdiff_t end);
/* Its gradient: dx[b, h, w, c] = sum of the k x k of dy; h, w of dx; range over B * H rows
 * of dx. */

/* Zeros around (negative: crop) H, W, C: y[b, h + lo0 + hi0, w + lo1 + hi1, c + lo2 + hi2]; h, w, c
 * of x; range over the B * OH rows of y. Its gradient is itself with every lo and hi negated. */
typedef struct lw_pad_shape {
    ptrdiff_t h, w, c;
    ptrdiff_t lo[3], hi[3];
} lw_pad_shape;
typedef void lw_pad_fn(float *y, const float *x, const lw_pad_shape *s, ptrdiff_t begin,
                       ptrdiff_t end);

/* y[b, i, j] = x[b, i * stride, j * stride], OH = ceil(H / stride); h, w of x; range over B * OH
 * rows of y. */
typedef void lw_subsample_fn(float *y, const float *x, ptrdiff_t h, ptrdiff_t w, ptrdiff_t c,
                             ptrdiff_t stride, ptrdiff_t begin, ptrdiff_t end);
/* Its gradient (zeros between): h, w of dx; range over B * H rows of dx. */

/* y[r * y_pitch + i] = (or +=) x[r * x_pitch + i], i < n, rows [begin, end). y and x do not
 * overlap. */
typedef void lw_copy_rows_fn(float *y, ptrdiff_t y_pitch, const float *x, ptrdiff_t x_pitch,
                             ptrdiff_t n, ptrdiff_t begin, ptrdiff_t end);

/* y[b, c] = table[ids[b], c], table [v, c], b in [begin, end). An id outside [0, v) gives zeros. */
typedef void lw_gather_fn(float *y, const float *table, const int32_t *ids, ptrdiff_t v,
                          ptrdiff_t c, ptrdiff_t begin, ptrdiff_t end);
/* dtable[ids[i], j] = (accumulate: +=) sum over i < b in ascending order of dy[i, j]; columns j in
 * [begin, end). Without accumulate, table rows nobody asked for become zero. */
typedef void lw_scatter_fn(float *dtable, const float *dy, const int32_t *ids, ptrdiff_t b,
                           ptrdiff_t v, ptrdiff_t c, int accumulate, ptrdiff_t begin,
                           ptrdiff_t end);

/* Signed sums of rows of a table [v, c]: ids[r, j] counts with minus where bit j % period of
 * `minus` is set (period 1 .. 32); id 0 (the pad) and ids outside [0, v) add nothing. */
typedef struct lw_bag_shape {
    ptrdiff_t v, c, k; /* rows and columns of the table, ids a row of y */
    ptrdiff_t period;
    uint32_t minus;
} lw_bag_shape;
/* y[r, c] = base[r, c] (NULL: 0) + sum over j < k in ascending order of +-table[ids[r, j], c]; rows
 * r in [begin, end). y may be base. */
typedef void lw_bag_fn(float *y, const float *base, const float *table, const int32_t *ids,
                       const lw_bag_shape *s, ptrdiff_t begin, ptrdiff_t end);
/* Its gradient: dtable[v, c] = sum over r < rows, then j, ascending, of +-dy[r, c] where
 * ids[r, j] = v; all other rows zero; columns c in [begin, end). */
typedef void lw_bag_grad_fn(float *dtable, const float *dy, const int32_t *ids, ptrdiff_t rows,
                            const lw_bag_shape *s, ptrdiff_t begin, ptrdiff_t end);

/* y [c,4,4,o] <- w [o,3,3,c]: the weights of nearest upsampling by two and a 3x3 convolution as one
 * transposed 4x4 convolution of stride 2; per direction (w0, w1, w2) to (w2, w1 + w2, w0 + w1, w0).
 * Range over the c input channels. */
typedef void lw_upconv_fn(float *y, const float *w, ptrdiff_t o, ptrdiff_t c, ptrdiff_t begin,
                          ptrdiff_t end);
/* Its gradient: dw [o,3,3,c] <- dy [c,4,4,o]; range over the o output channels. */

struct lw_pooling_kernels {
    lw_pooling_fn *avg, *max;
    lw_pooling_bf16_fn *max_bf16;
    lw_pooling_u8_fn *max_u8;
    lw_pooling_avg_grad_fn *avg_grad;
    lw_pooling_max_grad_fn *max_grad;
    lw_upsample_fn *upsample, *upsample_grad;
    lw_pad_fn *pad;
    lw_subsample_fn *subsample, *subsample_grad;
    lw_copy_rows_fn *copy_rows, *add_rows;
    lw_gather_fn *gather;
    lw_scatter_fn *scatter;
    lw_bag_fn *bag;
    lw_bag_grad_fn *bag_grad;
    lw_upconv_fn *upconv_weight, *upconv_weight_grad;
};

#define K(family, isa, field, function) \
    extern __typeof__(*((struct lw_pooling_kernels *)0)->field) function;
#include "kernels/pooling/pooling.def"
#undef K

#endif
