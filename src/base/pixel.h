/* SPDX-License-Identifier: Apache-2.0 */
/* A channel of a pixel as networks see it, in [-1, 1], from a byte and back: what is written is what is measured. */
#ifndef LW_PIXEL_H
#define LW_PIXEL_H

#include <stdint.h>

static inline float lw_pixel_f32(uint8_t byte)
{
    return (float)byte / 127.5f - 1.0f;
}

/* Rounded and clamped: -1 -> 0, 0 -> 128, 1 -> 255. */
static inline uint8_t lw_pixel_u8(float x)
{
    float v = (x + 1.0f) * 127.5f;
    return v >= 255.0f ? 255 : v > 0.0f ? (uint8_t)(v + 0.5f) : 0; /* NaN: 0 */
}

#endif
