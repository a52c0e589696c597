/* SPDX-License-Identifier: Apache-2.0 */
/* The decoders behind lw_image_parse. */
#ifndef LW_FORMATS_IMAGE_CODEC_H
#define LW_FORMATS_IMAGE_CODEC_H

#include "formats/image/formats_image.h"

/* Room for a decoded picture: what *out brings, of its size alone, or where it is zeros new memory, which
 * lw_image_parse frees when decoding fails. */
int lw_image_room(const char *what, int32_t width, int32_t height, lw_image *out);

/* Into lw_image_room. */
int lw_png_parse(const char *what, const void *bytes, size_t n, lw_image *out);
/* An object of strings; pixels are decoded too, because text may follow them. */
int lw_png_parse_texts(const char *what, const void *bytes, size_t n, json_t **out);
int lw_png_size(const char *what, const void *bytes, size_t n, int32_t *width, int32_t *height);
int lw_jpeg_size(const char *what, const void *bytes, size_t n, int32_t *width, int32_t *height);
int lw_jpeg_parse(const char *what, const void *bytes, size_t n, lw_image *out);
int lw_bmp_size(const char *what, const void *bytes, size_t n, int32_t *width, int32_t *height);
int lw_bmp_parse(const char *what, const void *bytes, size_t n, lw_image *out);
int lw_webp_size(const char *what, const void *bytes, size_t n, int32_t *width, int32_t *height);
int lw_webp_parse(const char *what, const void *bytes, size_t n, lw_image *out);
bool lw_webp_known(void); /* this build has libwebp */

#endif
