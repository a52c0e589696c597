/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the gemm and conv families: one task of a weight gradient over rank tiles. */
#ifndef LW_KERNELS_GEMM_WGRAD_H
#define LW_KERNELS_GEMM_WGRAD_H

#include "kernels/gemm/gemm_tile.h"

/* Letters as in conv.h; images is B. */
typedef struct lw_wgrad {
    float *dw, *db; /* [O][KH][KW][C], [O] or NULL */
    const float *dy, *x;
    float *partials;
    int accumulate;
    ptrdiff_t images, OH, OW, H, W, C, O, KH, KW, stride, pad_top, pad_left, ldx, ldy;
} lw_wgrad;
void LWV(lw_wgrad_task)(const lw_wgrad *g, int64_t task);
/* Operands of bf16, in place of g->dy and g->x; `run` is the rank tile of the level. */
void LWV_BASE(lw_wgrad_task_bf16)(const lw_wgrad *g, const lw_bf16 *dy, const lw_bf16 *x,
                                  lw_rank_fn *run, int64_t task);
#if defined(LW_AMX)
void lw_wgrad_task_bf16_amx(const lw_wgrad *g, const lw_bf16 *dy, const lw_bf16 *x, int64_t task);
lw_rank_fn lw_rank_run_bf16_avx512bf16;
/* On tile registers, but for shapes that would leave most of them empty or need wide filters. */
static inline void lw_wgrad_low(const lw_wgrad *g, const lw_bf16 *dy, const lw_bf16 *x,
                                int64_t task)
{
    enum { LEAST = 16, WIDEST = 16 };
    if (g->O >= LEAST && g->C >= LEAST && g->KH <= WIDEST && g->KW <= WIDEST)
        lw_wgrad_task_bf16_amx(g, dy, x, task);
    else
        LWV_BASE(lw_wgrad_task_bf16)(g, dy, x, lw_rank_run_bf16_avx512bf16, task);
}
#else
static inline void lw_wgrad_low(const lw_wgrad *g, const lw_bf16 *dy, const lw_bf16 *x,
                                int64_t task)
{
    LWV_BASE(lw_wgrad_task_bf16)(g, dy, x, LWV(lw_rank_run_bf16), task);
}
#endif
void LWV(lw_wgrad_combine)(float *dw, float *db, int64_t weights, int64_t O,
                           const lw_wgrad_split *s, int accumulate, const float *partials,
                           int64_t task);

#endif
