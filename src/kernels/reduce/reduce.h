/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce: sums. Work is cut at fixed sizes that depend on the shape only, partial results go to a
 * buffer and are combined in index order, so tasks may run in any order on any thread.
 *
 *   all elements    [n] -> [1]        chunk_sum / chunk_sumsq per 4096 elements, then combine
 *   last dimension  [R, C] -> [R]     row_sum / row_sumsq       (also [B,S,C] -> [B] with C = S*C)
 *   leading rows    [M, C] -> [C]     col_partial per 128 rows, then col_combine
 *   middle          [B, S, C] -> [B, C]   mid_sum (global average pooling with scale = 1 / S)
 *   products        [C] with rows of [R, C] that a list names -> [n]   dots
 *
 * Means are sums with scale = 1 / count. Column sums have the same bits on AVX2 and AVX-512.
 *
 * Cost: 4 bytes and one or two FLOP an element. Bound by reading memory; it has no figure of its
 * own.
 */
#ifndef LW_KERNELS_REDUCE_H
#define LW_KERNELS_REDUCE_H

#include <stddef.h>
#include <stdint.h>

enum { LW_REDUCE_CHUNK = 4096, LW_REDUCE_ROWS = 128 };

/* Chunks of an n-element sum, and of an M-row column sum: the size of `part`. */
static inline ptrdiff_t lw_reduce_chunks(ptrdiff_t n)
{
    return (n + LW_REDUCE_CHUNK - 1) / LW_REDUCE_CHUNK;
}
static inline ptrdiff_t lw_reduce_row_chunks(ptrdiff_t m)
{
    return (m + LW_REDUCE_ROWS - 1) / LW_REDUCE_ROWS;
}

/* part[i] = sum (of squares) of chunk i of x[n], i in [begin, end) of lw_reduce_chunks(n). */
typedef void lw_reduce_chunk_fn(double *part, const float *x, ptrdiff_t n, ptrdiff_t begin,
                                ptrdiff_t end);
/* out[0] = scale * sum of part[n], added in a binary tree. */
typedef void lw_reduce_combine_fn(float *out, const double *part, ptrdiff_t n, double scale);
/* y[r] = scale * sum (of squares) of x[r * pitch + 0..c-1], r in [begin, end). pitch >= c. */
typedef void lw_reduce_row_fn(float *y, const float *x, ptrdiff_t pitch, ptrdiff_t c, double scale,
                              ptrdiff_t begin, ptrdiff_t end);
/* part[i * c + j] = sum of x[r * pitch + j] over the rows r of chunk i, i in [begin, end) of
 * lw_reduce_row_chunks(m). */
typedef void lw_reduce_col_partial_fn(float *part, const float *x, ptrdiff_t pitch, ptrdiff_t m,
                                      ptrdiff_t c, ptrdiff_t begin, ptrdiff_t end);
/* y[j] = scale * sum over i < n of part[i * c + j], plus the old y[j] when accumulate; columns
 * [begin, end). */
typedef void lw_reduce_col_combine_fn(float *y, const float *part, ptrdiff_t n, ptrdiff_t c,
                                      double scale, int accumulate, ptrdiff_t begin, ptrdiff_t end);
/* y[b * c + j] = scale * sum over s of x[(b * s_count + s) * pitch + j], b in [begin, end). */
typedef void lw_reduce_mid_fn(float *y, const float *x, ptrdiff_t pitch, ptrdiff_t s_count,
                              ptrdiff_t c, double scale, ptrdiff_t begin, ptrdiff_t end);
/* y[i] = sum over j of q[j] * x[row[i] * c + j], i < n: scores of rows chosen from a table. The
 * bits of an element depend on its two rows alone. */
typedef void lw_reduce_dots_fn(float *y, const float *q, const float *x, const int32_t *row,
                               ptrdiff_t n, ptrdiff_t c);

struct lw_reduce_kernels {
    lw_reduce_chunk_fn *chunk_sum, *chunk_sumsq;
    lw_reduce_combine_fn *combine;
    lw_reduce_row_fn *row_sum, *row_sumsq;
    lw_reduce_col_partial_fn *col_partial;
    lw_reduce_col_combine_fn *col_combine;
    lw_reduce_mid_fn *mid_sum;
    lw_reduce_dots_fn *dots;
};

#define K(family, isa, field, function) \
    extern __typeof__(*((struct lw_reduce_kernels *)0)->field) function;
#include "kernels/reduce/reduce.def"
#undef K

#endif
