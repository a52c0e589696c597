/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a prepared picture: its size after resizing, what is kept, what is padded. */
#include "data/data_prepare.h"

#include <math.h>
#include <string.h>

#include "data/data_set.h"
#include "kernels/kernels.h"

const lw_preparation lw_preparation_imagenet = {.fit = LW_FIT_SHORTEST,
                                                .form = LW_RESAMPLE_PILLOW,
                                                .filter = LW_FILTER_BILINEAR,
                                                .resize_h = 256,
                                                .resize_w = 256,
                                                .height = 224,
                                                .width = 224,
                                                .half_to_even = true,
                                                LW_NUMBERS_IMAGENET};

/* The size a picture of h x w is resized to, with the roundings of the libraries. */
static void resized(const lw_preparation *p, int64_t h, int64_t w, int64_t to[2])
{
    double rh = (double)h / p->resize_h, rw = (double)w / p->resize_w;
    to[0] = p->resize_h;
    to[1] = p->resize_w;
    if (p->fit == LW_FIT_SQUASH)
        return;
    if (p->fit == LW_FIT_SHORTEST && p->resize_h == p->resize_w) { /* both libraries: cut off */
        int64_t edge = p->resize_h;
        to[0] = w <= h ? (int64_t)((double)(edge * h) / (double)w) : edge;
        to[1] = w <= h ? edge : (int64_t)((double)(edge * w) / (double)h);
        return;
    }
    double ratio = p->fit == LW_FIT_INSIDE ? LW_MAX(rh, rw) : LW_MIN(rh, rw);
    to[0] = LW_MAX((int64_t)rint((double)h / ratio), 1);
    to[1] = LW_MAX((int64_t)rint((double)w / ratio), 1);
}

/* How axis i, of to[i] pixels, becomes one of `want`. */
static void cut(lw_frame *f, int i, int32_t want, bool half_to_even)
{
    int64_t more = f->to[i] - want;
    f->skip[i] = more < 0 ? 0
                          : (int32_t)(half_to_even ? (int64_t)rint((double)more / 2) : more / 2);
    f->keep[i] = more < 0 ? (int32_t)f->to[i] : want;
    f->pad[i] = more < 0 ? (int32_t)(half_to_even ? -more / 2 : (1 - more) / 2) : 0;
}

lw_frame lw_preparation_frame(const lw_preparation *p, int64_t h, int64_t w)
{
    lw_frame f;
    resized(p, h, w, f.to);
    cut(&f, 0, p->height, p->half_to_even);
    cut(&f, 1, p->width, p->half_to_even);
    return f;
}

static void fill_colour(const lw_preparation *p, uint8_t *dst)
{
    for (ptrdiff_t i = 0; i < (ptrdiff_t)p->height * p->width; i++)
        memcpy(dst + p->channels * i, p->fill, (size_t)p->channels);
}

static int resample(const lw_resample *r, const uint8_t *src, uint8_t *dst)
{
    lw_isa isa;
    lw_kernels k;
    LW_TRY(lw_isa_chosen(&isa));
    lw_kernels_init(&k, isa);
    LW_CLEANUP(lw_free) char *scratch = lw_calloc(lw_resample_scratch(r) + 1, 1);
    if (!scratch)
        return LW_ENOMEM;
    lw_resample_u8(&k.resample, r, dst, src, scratch);
    return 0;
}

/* Only the part that is kept is computed. */
static int plan_resample(const lw_preparation *p, const lw_raster *im, const lw_frame *f,
                         lw_resample *out)
{
    return lw_resample_init(out, &(lw_resample_spec){.form = p->form,
                                                     .filter = p->filter,
                                                     .h = im->height,
                                                     .w = im->width,
                                                     .c = p->channels,
                                                     .to_h = (ptrdiff_t)f->to[0],
                                                     .to_w = (ptrdiff_t)f->to[1],
                                                     .y = f->skip[0],
                                                     .x = f->skip[1],
                                                     .out_h = f->keep[0],
                                                     .out_w = f->keep[1]});
}

/* *im with the channels of p; *made holds them where they had to be made. */
static int convert(const lw_preparation *p, lw_raster *im, lw_raster *made)
{
    LW_TRY(lw_channels_check("a picture", im->channels, p->channels));
    if (im->channels == p->channels)
        return 0;
    LW_TRY(lw_raster_init(made, im->height, im->width, p->channels));
    lw_channels_convert(im->at, (int64_t)im->height * im->width, im->channels, p->channels,
                        made->at);
    *im = *made;
    return 0;
}

