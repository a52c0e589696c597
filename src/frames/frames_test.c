/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test pattern: colours that move, a square that crosses them, the frame number in figures, and
 * along the top as bars that a program reads: 4 that are always dark bright bright dark, then 24 bits
 * of the number, highest first, then 4 bits of a check sum, all in one line of equal bars.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames/frames_source.h"

enum { MARK = 4, BITS = 24, SUM = 4, BARS = MARK + BITS + SUM };

static uint32_t bars_of(int64_t number)
{
    const uint32_t n = (uint32_t)number & ((1u << BITS) - 1);
    uint32_t sum = 5; /* not 0 for 0 */
    for (int i = 0; i < BITS; i += 4)
        sum += (n >> i & 15) * (uint32_t)(i / 4 * 2 + 1);
    return 0x6u << (BITS + SUM) | n << SUM | (sum & 15);
}

static int32_t bar_height(int32_t h)
{
    return h / 8;
}

static void fill(uint8_t *rgb, int32_t w, int32_t x0, int32_t x1, int32_t y0, int32_t y1,
                 uint8_t level)
{
    for (int32_t y = y0; y < y1; y++)
        memset(rgb + ((ptrdiff_t)y * w + x0) * 3, level, (size_t)(x1 - x0) * 3);
}

/* A figure of seven strokes in a box of 4 x 7 units. */
static void draw_figure(uint8_t *rgb, int32_t w, int32_t x, int32_t y, int32_t unit, int figure)
{
    static const uint8_t strokes[10] = {0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f};
    static const int8_t box[7][4] = {
        /* x0 x1 y0 y1: top, left, right, middle, left, right, bottom */
        {0, 4, 0, 1}, {0, 1, 0, 4}, {3, 4, 0, 4}, {0, 4, 3, 4},
        {0, 1, 3, 7}, {3, 4, 3, 7}, {0, 4, 6, 7}};
    for (int k = 0; k < 7; k++)
        if (strokes[figure] >> k & 1)
            fill(rgb, w, x + box[k][0] * unit, x + box[k][1] * unit, y + box[k][2] * unit,
                 y + box[k][3] * unit, 255);
}

void lw_frame_test_draw(uint8_t *rgb, int32_t w, int32_t h, int64_t number)
{
    const int32_t bar = bar_height(h), side = LW_MIN(h / 6, w / 2), /* tall pictures, too */
        unit = LW_MAX(LW_MIN(h / 40, w / 31), 1);
    for (int32_t y = 0; y < h; y++)
        for (int32_t x = 0; x < w; x++) {
            uint8_t *p = rgb + ((ptrdiff_t)y * w + x) * 3;
            p[0] = (uint8_t)(x * 255 / w);
            p[1] = (uint8_t)(y * 255 / h);
            p[2] = (uint8_t)((x + y + number * 3) & 255);
        }
    const int32_t at = (int32_t)(number * 5 % (w - side)), top = h / 2;
    fill(rgb, w, at, at + side, top, top + side, 235);
    const uint32_t bars = bars_of(number);
    for (int i = 0; i < BARS; i++)
        fill(rgb, w, w * i / BARS, w * (i + 1) / BARS, 0, bar,
             bars >> (BARS - 1 - i) & 1 ? 235 : 16);
    int64_t rest = number % 1000000;
    for (int i = 5; i >= 0; i--, rest /= 10)
        draw_figure(rgb, w, unit * 2 + i * unit * 5, bar + unit * 2, unit, (int)(rest % 10));
}

int64_t lw_frame_test_read(const uint8_t *rgb, int32_t w, int32_t h)
{
    const int32_t line = bar_height(h) / 2;
    uint32_t bars = 0;
    if (w < LW_FRAME_TEST_MIN_W || h < LW_FRAME_TEST_MIN_H)
        return -1;
    for (int i = 0; i < BARS; i++) {
        const uint8_t *p = rgb +
                           ((ptrdiff_t)line * w + (w * i / BARS + w * (i + 1) / BARS) / 2) * 3;
        bars = bars << 1 | (p[0] + p[1] + p[2] > 3 * 125);
    }
    const int64_t number = bars >> SUM & ((1u << BITS) - 1);
    return bars_of(number) == bars ? number : -1;
}

/* ---- the source ------------------------------------------------------------------------------ */

int lw_frame_size_read(const char *text, int64_t *w, int64_t *h, int64_t *fps)
{
    char part[3][16] = {"", "", ""};
    const size_t x = strcspn(text, "x"), at = strcspn(text, "@"), n = strlen(text);
    if (n == 0)
        return 0;
    if (x >= at || x > 9 || at - x - 1 > 9 || n - at > 9 || n == x)
        return -1;
    memcpy(part[0], text, x);
    memcpy(part[1], text + x + 1, at - x - 1);
    if (at < n)
        memcpy(part[2], text + at + 1, n - at - 1);
    if (lw_parse_i64(part[0], w) < 0 || lw_parse_i64(part[1], h) < 0)
        return -1;
    return at < n ? lw_parse_i64(part[2], fps) : 0;
}

static int test_open(lw_frame_source *s, const char *spec, const lw_frame_options *o)
{
    (void)o;
    int64_t w = 320, h = 240, fps = 30;
    if (lw_frame_size_read(spec[4] == ':' ? spec + 5 : "", &w, &h, &fps) < 0)
        return lw_fail(LW_EUSAGE, "--input %s: not test:WxH@FPS", spec);
    if (w < LW_FRAME_TEST_MIN_W || h < LW_FRAME_TEST_MIN_H)
        return lw_fail(LW_EUSAGE, "--input %s: the pattern needs %dx%d pixels", spec,
                       LW_FRAME_TEST_MIN_W, LW_FRAME_TEST_MIN_H);
    if (lw_frame_format_check(spec, w, h, fps, 1) < 0)
        return lw_fail(LW_EUSAGE, "%s", lw_errmsg());
    s->format = lw_frame_format_rgb((int32_t)w, (int32_t)h, (int32_t)fps);
    return 0;
}

static int test_next(lw_frame_source *s, uint8_t *bytes, double *captured)
{
    (void)captured;
    lw_frame_test_draw(bytes, s->format.w, s->format.h, s->number);
    return 0;
}

static int test_rewind(lw_frame_source *s)
{
    (void)s;
    return 0;
}

static void test_close(lw_frame_source *s)
{
    (void)s;
}

const lw_frame_source_def lw_frames_from_test = {"test",    "test[:WxH@FPS]", test_open,
                                                 test_next, test_rewind,      test_close};
