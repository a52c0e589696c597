/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift field: products on tile registers, at the level amx: of rounded vectors, and of f32 as
 * LW_NUM_BF16X3 has it (gemm.h), which is for large groups. Those are split once, into rows of words;
 * samples, which are the first targets, are transposed from these when their strip is opened.
 */
#ifndef LW_KERNELS_DRIFT_TILES_H
#define LW_KERNELS_DRIFT_TILES_H

#include "base/error.h"
#include "base/memory.h"
#include "kernels/drift/drift_bf16.h"
#include "kernels/gemm/gemm.h"

#if defined(LW_AMX)
#include "kernels/simd/simd_amx.h"

static void drift_tiles_begin(const drift_job *q)
{
    if (q->d.words)
        amx_begin();
}

static void drift_tiles_end(const drift_job *q)
{
    if (q->d.words)
        amx_end();
}

/* Whether products are made here. */
static bool drift_on_tiles(const drift_job *q)
{
    return q->d.words > 0;
}

static float *drift_word_row(const drift_job *q, ptrdiff_t j)
{
    return (float *)(void *)(q->tb + j * q->d.word_pitch);
}

/* The targets j0 .. j1 - 1. */
static void drift_split_targets(const drift_job *q, ptrdiff_t j0, ptrdiff_t j1)
{
    for (ptrdiff_t j = j0; q->d.split && j < j1; j++)
        lw_bf16x3_split_amx(drift_word_row(q, j), q->t + j * q->d.pitch, q->s->c);
}

/* 32 targets, or 16, times 32 or 16 samples of a panel; of words of `parts` parts. */
LW_WORD void drift_tiles_block(float *out, ptrdiff_t pitch_out, const float *a, ptrdiff_t pitch,
                               const float *panel, ptrdiff_t words, const int halves,
                               const int vecs, const int parts)
{
    const ptrdiff_t word = (ptrdiff_t)sizeof(float), lda = pitch * word, ldb = LW_DRIFT_NR * word;
    const float *lower = a + AMX_ROWS * pitch;
    amx_sums_zero();
    for (ptrdiff_t k = 0; k < words; k += parts * AMX_WORDS) {
        const float *b = panel + k * LW_DRIFT_NR;
        if (parts == 3)
            amx_sums_add_bf16x3(a + k, lda, AMX_WORDS, lower + k, lda, AMX_WORDS, b, ldb, halves,
                                vecs);
        else
            amx_sums_add(a + k, lda, lower + k, lda, b, ldb, halves, vecs, AMX_BF16);
        amx_stay_awake(k / (parts * AMX_WORDS), parts == 3 ? 2 : AMX_AWAKE);
    }
    amx_sums_store(out, pitch_out * word, halves, vecs);
}

LW_WORD void drift_tiles_rows(const drift_job *q, float *out, ptrdiff_t pitch_out, const float *a,
                              ptrdiff_t rows, const float *panel, ptrdiff_t lanes, const int parts)
{
    const ptrdiff_t words = q->d.words, pitch = q->d.word_pitch;
    if (rows > AMX_ROWS && lanes > VL)
        drift_tiles_block(out, pitch_out, a, pitch, panel, words, 2, 2, parts);
    else if (rows > AMX_ROWS)
        drift_tiles_block(out, pitch_out, a, pitch, panel, words, 2, 1, parts);
    else if (lanes > VL)
        drift_tiles_block(out, pitch_out, a, pitch, panel, words, 1, 2, parts);
    else
        drift_tiles_block(out, pitch_out, a, pitch, panel, words, 1, 1, parts);
}

/* out[n][lanes] = t_j . x_i. Rows up to a whole register are read, whatever they hold. */
static void drift_gram_tiles(const drift_job *q, float *out, drift_strip st, ptrdiff_t j0,
                             ptrdiff_t n)
{
    enum { ROWS = 2 * AMX_ROWS };
    for (ptrdiff_t j = 0; j < n; j += ROWS)
        for (ptrdiff_t i = 0; i < st.lanes; i += LW_DRIFT_NR) {
            _Alignas(64) float room[ROWS * LW_DRIFT_NR];
            const ptrdiff_t rows = LW_MIN(n - j, ROWS), lanes = LW_MIN(st.lanes - i, LW_DRIFT_NR);
            const bool whole = rows % AMX_ROWS == 0;
            const float *a = drift_word_row(q, j0 + j),
                        *panel = q->xt + drift_lane(q, st, i) * q->d.words;
            float *to = whole ? out + j * st.lanes + i : room;
            const ptrdiff_t pitch = whole ? st.lanes : LW_DRIFT_NR;
            if (q->d.split)
                drift_tiles_rows(q, to, pitch, a, rows, panel, lanes, 3);
            else
                drift_tiles_rows(q, to, pitch, a, rows, panel, lanes, 1);
            for (ptrdiff_t r = 0; !whole && r < rows; r++)
                memcpy(out + (j + r) * st.lanes + i, room + r * LW_DRIFT_NR,
                       (size_t)lanes * sizeof *out);
        }
}

#else

static void drift_tiles_begin(const drift_job *q)
{
    LW_ASSERT(!q->d.split, "products of three bf16 need tile registers");
}
static void drift_tiles_end(const drift_job *q)
{
    (void)q;
}
static bool drift_on_tiles(const drift_job *q)
{
    (void)q;
    return false;
}
static void drift_split_targets(const drift_job *q, ptrdiff_t j0, ptrdiff_t j1)
{
    (void)q, (void)j0, (void)j1;
}
static void drift_gram_tiles(const drift_job *q, float *out, drift_strip st, ptrdiff_t j0,
                             ptrdiff_t n)
{
    (void)q, (void)out, (void)st, (void)j0, (void)n;
}

#endif

#endif
