/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pixels: the colours of video (luma and two differences of colour) to RGB and back, in one pass
 * over the picture.
 *
 *   lw_pixels p;
 *   lw_pixels_init(&p, LW_PIXELS_420, LW_MATRIX_601, false, 256, 144);
 *   kernels.pixels.to_f32(rgb, frame, &p, 0, p.bands);     lw_pixels_bytes(&p) bytes -> [h][w][3]
 *
 * The arithmetic is that of whole numbers with 16 bits behind the point, so
 * the same bits come out at every ISA level; it is ITU-R BT.601's and BT.709's,
 *
 *   r = y' + 2 (1 - kr) v'     y' = (y - 16) 255/219   u' = (u - 128) 255/224     limited range
 *   b = y' + 2 (1 - kb) u'     y' = y                  u' = u - 128               full range
 *   g = (y' - kr r - kb b) / kg
 *
 * rounded and kept within 0..255. Pixels that share one pair of differences are all given it; back,
 * the pair is that of their mean. So a picture that came from such a frame comes back within a
 * level where its colours are ones of RGB. f32 is byte / 127.5 - 1, of the same bytes: what data/ makes of a picture; back, values are
 * kept within -1..1 and rounded, NaN is 0.
 *
 * Cost: bytes read and written; 1280 x 720 pixels of 4:2:0 to bytes are 0.3 ms on one thread with
 * AVX-512.
 */
#ifndef LW_KERNELS_PIXELS_H
#define LW_KERNELS_PIXELS_H

#include "base/base.h"

typedef struct lw_pixels {
    lw_pixels_form form;
    lw_pixels_matrix matrix;
    bool full_range;
    ptrdiff_t w, h;
    ptrdiff_t bands;            /* of lines that share differences: 2 lines in 4:2:0, else 1 */
    int32_t lines;              /* of a band */
    int32_t black, gray;        /* 16 or 0, 128 */
    int32_t yy, rv, gu, gv, bu; /* to RGB, times 2^16 */
    int32_t y_of[3], u_of[3], v_of[3]; /* of r, g, b, times 2^16 */
} lw_pixels;

/* w, h at least 1 and w * h at most 2^28. */
void lw_pixels_init(lw_pixels *p, lw_pixels_form form, lw_pixels_matrix matrix, bool full_range,
                    ptrdiff_t w, ptrdiff_t h);
/* Of a frame. */
static inline size_t lw_pixels_bytes(const lw_pixels *p)
{
    return lw_pixels_form_bytes(p->form, (size_t)p->w, (size_t)p->h);
}

/* Bands [begin, end) of a picture rgb [h][w][3] from a frame, or of the frame from the picture. The
 * two do not overlap. */
typedef void lw_pixels_to_u8_fn(uint8_t *rgb, const uint8_t *frame, const lw_pixels *p,
                                ptrdiff_t begin, ptrdiff_t end);
typedef void lw_pixels_to_f32_fn(float *rgb, const uint8_t *frame, const lw_pixels *p,
                                 ptrdiff_t begin, ptrdiff_t end);
typedef void lw_pixels_from_u8_fn(uint8_t *frame, const uint8_t *rgb, const lw_pixels *p,
                                  ptrdiff_t begin, ptrdiff_t end);
typedef void lw_pixels_from_f32_fn(uint8_t *frame, const float *rgb, const lw_pixels *p,
                                   ptrdiff_t begin, ptrdiff_t end);

struct lw_pixels_kernels {
    lw_pixels_to_u8_fn *to_u8;
    lw_pixels_to_f32_fn *to_f32;
    lw_pixels_from_u8_fn *from_u8;
    lw_pixels_from_f32_fn *from_f32;
};

#define K(family, isa, field, function) lw_pixels_##field##_fn function;
#include "kernels/pixels/pixels.def"
#undef K

#endif
