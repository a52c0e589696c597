/* SPDX-License-Identifier: Apache-2.0 */
/* See gemm_elem_f32.h. Here: a pair of s16 and sums of s32, modulo 2^32, for tile.h. The two products of a pair must fit
 * 32 bits together. */
#ifndef LW_KERNELS_GEMM_ELEM_S16_H
#define LW_KERNELS_GEMM_ELEM_S16_H

#include "kernels/gemm/gemm_elem_whole.h"

#define EL(name) LWV_PASTE(name##_s16, LW_SIMD_SUFFIX)
#define EL_IN_PLACE 0
#define EL_INTEGER 1
#define EL_LOW 1
#define EL_OF_FLOAT(v) v_as_i(v)

LW_WORD el_sum el_mac(el_sum sum, el_vec row, el_vec panel)
{
    return vi_mac_s16(sum, row, panel);
}
LW_WORD void el_store(float *p, el_sum s)
{
    vi_store(p, s);
}

#endif
