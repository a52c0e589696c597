/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures that are blurred, lost their detail or colours, went through a JPEG, are noisy. */
#include "data/data_degrade.h"

#include <math.h>
#include <string.h>

#include "data/data_prepare.h"
#include "kernels/kernels.h"

const lw_degradation lw_degradations[LW_DEGRADATIONS] = {{"blur_r5", 1, {{LW_DEGRADE_BLUR, 5}}},
                                                         {"blur_r15", 1, {{LW_DEGRADE_BLUR, 15}}},
                                                         {"down_4x", 1, {{LW_DEGRADE_THUMB, 4}}},
                                                         {"down_8x", 1, {{LW_DEGRADE_THUMB, 8}}}};

/* ---- by name --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    double lo, hi; /* of its number; hi 0: it has none */
    bool whole;
} kinds[] = {[LW_DEGRADE_BLUR] = {"blur", 0.01, 1000, false},
             [LW_DEGRADE_DOWN] = {"down", 2, 64, true},
             [LW_DEGRADE_THUMB] = {"thumb", 2, 64, true},
             [LW_DEGRADE_GRAY] = {"gray", 0, 0, false},
             [LW_DEGRADE_JPEG] = {"jpeg", 1, 100, true},
             [LW_DEGRADE_NOISE] = {"noise", 0.01, 255, false}};

static int parse_step(const char *word, lw_degrade_step *out)
{
    size_t len = strcspn(word, ":"), k = 0;
    while (k < LW_COUNT(kinds) &&
           !(strlen(kinds[k].name) == len && strncmp(kinds[k].name, word, len) == 0))
        k++;
    if (k == LW_COUNT(kinds))
        return lw_fail(LW_EUSAGE, "--degrade %s: there are %s", word, LW_DEGRADE_HELP);
    *out = (lw_degrade_step){(lw_degrade_kind)k, 0};
    if (kinds[k].hi <= 0)
        return word[len] ? lw_fail(LW_EUSAGE, "--degrade %s: %s has no number", word, kinds[k].name)
                         : 0;
    if (!word[len] || lw_parse_f64(word + len + 1, &out->by) != 0 ||
        !(out->by >= kinds[k].lo && out->by <= kinds[k].hi) ||
        (kinds[k].whole && out->by != floor(out->by)))
        return lw_fail(LW_EUSAGE, "--degrade %s: %s:N with %s N of %g to %g", word, kinds[k].name,
                       kinds[k].whole ? "a whole" : "a number", kinds[k].lo, kinds[k].hi);
    return 0;
}

int lw_degradation_parse(const char *text, lw_degradation *out)
{
    LW_CLEANUP(lw_free) char *words = lw_strdup(text);
    *out = (lw_degradation){.name = text};
    if (!words)
        return LW_ENOMEM;
    for (char *word = words, *next; word; word = next) {
        next = strchr(word, ',');
        if (next)
            *next++ = '\0';
        if (out->n == LW_DEGRADE_STEPS)
            return lw_fail(LW_EUSAGE, "--degrade %s: more than %d", text, LW_DEGRADE_STEPS);
        LW_TRY(parse_step(word, &out->step[out->n++]));
    }
    return 0;
}

/* ---- each ------------------------------------------------------------------------------------ */

static size_t bytes_of(const lw_raster *im)
{
    return (size_t)im->height * (size_t)im->width * (size_t)im->channels;
}

static int blur(lw_raster *im, double radius)
{
    LW_CLEANUP(lw_free) uint8_t *between = lw_calloc(bytes_of(im), 1);
    if (!between)
        return LW_ENOMEM;
    lw_blur_u8(im->at, between, im->height, im->width, im->channels, (float)radius);
    return 0;
}

