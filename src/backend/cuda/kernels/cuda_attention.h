/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention: which tokens a block is for, and where their results go. Three kernels share this;
 * none of them stores the T x T scores.
 *
 *     cuda_attention.cu    any shape and type, one element at a time
 *     cuda_flash.cu        bf16 on tensor cores
 *     cuda_flash_f32.cu    f32, tiles in registers
 */
#ifndef LW_CUDA_ATTENTION_H
#define LW_CUDA_ATTENTION_H

#include "backend/cuda/kernels/cuda_port.h"

/* Which places a block attends: token i of them is place attention_place(.., i). */
typedef struct attention_room {
    int32_t sample, head, first, columns, queries, keys;
} attention_room;

/* which: heads of a sample or window follow each other */
LW_ON_DEVICE attention_room attention_room_of(const lw_cuda_attention *a, int32_t which)
{
    attention_room r = {which / a->heads, which % a->heads, 0, 0, a->tq, a->tk};
    if (a->window) {
        int32_t across = (a->width + a->window - 1) / a->window;
        int32_t down = (a->height + a->window - 1) / a->window;
        int32_t x = r.sample % across * a->window;
        int32_t y = r.sample / across % down * a->window;
        r.sample /= across * down;
        r.first = y * a->width + x;
        r.columns = a->width - x < a->window ? a->width - x : a->window;
        r.queries = r.keys = r.columns * (a->height - y < a->window ? a->height - y : a->window);
    }
    return r;
}

LW_ON_DEVICE int32_t attention_place(const lw_cuda_attention *a, const attention_room *r, int32_t i)
{
    return a->window ? r->first + i / r->columns * a->width + i % r->columns : i;
}

/* Where a head's channels of a token are in the result; its log-sums lie otherwise. */
LW_ON_DEVICE int64_t attention_at(const lw_cuda_attention *a, const attention_room *r,
                                  int64_t place)
{
    return ((r->sample * (int64_t)a->tq + place) * a->heads + r->head) * a->hd;
}
LW_ON_DEVICE void attention_log(const lw_cuda_attention *a, const attention_room *r, int64_t place,
                                float lse)
{
    if (a->lse)
        a->lse[(r->sample * (int64_t)a->heads + r->head) * a->tq + place] = lse;
}

#endif
