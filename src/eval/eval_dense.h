/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: the dense arithmetic of eval, as plain C in vectors of fixed length, without fused
 * multiply-adds and in an order of sums that depends on sizes alone: the bits are the same on every
 * machine (fusing would save a fifth of a product's time on Zen 4). Matrices are row-major with
 * pitches.
 */
#ifndef LW_EVAL_DENSE_H
#define LW_EVAL_DENSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread/pool.h"

/* One side of a product: element (i, k) is x[i row + k col] of the pointer that is set. */
typedef struct lw_operand {
    const double *f64;
    const float *f32;
    int64_t row, col;
} lw_operand;

/* A product is computed in blocks of so many rows of a and of b, each packed DEPTH deep. */
#define LW_GEMM_M ((int64_t)192)
#define LW_GEMM_N ((int64_t)384)
enum { LW_GEMM_DEPTH = 256 };

typedef struct lw_dense {
    /* c[i][j] = sum_k a[i][k] b[j][k], i < m, j < n */
    void (*dots)(float *c, int64_t ldc, const float *a, int64_t lda, int64_t m, const float *b,
                 int64_t ldb, int64_t n, int64_t k);
    /* c[i][j] += scale sum_k a(i, k) b(j, k): in order over DEPTH of k, then those sums in order.
     * memory: lw_gemm_doubles */
    void (*gemm)(double *c, int64_t ldc, double scale, const lw_operand *a, int64_t m,
                 const lw_operand *b, int64_t n, int64_t k, double *memory);
    /* x += f y */
    void (*more)(double *x, double f, const double *y, int64_t n);
    /* sum x y */
    double (*dot)(const double *x, const double *y, int64_t n);
    /* Reflections I - tau v v^T of a part of a matrix: a [m][n] from the left, v [m]; from the
     * right, v [n]. */
    void (*reflect_left)(double *a, int64_t lda, int64_t m, int64_t n, const double *v, double tau);
    void (*reflect_right)(double *a, int64_t lda, int64_t m, int64_t n, const double *v,
                          double tau);
} lw_dense;

/* Numbers that a product needs for packing, at most. */
size_t lw_gemm_doubles(int64_t m, int64_t n);
/* The same product in blocks on the pool. upper: those below the diagonal of a square c are left
 * out. LW_ENOMEM. */
int lw_gemm(lw_pool *pool, double *c, int64_t ldc, double scale, lw_operand a, int64_t m,
            lw_operand b, int64_t n, int64_t k, bool upper);
/* Rows x [..][pitch] as they lie, and columns of x as rows. */
#define LW_ROWS(x, pitch) ((lw_operand){.f64 = (x), .row = (pitch), .col = 1})
#define LW_COLUMNS(x, pitch) ((lw_operand){.f64 = (x), .row = 1, .col = (pitch)})

/* For this machine (LW_ISA lowers it); the bits do not depend on which. Asks the CPU: not in an
 * inner loop. */
const lw_dense *lw_dense_best(void);
extern const lw_dense lw_dense_plain;
extern const lw_dense lw_dense_avx2, lw_dense_avx512; /* where the processor's kind has them */

/* Factors a positive semidefinite C [d][d] (upper triangle read) as C = L L^T, by Cholesky with
 * complete pivoting: rows of c become those of L^T [rank][d], what is zero to rounding is left out.
 * LW_ENUMERIC when C has a negative eigenvalue beyond rounding. */
int lw_factor(lw_pool *pool, double *c, int32_t d, int32_t *rank);

/* Of a symmetric a [n][n]: values [n] in no order, rows of a become the eigenvectors, of length 1.
 * LW_ENUMERIC: not finite. */
int lw_eigen(double *a, int32_t n, double *values);

/* Sum of the singular values of a [m][n], which is overwritten. */
int lw_nuclear_norm(lw_pool *pool, double *a, int32_t m, int32_t n, double *out);

#endif
