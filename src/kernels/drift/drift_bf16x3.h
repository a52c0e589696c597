/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift field: products of f32 on tile registers, operands as LW_NUM_BF16X3 has them (gemm.h), for
 * large groups. Targets are split once, into rows of words; samples, which are the first of them, are
 * transposed from these when their strip is opened. At the level amx alone: cpu_drift.c asks for it
 * there.
 */
#ifndef LW_KERNELS_DRIFT_BF16X3_H
#define LW_KERNELS_DRIFT_BF16X3_H

#include "base/error.h"
#include "base/memory.h"
#include "kernels/drift/drift_bf16.h"
#include "kernels/gemm/gemm.h"

#if defined(LW_AMX)
#include "kernels/simd/simd_amx.h"

static void drift_split_begin(const drift_job *q)
{
    if (q->d.split)
        amx_begin();
}

static void drift_split_end(const drift_job *q)
{
    if (q->d.split)
        amx_end();
}

static float *drift_split_row(const drift_job *q, ptrdiff_t j)
{
    return (float *)(void *)(q->tb + j * q->d.word_pitch);
}

/* The targets j0 .. j1 - 1. */
static void drift_split_targets(const drift_job *q, ptrdiff_t j0, ptrdiff_t j1)
{
    for (ptrdiff_t j = j0; q->d.split && j < j1; j++)
        lw_bf16x3_split_amx(drift_split_row(q, j), q->t + j * q->d.pitch, q->s->c);
}

/* 32 targets, or 16, times 32 or 16 samples of a panel. */
LW_WORD void drift_split_block(float *out, ptrdiff_t pitch_out, const float *a, ptrdiff_t pitch,
                               const float *panel, ptrdiff_t words, const int halves,
                               const int vecs)
{
    const ptrdiff_t word = (ptrdiff_t)sizeof(float), lda = pitch * word, ldb = LW_DRIFT_NR * word;
    const float *lower = a + AMX_ROWS * pitch;
    amx_sums_zero();
    for (ptrdiff_t k = 0; k < words; k += LW_BF16X3_WORDS) {
        amx_sums_add_bf16x3(a + k, lda, AMX_WORDS, lower + k, lda, AMX_WORDS,
                            panel + k * LW_DRIFT_NR, ldb, halves, vecs);
        amx_stay_awake(k / LW_BF16X3_WORDS, 2);
    }
    amx_sums_store(out, pitch_out * word, halves, vecs);
}

/* out[n][lanes] = t_j . x_i. Rows up to a whole register are read, whatever they hold. */
static void drift_gram_split(const drift_job *q, float *out, drift_strip st, ptrdiff_t j0,
                             ptrdiff_t n)
{
    enum { ROWS = 2 * AMX_ROWS };
    const ptrdiff_t words = q->d.words, pitch = q->d.word_pitch;
    for (ptrdiff_t j = 0; j < n; j += ROWS)
        for (ptrdiff_t i = 0; i < st.lanes; i += LW_DRIFT_NR) {
            _Alignas(64) float room[ROWS * LW_DRIFT_NR];
            const ptrdiff_t rows = LW_MIN(n - j, ROWS), lanes = LW_MIN(st.lanes - i, LW_DRIFT_NR);
            const bool whole = rows % AMX_ROWS == 0;
            const float *a = drift_split_row(q, j0 + j), *panel = q->xt + i * words;
            float *to = whole ? out + j * st.lanes + i : room;
            const ptrdiff_t pitch_to = whole ? st.lanes : LW_DRIFT_NR;
            if (rows > AMX_ROWS && lanes > VL)
                drift_split_block(to, pitch_to, a, pitch, panel, words, 2, 2);
            else if (rows > AMX_ROWS)
                drift_split_block(to, pitch_to, a, pitch, panel, words, 2, 1);
            else if (lanes > VL)
                drift_split_block(to, pitch_to, a, pitch, panel, words, 1, 2);
            else
                drift_split_block(to, pitch_to, a, pitch, panel, words, 1, 1);
            for (ptrdiff_t r = 0; !whole && r < rows; r++)
                memcpy(out + (j + r) * st.lanes + i, room + r * LW_DRIFT_NR,
                       (size_t)lanes * sizeof *out);
        }
}

#else

static void drift_split_begin(const drift_job *q)
{
    LW_ASSERT(!q->d.split, "products of three bf16 need tile registers");
}
static void drift_split_end(const drift_job *q)
{
    (void)q;
}
static void drift_split_targets(const drift_job *q, ptrdiff_t j0, ptrdiff_t j1)
{
    (void)q, (void)j0, (void)j1;
}
static void drift_gram_split(const drift_job *q, float *out, drift_strip st, ptrdiff_t j0,
                             ptrdiff_t n)
{
    (void)q, (void)out, (void)st, (void)j0, (void)n;
}

#endif

#endif
