/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_winograd_lines.inc. Here: pairs of bf16. */
#ifndef LW_KERNELS_CONV_WINOGRAD_ELEM_BF16_H
#define LW_KERNELS_CONV_WINOGRAD_ELEM_BF16_H

#include "kernels/conv/conv_winograd_load_bf16.h"
#include "kernels/gemm/gemm_elem_bf16.h"

#define WINO_NUM LW_NUM_BF16
#define WINO_WHOLE 0
enum { WINO_LOW = 1 };

LW_WORD void wino_store(float *v, ptrdiff_t k, vf x)
{
    v_store_bf16((lw_bf16 *)(void *)v + k, x, VL);
}

#endif
