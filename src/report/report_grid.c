/* SPDX-License-Identifier: Apache-2.0 */
/* Grids of samples, pictures side by side, text. */
#include "report/report_grid.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "report/report_font.h"

static void put_dot(lw_image *im, int32_t x, int32_t y, const uint8_t rgb[3])
{
    if (x >= 0 && y >= 0 && x < im->width && y < im->height)
        memcpy(im->rgb + ((size_t)y * (size_t)im->width + (size_t)x) * 3, rgb, 3);
}

void lw_image_text(lw_image *im, int32_t x, int32_t y, int32_t scale, const uint8_t rgb[3],
                   const char *text)
{
    for (; *text; text++) {
        if (((unsigned char)*text & 0xc0) == 0x80)
            continue; /* the rest of a UTF-8 character that got its '?' already */
        for (int32_t v = 0; v < 8 * scale; v++)
            for (int32_t u = 0; u < 5 * scale; u++)
                if (lw_font_dot(*text, u / scale, v / scale))
                    put_dot(im, x + u, y + v, rgb);
        x += 6 * scale;
    }
}

int32_t lw_text_width(const char *text, int32_t scale)
{
    int32_t n = lw_utf8_length(text);
    return n > 0 ? (6 * n - 1) * scale : 0;
}

/* What no sample covers, of grids whose padding is transparent. A sample's pixel of this very
 * colour is moved off it. */
static const uint8_t clear_colour[3] = {1, 254, 2};

static void fill(lw_image *im, const uint8_t rgb[3])
{
    for (size_t i = 0; i < (size_t)im->width * (size_t)im->height; i++)
        memcpy(im->rgb + 3 * i, rgb, 3);
}

/* Where everything of a grid goes, in pixels of the output. */
typedef struct layout {
    int32_t columns, rows, scale, pad;
    int32_t left, top; /* room for labels */
    int32_t cell_w, cell_h;
    int32_t text; /* scale of labels */
} layout;

static int plan(const lw_grid *g, int32_t n, int32_t h, int32_t w, layout *out)
{
    if (n < 1 || h < 1 || w < 1 || g->columns < 0 || g->padding < 0 || g->scale < 0)
        return lw_fail(LW_ESHAPE, "a grid of %d pictures of %dx%d", n, w, h);
    layout l = {.scale = LW_MAX(g->scale, 1)};
    l.columns = g->columns ? LW_MIN(g->columns, n) : (int32_t)ceil(sqrt((double)n));
    l.rows = LW_CEIL_DIV(n, l.columns);
    int64_t cell_w = ((int64_t)w + g->padding) * l.scale,
            cell_h = ((int64_t)h + g->padding) * l.scale;
    if (cell_w * l.columns > LW_IMAGE_MAX_SIDE || cell_h * l.rows > LW_IMAGE_MAX_SIDE)
        return lw_fail(LW_ESHAPE,
                       "a grid of %dx%d cells of %dx%d pixels is too large: fewer samples, "
                       "or a smaller scale",
                       l.columns, l.rows, w, h);
    l.cell_w = (int32_t)cell_w;
    l.cell_h = (int32_t)cell_h;
    l.pad = g->padding * l.scale;
    l.text = LW_MAX(1, LW_MIN(l.cell_w, l.cell_h) / 32);
    for (int32_t r = 0; g->row_labels && r < l.rows; r++)
        l.left = LW_MAX(l.left, lw_text_width(g->row_labels[r], l.text) + 6 * l.text);
    if (g->column_labels)
        l.top = (LW_TEXT_HEIGHT + 3) * l.text;
    *out = l;
    return 0;
}

/* Labels in white or black, whichever stands out from the background. */
static void draw_labels(const lw_grid *g, const layout *l, lw_image *im)
{
    int light = g->background[0] + g->background[1] + g->background[2] > 3 * 128;
    uint8_t ink[3];
    memset(ink, light ? 0x20 : 0xe0, 3);
    for (int32_t c = 0; g->column_labels && c < l->columns; c++) {
        int32_t width = lw_text_width(g->column_labels[c], l->text);
        int32_t x = l->left + l->pad + c * l->cell_w + (l->cell_w - l->pad - width) / 2;
        lw_image_text(im, LW_MAX(x, 0), 3 * l->text, l->text, ink, g->column_labels[c]);
    }
    for (int32_t r = 0; g->row_labels && r < l->rows; r++) {
        int32_t width = lw_text_width(g->row_labels[r], l->text);
        int32_t y = l->top + l->pad + r * l->cell_h + (l->cell_h - l->pad - 7 * l->text) / 2;
        lw_image_text(im, l->left - width - 2 * l->text, y, l->text, ink, g->row_labels[r]);
    }
}

