/* SPDX-License-Identifier: Apache-2.0 */
/* RGB -> PNG bytes with text chunks, through libpng. */
#include <png.h>
#include <setjmp.h>
#include <string.h>

#include "base/base.h"
#include "formats/image/formats_image.h"

typedef struct encoder {
    png_structp png;
    png_infop info;
    lw_str *out;
    int rc;
} encoder;

static void on_error(png_structp png, png_const_charp why)
{
    encoder *e = png_get_error_ptr(png);
    if (e->rc == 0)
        e->rc = lw_fail(LW_EFORMAT, "cannot write a PNG: %s", why);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp why)
{
    (void)png;
    lw_log(LW_LOG_DEBUG, "formats", "writing a PNG: %s", why);
}

static void on_write(png_structp png, png_bytep bytes, size_t n)
{
    encoder *e = png_get_io_ptr(png);
    lw_str_add_n(e->out, (const char *)bytes, n);
}

static void on_flush(png_structp png)
{
    (void)png;
}

static bool is_ascii(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s >= 0x80)
            return false;
    return true;
}

static void put_texts(encoder *e, const json_t *texts)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)texts, key, value)
    {
        size_t n = strlen(key);
        if (!json_is_string(value) || n < 1 || n > 79 || !is_ascii(key)) {
            e->rc = lw_fail(LW_EUSAGE,
                            "PNG text '%.79s' needs an ASCII key of 1 to 79 characters and a "
                            "string as its value",
                            key);
            png_longjmp(e->png, 1);
        }
        /* tEXt is Latin-1: anything else goes into iTXt, which is UTF-8 */
        bool plain = is_ascii(json_string_value(value));
        png_text text = {
            .compression = plain ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE,
            .key = (png_charp)key,
            .text = (png_charp)json_string_value(value),
        };
        png_set_text(e->png, e->info, &text, 1);
    }
}

/* Runs under the caller's setjmp: no cleanup attributes in here. */
static int encode(encoder *e, const lw_image *im, const json_t *texts)
{
    png_set_write_fn(e->png, e, on_write, on_flush);
    png_set_IHDR(e->png, e->info, (png_uint_32)im->width, (png_uint_32)im->height, 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (im->see_through)
        png_set_tRNS(
            e->png, e->info, NULL, 0,
            &(png_color_16){.red = im->clear[0], .green = im->clear[1], .blue = im->clear[2]});
    if (texts)
        put_texts(e, texts);
    png_write_info(e->png, e->info);
    for (int32_t y = 0; y < im->height; y++)
        png_write_row(e->png, im->rgb + (size_t)y * (size_t)im->width * 3);
    png_write_end(e->png, e->info);
    if (e->out->failed)
        return lw_fail(LW_ENOMEM, "no memory for the bytes of a PNG");
    return 0;
}

static int encode_guarded(encoder *e, const lw_image *im, const json_t *texts)
{
    if (setjmp(png_jmpbuf(e->png)))
        return e->rc;
    return encode(e, im, texts);
}

int lw_png_encode(const lw_image *im, const json_t *texts, lw_str *out)
{
    encoder e = {.out = out};
    e.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &e, on_error, on_warning);
    e.info = e.png ? png_create_info_struct(e.png) : NULL;
    int rc = e.info ? encode_guarded(&e, im, texts)
                    : lw_fail(LW_ENOMEM, "no memory for a PNG encoder");
    png_destroy_write_struct(&e.png, &e.info);
    return rc;
}
