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

#ifdef LW_SIMD_HAS_MAC_U8S8
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

LW_WORD el_vec el_row(const float *p, int part)
{
    vi w = lw_word_everywhere(p);
    return part ? vi16_shr(w, 8) : vi_and(w, vi_set1(0x00ff00ffu));
}
LW_WORD el_vec el_panel(const float *b, int part)
{
    vi w = vi_load(b);
    return vi16_sra(part ? w : vi16_shl(w, 8), 8);
}
LW_WORD el_sum el_mac(el_sum sum, el_vec row, el_vec panel)
{
    return vi_mac_s16(sum, row, panel);
}
/* Both parts of VL words of a row, in turns. */
LW_WORD void el_unpack(float *to, vi w)
{
    vi low, high;
    vi_zip(vi_and(w, vi_set1(0x00ff00ffu)), vi16_shr(w, 8), &low, &high);
    vi_store(to, low);
    vi_store(to + VL, high);
}

#endif

#endif
