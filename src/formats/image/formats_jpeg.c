/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG through TurboJPEG. No fast flags: the accurate DCT and smooth upsampling give Pillow's
 * pixels. */
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

static int decode_into(tjhandle h, const char *what, const void *bytes, size_t n, bool cmyk,
                       lw_image *im)
{
    if (!cmyk)
        return decode(h, what, bytes, n, TJPF_RGB, im->rgb);
    int64_t pixels = (int64_t)im->width * im->height;
    LW_CLEANUP(lw_free) uint8_t *four = lw_calloc((size_t)pixels, 4);
    if (!four)
        return LW_ENOMEM;
    LW_TRY(decode(h, what, bytes, n, TJPF_CMYK, four));
    cmyk_to_rgb(four, pixels, im->rgb);
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
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    int rc = lw_image_init(&im, width, height);
    if (rc < 0)
        return rc == LW_ESHAPE ? lw_fail_in(LW_EFORMAT, "%s: ", what) : rc;
    LW_TRY(decode_into(h, what, bytes, n, space == TJCS_CMYK || space == TJCS_YCCK, &im));
    *out = im;
    im = (lw_image){0};
    return 0;
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

int lw_jpeg_encode(const lw_image *im, int quality, lw_str *out)
{
    if (quality < 1 || quality > 100)
        return lw_fail(LW_EUSAGE, "JPEG quality %d is not within 1 to 100", quality);
    tjhandle h = tjInitCompress();
    if (!h)
        return lw_fail(LW_ENOMEM, "no memory for a JPEG encoder");
    unsigned char *bytes = NULL;
    unsigned long n = 0;
    int rc = tjCompress2(h, im->rgb, im->width, 0, im->height, TJPF_RGB, &bytes, &n,
                         quality < 90 ? TJSAMP_420 : TJSAMP_444, quality, TJFLAG_ACCURATEDCT);
    rc = rc == 0 ? 0 : lw_fail(LW_EFORMAT, "cannot write a JPEG: %s", tjGetErrorStr2(h));
    if (rc == 0)
        lw_str_add_n(out, (const char *)bytes, n);
    if (rc == 0 && out->failed)
        rc = lw_fail(LW_ENOMEM, "no memory for the bytes of a JPEG");
    tjFree(bytes);
    tjDestroy(h);
    return rc;
}
