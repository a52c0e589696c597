/* SPDX-License-Identifier: Apache-2.0 */
/* Private: the steps from a matrix to its singular values. */
#ifndef LW_EVAL_SINGULAR_H
#define LW_EVAL_SINGULAR_H

#include "eval/eval_dense.h"

enum { LW_BAND = 48 }; /* diagonals above the main one; a multiple of the tiles' width */

/* x [n] and the reflection I - tau v v^T that takes it to (out, 0, ..): v [n] with v[0] = 1; the
 * result: tau. */
double lw_reflection(double *v, const double *x, int64_t n, double *out);
/* a [m][n], m >= n: its first n rows become an upper band with the same singular values; what is
 * outside it is lost. */
int lw_to_band(lw_pool *pool, double *a, int64_t m, int64_t n);
/* The band of a [n][n], which stays, to diagonal [n] and above [n], of which n - 1 count. */
int lw_band_to_bidiagonal(const double *a, int64_t n, double *diagonal, double *above);

#endif
