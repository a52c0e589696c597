/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_winograd_lines.inc. Here: bf16 in memory, floats from there on, for weight gradients. */
#ifndef LW_KERNELS_CONV_WINOGRAD_ELEM_WIDE_H
#define LW_KERNELS_CONV_WINOGRAD_ELEM_WIDE_H

#include "kernels/conv/conv_winograd_load_bf16.h"

LW_WORD void wino_store(float *v, ptrdiff_t k, vf x)
{
    v_store(v + k, x);
}

#endif
