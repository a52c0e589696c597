/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG through TurboJPEG. No fast flags: the accurate DCT and smooth upsampling give Pillow's
 * pixels. */
#include <stdint.h>
#include <string.h>
#include <turbojpeg.h>

#include "base/base.h"
#include "formats/image/formats_image_codec.h"

static int bad_jpeg(tjhandle h, const char *what)
{
    return lw_fail(LW_EFORMAT, "%s: bad JPEG: %s", what, tjGetErrorStr2(h));
}

/* Stray bytes between markers are common in the wild and harmless; every other warning means
 * damage. */
static int decode(tjhandle h, const char *what, const void *bytes, size_t n, int format,
                  unsigned char *to)
{
    int flags = TJFLAG_LIMITSCANS | TJFLAG_STOPONWARNING;
    if (tjDecompress2(h, bytes, (unsigned long)n, to, 0, 0, 0, format, flags) == 0)
        return 0;
    if (!strstr(tjGetErrorStr2(h), "extraneous bytes"))
        return bad_jpeg(h, what);
    flags = TJFLAG_LIMITSCANS;
    if (tjDecompress2(h, bytes, (unsigned long)n, to, 0, 0, 0, format, flags) == 0 ||
        strstr(tjGetErrorStr2(h), "extraneous bytes"))
        return 0;
    return bad_jpeg(h, what);
}

/* Adobe's inverted CMYK to RGB with Pillow's rounding: v = k - (255 - c) k / 255. */
static void cmyk_to_rgb(const uint8_t *cmyk, int64_t pixels, uint8_t *rgb)
{
    for (int64_t i = 0; i < pixels; i++) {
        int k = cmyk[4 * i + 3];
        for (int c = 0; c < 3; c++) {
            int t = (255 - cmyk[4 * i + c]) * k + 128;
            rgb[3 * i + c] = (uint8_t)(k - ((t >> 8) + t) / 256);
        }
    }
}

static int decode_into(tjhandle h, const char *what, const void *bytes, size_t n, int space,
                       int64_t pixels, uint8_t *rgb)
{
    if (space != TJCS_CMYK && space != TJCS_YCCK)
        return decode(h, what, bytes, n, TJPF_RGB, rgb);
    LW_CLEANUP(lw_free) uint8_t *four = lw_calloc((size_t)pixels, 4);
    if (!four)
        return LW_ENOMEM;
    LW_TRY(decode(h, what, bytes, n, TJPF_CMYK, four));
    cmyk_to_rgb(four, pixels, rgb);
    return 0;
}

static int read_header(tjhandle h, const char *what, const void *bytes, size_t n, int *width,
                       int *height, int *space)
{
    int subsampling;
    *width = *height = 0;
    *space = -1;
    if (tjDecompressHeader3(h, bytes, (unsigned long)n, width, height, &subsampling, space) != 0)
        return bad_jpeg(h, what);
    if (*width < 1) /* tables only: no error to TurboJPEG, which then leaves its results alone */
        return lw_fail(LW_EFORMAT, "%s: bad JPEG: no picture in it", what);
    return 0;
}

static int parse(tjhandle h, const char *what, const void *bytes, size_t n, lw_image *out)
{
    int width, height, space;
    LW_TRY(read_header(h, what, bytes, n, &width, &height, &space));
    LW_TRY(lw_image_room(what, width, height, out));
    return decode_into(h, what, bytes, n, space, (int64_t)width * height, out->rgb);
}

int lw_jpeg_parse(const char *what, const void *bytes, size_t n, lw_image *out)
{
    tjhandle h = tjInitDecompress();
    if (!h)
        return lw_fail(LW_ENOMEM, "%s: no memory for a JPEG decoder", what);
    int rc = parse(h, what, bytes, n, out);
    tjDestroy(h);
    return rc;
}

int lw_jpeg_size(const char *what, const void *bytes, size_t n, int32_t *width, int32_t *height)
{
    int w, h, space;
    tjhandle t = tjInitDecompress();
    if (!t)
        return lw_fail(LW_ENOMEM, "%s: no memory for a JPEG decoder", what);
    int rc = read_header(t, what, bytes, n, &w, &h, &space);
    tjDestroy(t);
    LW_TRY(rc);
    *width = w;
    *height = h;
    return 0;
}

