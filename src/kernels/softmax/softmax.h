/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax: over the last dimension of a matrix, its log-sum-exp, and cross-entropy with integer
 * labels. A call does `rows` rows of n columns; pitches are elements between rows. Rows are
 * independent.
 *
 * Cost: one exponential and 8 bytes an element (the gradient: 12 bytes). Bound by the exponential
 * while rows are in a cache; it has no figure of its own.
 */
#ifndef LW_KERNELS_SOFTMAX_H
#define LW_KERNELS_SOFTMAX_H

#include <stddef.h>
#include <stdint.h>

/* y = softmax(x) by row; y may be x. n >= 1. */
#define LW_SOFTMAX_FORWARD(name, real)                                                \
    void name(real *y, const real *x, ptrdiff_t rows, ptrdiff_t n, ptrdiff_t y_pitch, \
              ptrdiff_t x_pitch)
/* dx = y * (dy - sum_j dy_j y_j), added to dx when add is 1. All three with pitch `pitch`; dx may
 * be dy (add 0). */
#define LW_SOFTMAX_BACKWARD(name, real)                                             \
    void name(real *dx, const real *y, const real *dy, ptrdiff_t rows, ptrdiff_t n, \
              ptrdiff_t pitch, int add)
/* lse[rows] = log sum_j exp(x_j). */
#define LW_SOFTMAX_LSE(name, real) \
    void name(real *lse, const real *x, ptrdiff_t rows, ptrdiff_t n, ptrdiff_t x_pitch)
/* loss[rows] = lse - x[label], lse[rows]. A negative label marks a row to skip: loss 0. One of n or
 * more names no column: the loss is NaN, and so is the row's gradient. */
#define LW_SOFTMAX_XENT_FORWARD(name, real)                                               \
    void name(real *loss, real *lse, const real *x, const int32_t *label, ptrdiff_t rows, \
              ptrdiff_t n, ptrdiff_t x_pitch)
/* dx = dloss[row] * (exp(x - lse) - onehot(label)), 0 in skipped rows; added to dx when add
 * is 1. */
#define LW_SOFTMAX_XENT_BACKWARD(name, real)                                                     \
    void name(real *dx, const real *dloss, const real *lse, const real *x, const int32_t *label, \
              ptrdiff_t rows, ptrdiff_t n, ptrdiff_t dx_pitch, ptrdiff_t x_pitch, int add)

typedef LW_SOFTMAX_FORWARD(lw_softmax_forward_fn, float);
typedef LW_SOFTMAX_BACKWARD(lw_softmax_backward_fn, float);
typedef LW_SOFTMAX_LSE(lw_softmax_lse_fn, float);
typedef LW_SOFTMAX_XENT_FORWARD(lw_softmax_xent_forward_fn, float);
typedef LW_SOFTMAX_XENT_BACKWARD(lw_softmax_xent_backward_fn, float);

typedef struct lw_softmax_kernels {
    lw_softmax_forward_fn *forward;
    lw_softmax_backward_fn *backward;
    lw_softmax_lse_fn *lse;
    lw_softmax_xent_forward_fn *xent_forward;
    lw_softmax_xent_backward_fn *xent_backward;
} lw_softmax_kernels;

/* Rows per task: a pure function of the row length. */
ptrdiff_t lw_softmax_rows(ptrdiff_t n);

/* The reference in double, for gradient checks. */
LW_SOFTMAX_FORWARD(lw_softmax_forward_f64, double);
LW_SOFTMAX_BACKWARD(lw_softmax_backward_f64, double);
LW_SOFTMAX_LSE(lw_softmax_lse_f64, double);
LW_SOFTMAX_XENT_FORWARD(lw_softmax_xent_forward_f64, double);
LW_SOFTMAX_XENT_BACKWARD(lw_softmax_xent_backward_f64, double);

#define K(family, isa, field, function) lw_softmax_##field##_fn function;
#include "kernels/softmax/softmax.def"
#undef K

#endif
