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
#include "kernels/tile/tile_amx.h"

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

/* out[n][lanes] = t_j . x_i. Rows up to a whole register are read, whatever they hold. */
static void drift_gram_tiles(const drift_job *q, float *out, drift_strip st, ptrdiff_t j0,
                             ptrdiff_t n)
{
    void (*const product)(const tile_arg *, ptrdiff_t, ptrdiff_t) = q->d.split ? amx_product_bf16x3
                                                                               : amx_product;
    const ptrdiff_t whole = n / AMX_ROWS * AMX_ROWS;
    for (ptrdiff_t i = 0; i < st.lanes; i += LW_DRIFT_NR) {
        _Alignas(64) float room[AMX_ROWS * LW_DRIFT_NR];
        const ptrdiff_t lanes = LW_MIN(st.lanes - i, LW_DRIFT_NR);
        tile_arg t = {.a = drift_word_row(q, j0),
                      .b = q->xt + drift_lane(q, st, i) * q->d.words,
                      .c = out + i,
                      .ars = q->d.word_pitch,
                      .aks = 1,
                      .bks = LW_DRIFT_NR,
                      .ldc = st.lanes,
                      .k = q->d.words};
        product(&t, whole, lanes);
        if (whole == n)
            continue;
        t.a = drift_word_row(q, j0 + whole);
        t.c = room;
        t.ldc = LW_DRIFT_NR;
        product(&t, n - whole, lanes);
        for (ptrdiff_t r = whole; r < n; r++)
            memcpy(out + r * st.lanes + i, room + (r - whole) * LW_DRIFT_NR,
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
