/* SPDX-License-Identifier: Apache-2.0 */
/* Crops, mirror images and colours of a view. */
#include "data/data_view.h"

#include <math.h>

#include "data/data_pixels.h"

#define PI 3.14159265358979323846

/* What is drawn for a view, by number. */
typedef enum draw {
    DRAW_AREA,
    DRAW_RATIO,
    DRAW_TOP,
    DRAW_LEFT,
    DRAW_MIRROR,
    DRAW_COLOURS,
    DRAW_BRIGHTNESS,
    DRAW_CONTRAST,
    DRAW_SATURATION,
    DRAW_HUE,
    DRAW_GRAY
} draw;

typedef struct dice {
    lw_rng_key key;
    uint64_t view;
} dice;

static double uniform(const dice *d, draw which, double lo, double hi)
{
    return lo + (hi - lo) * lw_rng_uniform(d->key, 0, d->view, (uint64_t)which);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void crop(const float *src, int32_t h, int32_t w, int32_t c, const lw_view_opts *o,
                 const dice *d, float *dst)
{
    double area = uniform(d, DRAW_AREA, o->least_area, 1.0);
    double ratio = o->least_area < 1.0 ? exp(uniform(d, DRAW_RATIO, log(0.75), -log(0.75))) : 1.0;
    double ch = LW_MIN(sqrt(area / ratio), 1.0) * h, cw = LW_MIN(sqrt(area * ratio), 1.0) * w;
    double top = uniform(d, DRAW_TOP, 0.0, h - ch), left = uniform(d, DRAW_LEFT, 0.0, w - cw);
    bool mirror = o->mirror && uniform(d, DRAW_MIRROR, 0.0, 1.0) < 0.5;
    for (int32_t y = 0; y < h; y++)
        for (int32_t x = 0; x < w; x++) {
            int32_t from = mirror ? w - 1 - x : x;
            lw_bilinear_at(src, h, w, c, (float)(top + (y + 0.5) * ch / h - 0.5),
                           (float)(left + (from + 0.5) * cw / w - 0.5),
                           dst + c * ((int64_t)y * w + x));
        }
}

/* ---- colours --------------------------------------------------------------------------------- */

static float gray_of(const float *p, int32_t c)
{
    if (c == 3)
        return 0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2];
    float sum = 0;
    for (int32_t k = 0; k < c; k++)
        sum += p[k];
    return sum / (float)c;
}

/* v <- centre + k (v - centre), in [0, 1] */
static void stretch(float *p, int32_t n, float centre, float k)
{
    for (int32_t i = 0; i < n; i++)
        p[i] = LW_MIN(LW_MAX(centre + k * (p[i] - centre), 0.0f), 1.0f);
}

static void turn_hue(float *p, float cosine, float sine)
{
    float y = gray_of(p, 3);
    float i = 0.596f * p[0] - 0.274f * p[1] - 0.322f * p[2],
          q = 0.211f * p[0] - 0.523f * p[1] + 0.312f * p[2];
    float a = cosine * i - sine * q, b = sine * i + cosine * q;
    p[0] = y + 0.956f * a + 0.621f * b;
    p[1] = y - 0.272f * a - 0.647f * b;
    p[2] = y - 1.106f * a + 1.703f * b;
    stretch(p, 3, 0.0f, 1.0f);
}

static void colour(float *v, int64_t pixels, int32_t c, const lw_view_opts *o, const dice *d)
{
    double reach = 0.8 * o->colours, turn = 2.0 * PI * 0.2 * o->colours;
    float brightness = (float)uniform(d, DRAW_BRIGHTNESS, 1.0 - reach, 1.0 + reach),
          contrast = (float)uniform(d, DRAW_CONTRAST, 1.0 - reach, 1.0 + reach),
          saturation = (float)uniform(d, DRAW_SATURATION, 1.0 - reach, 1.0 + reach);
    double hue = uniform(d, DRAW_HUE, -turn, turn), mean = 0.0;
    for (int64_t i = 0; i < pixels; i++) {
        stretch(v + i * c, c, 0.0f, brightness);
        mean += (double)gray_of(v + i * c, c) / (double)pixels;
    }
    for (int64_t i = 0; i < pixels; i++) {
        float *p = v + i * c;
        stretch(p, c, (float)mean, contrast);
        if (c != 3)
            continue;
        stretch(p, 3, gray_of(p, 3), saturation);
        turn_hue(p, (float)cos(hue), (float)sin(hue));
    }
}

static void turn_gray(float *v, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++)
        v[3 * i] = v[3 * i + 1] = v[3 * i + 2] = gray_of(v + 3 * i, 3);
}

void lw_view_make(const float *src, int32_t h, int32_t w, int32_t c, const lw_view_opts *o,
                  int64_t index, float *dst)
{
    const dice d = {lw_rng_key_of(o->seed, o->stream), (uint64_t)index};
    int64_t pixels = (int64_t)h * w, n = pixels * c;
    crop(src, h, w, c, o, &d, dst);
    if (o->colours <= 0.0)
        return;
    for (int64_t i = 0; i < n; i++)
        dst[i] = 0.5f * dst[i] + 0.5f;
    if (uniform(&d, DRAW_COLOURS, 0.0, 1.0) < 0.8)
        colour(dst, pixels, c, o, &d);
    if (c == 3 && uniform(&d, DRAW_GRAY, 0.0, 1.0) < 0.2)
        turn_gray(dst, pixels);
    for (int64_t i = 0; i < n; i++)
        dst[i] = 2.0f * dst[i] - 1.0f;
}
