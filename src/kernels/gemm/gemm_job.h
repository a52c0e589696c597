/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the gemm family: one matrix product, whatever its operands. */
#ifndef LW_KERNELS_GEMM_JOB_H
#define LW_KERNELS_GEMM_JOB_H

#include "kernels/gemm/gemm_tile.h"

/* Words between rows that were split: whole lines, of which one more keeps them out of one another's sets of a cache. */
enum { LW_SPLIT_PITCH = LW_WIDE_DEPTH + 16 };

/* Where rounded results go; at NULL: nowhere, they are f32. */
typedef struct lw_rounded {
    void *at;
    ptrdiff_t size; /* bytes of an element */
} lw_rounded;
static inline lw_rounded lw_rounded_of(const lw_epilogue *e, void *out)
{
    if (!e || e->store == LW_NUM_F32)
        return (lw_rounded){0};
    return (lw_rounded){out, e->store == LW_NUM_BF16 ? (ptrdiff_t)sizeof(lw_bf16) : 1};
}
static inline void *lw_rounded_at(lw_rounded r, ptrdiff_t element)
{
    return (char *)r.at + element * r.size;
}

typedef struct lw_gemm_job {
    float *c;                /* rows of floats, or */
    lw_rounded low;          /* or rows of bf16 or bytes, of pitch ldc too */
    const float *a, *packed; /* 32-bit words, see gemm_tile.h */
    ptrdiff_t ldc, lda;      /* elements of c or low, words of a (numbers, where these are split) */
    ptrdiff_t M, N, K;       /* K in elements */
    const lw_epilogue *e;    /* or NULL */
    lw_num num;
    const lw_tiles *tiles;     /* of that type */
    lw_tile_room *room;        /* of lw_tiles_begin */
    const lw_quant *q;         /* LW_NUM_S8 */
    lw_bf16x3_split_fn *split; /* LW_NUM_BF16X3: a is of f32, and a tile's rows are split to */
    float *rows;               /* here, [LW_TILE_MOST_ROWS][LW_SPLIT_PITCH] words */
} lw_gemm_job;
void LWV_BASE(lw_gemm_run)(lw_gemm_job j, int64_t task);

#endif
