/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 8-bit pictures of any number of channels, and the two ways from one number to another:
 *
 *   1 -> 3   gray becomes RGB: the channel three times
 *   3 -> 1   RGB becomes luma, as Pillow's convert("L") has it (ITU-R 601-2):
 *            (19595 r + 38470 g + 7471 b + 32768) >> 16
 *
 * Of gray stored as RGB the second gives back the first's very bytes. Nothing else is made of
 * anything else.
 */
#ifndef LW_DATA_PIXELS_H
#define LW_DATA_PIXELS_H

#include "base/base.h"
#include "formats/formats.h"

enum { LW_MAX_CHANNELS = 64 };

typedef struct lw_raster {
    int32_t height, width, channels;
    uint8_t *at; /* [height][width][channels] */
} lw_raster;

int lw_raster_init(lw_raster *out, int32_t height, int32_t width, int32_t channels); /* zeros */
void lw_raster_clear(lw_raster *p); /* fits LW_CLEANUP */
/* The same bytes, borrowed. */
static inline lw_raster lw_raster_of(const lw_image *im)
{
    return (lw_raster){im->height, im->width, 3, im->rgb};
}
/* LW_EUNSUPPORTED when pictures of `from` channels cannot become such of `to`; `what` names them. */
int lw_channels_check(const char *what, int32_t from, int32_t to);
/* n pixels of `from` channels as n of `to`, between which there is a way. */
void lw_channels_convert(const uint8_t *src, int64_t n, int32_t from, int32_t to, uint8_t *dst);
/* n gray floats in x become n RGB pixels, [3 n]. */
void lw_gray_to_rgb(float *x, int64_t n);
/* lw_pixel_f32 and lw_pixel_u8 of n numbers. */
void lw_data_from_u8(const uint8_t *src, int64_t n, float *dst);
void lw_data_to_u8(const float *src, int64_t n, uint8_t *dst);
/* out [n]: bilinear sample of [h][w][n] at (y, x) in pixels (0: the centre of the first), clamped to the
 * border. */
void lw_bilinear_at(const float *src, int32_t h, int32_t w, int32_t n, float y, float x,
                    float *out);

#endif
