/* SPDX-License-Identifier: Apache-2.0 */
/* WebP through libwebp, where the build found it. Alpha is dropped, as everywhere; fancy upsampling
 * of colours, which is libwebp's default, gives Pillow's pixels. */
#include "base/base.h"
#include "formats/image/formats_image_codec.h"

#ifdef LW_HAVE_WEBP
#include <webp/decode.h>

bool lw_webp_known(void)
{
    return true;
}

int lw_webp_size(const char *what, const void *bytes, size_t n, int32_t *width, int32_t *height)
{
    WebPBitstreamFeatures f;
    if (WebPGetFeatures(bytes, n, &f) != VP8_STATUS_OK)
        return lw_fail(LW_EFORMAT, "%s: bad WebP: no header", what);
    if (f.has_animation)
        return lw_fail(LW_EUNSUPPORTED, "%s: an animated WebP is not read: save one picture of it",
                       what);
    *width = f.width;
    *height = f.height;
    return 0;
}

int lw_webp_parse(const char *what, const void *bytes, size_t n, lw_image *out)
{
    int32_t width = 0, height = 0;
    LW_TRY(lw_webp_size(what, bytes, n, &width, &height));
    LW_TRY(lw_image_room(what, width, height, out));
    size_t room = 3 * (size_t)width * (size_t)height;
    if (!WebPDecodeRGBInto(bytes, n, out->rgb, room, 3 * width))
        return lw_fail(LW_EFORMAT, "%s: bad WebP: damaged or truncated", what);
    return 0;
}

#else

bool lw_webp_known(void)
{
    return false;
}

static int unknown(const char *what)
{
    return lw_fail(LW_EUNSUPPORTED,
                   "%s: a WebP, and this program was built without libwebp: install libwebp-dev "
                   "and build again",
                   what);
}

int lw_webp_size(const char *what, const void *bytes, size_t n, int32_t *width, int32_t *height)
{
    (void)bytes, (void)n, (void)width, (void)height;
    return unknown(what);
}

int lw_webp_parse(const char *what, const void *bytes, size_t n, lw_image *out)
{
    (void)bytes, (void)n, (void)out;
    return unknown(what);
}

#endif
