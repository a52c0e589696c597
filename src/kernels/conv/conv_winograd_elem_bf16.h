/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_winograd_body.inc. Here: pairs of bf16. */
#ifndef LW_KERNELS_CONV_WINOGRAD_ELEM_BF16_H
#define LW_KERNELS_CONV_WINOGRAD_ELEM_BF16_H

#include "kernels/gemm/gemm_elem_bf16.h"

#define WINO(name) LWV_PASTE(name##_bf16, LW_SIMD_SUFFIX)
#define wino_tile_run LWV(lw_tile_run_bf16)
#define WINO_NUM LW_NUM_BF16
enum { WINO_LOW = 1 };
typedef lw_bf16 wino_in;

LW_WORD vf wino_load(const lw_bf16 *p, ptrdiff_t lanes)
{
    return v_of_bf16(lanes == VL ? vi_load_u16(p) : vi_load_u16_n(p, lanes));
}
LW_WORD void wino_store(float *v, ptrdiff_t k, vf x)
{
    store_halves((lw_bf16 *)(void *)v + k, x);
}

#endif
