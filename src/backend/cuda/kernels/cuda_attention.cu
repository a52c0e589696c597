/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of any shape and type, one element at a time in f32. */
#include "backend/cuda/kernels/cuda_attention.h"

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
    attention_room room = attention_room_of(a, (int32_t)LW_BX);
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
            near[e / a->hd * pitch + e % a->hd] = attention_number(
                a->k, narrow,
                k + (int64_t)attention_place(a, &room, j0 + e / a->hd) * a->k_pitch + e % a->hd);
        LW_SYNC();
        float s = 0.0f;
        if (asks && lane < keys)
            for (int c = 0; c < a->hd; c++)
                s = fmaf(attention_number(a->q, narrow, q + c), near[lane * pitch + c], s);
        score[r][lane] = lane < keys ? s * a->scale : -INFINITY;
        LW_SYNC();
        for (int e = LW_TID; e < keys * a->hd; e += 256)
            near[e / a->hd * pitch + e % a->hd] = attention_number(
                a->v, narrow,
                v + (int64_t)attention_place(a, &room, j0 + e / a->hd) * a->v_pitch + e % a->hd);
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
    int64_t o = attention_at(a, &room, place);
    LW_UNROLL
    for (int c = 0; c < LW_CUDA_HEAD / 16; c++)
        if (c * 16 + lane < a->hd)
            attention_write(a, narrow, o + c * 16 + lane, sum[c] / total);
    if (lane == 0)
        attention_log(a, &room, place, top + logf(total));
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
