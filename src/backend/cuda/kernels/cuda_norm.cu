/* SPDX-License-Identifier: Apache-2.0 */
/* Group normalisation, softmax, cross-entropy. */
#include "backend/cuda/kernels/cuda_port.h"

/* A block for each group (x) of each sample (y): mean, then variance, then the result. */
LW_KERNEL(group_norm, lw_cuda_norm, 256)
{
    LW_SHARED double room[256];
    int64_t g = LW_BX, b = LW_BY;
    int32_t width = a.c / a.groups, c0 = (int32_t)g * width;
    int64_t n = a.hw * width;
    const float *x = a.x + b * a.hw * a.c + c0;
    int64_t y0 = b * a.hw * a.c + c0;
    double sum = 0.0;
    for (int64_t i = LW_TID; i < n; i += 256)
        sum += (double)x[i / width * a.c + i % width];
    double mean = lw_block_sum(room, sum) / (double)n;
    mean = a.rms ? 0.0 : mean;
    sum = 0.0;
    for (int64_t i = LW_TID; i < n; i += 256) {
        double d = (double)x[i / width * a.c + i % width] - mean;
        sum += d * d;
    }
    double rstd = 1.0 / sqrt(lw_block_sum(room, sum) / (double)n + (double)a.eps);
    for (int64_t i = LW_TID; i < n; i += 256) {
        int32_t c = c0 + (int32_t)(i % width);
        int64_t at = i / width * a.c + i % width;
        float v = (float)(((double)x[at] - mean) * rstd);
        v = fmaf(v, a.gamma ? a.gamma[c] : 1.0f, a.beta ? a.beta[c] : 0.0f);
        if (a.scale)
            v *= 1.0f + a.scale[b * a.c + c];
        if (a.shift)
            v += a.shift[b * a.c + c];
        v = lw_activate(v, a.act);
        if (a.store)
            ((uint16_t *)a.y)[y0 + at] = lw_bf16_bits(v);
        else if (a.y)
            ((float *)a.y)[y0 + at] = v;
        if (a.also)
            ((uint16_t *)a.also)[y0 + at] = lw_bf16_bits(v);
    }
    if (LW_TID == 0) {
        if (a.mean)
            a.mean[b * a.groups + g] = (float)mean;
        if (a.rstd)
            a.rstd[b * a.groups + g] = (float)rstd;
    }
}

/* The log of a row's sum of exponentials, by its block. */
LW_ON_DEVICE double row_lse(double *room, const float *x, int64_t n)
{
    double top = -INFINITY, sum = 0.0;
    for (int64_t i = LW_TID; i < n; i += 256)
        top = fmax(top, (double)x[i]);
    top = lw_block_max(room, top);
    LW_ROLLED
    for (int64_t i = LW_TID; i < n; i += 256)
        sum += exp((double)x[i] - top);
    return top + log(lw_block_sum(room, sum));
}

/* A block for each row. */
LW_KERNEL(softmax, lw_cuda_softmax, 256)
{
    LW_SHARED double room[256];
    const float *x = a.x + LW_BX * a.n;
    double lse = row_lse(room, x, a.n);
    LW_ROLLED
    for (int64_t i = LW_TID; i < a.n; i += 256)
        a.y[LW_BX * a.n + i] = (float)exp((double)x[i] - lse);
}

/* A negative label: the row is skipped. One behind the row has no loss that is a number. */
LW_KERNEL(cross_entropy, lw_cuda_cross_entropy, 256)
{
    LW_SHARED double room[256];
    const float *x = a.x + LW_BX * a.n;
    double lse = row_lse(room, x, a.n);
    int32_t label = a.label[LW_BX];
    if (LW_TID != 0)
        return;
    if (a.loss)
        a.loss[LW_BX] = label < 0      ? 0.0f
                        : label >= a.n ? NAN
                                       : (float)(lse - (double)x[label]);
    if (a.lse)
        a.lse[LW_BX] = (float)lse;
}
