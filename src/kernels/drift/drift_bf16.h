/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift field: products of bf16 with f32 sums, for shapes that ask for them.
 *
 * Centred vectors are rounded to bf16 and so are their norms: what comes out is the distance of the
 * rounded vectors, to f32, never below zero. Only products of pairs change; near pairs are still
 * measured by differences in f32, and V is a sum of f32 vectors. Two channels lie in a word of 32
 * bits, the even one in its low half. Without the instruction the halves are widened, which is
 * exact.
 */
#ifndef LW_KERNELS_DRIFT_BF16_H
#define LW_KERNELS_DRIFT_BF16_H

#include "kernels/drift/drift_task.h"
#include "kernels/simd/simd.h"
#include "kernels/tile/unroll.h"

#if defined(__AVX512BF16__)
LW_WORD vf drift_dot(vf sum, vi a, vi b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
#else
LW_WORD vf drift_dot(vf sum, vi a, vi b)
{
    vi high = vi_set1(0xffff0000u);
    sum = v_fma(v_as_f(vi_shl(a, 16)), v_as_f(vi_shl(b, 16)), sum);
    return v_fma(v_as_f(vi_and(a, high)), v_as_f(vi_and(b, high)), sum);
}
#endif

/* mr targets x nv VL samples: c (+)= over `pairs` words of the targets' rows and of the
 * panel. */
LW_WORD void drift_low_block(float *c, ptrdiff_t ldc, const uint32_t *a, ptrdiff_t pitch,
                             const uint32_t *b, ptrdiff_t pairs, int add, const int mr,
                             const int nv)
{
    vf s[8][2];
    LW_UNROLL_UP_TO(8)
    for (int i = 0; i < mr; i++) {
        LW_UNROLL_UP_TO(2)
        for (int v = 0; v < nv; v++)
            s[i][v] = add ? v_load(c + i * ldc + v * VL) : v_zero();
    }
    for (ptrdiff_t k = 0; k < pairs; k++, b += LW_DRIFT_NR) {
        LW_UNROLL_UP_TO(8)
        for (int i = 0; i < mr; i++) {
            vi row = vi_set1(a[i * pitch + k]);
            LW_UNROLL_UP_TO(2)
            for (int v = 0; v < nv; v++)
                s[i][v] = drift_dot(s[i][v], row, vi_load(b + v * VL));
        }
    }
    LW_UNROLL_UP_TO(8)
    for (int i = 0; i < mr; i++) {
        LW_UNROLL_UP_TO(2)
        for (int v = 0; v < nv; v++)
            v_store(c + i * ldc + v * VL, s[i][v]);
    }
}

LW_WORD void drift_low_rows(float *c, ptrdiff_t ldc, const uint32_t *a, ptrdiff_t pitch,
                            const uint32_t *b, ptrdiff_t pairs, int add, ptrdiff_t n, const int nv)
{
    enum { MR = VL == 16 ? 8 : 4 };
    ptrdiff_t j = 0;
    for (; j + MR <= n; j += MR)
        drift_low_block(c + j * ldc, ldc, a + j * pitch, pitch, b, pairs, add, MR, nv);
    for (; j < n; j++)
        drift_low_block(c + j * ldc, ldc, a + j * pitch, pitch, b, pairs, add, 1, nv);
}

/* out[n][lanes] = t_j . x_i of the rounded vectors. */
static void drift_gram_low(const drift_job *q, float *out, drift_strip st, ptrdiff_t j0,
                           ptrdiff_t n)
{
    enum { BLOCK = 128, STEP = 2 * VL };
    ptrdiff_t pairs = q->d.cp / 2, words = q->d.words, pitch = q->d.word_pitch;
    for (ptrdiff_t p = 0; p < pairs; p += BLOCK)
        for (ptrdiff_t i = 0; i < st.lanes; i += STEP) {
            ptrdiff_t at = drift_lane(q, st, i), some = pairs - p < BLOCK ? pairs - p : BLOCK;
            const uint32_t *a = q->tb + j0 * pitch + p,
                           *b = q->xb + at / LW_DRIFT_NR * LW_DRIFT_NR * words + p * LW_DRIFT_NR +
                                at % LW_DRIFT_NR;
            if (st.lanes - i >= STEP)
                drift_low_rows(out + i, st.lanes, a, pitch, b, some, p > 0, n, 2);
            else
                drift_low_rows(out + i, st.lanes, a, pitch, b, some, p > 0, n, 1);
        }
}

/* Up to NR samples from i0, rounded or split: rows of words transposed into a panel. */
static void drift_panel_words(const drift_job *q, uint32_t *to, ptrdiff_t i0)
{
    ptrdiff_t n = q->s->n - i0, words = q->d.words, pitch = q->d.word_pitch;
    const uint32_t *from = q->tb + i0 * pitch;
    if (n < LW_DRIFT_NR)
        memset(to, 0, (size_t)(LW_DRIFT_NR * words) * sizeof *to);
    for (ptrdiff_t p = 0; p < words; p += 16)
        for (ptrdiff_t i = 0; i < n && i < LW_DRIFT_NR; i++)
            for (ptrdiff_t k = p; k < p + 16; k++)
                to[k * LW_DRIFT_NR + i] = from[i * pitch + k];
}

#endif
