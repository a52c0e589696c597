/* SPDX-License-Identifier: Apache-2.0 */
/* One point of a frame: where its samples are, and its arithmetic. All of the reference, and the
 * ends of lines in pixels_body.inc. */
#ifndef LW_KERNELS_PIXELS_POINT_H
#define LW_KERNELS_PIXELS_POINT_H

#include <string.h>

#include "kernels/pixels/pixels.h"

/* Where the samples of a line are: luma of pixel x at y + x y_step, differences of the pair (444: the
 * pixel) c at u + c c_step and v + c c_step. */
typedef struct lw_pixels_line {
    ptrdiff_t y, y_step, u, v, c_step;
    int pair; /* log2 of the pixels of a line that share differences */
} lw_pixels_line;

static inline lw_pixels_line lw_pixels_line_of(const lw_pixels *p, ptrdiff_t line)
{
    const ptrdiff_t w = p->w, all = w * p->h, half = (w + 1) / 2;
    switch (p->form) {
    case LW_PIXELS_420: {
        ptrdiff_t u = all + line / 2 * half;
        return (lw_pixels_line){line * w, 1, u, u + (p->h + 1) / 2 * half, 1, 1};
    }
    case LW_PIXELS_422: {
        ptrdiff_t u = all + line * half;
        return (lw_pixels_line){line * w, 1, u, u + p->h * half, 1, 1};
    }
    case LW_PIXELS_NV12: {
        ptrdiff_t u = all + line / 2 * 2 * half;
        return (lw_pixels_line){line * w, 1, u, u + 1, 2, 1};
    }
    case LW_PIXELS_YUYV: {
        ptrdiff_t y = line * 4 * half;
        return (lw_pixels_line){y, 2, y + 1, y + 3, 4, 1};
    }
    default: {
        const ptrdiff_t y = line * w, plane = p->form == LW_PIXELS_444 ? all : 0;
        return (lw_pixels_line){y, 1, y + plane, y + 2 * plane, 1, 0};
    }
    }
}

static inline uint8_t lw_pixels_clip(int32_t v) /* 16 bits behind the point, rounded */
{
    v += 1 << 15;
    return v < 0 ? 0 : v > 0xffffff ? 255 : (uint8_t)(v >> 16);
}

/* No differences (gray): u = v = p->gray. */
static inline void lw_pixels_to_point(const lw_pixels *p, int32_t y, int32_t u, int32_t v,
                                      uint8_t rgb[3])
{
    y = p->yy * (y - p->black);
    u -= p->gray;
    v -= p->gray;
    rgb[0] = lw_pixels_clip(y + p->rv * v);
    rgb[1] = lw_pixels_clip(y - p->gu * u - p->gv * v);
    rgb[2] = lw_pixels_clip(y + p->bu * u);
}

static inline uint8_t lw_pixels_luma(const lw_pixels *p, const uint8_t rgb[3])
{
    return lw_pixels_clip(p->y_of[0] * rgb[0] + p->y_of[1] * rgb[1] + p->y_of[2] * rgb[2] +
                          (p->black << 16));
}

/* Of the sums over 2^n pixels; never below 0. */
static inline uint8_t lw_pixels_difference(const lw_pixels *p, const int32_t of[3],
                                           const int32_t sum[3], int n)
{
    int32_t v = of[0] * sum[0] + of[1] * sum[1] + of[2] * sum[2];
    v = (v + (p->gray << (16 + n)) + (1 << (15 + n))) >> (16 + n);
    return (uint8_t)LW_MIN(v, 255);
}

/* Pixels x, x + 1, .. of a line; one of bytes and floats is not NULL. */
static inline void lw_pixels_to_line(uint8_t *bytes, float *floats, const uint8_t *frame,
                                     const lw_pixels *p, ptrdiff_t line, ptrdiff_t x)
{
    const lw_pixels_line l = lw_pixels_line_of(p, line);
    for (; x < p->w; x++) {
        const ptrdiff_t at = (line * p->w + x) * 3, c = (x >> l.pair) * l.c_step;
        const uint8_t y = frame[p->form == LW_PIXELS_RGB ? at : l.y + x * l.y_step];
        uint8_t rgb[3] = {y, 0, 0};
        if (p->form == LW_PIXELS_RGB)
            memcpy(rgb, frame + at, 3);
        else if (p->form == LW_PIXELS_GRAY)
            lw_pixels_to_point(p, y, p->gray, p->gray, rgb);
        else
            lw_pixels_to_point(p, y, frame[l.u + c], frame[l.v + c], rgb);
        for (int k = 0; k < 3; k++) {
            if (bytes)
                bytes[at + k] = rgb[k];
            else
                floats[at + k] = lw_pixel_f32(rgb[k]);
        }
    }
}

/* Pixel x of a line, the last one where there is none. */
static inline void lw_pixels_read(uint8_t rgb[3], const uint8_t *bytes, const float *floats,
                                  const lw_pixels *p, ptrdiff_t line, ptrdiff_t x)
{
    const ptrdiff_t at = (LW_MIN(line, p->h - 1) * p->w + LW_MIN(x, p->w - 1)) * 3;
    for (int k = 0; k < 3; k++)
        rgb[k] = bytes ? bytes[at + k] : lw_pixel_u8(floats[at + k]);
}

/* The differences that pixels from x on of a band share. */
static inline void lw_pixels_from_pair(uint8_t *frame, const uint8_t *bytes, const float *floats,
                                       const lw_pixels *p, ptrdiff_t line, ptrdiff_t x)
{
    const lw_pixels_line l = lw_pixels_line_of(p, line);
    const ptrdiff_t c = (x >> l.pair) * l.c_step;
    const int n = l.pair + p->lines - 1;
    int32_t sum[3] = {0};
    for (int i = 0; i < p->lines; i++)
        for (int j = 0; j < 1 << l.pair; j++) {
            uint8_t rgb[3];
            lw_pixels_read(rgb, bytes, floats, p, line + i, x + j);
            for (int k = 0; k < 3; k++)
                sum[k] += rgb[k];
        }
    frame[l.u + c] = lw_pixels_difference(p, p->u_of, sum, n);
    frame[l.v + c] = lw_pixels_difference(p, p->v_of, sum, n);
}

/* Pixels from x, an even one, of the lines of a band. */
static inline void lw_pixels_from_band(uint8_t *frame, const uint8_t *bytes, const float *floats,
                                       const lw_pixels *p, ptrdiff_t band, ptrdiff_t x)
{
    const ptrdiff_t first = band * p->lines;
    const ptrdiff_t w = p->form == LW_PIXELS_YUYV ? LW_ROUND_UP(p->w, 2) : p->w;
    for (ptrdiff_t line = first; line < LW_MIN(first + p->lines, p->h); line++) {
        const lw_pixels_line l = lw_pixels_line_of(p, line);
        for (ptrdiff_t i = x; i < w; i++) {
            uint8_t rgb[3];
            lw_pixels_read(rgb, bytes, floats, p, line, i);
            if (p->form == LW_PIXELS_RGB)
                memcpy(frame + (line * w + i) * 3, rgb, 3);
            else
                frame[l.y + i * l.y_step] = lw_pixels_luma(p, rgb);
        }
    }
    if (p->form == LW_PIXELS_RGB || p->form == LW_PIXELS_GRAY)
        return;
    for (ptrdiff_t i = x; i < p->w; i += p->form == LW_PIXELS_444 ? 1 : 2)
        lw_pixels_from_pair(frame, bytes, floats, p, first, i);
}

#endif
