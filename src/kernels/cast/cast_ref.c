/* SPDX-License-Identifier: Apache-2.0 */
/* cast, reference: one element at a time. */
#include <math.h>

#include "kernels/cast/cast.h"

void lw_cast_f32_to_bf16_ref(lw_bf16 *out, const float *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = lw_bf16_of_f32(x[i]);
}

void lw_cast_bf16_to_f32_ref(float *out, const lw_bf16 *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = lw_bf16_to_f32(x[i]);
}

static uint8_t byte_of(float x, float scale, int32_t zero)
{
    const float lo = (float)-zero, hi = (float)(255 - zero);
    float v = x * (1.0f / scale);
    v = v > lo ? v : lo; /* NaN too */
    v = v < hi ? v : hi;
    return (uint8_t)((int32_t)lrintf(v) + zero);
}

void lw_cast_f32_to_u8_ref(uint8_t *out, const float *x, ptrdiff_t n, float scale, int32_t zero)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = byte_of(x[i], scale, zero);
}

void lw_cast_bf16_to_u8_ref(uint8_t *out, const lw_bf16 *x, ptrdiff_t n, float scale, int32_t zero)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = byte_of(lw_bf16_to_f32(x[i]), scale, zero);
}

void lw_cast_u8_to_f32_ref(float *out, const uint8_t *x, ptrdiff_t n, float scale, int32_t zero)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = scale * (float)((int32_t)x[i] - zero);
}

void lw_cast_range_ref(float *lo, float *hi, const float *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        *lo = x[i] < *lo ? x[i] : *lo;
        *hi = x[i] > *hi ? x[i] : *hi;
    }
}
