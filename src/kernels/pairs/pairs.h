/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs: distances between all rows of one matrix and all rows of another, and their gradients;
 * what embeddings of knowledge graphs are scored with. x [M,C] and y [N,C] are dense; a call does
 * rows [begin, end) of x against all n rows of y. A result depends on its two rows (gradients: on
 * one row of x and all of y) and not on the range.
 *
 *   L1       sum_k |x_k - y_k|
 *   L2       sqrt(sum_k (x_k - y_k)^2)
 *   MODULUS  rows are C/2 complex numbers, real parts first: sum_k |x_k - y_k| over these (RotatE,
 *            Sun et al. 2019)
 *
 * Cost: three to five FLOP a number of a pair, M N C of them, forward; rows stay in a cache. Bound
 * by arithmetic; it has no figure of its own.
 */
#ifndef LW_KERNELS_PAIRS_H
#define LW_KERNELS_PAIRS_H

#include <stddef.h>

#include "base/kinds.h"

typedef struct lw_pairs_shape {
    ptrdiff_t n, c; /* rows of y, columns; C is even for MODULUS */
    lw_distance distance;
} lw_pairs_shape;

/* d[i * n + j] = distance of x_i and y_j, rows i in [begin, end). */
#define LW_PAIRS_FORWARD(name, real)                                                           \
    void name(real *d, const real *x, const real *y, const lw_pairs_shape *s, ptrdiff_t begin, \
              ptrdiff_t end)
/*
 * dx_i = sum_j g_ij * d distance(x_i, y_j) / d x_i, rows i in [begin, end); g_ij and the distance
 * d_ij are at [i * row + j * column]. The gradient where a distance (MODULUS: one complex
 * difference, L1: one difference) is 0 counts as 0. By symmetry the gradient of y is this with x
 * and y changed, row and column too.
 */
#define LW_PAIRS_BACKWARD(name, real)                                                    \
    void name(real *dx, const real *g, const real *d, const real *x, const real *y,      \
              const lw_pairs_shape *s, ptrdiff_t row, ptrdiff_t column, ptrdiff_t begin, \
              ptrdiff_t end)

typedef LW_PAIRS_FORWARD(lw_pairs_forward_fn, float);
typedef LW_PAIRS_BACKWARD(lw_pairs_backward_fn, float);

typedef struct lw_pairs_kernels {
    lw_pairs_forward_fn *forward;
    lw_pairs_backward_fn *backward;
} lw_pairs_kernels;

/* Rows of x per task: a pure function of the shape. */
ptrdiff_t lw_pairs_rows(const lw_pairs_shape *s);

/* The reference in double, for gradient checks. */
LW_PAIRS_FORWARD(lw_pairs_forward_f64, double);
LW_PAIRS_BACKWARD(lw_pairs_backward_f64, double);

#define K(family, isa, field, function) lw_pairs_##field##_fn function;
#include "kernels/pairs/pairs.def"
#undef K

#endif
