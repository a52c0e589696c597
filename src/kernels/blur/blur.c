/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of boxes that move along an axis. */
#include "kernels/blur/blur.h"

#include <math.h>
#include <string.h>

enum { PASSES = 3, BITS = 24, BLOCK = 64 };

typedef struct box {
    ptrdiff_t radius;
    uint32_t inner, outer; /* weights in 2^-24: of pixels inside, of the two beside */
} box;

/* The box whose PASSES-fold convolution has the variance radius^2, in floats as Pillow's. */
static box box_of(float radius)
{
    float variance = radius * radius / (float)PASSES;
    float length = (float)sqrt(12.0 * (double)variance + 1.0);
    float r = (float)floor(((double)length - 1.0) / 2.0);
    float part = (2 * r + 1) * (r * (r + 1) - 3 * variance);
    part /= 6 * (variance - (r + 1) * (r + 1));
    float whole = r + part;
    box b = {.radius = (ptrdiff_t)whole};
    b.inner = (uint32_t)((float)(1 << BITS) / (whole * 2 + 1));
    b.outer = ((1u << BITS) - (uint32_t)(2 * b.radius + 1) * b.inner) / 2;
    return b;
}

/* One pass over an axis of n places, `pitch` bytes apart, for m (at most BLOCK) bytes beside each
 * other. */
static void pass(uint8_t *y, const uint8_t *x, ptrdiff_t n, ptrdiff_t pitch, ptrdiff_t m, box b)
{
    uint32_t sum[BLOCK] = {0};
    for (ptrdiff_t j = -b.radius; j <= b.radius; j++) {
        const uint8_t *p = x + LW_MIN(LW_MAX(j, 0), n - 1) * pitch;
        for (ptrdiff_t k = 0; k < m; k++)
            sum[k] += p[k];
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint8_t *before = x + LW_MAX(i - b.radius - 1, 0) * pitch;
        const uint8_t *behind = x + LW_MIN(i + b.radius + 1, n - 1) * pitch;
        const uint8_t *first = x + LW_MAX(i - b.radius, 0) * pitch;
        for (ptrdiff_t k = 0; k < m; k++) {
            uint32_t v = sum[k] * b.inner + (uint32_t)(before[k] + behind[k]) * b.outer;
            y[i * pitch + k] = (uint8_t)((v + (1u << (BITS - 1))) >> BITS);
            sum[k] += (uint32_t)behind[k] - first[k];
        }
    }
}

static void across(uint8_t *y, const uint8_t *x, ptrdiff_t h, ptrdiff_t w, ptrdiff_t c, box b)
{
    for (ptrdiff_t i = 0; i < h; i++)
        for (ptrdiff_t k = 0; k < c; k += BLOCK)
            pass(y + i * w * c + k, x + i * w * c + k, w, c, LW_MIN(c - k, (ptrdiff_t)BLOCK), b);
}

static void down(uint8_t *y, const uint8_t *x, ptrdiff_t h, ptrdiff_t line, box b)
{
    for (ptrdiff_t k = 0; k < line; k += BLOCK)
        pass(y + k, x + k, h, line, LW_MIN(line - k, (ptrdiff_t)BLOCK), b);
}

void lw_blur_u8(uint8_t *x, uint8_t *between, ptrdiff_t h, ptrdiff_t w, ptrdiff_t c, float radius)
{
    box b = box_of(radius);
    uint8_t *from = x, *to = between;
    for (int i = 0; i < 2 * PASSES; i++) { /* an even number: it ends in x */
        if (i < PASSES)
            across(to, from, h, w, c, b);
        else
            down(to, from, h, w * c, b);
        uint8_t *t = from;
        from = to;
        to = t;
    }
}
