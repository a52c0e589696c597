/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embeddings, distances of all pairs of rows, statistics of feature maps: sums in
 * double, rounded once, a thread for each result. Formulas in kernels/attention, kernels/pairs,
 * kernels/stats. */
#include "backend/cuda/kernels/cuda_port.h"

#include "base/kinds.h"

/* A thread turns the two elements of an angle: y may be x. */
LW_KERNEL(rope, lw_cuda_rope, 256)
{
    int32_t half = a.d / 2, pairs = a.c / 2;
    LW_EACH(e, a.rows * pairs)
    {
        int64_t row = e / pairs;
        int32_t piece = (int32_t)(e % pairs) / half, i = (int32_t)(e % pairs) % half;
        const float *t = a.table + (row % a.tokens * a.pieces + piece % a.pieces) * a.d;
        int64_t at = row * a.c + (int64_t)piece * a.d + i;
        double cosine = (double)t[i], sine = (double)t[half + i] * (double)a.sign;
        double p = (double)a.x[at], q = (double)a.x[at + half];
        a.y[at] = (float)(p * cosine - q * sine);
        a.y[at + half] = (float)(q * cosine + p * sine);
    }
}

LW_KERNEL(pair_distance, lw_cuda_pairs, 256)
{
    LW_EACH(e, a.m * a.n)
    {
        const float *x = a.x + e / a.n * a.c, *y = a.y + e % a.n * a.c;
        int32_t half = a.c / 2;
        double sum = 0.0;
        if (a.distance == LW_DISTANCE_MODULUS)
            for (int32_t k = 0; k < half; k++) {
                double re = (double)x[k] - (double)y[k];
                double im = (double)x[half + k] - (double)y[half + k];
                sum += sqrt(re * re + im * im);
            }
        else
            for (int32_t k = 0; k < a.c; k++) {
                double d = (double)x[k] - (double)y[k];
                sum += a.distance == LW_DISTANCE_L1 ? fabs(d) : d * d;
            }
        a.d[e] = (float)(a.distance == LW_DISTANCE_L2 ? sqrt(sum) : sum);
    }
}

/* Rows and columns that fill no patch are left out. */
LW_KERNEL(feature_stats, lw_cuda_stats, 256)
{
    int32_t across = a.w / a.pw, down = a.h / a.ph;
    LW_EACH(e, a.n)
    {
        int64_t patch = e / a.c, b = patch / across / down;
        int64_t y0 = patch / across % down * a.ph, x0 = patch % across * a.pw;
        const float *x = a.x + ((b * a.h + y0) * a.w + x0) * a.c + e % a.c;
        double n = (double)a.ph * (double)a.pw, sum = 0.0, square = 0.0;
        for (int32_t i = 0; i < a.ph; i++)
            for (int32_t j = 0; j < a.pw; j++)
                sum += (double)x[((int64_t)i * a.w + j) * a.c];
        double mean = sum / n;
        for (int32_t i = 0; i < a.ph; i++)
            for (int32_t j = 0; j < a.pw; j++) {
                double d = (double)x[((int64_t)i * a.w + j) * a.c] - mean;
                square += d * d;
            }
        if (a.mean)
            a.mean[e] = (float)mean;
        if (a.std)
            a.std[e] = (float)sqrt(square / n + 1e-6);
    }
}
