/* SPDX-License-Identifier: Apache-2.0 */
/* See gemm_elem_f32.h. Here: a pair of bf16 and f32 sums. Without the instruction each half is
 * widened to f32, which is exact, and multiplied by itself. */
#ifndef LW_KERNELS_GEMM_ELEM_BF16_H
#define LW_KERNELS_GEMM_ELEM_BF16_H

#include "kernels/gemm/gemm_tile.h"

#define EL(name) LWV_PASTE(name##_bf16, LW_SIMD_SUFFIX)
#define EL_UNPACKED 0
#define EL_IN_PLACE 0
#define EL_INTEGER 0
#define EL_LOW 1
#define EL_OF_FLOAT(v) (v)
typedef vf el_sum;

#if defined(__AVX512BF16__)

enum { EL_PARTS = 1 };
typedef __m512bh el_vec;

LW_WORD el_vec el_row(const float *p, int part)
{
    (void)part;
    return (el_vec)lw_word_everywhere(p);
}
LW_WORD el_vec el_panel(const float *b, int part)
{
    (void)part;
    return (el_vec)vi_load(b);
}
LW_WORD el_sum el_mac(el_sum sum, el_vec row, el_vec panel)
{
    return _mm512_dpbf16_ps(sum, panel, row);
}
/* Words of two floats each, rounded as by v_store_bf16. */
LW_WORD vi word_of_halves(vf low, vf high)
{
    return vi_or(_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(low)),
                 vi_shl(_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(high)), 16));
}

#else

enum { EL_PARTS = 2 };
typedef vf el_vec;

LW_WORD el_vec bf16_half(vi w, int part)
{
    return v_as_f(part ? vi_and(w, vi_set1(0xffff0000u)) : vi_shl(w, 16));
}
LW_WORD el_vec el_row(const float *p, int part)
{
    return bf16_half(lw_word_everywhere(p), part);
}
LW_WORD el_vec el_panel(const float *b, int part)
{
    return bf16_half(vi_load(b), part);
}
LW_WORD el_sum el_mac(el_sum sum, el_vec row, el_vec panel)
{
    return v_fma(row, panel, sum);
}
LW_WORD vi word_of_halves(vf low, vf high)
{
    return vi_or(vi_bf16(low), vi_shl(vi_bf16(high), 16));
}

#endif

LW_WORD void el_store(float *p, el_sum s)
{
    v_store(p, s);
}

#endif