/* A squash to h x w, by the preparation that does just that. */
static int resize(lw_raster *im, int32_t h, int32_t w, int32_t filter)
{
    LW_CLEANUP(lw_raster_clear) lw_raster to = {0};
    const lw_preparation p = {.fit = LW_FIT_SQUASH,
                              .form = LW_RESAMPLE_PILLOW,
                              .filter = filter,
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

static int down_and_up(lw_raster *im, int32_t by, int32_t filter)
{
    int32_t h = im->height, w = im->width;
    LW_TRY(resize(im, LW_MAX(h / by, 1), LW_MAX(w / by, 1), filter));
    return resize(im, h, w, filter);
}

static int gray(lw_raster *im)
{
    int64_t n = (int64_t)im->height * im->width;
    if (im->channels == 1)
        return 0;
    LW_TRY(lw_channels_check("--degrade gray", im->channels, 1));
    LW_CLEANUP(lw_free) uint8_t *luma = lw_calloc((size_t)n, 1);
    if (!luma)
        return LW_ENOMEM;
    lw_channels_convert(im->at, n, im->channels, 1, luma);
    lw_channels_convert(luma, n, 1, im->channels, im->at);
    return 0;
}

static int jpeg(lw_raster *im, int quality)
{
    int64_t n = (int64_t)im->height * im->width;
    LW_CLEANUP(lw_str_clear) lw_str file = {0};
    LW_CLEANUP(lw_image_clear) lw_image back = {0};
    LW_CLEANUP(lw_raster_clear) lw_raster rgb = {0};
    LW_TRY(lw_channels_check("--degrade jpeg", im->channels, 3));
    LW_TRY(lw_raster_init(&rgb, im->height, im->width, 3));
    lw_channels_convert(im->at, n, im->channels, 3, rgb.at);
    LW_TRY(lw_jpeg_encode(&(lw_image){.height = im->height, .width = im->width, .rgb = rgb.at},
                          quality, &file));
    LW_TRY(lw_image_parse("--degrade jpeg", file.s, file.len, &back));
    lw_channels_convert(back.rgb, n, 3, im->channels, im->at);
    return 0;
}

static int noise(lw_raster *im, double sd, uint64_t seed, int64_t row)
{
    const lw_rng_key key = lw_rng_key_of(seed, lw_hash_name("degrade.noise"));
    const size_t n = (size_t)im->width * (size_t)im->channels;
    lw_isa isa;
    lw_kernels k;
    LW_CLEANUP(lw_free) float *x = lw_calloc(n, sizeof *x);
    if (!x)
        return LW_ENOMEM;
    LW_TRY(lw_isa_chosen(&isa));
    lw_kernels_init(&k, isa);
    for (int32_t y = 0; y < im->height; y++) {
        uint8_t *line = im->at + (size_t)y * n;
        k.random.normal(x, (ptrdiff_t)n, &row, key, (uint32_t)y, (ptrdiff_t)n, 0,
                        lw_random_blocks((ptrdiff_t)n));
        for (size_t i = 0; i < n; i++)
            line[i] = (uint8_t)lrint(fmin(fmax(line[i] + sd * (double)x[i], 0), 255));
    }
    return 0;
}

static int apply(const lw_degrade_step *s, uint64_t seed, int64_t row, lw_raster *im)
{
    switch (s->kind) {
    case LW_DEGRADE_BLUR:
        return blur(im, s->by);
    case LW_DEGRADE_DOWN:
        return down_and_up(im, (int32_t)s->by, LW_FILTER_BICUBIC);
    case LW_DEGRADE_THUMB:
        return down_and_up(im, (int32_t)s->by, LW_FILTER_BILINEAR);
    case LW_DEGRADE_GRAY:
        return gray(im);
    case LW_DEGRADE_JPEG:
        return jpeg(im, (int)s->by);
    case LW_DEGRADE_NOISE:
        return noise(im, s->by, seed, row);
    }
    return 0;
}

int lw_degrade(const lw_degradation *d, uint64_t seed, int64_t row, lw_raster *im)
{
    for (int32_t i = 0; i < d->n; i++)
        LW_TRY(apply(&d->step[i], seed, row, im));
    return 0;
}
