/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BMP -> RGB: uncompressed, of 1, 4 and 8 bits with a palette and of 24 and 32 bits, as Windows has
 * written it since version 3. No library of the distribution reads it better than these lines;
 * rarer kinds are refused by name. Bytes 2 to 9 (the file's length) are ignored, as they often lie.
 *
 *   at   0  "BM"                    26  planes, always 1       46  colours of the palette; 0: all
 *       10  where the pixels are    28  bits of a pixel        54  masks of red, green, blue
 *       14  length of the header    30  0: plain, 3: masks         (only with masks)
 *       18  width, height (i32; a negative height: the top line comes first)
 */
#include <string.h>

#include "base/base.h"
#include "formats/image/formats_image_codec.h"

enum { FILE_HEADER = 14, SMALLEST = 40, LARGEST = 124, HEAD = 54, PLAIN = 0, MASKS = 3 };

typedef struct bmp {
    const char *what;
    const uint8_t *bytes;
    size_t n;
    int32_t width, height;
    bool top_first;
    int bits;
    size_t line;            /* bytes of a line, a multiple of 4 */
    const uint8_t *pixels;  /* the first line of the file */
    const uint8_t *palette; /* blue, green, red, 0 */
    uint32_t colours;       /* of the palette */
    int at[3];              /* where in a pixel red, green and blue are, in bytes */
} bmp;

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static int read_size(bmp *b)
{
    if (b->n < HEAD)
        return lw_fail(LW_EFORMAT, "%s: bad BMP: truncated: %zu bytes", b->what, b->n);
    uint32_t header = u32(b->bytes + FILE_HEADER);
    if (header < SMALLEST || header > LARGEST)
        return lw_fail(LW_EUNSUPPORTED,
                       "%s: BMP with a header of %u bytes is not read (40 to 124 are)", b->what,
                       (unsigned)header);
    int64_t width = (int32_t)u32(b->bytes + 18), height = (int32_t)u32(b->bytes + 22);
    b->top_first = height < 0;
    height = height < 0 ? -height : height;
    if (width < 1 || height < 1 || width > LW_IMAGE_MAX_SIDE || height > LW_IMAGE_MAX_SIDE)
        return lw_fail(LW_EFORMAT, "%s: bad BMP: %lldx%lld pixels", b->what, (long long)width,
                       (long long)height);
    b->width = (int32_t)width;
    b->height = (int32_t)height;
    return 0;
}

/* Masks of whole bytes: which byte of a pixel is red, green, blue. */
static int read_masks(bmp *b)
{
    size_t header = u32(b->bytes + FILE_HEADER);
    if (b->n < HEAD + 12 || (header > SMALLEST && header < SMALLEST + 12))
        return lw_fail(LW_EFORMAT, "%s: bad BMP: no masks", b->what);
    for (int c = 0; c < 3; c++) {
        uint32_t mask = u32(b->bytes + HEAD + 4 * c);
        int k = 0;
        while (k < b->bits / 8 && mask != 0xffu << 8 * k)
            k++;
        if (k == b->bits / 8)
            return lw_fail(LW_EUNSUPPORTED, "%s: BMP with a mask of %08x is not read", b->what,
                           (unsigned)mask);
        b->at[c] = k;
    }
    return 0;
}

static int read_palette(bmp *b)
{
    size_t at = FILE_HEADER + (size_t)u32(b->bytes + FILE_HEADER);
    uint32_t used = u32(b->bytes + 46), most = 1u << b->bits;
    b->colours = used ? used : most;
    if (b->colours > most || at > b->n || 4 * (size_t)b->colours > b->n - at)
        return lw_fail(LW_EFORMAT, "%s: bad BMP: a palette of %u colours", b->what,
                       (unsigned)b->colours);
    b->palette = b->bytes + at;
    return 0;
}

static int read_header(bmp *b)
{
    LW_TRY(read_size(b));
    uint32_t kind = u32(b->bytes + 30), offset = u32(b->bytes + 10);
    b->bits = (int)u16(b->bytes + 28);
    bool indexed = b->bits == 1 || b->bits == 4 || b->bits == 8;
    if ((!indexed && b->bits != 24 && b->bits != 32) ||
        (kind != PLAIN && (kind != MASKS || indexed)))
        return lw_fail(LW_EUNSUPPORTED,
                       "%s: BMP of %d bits a pixel, compression %u is not read (uncompressed 1, 4, "
                       "8, 24 and 32 are)",
                       b->what, b->bits, (unsigned)kind);
    for (int c = 0; c < 3; c++)
        b->at[c] = 2 - c;
    if (kind == MASKS)
        LW_TRY(read_masks(b));
    if (indexed)
        LW_TRY(read_palette(b));
    b->line = ((size_t)b->width * (size_t)b->bits + 31) / 32 * 4;
    if (offset < HEAD || offset > b->n || b->line * (size_t)b->height > b->n - offset)
        return lw_fail(LW_EFORMAT,
                       "%s: bad BMP: truncated: %dx%d pixels of %d bits from byte %u on, of %zu",
                       b->what, b->width, b->height, b->bits, (unsigned)offset, b->n);
    b->pixels = b->bytes + offset;
    return 0;
}

static int indexed_line(const bmp *b, const uint8_t *line, uint8_t *rgb)
{
    int each = 8 / b->bits, mask = (1 << b->bits) - 1;
    for (int32_t x = 0; x < b->width; x++) {
        uint32_t i = (uint32_t)(line[x / each] >> (8 - b->bits * (x % each + 1)) & mask);
        if (i >= b->colours)
            return lw_fail(LW_EFORMAT, "%s: bad BMP: colour %u of a palette of %u", b->what,
                           (unsigned)i, (unsigned)b->colours);
        for (int c = 0; c < 3; c++)
            rgb[3 * x + c] = b->palette[4 * i + 2 - (uint32_t)c];
    }
    return 0;
}

static int decode(const bmp *b, lw_image *im)
{
    int bytes = b->bits / 8;
    for (int32_t y = 0; y < b->height; y++) {
        const uint8_t *line = b->pixels + b->line * (size_t)(b->top_first ? y : b->height - 1 - y);
        uint8_t *rgb = im->rgb + 3 * (size_t)b->width * (size_t)y;
        if (b->palette) {
            LW_TRY(indexed_line(b, line, rgb));
            continue;
        }
        for (int32_t x = 0; x < b->width; x++)
            for (int c = 0; c < 3; c++)
                rgb[3 * x + c] = line[bytes * x + b->at[c]];
    }
    return 0;
}

int lw_bmp_size(const char *what, const void *bytes, size_t n, int32_t *width, int32_t *height)
{
    bmp b = {.what = what, .bytes = bytes, .n = n};
    LW_TRY(read_size(&b));
    *width = b.width;
    *height = b.height;
    return 0;
}

int lw_bmp_parse(const char *what, const void *bytes, size_t n, lw_image *out)
{
    bmp b = {.what = what, .bytes = bytes, .n = n};
    LW_TRY(read_header(&b)); /* all pixels are there before room is made for them */
    LW_TRY(lw_image_room(what, b.width, b.height, out));
    return decode(&b, out);
}
