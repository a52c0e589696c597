/* SPDX-License-Identifier: Apache-2.0 */
/* Blurred pictures, and such that lost their detail. */
#include "data/data_degrade.h"

#include "data/data_prepare.h"
#include "kernels/kernels.h"

const lw_degradation lw_degradations[LW_DEGRADATIONS] = {
    {"blur_r5", 5, 0}, {"blur_r15", 15, 0}, {"down_4x", 0, 4}, {"down_8x", 0, 8}};

static int blur(lw_raster *im, int32_t radius)
{
    size_t bytes = (size_t)im->height * (size_t)im->width * (size_t)im->channels;
    LW_CLEANUP(lw_free) uint8_t *between = lw_calloc(bytes, 1);
    if (!between)
        return LW_ENOMEM;
    lw_blur_u8(im->at, between, im->height, im->width, im->channels, (float)radius);
    return 0;
}

/* A squash to h x w, by the preparation that does just that. */
static int resize(lw_raster *im, int32_t h, int32_t w)
{
    LW_CLEANUP(lw_raster_clear) lw_raster to = {0};
    const lw_preparation p = {.fit = LW_FIT_SQUASH,
                              .form = LW_RESAMPLE_PILLOW,
                              .filter = LW_FILTER_BILINEAR,
                              .resize_h = h,
                              .resize_w = w,
                              .height = h,
                              .width = w,
                              .channels = im->channels};
    LW_TRY(lw_raster_init(&to, h, w, im->channels));
    LW_TRY(lw_prepare_pixels(&p, *im, to.at));
    lw_raster_clear(im);
    *im = to;
    to = (lw_raster){0};
    return 0;
}

int lw_degrade(const lw_degradation *d, lw_raster *im)
{
    int32_t h = im->height, w = im->width;
    if (d->blur > 0)
        LW_TRY(blur(im, d->blur));
    if (d->down > 1) {
        LW_TRY(resize(im, LW_MAX(h / d->down, 1), LW_MAX(w / d->down, 1)));
        LW_TRY(resize(im, h, w));
    }
    return 0;
}
