/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit floats, one value at a time, by integer arithmetic (same bits on every machine). */
#ifndef LW_FORMATS_HALF_H
#define LW_FORMATS_HALF_H

#include <stdint.h>

float lw_f16_to_f32(uint16_t h);
uint16_t lw_f32_to_f16(float f); /* nearest even; overflow to infinity; NaN stays NaN */
float lw_bf16_to_f32(uint16_t h);
uint16_t lw_f32_to_bf16(float f);

#endif
