/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution, f32: every channel with a filter of its own (as many groups as channels,
 * one output for each).
 *
 *   x, y as in conv.h with O = C      w [C][KH][KW]      bias [C]
 *   y[b,oy,ox,c] = sum over ky, kx of x[b, oy*stride - pad_top + ky, ox*stride - pad_left + kx, c]
 *                                     * w[c,ky,kx]
 *
 * Forward and data gradient are one computation over the lines of conv_shape.h: of stride 2 the
 * gradient has one small filter per parity. Both read one packing, the transpose [KH][KW][C], so
 * that vectors run along the channels. What conv.h says of tasks, bits, epilogues and borders holds
 * here too: an element is one chain of fused multiply-adds over its taps inside the image, in order.
 * The weight gradient adds chunks of images whose number depends on B alone.
 *
 * Cost: 2 KH KW FLOP and, with what the cache keeps of neighbouring rows, 8 bytes an element: 3x3
 * in f32 is bound by memory beyond the cache; inside it, it reaches 41 to 46 % of the core's
 * multiplications from 14 x 14 pixels on, 5x5 62 %.
 */
#ifndef LW_KERNELS_CONV_DEPTHWISE_H
#define LW_KERNELS_CONV_DEPTHWISE_H

#include "kernels/conv/conv.h"

/* packed[KH][KW][C] <- w, channels [c0, c1). Both passes read it. */
void lw_depthwise_pack(float *packed, const float *w, const lw_conv_shape *s, ptrdiff_t c0,
                       ptrdiff_t c1);

/* Tasks of a pass: ranges of image rows of what it makes. */
int64_t lw_depthwise_tasks(const lw_conv_shape *s, lw_conv_pass pass);
/* Of the weight gradient, and the floats of its partial sums; after all tasks (a barrier) they are
 * added by lw_depthwise_combine. */
int64_t lw_depthwise_weight_grad_tasks(const lw_conv_shape *s);
int64_t lw_depthwise_partial_floats(const lw_conv_shape *s);
/* dw [C][KH][KW], db [C] (NULL: not wanted) <- partials, channels [c0, c1). */
void lw_depthwise_combine(float *dw, float *db, const float *partials, const lw_conv_shape *s,
                          ptrdiff_t c0, ptrdiff_t c1);

/* out = epilogue(the pass of in). Forward: in is x, out y. Data gradient: in is dy, out dx. `e` may
 * be NULL. */
typedef void lw_depthwise_run_fn(float *out, const float *in, const float *packed,
                                 const lw_conv_shape *s, lw_conv_pass pass, const lw_epilogue *e,
                                 int64_t task);
/* A task's part of the partial sums. */
typedef void lw_depthwise_weight_grad_fn(float *partials, const float *dy, const float *x,
                                         const lw_conv_shape *s, int64_t task);

struct lw_depthwise_kernels {
    lw_depthwise_run_fn *run;
    lw_depthwise_weight_grad_fn *weight_grad;
};

#define K(family, isa, field, function) \
    __typeof__(*((struct lw_depthwise_kernels *)0)->field) function;
#include "kernels/conv/conv_depthwise.def"
#undef K

#endif
