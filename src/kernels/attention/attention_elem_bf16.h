/* SPDX-License-Identifier: Apache-2.0 */
/* See attention_elem_f32.h. Here: two bf16 in a word, the earlier one low. Where the instruction
 * rounds, denormal numbers become 0. */
#ifndef LW_KERNELS_ATTENTION_ELEM_BF16_H
#define LW_KERNELS_ATTENTION_ELEM_BF16_H

#include "kernels/gemm/gemm_elem_bf16.h"

#include "kernels/attention/attention_block.h"
#include "kernels/tile/tile.h"

#define AT(name) LWV_PASTE(name##_bf16, LW_SIMD_SUFFIX)
enum { AT_PER = 2 };

#if defined(__AVX512BF16__)

/* Word i: low[i], high[i]. */
LW_WORD vi pair_up(vf low, vf high)
{
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9,
                                           24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1,
                                           16, 0);
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}
LW_WORD void store_halves(float *words, ptrdiff_t at, vf v)
{
    _mm256_storeu_si256((void *)((uint16_t *)(void *)words + at), (__m256i)_mm512_cvtneps_pbh(v));
}

#else

LW_WORD vi pair_up(vf low, vf high)
{
    return vi_or(vi_bf16(low), vi_shl(vi_bf16(high), 16));
}
LW_WORD void store_halves(float *words, ptrdiff_t at, vf v)
{
    vi_store_u16((uint16_t *)(void *)words + at, vi_bf16(v));
}

#endif

/* [t, pitch] columns 0..hd-1 to [t / 2][dp] words of two rows, zeros behind. */
static void pack_steps(float *to, const float *from, ptrdiff_t pitch, ptrdiff_t t, ptrdiff_t hd,
                       ptrdiff_t dp)
{
    for (ptrdiff_t i = 0; i < t; i += 2, to += dp, from += 2 * pitch)
        for (ptrdiff_t c = 0; c < dp; c += VL) {
            ptrdiff_t n = LW_MIN(hd - c, VL);
            vf second = i + 1 < t ? v_load_n(from + pitch + c, n) : v_zero();
            vi_store(to + c, pair_up(v_load_n(from + c, n), second));
        }
}

/* [t, pitch] to panels [t / NR][hd / 2][NR] of from times scale, zeros behind the last token. */
static void pack_panels(float *to, const float *from, ptrdiff_t pitch, ptrdiff_t t, ptrdiff_t hd,
                        float scale)
{
    enum { NR = LW_ATTENTION_NR };
    ptrdiff_t words = (hd + 1) / 2;
    for (ptrdiff_t j = 0; j < LW_ROUND_UP(t, NR); j += VL)
        for (ptrdiff_t c = 0; c < hd; c += VL) {
            vf r[VL];
            LW_UNROLL_UP_TO(16)
            for (int l = 0; l < VL; l++) {
                vf x = j + l < t ? v_load_n(from + (j + l) * pitch + c, LW_MIN(hd - c, VL))
                                 : v_zero();
                r[l] = v_mul(x, v_set1(scale));
            }
            v_transpose(r);
            float *panel = to + j / NR * NR * words + j % NR;
            for (ptrdiff_t w = 0; w < LW_MIN(words - c / 2, VL / 2); w++)
                vi_store(panel + (c / 2 + w) * NR, pair_up(r[2 * w], r[2 * w + 1]));
        }
}

/* m rows of queries as row operands, in `room`. */
static const float *query_rows(float *room, const float *q, ptrdiff_t *pitch, ptrdiff_t m,
                               ptrdiff_t hd)
{
    ptrdiff_t from = *pitch, to = LW_ROUND_UP(hd, VL) / 2;
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t c = 0; c < hd; c += VL)
            store_halves(room + i * to, c, v_load_n(q + i * from + c, LW_MIN(hd - c, VL)));
    *pitch = to;
    return room;
}

LW_WORD void put_probabilities(float *row, ptrdiff_t j, vf e)
{
    store_halves(row, j, e);
}

#endif