/* ---- one after the other --------------------------------------------------------------------- */

struct lw_jpeg {
    tjhandle in, out;
    unsigned char *bytes; /* of the last one written */
    unsigned long cap;
};

int lw_jpeg_new(lw_jpeg **out)
{
    lw_jpeg *j = lw_calloc(1, sizeof *j);
    if (!j)
        return LW_ENOMEM;
    j->in = tjInitDecompress();
    j->out = tjInitCompress();
    *out = j;
    if (j->in && j->out)
        return 0;
    lw_jpeg_free(out);
    return lw_fail(LW_ENOMEM, "no memory for JPEGs");
}

void lw_jpeg_free(lw_jpeg **pp)
{
    lw_jpeg *j = *pp;
    if (!j)
        return;
    if (j->in)
        tjDestroy(j->in);
    if (j->out)
        tjDestroy(j->out);
    tjFree(j->bytes);
    lw_free(pp);
}

static int jpeg_header(lw_jpeg *j, const char *what, const void *bytes, size_t n, int *w, int *h,
                       int *space)
{
    LW_TRY(read_header(j->in, what, bytes, n, w, h, space));
    if (*w > LW_IMAGE_MAX_SIDE || *h > LW_IMAGE_MAX_SIDE ||
        (int64_t)*w * *h > LW_MIN(LW_IMAGE_MAX_PIXELS, (int64_t)n * LW_JPEG_MOST_PIXELS_A_BYTE))
        return lw_fail(LW_EFORMAT, "%s: bad JPEG: %zu bytes that promise %dx%d pixels", what, n, *w,
                       *h);
    return 0;
}

int lw_jpeg_read_size(lw_jpeg *j, const char *what, const void *bytes, size_t n, int32_t *w,
                      int32_t *h)
{
    int space;
    return jpeg_header(j, what, bytes, n, w, h, &space);
}

int lw_jpeg_read(lw_jpeg *j, const char *what, const void *bytes, size_t n, int32_t w, int32_t h,
                 uint8_t *rgb)
{
    int width, height, space;
    LW_TRY(jpeg_header(j, what, bytes, n, &width, &height, &space));
    if (width != w || height != h)
        return lw_fail(LW_EFORMAT, "%s: %dx%d pixels, those before it have %dx%d", what, width,
                       height, w, h);
    return decode_into(j->in, what, bytes, n, space, (int64_t)w * h, rgb);
}

int lw_jpeg_write(lw_jpeg *j, const uint8_t *rgb, int32_t w, int32_t h, int quality,
                  const uint8_t **bytes, size_t *n)
{
    const int sampling = quality < 90 ? TJSAMP_420 : TJSAMP_444;
    const unsigned long most = tjBufSize(w, h, sampling);
    if (most > j->cap) { /* of the first picture, and of bigger ones */
        tjFree(j->bytes);
        j->cap = 0;
        j->bytes = tjAlloc((int)LW_MIN(most, INT32_MAX));
        if (!j->bytes)
            return lw_fail(LW_ENOMEM, "no memory for the bytes of a JPEG");
        j->cap = most;
    }
    unsigned long size = j->cap;
    if (tjCompress2(j->out, rgb, w, 0, h, TJPF_RGB, &j->bytes, &size, sampling, quality,
                    TJFLAG_ACCURATEDCT | TJFLAG_NOREALLOC) != 0)
        return lw_fail(LW_EFORMAT, "cannot write a JPEG: %s", tjGetErrorStr2(j->out));
    *bytes = j->bytes;
    *n = size;
    return 0;
}

int lw_jpeg_encode(const lw_image *im, int quality, lw_str *out)
{
    LW_CLEANUP(lw_jpeg_free) lw_jpeg *j = NULL;
    const uint8_t *bytes;
    size_t n;
    if (quality < 1 || quality > 100)
        return lw_fail(LW_EUSAGE, "JPEG quality %d is not within 1 to 100", quality);
    LW_TRY(lw_jpeg_new(&j));
    LW_TRY(lw_jpeg_write(j, im->rgb, im->width, im->height, quality, &bytes, &n));
    lw_str_add_n(out, (const char *)bytes, n);
    return out->failed ? lw_fail(LW_ENOMEM, "no memory for the bytes of a JPEG") : 0;
}
