/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: the dense arithmetic of eval, as plain C in vectors of fixed length. An element's sum
 * runs over four partial sums (eight in f32) in an order that depends on k alone, without fused
 * multiply-adds: the bits are the same on every machine. Matrices are row-major with pitches.
 */
#ifndef LW_EVAL_DENSE_H
#define LW_EVAL_DENSE_H

#include <stdint.h>

typedef struct lw_dense {
    /* c[i][j] = sum_k a[i][k] b[j][k], i < m, j < n */
    void (*dots)(float *c, int64_t ldc, const float *a, int64_t lda, int64_t m, const float *b,
                 int64_t ldb, int64_t n, int64_t k);
    /* c[i][j] += sign * sum_k a[i][k] b[j][k] */
    void (*add_dots)(double *c, int64_t ldc, double sign, const double *a, int64_t lda, int64_t m,
                     const double *b, int64_t ldb, int64_t n, int64_t k);
    /* x -= f y; the sum of the new x times u */
    double (*less)(double *x, double f, const double *y, const double *u, int64_t n);
    /* x += f y */
    void (*more)(double *x, double f, const double *y, int64_t n);
} lw_dense;

/* For this machine (LW_ISA lowers it); the bits do not depend on which. */
const lw_dense *lw_dense_best(void);
extern const lw_dense lw_dense_plain;
#if defined(__x86_64__)
extern const lw_dense lw_dense_avx2;
#endif

/* Factors a positive semidefinite C [d][d] (upper triangle read) as C = L L^T, by Cholesky with
 * complete pivoting: rows of c become those of L^T [rank][d], what is zero to rounding is left out.
 * LW_ENUMERIC when C has a negative eigenvalue beyond rounding. */
int lw_factor(double *c, int32_t d, int32_t *rank);

/* Of a symmetric a [n][n]: values [n] in no order, rows of a become the eigenvectors, of length 1.
 * LW_ENUMERIC: not finite. */
int lw_eigen(double *a, int32_t n, double *values);

/* Sum of the singular values of a [m][n], which is overwritten. */
int lw_nuclear_norm(double *a, int32_t m, int32_t n, double *out);

#endif