int lw_prepare_pixels(const lw_preparation *p, lw_raster im, uint8_t *dst)
{
    lw_frame f = lw_preparation_frame(p, im.height, im.width);
    LW_CLEANUP(lw_resample_clear) lw_resample r = {0};
    LW_CLEANUP(lw_raster_clear) lw_raster made = {0};
    LW_TRY(convert(p, &im, &made));
    LW_TRY(plan_resample(p, &im, &f, &r));
    if (f.keep[0] == p->height && f.keep[1] == p->width)
        return resample(&r, im.at, dst);
    size_t c = (size_t)p->channels, line = c * (size_t)f.keep[1], pitch = c * (size_t)p->width;
    LW_CLEANUP(lw_free) uint8_t *part = lw_calloc((size_t)f.keep[0], line);
    if (!part)
        return LW_ENOMEM;
    LW_TRY(resample(&r, im.at, part));
    fill_colour(p, dst);
    for (ptrdiff_t i = 0; i < f.keep[0]; i++)
        memcpy(dst + (size_t)(f.pad[0] + i) * pitch + c * (size_t)f.pad[1], part + (size_t)i * line,
               line);
    return 0;
}

/* A filter that overshoots is cut off where bytes end, as clean-fid does. */
static void cut_off(const lw_preparation *p, float *x, ptrdiff_t n)
{
    if (p->filter == LW_FILTER_BILINEAR || p->filter == LW_FILTER_BOX)
        return;
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = x[i] < -1.0f ? -1.0f : x[i] > 1.0f ? 1.0f : x[i];
}

int lw_prepare_f32(const lw_preparation *p, lw_raster im, float *dst)
{
    lw_frame f = lw_preparation_frame(p, im.height, im.width);
    LW_CLEANUP(lw_resample_clear) lw_resample r = {0};
    LW_CLEANUP(lw_raster_clear) lw_raster made = {0};
    ptrdiff_t n = (ptrdiff_t)im.height * im.width * p->channels;
    lw_isa isa;
    lw_kernels k;
    if (f.keep[0] < p->height || f.keep[1] < p->width)
        return lw_fail(LW_EUNSUPPORTED, "pictures that are padded are resized as bytes");
    LW_TRY(lw_isa_chosen(&isa));
    lw_kernels_init(&k, isa);
    LW_TRY(convert(p, &im, &made));
    LW_TRY(plan_resample(p, &im, &f, &r));
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)n, sizeof *x);
    LW_CLEANUP(lw_free) char *scratch = lw_calloc(lw_resample_scratch(&r) + 1, 1);
    if (!x || !scratch)
        return LW_ENOMEM;
    lw_data_from_u8(im.at, n, x);
    lw_resample_f32(&k.resample, &r, dst, x, scratch);
    cut_off(p, dst, (ptrdiff_t)p->height * p->width * p->channels);
    return 0;
}

lw_preparation lw_preparation_square(int32_t side)
{
    return (lw_preparation){.fit = LW_FIT_SHORTEST,
                            .form = LW_RESAMPLE_PILLOW,
                            .filter = LW_FILTER_BILINEAR,
                            .resize_h = side,
                            .resize_w = side,
                            .height = side,
                            .width = side,
                            .half_to_even = true,
                            .channels = 3,
                            .scale = 1 / 127.5,
                            .mean = {1, 1, 1},
                            .std = {1, 1, 1}};
}

int lw_preparation_for(lw_preparation *p, const char *what, int32_t channels)
{
    for (int32_t i = 1; i < p->channels && channels != p->channels; i++)
        if (p->mean[i] != p->mean[0] || p->std[i] != p->std[0] || p->fill[i] != p->fill[0])
            return lw_fail(LW_EUNSUPPORTED,
                           "%s: mean and std are of %d channels, its pictures have %d: a "
                           "preprocessor_config.json or pretrained_cfg must say those",
                           what, (int)p->channels, (int)channels);
    for (int32_t i = p->channels; i < channels; i++) {
        p->mean[i] = p->mean[0];
        p->std[i] = p->std[0];
        p->fill[i] = p->fill[0];
    }
    p->channels = channels;
    return 0;
}

void lw_preparation_print_pixels(const lw_preparation *p, lw_str *out)
{
    static const char *const fits[] = {"shortest edge", "squash", "inside"};
    lw_str_addf(out, "%s %dx%d, %s (%s), centre %dx%d%s, fill", fits[p->fit], p->resize_w,
                p->resize_h, lw_filter_name[p->filter], lw_resample_form_name[p->form], p->width,
                p->height, p->half_to_even ? " half to even" : "");
    for (int32_t c = 0; c < p->channels; c++)
        lw_str_addf(out, " %d", p->fill[c]);
}

void lw_preparation_print(const lw_preparation *p, lw_str *out)
{
    if (p->height > 0)
        lw_preparation_print_pixels(p, out);
    else
        lw_str_add(out, "pictures as they are");
    lw_str_addf(out, ", (x %.17g - mean) / std", p->scale);
    lw_str_add(out, ", mean");
    for (int32_t c = 0; c < p->channels; c++)
        lw_str_addf(out, " %.9g", (double)p->mean[c]);
    lw_str_add(out, ", std");
    for (int32_t c = 0; c < p->channels; c++)
        lw_str_addf(out, " %.9g", (double)p->std[c]);
}
