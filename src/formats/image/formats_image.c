/* SPDX-License-Identifier: Apache-2.0 */
/* lw_image, and the choice of decoder by content. */
#include "formats/image/formats_image.h"

#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "formats/image/formats_image_codec.h"

int lw_image_init(lw_image *out, int32_t width, int32_t height)
{
    if (width < 1 || height < 1 || width > LW_IMAGE_MAX_SIDE || height > LW_IMAGE_MAX_SIDE ||
        (int64_t)width * height > LW_IMAGE_MAX_PIXELS)
        return lw_fail(LW_ESHAPE,
                       "a picture of %dx%d pixels: sides are 1 to %d, at most %lld pixels", width,
                       height, LW_IMAGE_MAX_SIDE, (long long)LW_IMAGE_MAX_PIXELS);
    uint8_t *rgb = lw_calloc((size_t)width * (size_t)height, 3);
    if (!rgb)
        return LW_ENOMEM;
    *out = (lw_image){.width = width, .height = height, .rgb = rgb};
    return 0;
}

int lw_image_room(const char *what, int32_t width, int32_t height, lw_image *out)
{
    if (!out->rgb) {
        const int rc = lw_image_init(out, width, height);
        return rc == LW_ESHAPE ? lw_fail_in(LW_EFORMAT, "%s: ", what) : rc;
    }
    return width == out->width && height == out->height
               ? 0
               : lw_fail(LW_EFORMAT, "%s: %dx%d pixels, those before it have %dx%d", what,
                         (int)width, (int)height, (int)out->width, (int)out->height);
}

void lw_image_clear(lw_image *im)
{
    lw_free(&im->rgb);
    *im = (lw_image){0};
}

/* Every kind of picture there is, known by how it begins: `n` bytes of text at `at`. */
typedef struct codec {
    const char *kind;
    size_t at, n;
    const char *text;
    int (*parse)(const char *what, const void *bytes, size_t n, lw_image *out);
    int (*size)(const char *what, const void *bytes, size_t n, int32_t *width, int32_t *height);
} codec;

static const codec codecs[] = {
    {"png", 0, 4, "\x89PNG", lw_png_parse, lw_png_size},
    {"jpeg", 0, 2, "\xff\xd8", lw_jpeg_parse, lw_jpeg_size},
    {"bmp", 0, 2, "BM", lw_bmp_parse, lw_bmp_size},
    {"webp", 8, 4, "WEBP", lw_webp_parse, lw_webp_size},
};

static const codec *codec_of(const void *bytes, size_t n)
{
    for (size_t i = 0; i < LW_COUNT(codecs); i++) {
        const codec *c = &codecs[i];
        if (n >= c->at + c->n && memcmp((const char *)bytes + c->at, c->text, c->n) == 0)
            return c;
    }
    return NULL;
}

static int find_codec(const char *what, const void *bytes, size_t n, const codec **out)
{
    *out = codec_of(bytes, n);
    return *out ? 0 : lw_fail(LW_EFORMAT, "%s: neither PNG, JPEG, BMP nor WebP", what);
}

const char *lw_image_kind(const void *bytes, size_t n)
{
    const codec *c = codec_of(bytes, n);
    return c ? c->kind : NULL;
}

bool lw_image_known(const char *name)
{
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".bmp", ".webp"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < LW_COUNT(ends); i++)
        if (strcasecmp(dot, ends[i]) == 0)
            return true;
    return false;
}

int lw_image_parse(const char *what, const void *bytes, size_t n, lw_image *out)
{
    const codec *c;
    *out = (lw_image){0};
    LW_TRY(find_codec(what, bytes, n, &c));
    const int rc = c->parse(what, bytes, n, out);
    if (rc < 0)
        lw_image_clear(out);
    return rc;
}

int lw_image_read(const char *path, int32_t width, int32_t height, uint8_t *rgb)
{
    LW_CLEANUP(lw_map_close) lw_map map = {0};
    lw_image into = {.width = width, .height = height, .rgb = rgb};
    const codec *c;
    LW_TRY(lw_map_open(&map, path));
    LW_TRY(find_codec(path, map.data, map.size, &c));
    return c->parse(path, map.data, map.size, &into);
}

int lw_image_load(const char *path, lw_image *out)
{
    LW_CLEANUP(lw_map_close) lw_map map = {0};
    LW_TRY(lw_map_open(&map, path));
    return lw_image_parse(path, map.data, map.size, out);
}

int lw_image_parse_size(const char *what, const void *bytes, size_t n, int32_t *width,
                        int32_t *height)
{
    const codec *c;
    LW_TRY(find_codec(what, bytes, n, &c));
    return c->size(what, bytes, n, width, height);
}

int lw_image_size(const char *path, int32_t *width, int32_t *height)
{
    LW_CLEANUP(lw_map_close) lw_map map = {0};
    LW_TRY(lw_map_open(&map, path));
    return lw_image_parse_size(path, map.data, map.size, width, height);
}

int lw_png_texts(const char *path, json_t **out)
{
    LW_CLEANUP(lw_map_close) lw_map map = {0};
    LW_TRY(lw_map_open(&map, path));
    return lw_png_parse_texts(path, map.data, map.size, out);
}

int lw_png_save(const char *path, const lw_image *im, const json_t *texts)
{
    LW_CLEANUP(lw_str_clear) lw_str bytes = {0};
    int rc = lw_png_encode(im, texts, &bytes);
    if (rc < 0)
        return lw_fail_in(rc, "%s: ", path);
    return lw_file_write(path, bytes.s, bytes.len);
}
