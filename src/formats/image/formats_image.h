/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Still pictures as 8-bit RGB, decoded as Pillow's convert("RGB") does: palette and gray expanded,
 * 16-bit PNG reduced to its high byte (of gray ones Pillow makes white what is above 255), alpha
 * dropped without compositing, CMYK as Adobe writes it, EXIF orientation and gamma ignored.
 */
#ifndef LW_FORMATS_IMAGE_H
#define LW_FORMATS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "formats/text/formats_json.h"

#define LW_IMAGE_MAX_SIDE 32768
#define LW_IMAGE_MAX_PIXELS ((int64_t)1 << 26)

#define LW_PNG_TEXTS 64
#define LW_PNG_TEXT_BYTES (2 << 20)

typedef struct lw_image {
    int32_t width, height;
    uint8_t *rgb;     /* [height][width][3], heap */
    bool see_through; /* PNG files say that pixels of the colour `clear` are transparent */
    uint8_t clear[3];
} lw_image;

/* Which channel of a picture of so many is shown as red, green or blue (c 0, 1, 2). */
static inline int lw_shown_channel(int32_t channels, int c)
{
    return channels >= 3 ? c : 0;
}

int lw_image_init(lw_image *out, int32_t width, int32_t height); /* black */
void lw_image_clear(lw_image *im);                               /* fits LW_CLEANUP */

/* Whether a file's name ends as those of the kinds below: .png .jpg .jpeg .bmp .webp. */
bool lw_image_known(const char *name);
/* "png", "jpeg", "bmp" or "webp", by the first 12 bytes; NULL: none of these. */
const char *lw_image_kind(const void *bytes, size_t n);
/* One of these by content. `what` names the bytes in messages. LW_EFORMAT: damaged, or
 * none of these; LW_EUNSUPPORTED: a kind of them that is not read. */
int lw_image_parse(const char *what, const void *bytes, size_t n, lw_image *out);
int lw_image_load(const char *path, lw_image *out);
/* One of this size into the caller's memory, without an allocation but those of libraries (and of CMYK).
 * LW_EFORMAT: also of another size. */
int lw_image_read(const char *path, int32_t width, int32_t height, uint8_t *rgb);
/* Width and height as the file's header says, nothing decoded. */
int lw_image_parse_size(const char *what, const void *bytes, size_t n, int32_t *width,
                        int32_t *height);
int lw_image_size(const char *path, int32_t *width, int32_t *height);

/* texts: JSON object of strings written as tEXt chunks (keys 1..79 Latin-1 characters); NULL: none.
 * Output is appended to *out (bytes, not text). No time stamp: same picture, same bytes. */
int lw_png_encode(const lw_image *im, const json_t *texts, lw_str *out);
int lw_png_save(const char *path, const lw_image *im, const json_t *texts); /* atomic */
/* tEXt, zTXt and iTXt chunks as an object of strings: the first LW_PNG_TEXTS, without those longer
 * than LW_PNG_TEXT_BYTES. */
int lw_png_texts(const char *path, json_t **out);
int lw_jpeg_encode(const lw_image *im, int quality,
                   lw_str *out); /* 4:2:0 below quality 90, else 4:4:4 */

/* JPEGs one after the other: what a coder needs is kept from one to the next, so that none of them
 * costs an allocation but those that libjpeg makes itself. */
typedef struct lw_jpeg lw_jpeg;
int lw_jpeg_new(lw_jpeg **out);
void lw_jpeg_free(lw_jpeg **pp);
/* No picture has more pixels a byte: one colour in progressive scans has a third of it. A header that
 * promises more is refused before anything is made for it. */
#define LW_JPEG_MOST_PIXELS_A_BYTE 2048
/* LW_EFORMAT: damaged, or no such promise is kept. */
int lw_jpeg_read_size(lw_jpeg *j, const char *what, const void *bytes, size_t n, int32_t *w,
                      int32_t *h);
/* LW_EFORMAT: also of another size than w x h. */
int lw_jpeg_read(lw_jpeg *j, const char *what, const void *bytes, size_t n, int32_t w, int32_t h,
                 uint8_t *rgb);
/* *bytes is valid until the next one. */
int lw_jpeg_write(lw_jpeg *j, const uint8_t *rgb, int32_t w, int32_t h, int quality,
                  const uint8_t **bytes, size_t *n);

#endif