/* Pixel p of the samples. */
static void show(const lw_grid *g, const float *f, const uint8_t *u, int64_t p, uint8_t rgb[3])
{
    static const uint8_t magenta[3] = {255, 0, 255};
    int32_t channels = g->channels ? g->channels : 3;
    bool number = true;
    for (int c = 0; c < 3; c++) {
        int64_t at = channels * p + lw_shown_channel(channels, c);
        rgb[c] = u ? u[at] : lw_pixel_u8(f[at]);
        number = number && (u || !isnan(f[at]));
    }
    if (!number)
        memcpy(rgb, magenta, 3);
}

/* Exactly one of f and u holds the samples. */
static int compose(const lw_grid *g, const float *f, const uint8_t *u, int32_t n, int32_t h,
                   int32_t w, lw_image *out)
{
    layout l = {0};
    LW_TRY(plan(g, n, h, w, &l));
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    LW_TRY(lw_image_init(&im, l.left + l.pad + l.columns * l.cell_w,
                         l.top + l.pad + l.rows * l.cell_h));
    fill(&im, g->see_through ? clear_colour : g->background);
    im.see_through = g->see_through;
    memcpy(im.clear, clear_colour, sizeof im.clear);
    for (int64_t p = 0; p < (int64_t)n * h * w; p++) {
        int32_t sample = (int32_t)(p / ((int64_t)h * w)), y = (int32_t)(p / w % h),
                x = (int32_t)(p % w);
        int32_t x0 = l.left + l.pad + sample % l.columns * l.cell_w + x * l.scale;
        int32_t y0 = l.top + l.pad + sample / l.columns * l.cell_h + y * l.scale;
        uint8_t rgb[3];
        show(g, f, u, p, rgb);
        if (g->see_through && memcmp(rgb, clear_colour, 3) == 0)
            rgb[1]--;
        for (int32_t v = 0; v < l.scale; v++)
            for (int32_t h2 = 0; h2 < l.scale; h2++)
                put_dot(&im, x0 + h2, y0 + v, rgb);
    }
    draw_labels(g, &l, &im);
    *out = im;
    im = (lw_image){0};
    return 0;
}

int lw_grid_f32(const lw_grid *g, const float *x, int32_t n, int32_t h, int32_t w, lw_image *out)
{
    return compose(g, x, NULL, n, h, w, out);
}

int lw_grid_u8(const lw_grid *g, const uint8_t *x, int32_t n, int32_t h, int32_t w, lw_image *out)
{
    return compose(g, NULL, x, n, h, w, out);
}

int lw_image_beside(const lw_image *const *pictures, const char *const *titles, int n, int32_t gap,
                    lw_image *out)
{
    static const uint8_t white[3] = {255, 255, 255}, ink[3] = {0x20, 0x20, 0x20};
    int64_t width = gap;
    int32_t height = 0, scale = 1;
    for (int i = 0; i < n; i++) {
        width += pictures[i]->width + gap;
        height = LW_MAX(height, pictures[i]->height);
    }
    if (n < 1 || gap < 0 || width > LW_IMAGE_MAX_SIDE)
        return lw_fail(LW_ESHAPE, "%d pictures side by side are %lld pixels wide", n,
                       (long long)width);
    scale = LW_MAX(1, height / 250);
    int32_t top = titles ? (LW_TEXT_HEIGHT + 3) * scale + gap / 2 : gap;
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    LW_TRY(lw_image_init(&im, (int32_t)width, top + height + gap));
    fill(&im, white);
    int32_t x = gap;
    for (int i = 0; i < n; i++) {
        const lw_image *p = pictures[i];
        for (int32_t y = 0; y < p->height; y++)
            memcpy(im.rgb + ((size_t)(top + y) * (size_t)im.width + (size_t)x) * 3,
                   p->rgb + (size_t)y * (size_t)p->width * 3, (size_t)p->width * 3);
        if (titles) {
            int32_t fits = scale;
            while (fits > 1 && lw_text_width(titles[i], fits) > p->width)
                fits--;
            lw_image_text(&im, x, top - (LW_TEXT_HEIGHT + 2) * fits, fits, ink, titles[i]);
        }
        x += p->width + gap;
    }
    *out = im;
    im = (lw_image){0};
    return 0;
}
