/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, the oracle: double accumulators. */
#include "kernels/reduce/reduce.h"

static ptrdiff_t min_of(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

void lw_reduce_chunk_sum_ref(double *part, const float *x, ptrdiff_t n, ptrdiff_t begin,
                             ptrdiff_t end)
{
    for (ptrdiff_t i = begin; i < end; i++) {
        double s = 0.0;
        ptrdiff_t stop = min_of((i + 1) * LW_REDUCE_CHUNK, n);
        for (ptrdiff_t e = i * LW_REDUCE_CHUNK; e < stop; e++)
            s += (double)x[e];
        part[i] = s;
    }
}

void lw_reduce_chunk_sumsq_ref(double *part, const float *x, ptrdiff_t n, ptrdiff_t begin,
                               ptrdiff_t end)
{
    for (ptrdiff_t i = begin; i < end; i++) {
        double s = 0.0;
        ptrdiff_t stop = min_of((i + 1) * LW_REDUCE_CHUNK, n);
        for (ptrdiff_t e = i * LW_REDUCE_CHUNK; e < stop; e++)
            s += (double)x[e] * (double)x[e];
        part[i] = s;
    }
}

static double tree(const double *part, ptrdiff_t n)
{
    if (n <= 2)
        return n == 2 ? part[0] + part[1] : n == 1 ? part[0] : 0.0;
    ptrdiff_t half = (n + 1) / 2;
    return tree(part, half) + tree(part + half, n - half);
}

void lw_reduce_combine_ref(float *out, const double *part, ptrdiff_t n, double scale)
{
    out[0] = (float)(scale * tree(part, n));
}

void lw_reduce_row_sum_ref(float *y, const float *x, ptrdiff_t pitch, ptrdiff_t c, double scale,
                           ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t r = begin; r < end; r++) {
        double s = 0.0;
        for (ptrdiff_t j = 0; j < c; j++)
            s += (double)x[r * pitch + j];
        y[r] = (float)(scale * s);
    }
}

void lw_reduce_row_sumsq_ref(float *y, const float *x, ptrdiff_t pitch, ptrdiff_t c, double scale,
                             ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t r = begin; r < end; r++) {
        double s = 0.0;
        for (ptrdiff_t j = 0; j < c; j++)
            s += (double)x[r * pitch + j] * (double)x[r * pitch + j];
        y[r] = (float)(scale * s);
    }
}

void lw_reduce_col_partial_ref(float *part, const float *x, ptrdiff_t pitch, ptrdiff_t m,
                               ptrdiff_t c, ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t i = begin; i < end; i++) {
        ptrdiff_t stop = min_of((i + 1) * LW_REDUCE_ROWS, m);
        for (ptrdiff_t j = 0; j < c; j++) {
            double s = 0.0;
            for (ptrdiff_t r = i * LW_REDUCE_ROWS; r < stop; r++)
                s += (double)x[r * pitch + j];
            part[i * c + j] = (float)s;
        }
    }
}

void lw_reduce_col_combine_ref(float *y, const float *part, ptrdiff_t n, ptrdiff_t c, double scale,
                               int accumulate, ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t j = begin; j < end; j++) {
        double s = 0.0;
        for (ptrdiff_t i = 0; i < n; i++)
            s += (double)part[i * c + j];
        y[j] = (float)(scale * s + (accumulate ? (double)y[j] : 0.0));
    }
}

void lw_reduce_mid_sum_ref(float *y, const float *x, ptrdiff_t pitch, ptrdiff_t s_count,
                           ptrdiff_t c, double scale, ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t b = begin; b < end; b++) {
        for (ptrdiff_t j = 0; j < c; j++) {
            double s = 0.0;
            for (ptrdiff_t r = 0; r < s_count; r++)
                s += (double)x[(b * s_count + r) * pitch + j];
            y[b * c + j] = (float)(scale * s);
        }
    }
}

void lw_reduce_dots_ref(float *y, const float *q, const float *x, const int32_t *row, ptrdiff_t n,
                        ptrdiff_t c)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double s = 0.0;
        for (ptrdiff_t j = 0; j < c; j++)
            s += (double)q[j] * (double)x[row[i] * c + j];
        y[i] = (float)s;
    }
}
