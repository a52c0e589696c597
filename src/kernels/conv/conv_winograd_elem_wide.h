/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_winograd_lines.inc. Here: bf16 in memory, floats from there on. */
#ifndef LW_KERNELS_CONV_WINOGRAD_ELEM_WIDE_H
#define LW_KERNELS_CONV_WINOGRAD_ELEM_WIDE_H

#include "kernels/gemm/gemm_tile.h"

#define WINO(name) LWV_PASTE(name##_bf16, LW_SIMD_SUFFIX)
#define WINO_NUM LW_NUM_BF16
enum { WINO_LOW = 0 };
typedef lw_bf16 wino_in;

LW_WORD vf wino_load(const lw_bf16 *p, ptrdiff_t lanes)
{
    return v_of_bf16(lanes == VL ? vi_load_u16(p) : vi_load_u16_n(p, lanes));
}
LW_WORD void wino_store(float *v, ptrdiff_t k, vf x)
{
    v_store(v + k, x);
}

#endif
