/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the gemm and conv families: the epilogue of the reference kernels. */
#ifndef LW_KERNELS_GEMM_REF_H
#define LW_KERNELS_GEMM_REF_H

#include "kernels/gemm/gemm_shape.h"

/* The activation in doubles. */
double lw_act_ref(double v, lw_act act);

/* The stored value for sum `sum` at (row, n) of image `image`; `old` is the output before. */
float lw_epilogue_ref(double sum, float old, const lw_epilogue *e, ptrdiff_t image, ptrdiff_t row,
                      ptrdiff_t n);

/* Puts it at element `at` of y, in the type that the epilogue says. */
void lw_store_ref(void *y, ptrdiff_t at, double sum, const lw_epilogue *e, ptrdiff_t image,
                  ptrdiff_t row, ptrdiff_t n);

/* round(x / scale) to nearest even, within -127..127; 0 where scale is 0. */
int8_t lw_s8_of_f32(float x, float scale);

#endif
