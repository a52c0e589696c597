/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_winograd_lines.inc. What element headers of bf16 in memory share. */
#ifndef LW_KERNELS_CONV_WINOGRAD_LOAD_BF16_H
#define LW_KERNELS_CONV_WINOGRAD_LOAD_BF16_H

#include "base/bf16.h"
#include "kernels/simd/simd.h"

#define WINO(name) LWV_PASTE(name##_bf16, LW_SIMD_SUFFIX)
typedef lw_bf16 wino_in;

LW_WORD vf wino_load(const lw_bf16 *p, ptrdiff_t lanes)
{
    return v_load_bf16(p, lanes);
}

#endif
