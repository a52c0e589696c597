/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_winograd_whole.inc. Here: u8 images, points of pairs of s16. */
#ifndef LW_KERNELS_CONV_WINOGRAD_ELEM_U8_H
#define LW_KERNELS_CONV_WINOGRAD_ELEM_U8_H

#include "kernels/gemm/gemm_elem_s16.h"

#define WINO(name) LWV_PASTE(name##_u8, LW_SIMD_SUFFIX)
#define WINO_NUM LW_NUM_S8
#define WINO_WHOLE 1
enum { WINO_LOW = 1 };
typedef uint8_t wino_in;

#endif
