/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See gemm_elem_f32.h. Here: four u8 (rows) and four s8 (panels), sums of s32, exact. Without the
 * instruction the even and the odd bytes are widened to 16 bits and multiplied in pairs; the one
 * that takes bytes (pmaddubsw) saturates and is not used.
 */
#ifndef LW_KERNELS_GEMM_ELEM_U8_H
#define LW_KERNELS_GEMM_ELEM_U8_H

#include "kernels/gemm/gemm_tile.h"

#define EL(name) LWV_PASTE(name##_u8, LW_SIMD_SUFFIX)
#define EL_IN_PLACE 0
#define EL_INTEGER 1
#define EL_LOW 1
#define EL_OF_FLOAT(v) v_as_i(v)

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#include "kernels/gemm/gemm_elem_whole.h"

LW_WORD el_sum el_mac(el_sum sum, el_vec row, el_vec panel)
{
    return vi_mac_u8s8(sum, row, panel);
}

#else

#define EL_UNPACKED (VL == 8) /* measured there */
enum { EL_PARTS = 2 };
typedef vi el_sum;
typedef vi el_vec;
#if VL == 16
#define SHIFT_LEFT_16 _mm512_slli_epi16
#define SHIFT_RIGHT_16 _mm512_srai_epi16
#define SHIFT_ZERO_16 _mm512_srli_epi16
#else
#define SHIFT_LEFT_16 _mm256_slli_epi16
#define SHIFT_RIGHT_16 _mm256_srai_epi16
#define SHIFT_ZERO_16 _mm256_srli_epi16
#endif

LW_WORD el_vec el_row(const float *p, int part)
{
    vi w = lw_word_everywhere(p);
    return part ? SHIFT_ZERO_16(w, 8) : vi_and(w, vi_set1(0x00ff00ffu));
}
LW_WORD el_vec el_panel(const float *b, int part)
{
    vi w = vi_load(b);
    return SHIFT_RIGHT_16(part ? w : SHIFT_LEFT_16(w, 8), 8);
}
LW_WORD el_sum el_mac(el_sum sum, el_vec row, el_vec panel)
{
    return vi_mac_s16(sum, row, panel);
}
/* Both parts of VL words of a row, in turns. */
LW_WORD void el_unpack(float *to, vi w)
{
    vi low, high;
    vi_zip(vi_and(w, vi_set1(0x00ff00ffu)), SHIFT_ZERO_16(w, 8), &low, &high);
    vi_store(to, low);
    vi_store(to + VL, high);
}

#endif

#endif
