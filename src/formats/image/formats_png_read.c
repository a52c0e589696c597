/* SPDX-License-Identifier: Apache-2.0 */
/* PNG bytes -> RGB and texts, through libpng. */
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "formats/image/formats_image_codec.h"

/* Texts are unpacked whole: a hundred kilobytes of them could ask for gigabytes. */
#define MAX_CHUNK ((png_alloc_size_t)LW_PNG_TEXT_BYTES)

/* All that must survive a longjmp out of libpng lives here, behind a pointer. */
typedef struct decoder {
    const char *what;
    const unsigned char *bytes;
    size_t n, at;
    png_structp png;
    png_infop info;
    lw_image image;
    int passes; /* of an interlaced picture: each changes some of its pixels */
    json_t *texts;
    int rc;
} decoder;

static void on_error(png_structp png, png_const_charp why)
{
    decoder *d = png_get_error_ptr(png);
    if (d->rc == 0)
        d->rc = lw_fail(LW_EFORMAT, "%s: bad PNG: %s", d->what, why);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp why)
{
    decoder *d = png_get_error_ptr(png);
    lw_log(LW_LOG_DEBUG, "formats", "%s: PNG: %s", d->what, why);
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
    decoder *d = png_get_io_ptr(png);
    if (n > d->n - d->at)
        png_error(png, "truncated");
    memcpy(to, d->bytes + d->at, n);
    d->at += n;
}

/* Everything to 8-bit RGB, as Pillow's convert("RGB") does. */
static void ask_for_rgb(decoder *d)
{
    png_set_strip_16(d->png);
    png_set_expand(d->png); /* palette -> RGB, low-bit gray -> 8 bits, tRNS -> alpha */
    png_set_gray_to_rgb(d->png);
    png_set_strip_alpha(d->png);
    d->passes = png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
}

/* Texts that nobody asked for are not unpacked. */
static void limit_texts(decoder *d)
{
    static const png_byte names[] = "tEXt\0zTXt\0iTXt";
    png_set_chunk_malloc_max(d->png, MAX_CHUNK);
    png_set_chunk_cache_max(d->png, LW_PNG_TEXTS + 2); /* libpng gives two fewer */
    if (!d->texts)
        png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, names, 3);
}

/* A string of Latin-1 bytes (tEXt, zTXt) as JSON, which is UTF-8. */
static json_t *latin1(const char *s, size_t n)
{
    LW_CLEANUP(lw_str_clear) lw_str u = {0};
    char block[1024]; /* texts may have megabytes: not byte by byte */
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (used + 2 > sizeof block) {
            lw_str_add_n(&u, block, used);
            used = 0;
        }
        if (c >= 0x80)
            block[used++] = (char)(0xc0 | c >> 6);
        block[used++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
    }
    lw_str_add_n(&u, block, used);
    return json_stringn(lw_str_c(&u), u.len);
}

static void take_texts(decoder *d)
{
    png_textp text;
    int n = 0;
    png_get_text(d->png, d->info, &text, &n);
    for (int i = 0; i < n; i++) {
        bool utf8 = text[i].compression >= PNG_ITXT_COMPRESSION_NONE;
        const char *s = text[i].text ? text[i].text : "";
        json_t *value = utf8 ? json_string(s) : latin1(s, strlen(s));
        json_t *key = latin1(text[i].key, strlen(text[i].key));
        if (value && key)
            json_object_set(d->texts, json_string_value(key), value);
        json_decref(value);
        json_decref(key);
    }
}

/* Runs under the caller's setjmp: no cleanup attributes in here. */
static int decode(decoder *d)
{
    png_set_read_fn(d->png, d, on_read);
    png_set_user_limits(d->png, LW_IMAGE_MAX_SIDE, LW_IMAGE_MAX_SIDE);
    limit_texts(d);
    png_read_info(d->png, d->info);
    ask_for_rgb(d);
    png_uint_32 width = png_get_image_width(d->png, d->info);
    png_uint_32 height = png_get_image_height(d->png, d->info);
    d->rc = lw_image_room(d->what, (int32_t)width, (int32_t)height, &d->image);
    if (d->rc < 0)
        return d->rc;
    if (png_get_rowbytes(d->png, d->info) != (size_t)width * 3)
        return lw_fail(LW_EFORMAT, "%s: bad PNG: rows are not RGB", d->what);
    for (int pass = 0; pass < d->passes; pass++)
        for (png_uint_32 y = 0; y < height; y++)
            png_read_row(d->png, d->image.rgb + (size_t)y * width * 3, NULL);
    png_read_end(d->png, d->info);
    if (d->texts)
        take_texts(d);
    return 0;
}

/* libpng makes room for as much as a chunk says it has, up to 2 GiB, before it reads any of it. */
static int check_chunks(const decoder *d)
{
    for (size_t at = 8; d->n - at >= 12;) {
        const png_byte *chunk = d->bytes + at;
        size_t length = png_get_uint_32(chunk), left = d->n - at - 12;
        if (length > left)
            return lw_fail(LW_EFORMAT,
                           "%s: bad PNG: truncated: a chunk of %zu bytes of which %zu are there",
                           d->what, length, left);
        if (memcmp(chunk + 4, "IEND", 4) == 0)
            break;
        at += 12 + length;
    }
    return 0;
}

/* setjmp's frame holds nothing that changes after it. */
static int decode_guarded(decoder *d)
{
    if (setjmp(png_jmpbuf(d->png)))
        return d->rc;
    return decode(d);
}

static int decode_all(decoder *d)
{
    if (d->n >= 8 && png_sig_cmp(d->bytes, 0, 8) == 0)
        LW_TRY(check_chunks(d));
    d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, on_error, on_warning);
    d->info = d->png ? png_create_info_struct(d->png) : NULL;
    int rc = d->info ? decode_guarded(d)
                     : lw_fail(LW_ENOMEM, "%s: no memory for a PNG decoder", d->what);
    png_destroy_read_struct(&d->png, &d->info, NULL);
    return rc;
}

int lw_png_parse(const char *what, const void *bytes, size_t n, lw_image *out)
{
    decoder d = {.what = what, .bytes = bytes, .n = n, .image = *out};
    const int rc = decode_all(&d);
    *out = d.image;
    return rc;
}

int lw_png_parse_texts(const char *what, const void *bytes, size_t n, json_t **out)
{
    decoder d = {.what = what, .bytes = bytes, .n = n, .texts = json_object()};
    int rc = d.texts ? decode_all(&d) : lw_fail(LW_ENOMEM, "%s: no memory for its texts", what);
    lw_image_clear(&d.image);
    if (rc < 0)
        json_decref(d.texts);
    else
        *out = d.texts;
    return rc;
}

/* IHDR is always the first chunk: signature, length 13, "IHDR", width, height (big-endian). */
int lw_png_size(const char *what, const void *bytes, size_t n, int32_t *width, int32_t *height)
{
    const png_byte *p = bytes;
    if (n < 24 || png_sig_cmp(p, 0, 8) != 0 || memcmp(p + 12, "IHDR", 4) != 0)
        return lw_fail(LW_EFORMAT, "%s: bad PNG: no header", what);
    png_uint_32 w = png_get_uint_32(p + 16), h = png_get_uint_32(p + 20);
    if (w < 1 || h < 1 || w > LW_IMAGE_MAX_SIDE || h > LW_IMAGE_MAX_SIDE)
        return lw_fail(LW_EFORMAT, "%s: bad PNG: %ux%u pixels", what, (unsigned)w, (unsigned)h);
    *width = (int32_t)w;
    *height = (int32_t)h;
    return 0;
}
