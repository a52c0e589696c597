/* SPDX-License-Identifier: Apache-2.0 */
/* IEEE half floats, one value at a time, by integer arithmetic (same bits on every machine);
 * bfloat16 is in base/bf16.h. */
#ifndef LW_FORMATS_HALF_H
#define LW_FORMATS_HALF_H

#include <stdint.h>

float lw_f16_to_f32(uint16_t h);
uint16_t lw_f32_to_f16(float f); /* nearest even; overflow to infinity; NaN stays NaN */

#endif
