/* SPDX-License-Identifier: Apache-2.0 */
#include "data/data_pixels.h"

#include <string.h>

int lw_raster_init(lw_raster *out, int32_t height, int32_t width, int32_t channels)
{
    uint8_t *at = lw_calloc((size_t)height * (size_t)width, (size_t)channels);
    if (!at)
        return LW_ENOMEM;
    *out = (lw_raster){height, width, channels, at};
    return 0;
}

void lw_raster_clear(lw_raster *p)
{
    lw_free(&p->at);
    *p = (lw_raster){0};
}

int lw_channels_check(const char *what, int32_t from, int32_t to)
{
    if (from == to || (from == 1 && to == 3) || (from == 3 && to == 1))
        return 0;
    return lw_fail(LW_EUNSUPPORTED,
                   "%s: pictures of %d channel%s, and such of %d are wanted: gray (1) becomes RGB "
                   "(3) and RGB gray, nothing else becomes another",
                   what, (int)from, from == 1 ? "" : "s", (int)to);
}

void lw_channels_convert(const uint8_t *src, int64_t n, int32_t from, int32_t to, uint8_t *dst)
{
    if (from == to)
        memcpy(dst, src, (size_t)(n * to));
    for (int64_t i = 0; from == 1 && to == 3 && i < n; i++)
        memset(dst + 3 * i, src[i], 3);
    for (int64_t i = 0; from == 3 && to == 1 && i < n; i++) {
        const uint8_t *p = src + 3 * i;
        dst[i] = (uint8_t)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16);
    }
}

void lw_gray_to_rgb(float *x, int64_t n)
{
    for (int64_t i = n - 1; i >= 0; i--)
        x[3 * i] = x[3 * i + 1] = x[3 * i + 2] = x[i];
}

void lw_data_from_u8(const uint8_t *src, int64_t n, float *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = lw_pixel_f32(src[i]);
}

void lw_data_to_u8(const float *src, int64_t n, uint8_t *dst)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = lw_pixel_u8(src[i]);
}

void lw_bilinear_at(const float *src, int32_t h, int32_t w, int32_t n, float y, float x, float *out)
{
    y = LW_MIN(LW_MAX(y, 0.0f), (float)(h - 1));
    x = LW_MIN(LW_MAX(x, 0.0f), (float)(w - 1));
    int32_t y0 = (int32_t)y, x0 = (int32_t)x, y1 = LW_MIN(y0 + 1, h - 1),
            x1 = LW_MIN(x0 + 1, w - 1);
    float fy = y - (float)y0, fx = x - (float)x0;
    for (int32_t c = 0; c < n; c++) {
        float top = src[n * ((int64_t)y0 * w + x0) + c] * (1 - fx) +
                    src[n * ((int64_t)y0 * w + x1) + c] * fx;
        float low = src[n * ((int64_t)y1 * w + x0) + c] * (1 - fx) +
                    src[n * ((int64_t)y1 * w + x1) + c] * fx;
        out[c] = top * (1 - fy) + low * fy;
    }
}
