/* SPDX-License-Identifier: Apache-2.0 */
/* Group normalisation, attention that never stores T x T, softmax. */
#include "backend/cuda/kernels/cuda_port.h"

/* A block for each group (x) of each sample (y): mean, then variance, then the result. */
LW_KERNEL(group_norm, lw_cuda_norm, 256)
{
    LW_SHARED double room[256];
    int64_t g = LW_BX, b = LW_BY;
    int32_t width = a.c / a.groups, c0 = (int32_t)g * width;
    int64_t n = a.hw * width;
    const float *x = a.x + b * a.hw * a.c + c0;
    float *y = a.y + b * a.hw * a.c + c0;
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
        y[at] = lw_activate(v, a.act);
    }
    if (LW_TID == 0) {
        if (a.mean)
            a.mean[b * a.groups + g] = (float)mean;
        if (a.rstd)
            a.rstd[b * a.groups + g] = (float)rstd;
    }
}

/*
 * A block for 16 queries (x) of a head of a sample (y); keys come 16 at a time through shared
 * memory, their values behind them. Thread (r, j) scores key j for query r and gathers channels j,
 * j + 16, .. of it.
 */
LW_KERNEL(attention, lw_cuda_attention, 256)
{
    LW_SHARED float near[LW_CUDA_KEYS * (LW_CUDA_HEAD + 1)];
    LW_SHARED float score[LW_CUDA_QUERIES][LW_CUDA_KEYS + 1];
    const int pitch = LW_CUDA_HEAD + 1;
    int r = LW_TID / 16, lane = LW_TID % 16;
    int64_t b = LW_BY / a.heads, head = LW_BY % a.heads, i = LW_BX * LW_CUDA_QUERIES + r;
    const float *q = a.q + b * a.q_sample + i * a.q_pitch + head * a.hd;
    float top = -INFINITY, total = 0.0f, sum[LW_CUDA_HEAD / 16];
    LW_UNROLL
    for (int c = 0; c < LW_CUDA_HEAD / 16; c++)
        sum[c] = 0.0f;
    for (int32_t j0 = 0; j0 < a.tk; j0 += LW_CUDA_KEYS) {
        int32_t keys = a.tk - j0 < LW_CUDA_KEYS ? a.tk - j0 : LW_CUDA_KEYS;
        for (int e = LW_TID; e < keys * a.hd; e += 256)
            near[e / a.hd * pitch + e % a.hd] =
                a.k[b * a.k_sample + (int64_t)(j0 + e / a.hd) * a.k_pitch + head * a.hd + e % a.hd];
        LW_SYNC();
        float s = 0.0f;
        if (i < a.tq && lane < keys)
            for (int c = 0; c < a.hd; c++)
                s = fmaf(q[c], near[lane * pitch + c], s);
        score[r][lane] = lane < keys ? s * a.scale : -INFINITY;
        LW_SYNC();
        for (int e = LW_TID; e < keys * a.hd; e += 256)
            near[e / a.hd * pitch + e % a.hd] =
                a.v[b * a.v_sample + (int64_t)(j0 + e / a.hd) * a.v_pitch + head * a.hd + e % a.hd];
        LW_SYNC();
        float up = top;
        for (int j = 0; j < keys; j++)
            up = fmaxf(up, score[r][j]);
        float down = expf(top - up);
        total *= down;
        LW_UNROLL
        for (int c = 0; c < LW_CUDA_HEAD / 16; c++)
            sum[c] *= down;
        for (int j = 0; j < keys; j++) {
            float p = expf(score[r][j] - up);
            total += p;
            LW_UNROLL
            for (int c = 0; c < LW_CUDA_HEAD / 16; c++)
                if (c * 16 + lane < a.hd)
                    sum[c] = fmaf(p, near[j * pitch + c * 16 + lane], sum[c]);
        }
        top = up;
        LW_SYNC();
    }
    if (i >= a.tq)
        return;
    float *o = a.o + (b * a.tq + i) * a.heads * a.hd + head * a.hd;
    LW_UNROLL
    for (int c = 0; c < LW_CUDA_HEAD / 16; c++)
        if (c * 16 + lane < a.hd)
            o[c * 16 + lane] = sum[c] / total;
    if (a.lse && lane == 0)
        a.lse[(b * a.heads + head) * a.tq + i] = top + logf(total);
}

/* A block for each row. */
LW_KERNEL(softmax, lw_cuda_softmax, 256)
{
    LW_SHARED double room[256];
    const float *x = a.x + LW_BX * a.n;
    double top = -INFINITY, sum = 0.0;
    for (int64_t i = LW_TID; i < a.n; i += 256)
        top = fmax(top, (double)x[i]);
    top = lw_block_max(room, top);
    for (int64_t i = LW_TID; i < a.n; i += 256)
        sum += exp((double)x[i] - top);
    double lse = top + log(lw_block_sum(room, sum));
    for (int64_t i = LW_TID; i < a.n; i += 256)
        a.y[LW_BX * a.n + i] = (float)exp((double)x[i] - lse);
}
