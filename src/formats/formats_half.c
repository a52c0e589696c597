/* SPDX-License-Identifier: Apache-2.0 */
/* IEEE 754 binary16 conversions. */
#include "formats/formats_half.h"

#include <string.h>

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

float lw_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exp = (h >> 10) & 0x1fu, frac = h & 0x3ffu;
    if (exp == 0x1f) /* infinity, NaN: payload kept, made quiet */
        return float_of(sign | 0x7f800000u | frac << 13 | (frac ? 0x400000u : 0));
    if (exp == 0) { /* zero and subnormals: frac * 2^-24 is exact */
        float v = (float)frac * 0x1p-24f;
        return sign ? -v : v;
    }
    return float_of(sign | (exp + 112) << 23 | frac << 13);
}

uint16_t lw_f32_to_f16(float f)
{
    uint32_t u = bits_of(f);
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    u &= 0x7fffffffu;
    if (u > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (u >> 13 & 0x3ffu));
    if (u >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (u <
        0x38800000u) { /* below 2^-14: a multiple of 2^-24, rounded by the FPU's own nearest even */
        float v = float_of(u) + 0.5f; /* ulp of 0.5..1 is 2^-24 */
        return (uint16_t)(sign | (uint16_t)(bits_of(v) - 0x3f000000u));
    }
    u += 0xfffu + (u >> 13 & 1u);
    return (uint16_t)(sign | (u - 0x38000000u) >> 13);
}
