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

/* Which places a block attends: token i of them is place attention_place(.., i). */
typedef struct attention_room {
    int64_t sample, head, first;
    int32_t columns, queries, keys;
} attention_room;

LW_ON_DEVICE attention_room attention_room_of(const lw_cuda_attention *a)
{
    attention_room r = {LW_BX / a->heads, LW_BX % a->heads, 0, 0, a->tq, a->tk};
    if (a->window) {
        int32_t across = (a->width + a->window - 1) / a->window;
        int32_t down = (a->height + a->window - 1) / a->window;
        int32_t x = (int32_t)(r.sample % across) * a->window;
        int32_t y = (int32_t)(r.sample / across % down) * a->window;
        r.sample /= (int64_t)across * down;
        r.first = (int64_t)y * a->width + x;
        r.columns = a->width - x < a->window ? a->width - x : a->window;
        r.queries = r.keys = r.columns * (a->height - y < a->window ? a->height - y : a->window);
    }
    return r;
}

LW_ON_DEVICE int64_t attention_place(const lw_cuda_attention *a, const attention_room *r, int32_t i)
{
    return a->window ? r->first + (int64_t)(i / r->columns) * a->width + i % r->columns : i;
}

LW_ON_DEVICE float attention_number(const void *from, const bool narrow, int64_t at)
{
    return narrow ? lw_bf16_to_float(((const uint16_t *)from)[at]) : ((const float *)from)[at];
}

LW_ON_DEVICE void attention_write(const lw_cuda_attention *a, const bool narrow, int64_t at,
                                  float v)
{
    if (narrow && a->store)
        ((uint16_t *)a->o)[at] = lw_bf16_bits(v);
    else
        ((float *)a->o)[at] = v;
}

/*
 * A block for 16 queries (y) of a head of a sample or window (x); keys come 16 at a time through
 * shared memory, their values behind them. Thread (r, j) scores key j for query r and gathers
 * channels j, j + 16, .. of it.
 */
LW_ON_DEVICE void attention_tile(const lw_cuda_attention *a, const bool narrow, float *near,
                                 float (*score)[LW_CUDA_KEYS + 1])
{
    const int pitch = LW_CUDA_HEAD + 1;
    attention_room room = attention_room_of(a);
    int r = LW_TID / 16, lane = LW_TID % 16;
    int32_t i = (int32_t)LW_BY * LW_CUDA_QUERIES + r;
    bool asks = i < room.queries;
    int64_t place = asks ? attention_place(a, &room, i) : 0, channel = room.head * a->hd;
    int64_t q = room.sample * a->q_sample + place * a->q_pitch + channel;
    int64_t k = room.sample * a->k_sample + channel;
    int64_t v = room.sample * a->v_sample + channel;
    float top = -INFINITY, total = 0.0f, sum[LW_CUDA_HEAD / 16];
    LW_UNROLL
    for (int c = 0; c < LW_CUDA_HEAD / 16; c++)
        sum[c] = 0.0f;
    for (int32_t j0 = 0; j0 < room.keys; j0 += LW_CUDA_KEYS) {
        int32_t keys = room.keys - j0 < LW_CUDA_KEYS ? room.keys - j0 : LW_CUDA_KEYS;
        for (int e = LW_TID; e < keys * a->hd; e += 256)
            near[e / a->hd * pitch + e % a->hd] =
                attention_number(a->k, narrow,
                                 k + attention_place(a, &room, j0 + e / a->hd) * a->k_pitch +
                                     e % a->hd);
        LW_SYNC();
        float s = 0.0f;
        if (asks && lane < keys)
            for (int c = 0; c < a->hd; c++)
                s = fmaf(attention_number(a->q, narrow, q + c), near[lane * pitch + c], s);
        score[r][lane] = lane < keys ? s * a->scale : -INFINITY;
        LW_SYNC();
        for (int e = LW_TID; e < keys * a->hd; e += 256)
            near[e / a->hd * pitch + e % a->hd] =
                attention_number(a->v, narrow,
                                 v + attention_place(a, &room, j0 + e / a->hd) * a->v_pitch +
                                     e % a->hd);
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
                if (c * 16 + lane < a->hd)
                    sum[c] = fmaf(p, near[j * pitch + c * 16 + lane], sum[c]);
        }
        top = up;
        LW_SYNC();
    }
    if (!asks)
        return;
    int64_t o = (room.sample * a->tq + place) * a->heads * a->hd + channel;
    LW_UNROLL
    for (int c = 0; c < LW_CUDA_HEAD / 16; c++)
        if (c * 16 + lane < a->hd)
            attention_write(a, narrow, o + c * 16 + lane, sum[c] / total);
    if (a->lse && lane == 0)
        a->lse[(room.sample * a->heads + room.head) * a->tq + place] = top + logf(total);
}

LW_KERNEL(attention, lw_cuda_attention, 256)
{
    LW_SHARED float near[LW_CUDA_KEYS * (LW_CUDA_HEAD + 1)];
    LW_SHARED float score[LW_CUDA_QUERIES][LW_CUDA_KEYS + 1];
    attention_tile(&a, false, near, score);
}

LW_KERNEL(attention_bf16, lw_cuda_attention, 256)
{
    LW_SHARED float near[LW_CUDA_KEYS * (LW_CUDA_HEAD + 1)];
    LW_SHARED float score[LW_CUDA_QUERIES][LW_CUDA_KEYS + 1];
    attention_tile(&a, true, near, score);
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
