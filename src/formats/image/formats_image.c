/* SPDX-License-Identifier: Apache-2.0 */
/* lw_image, and the choice of decoder by content. */
#include "formats/image/formats_image.h"

#include <string.h>

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

void lw_image_clear(lw_image *im)
{
    lw_free(&im->rgb);
    *im = (lw_image){0};
}

int lw_image_parse(const char *what, const void *bytes, size_t n, lw_image *out)
{
    if (n >= 4 && memcmp(bytes, "\x89PNG", 4) == 0)
        return lw_png_parse(what, bytes, n, out);
    if (n >= 2 && memcmp(bytes, "\xff\xd8", 2) == 0)
        return lw_jpeg_parse(what, bytes, n, out);
    return lw_fail(LW_EFORMAT, "%s: neither PNG nor JPEG", what);
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
    if (n >= 4 && memcmp(bytes, "\x89PNG", 4) == 0)
        return lw_png_size(what, bytes, n, width, height);
    if (n >= 2 && memcmp(bytes, "\xff\xd8", 2) == 0)
        return lw_jpeg_size(what, bytes, n, width, height);
    return lw_fail(LW_EFORMAT, "%s: neither PNG nor JPEG", what);
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
