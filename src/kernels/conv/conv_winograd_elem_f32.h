/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_winograd_lines.inc. Here: floats. */
#ifndef LW_KERNELS_CONV_WINOGRAD_ELEM_F32_H
#define LW_KERNELS_CONV_WINOGRAD_ELEM_F32_H

#include "kernels/gemm/gemm_tile.h"

#define WINO(name) LWV(name)
#define WINO_NUM LW_NUM_F32
#define WINO_WHOLE 0
enum { WINO_LOW = 0 };
typedef float wino_in;

LW_WORD vf wino_load(const float *p, ptrdiff_t lanes)
{
    return lanes == VL ? v_load(p) : v_load_n(p, lanes);
}
LW_WORD void wino_store(float *v, ptrdiff_t k, vf x)
{
    v_store(v + k, x);
}

#endif
