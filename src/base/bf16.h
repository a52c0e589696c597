/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bf16: the upper half of an f32, as a storage type.
 *
 * One conversion for every ISA level and every folder: round to nearest even, denormals kept,
 * overflow to infinity, NaN to a quiet NaN of the same sign. (The hardware's own instruction drops
 * denormals, so it is not used.)
 */
#ifndef LW_BASE_BF16_H
#define LW_BASE_BF16_H

#include <stdint.h>
#include <string.h>

typedef uint16_t lw_bf16;

static inline float lw_bf16_to_f32(lw_bf16 x)
{
    uint32_t u = (uint32_t)x << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline lw_bf16 lw_bf16_of_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (lw_bf16)((u >> 16) | 0x40);
    return (lw_bf16)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

#endif
