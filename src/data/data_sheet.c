/* SPDX-License-Identifier: Apache-2.0 */
/* A contact sheet: a few rows of every class, side by side. */
#include <string.h>

#include "data/sources/data_source.h"

enum { GRAY = 128, MAX_SHEET_SIDE = 32768 };

void lw_data_sheet_rows(const lw_dataset *d, int32_t lines, int32_t columns, int64_t *rows)
{
    for (int32_t l = 0; l < lines; l++) {
        int32_t want = l % d->classes, round = l / d->classes;
        int64_t at = 0, skip = (int64_t)round * columns; /* a class shown again goes on */
        for (int32_t c = 0; c < columns; c++) {
            int64_t *to = &rows[(int64_t)l * columns + c];
            if (!d->labelled) {
                *to = (int64_t)l * columns + c < d->n ? (int64_t)l * columns + c : -1;
                continue;
            }
            for (; at < d->n && (d->labels[at] != want || skip > 0); at++)
                skip -= d->labels[at] == want;
            *to = at < d->n ? at++ : -1;
        }
    }
}

static void paste(const lw_dataset *d, int64_t row, int32_t zoom, uint8_t *to, size_t line)
{
    const uint8_t *src = d->pixels + row * lw_data_row_size(d);
    for (int32_t y = 0; y < d->h * zoom; y++)
        for (int32_t x = 0; x < d->w * zoom; x++)
            for (int c = 0; c < 3; c++)
                to[(size_t)y * line + 3 * (size_t)x + (size_t)c] =
                    src[((int64_t)(y / zoom) * d->w + x / zoom) * d->channels +
                        lw_shown_channel(d->channels, c)];
}

int lw_data_sheet(const lw_dataset *d, int32_t lines, int32_t columns, int32_t zoom, int32_t gap,
                  int32_t *width, int32_t *height, uint8_t **rgb)
{
    if (lines < 1 || columns < 1 || zoom < 1 || gap < 0 || lines > MAX_SHEET_SIDE ||
        columns > MAX_SHEET_SIDE || zoom > 64 || gap > 64)
        return lw_fail(LW_EUSAGE, "contact sheet of %dx%d pictures, zoom %d, gap %d: out of range",
                       lines, columns, zoom, gap);
    int64_t cell_w = (int64_t)d->w * zoom + gap, cell_h = (int64_t)d->h * zoom + gap;
    int64_t w = cell_w * columns + gap, h = cell_h * lines + gap;
    if (w > MAX_SHEET_SIDE || h > MAX_SHEET_SIDE)
        return lw_fail(
            LW_EUSAGE,
            "contact sheet of %lldx%lld pixels is larger than %d a side: ask for fewer pictures",
            (long long)w, (long long)h, MAX_SHEET_SIDE);
    LW_CLEANUP(lw_free) int64_t *rows = lw_calloc((size_t)lines * (size_t)columns, sizeof *rows);
    LW_CLEANUP(lw_free) uint8_t *out = lw_calloc((size_t)(w * h), 3);
    if (!rows || !out)
        return LW_ENOMEM;
    memset(out, GRAY, (size_t)(w * h) * 3);
    lw_data_sheet_rows(d, lines, columns, rows);
    for (int64_t i = 0; i < (int64_t)lines * columns; i++) {
        int64_t y = i / columns * cell_h + gap, x = i % columns * cell_w + gap;
        if (rows[i] >= 0)
            paste(d, rows[i], zoom, out + 3 * (size_t)(y * w + x), 3 * (size_t)w);
    }
    *width = (int32_t)w;
    *height = (int32_t)h;
    *rgb = lw_steal(&out);
    return 0;
}
