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

/* Lines and columns of a sheet, and the pixels that these take. */
typedef struct sheet {
    int32_t lines, columns;
    int64_t cell_w, cell_h, w, h;
} sheet;

static sheet sheet_of(const lw_dataset *d, int64_t lines, int64_t columns, int32_t zoom,
                      int32_t gap)
{
    sheet s = {.lines = (int32_t)lines,
               .columns = (int32_t)columns,
               .cell_w = (int64_t)d->w * zoom + gap,
               .cell_h = (int64_t)d->h * zoom + gap};
    s.w = s.cell_w * columns + gap;
    s.h = s.cell_h * lines + gap;
    return s;
}

/* No more of them than pictures can fill. */
static sheet sheet_asked(const lw_dataset *d, int32_t lines, int32_t columns, int32_t zoom,
                         int32_t gap)
{
    const int64_t across = LW_MIN((int64_t)columns, LW_MAX(d->n, 1)),
                  down = LW_MAX((d->labelled ? d->classes : 1) * LW_CEIL_DIV(d->n, across), 1);
    return sheet_of(d, LW_MIN((int64_t)lines, down), across, zoom, gap);
}

/* What is filled of a sheet, whose rows these are. */
static sheet sheet_filled(const lw_dataset *d, const sheet *asked, const int64_t *rows,
                          int32_t zoom, int32_t gap)
{
    int32_t lines = 1, columns = 1;
    for (int32_t l = 0; l < asked->lines; l++)
        for (int32_t c = 0; c < asked->columns; c++)
            if (rows[(int64_t)l * asked->columns + c] >= 0) {
                lines = l + 1;
                columns = LW_MAX(columns, c + 1);
            }
    return sheet_of(d, lines, columns, zoom, gap);
}

int lw_data_sheet(const lw_dataset *d, int32_t lines, int32_t columns, int32_t zoom, int32_t gap,
                  int32_t *width, int32_t *height, uint8_t **rgb)
{
    if (lines < 1 || columns < 1 || zoom < 1 || gap < 0 || lines > MAX_SHEET_SIDE ||
        columns > MAX_SHEET_SIDE || zoom > 64 || gap > 64)
        return lw_fail(LW_EUSAGE, "contact sheet of %dx%d pictures, zoom %d, gap %d: out of range",
                       lines, columns, zoom, gap);
    const sheet most = sheet_asked(d, lines, columns, zoom, gap);
    if (most.w > MAX_SHEET_SIDE || most.h > MAX_SHEET_SIDE)
        return lw_fail(
            LW_EUSAGE,
            "contact sheet of %lldx%lld pixels is larger than %d a side: ask for fewer pictures",
            (long long)most.w, (long long)most.h, MAX_SHEET_SIDE);
    LW_CLEANUP(lw_free)
    int64_t *rows = lw_calloc((size_t)most.lines * (size_t)most.columns, sizeof *rows);
    if (!rows)
        return LW_ENOMEM;
    lw_data_sheet_rows(d, most.lines, most.columns, rows);
    const sheet s = sheet_filled(d, &most, rows, zoom, gap);
    const size_t bytes = (size_t)(s.w * s.h) * 3;
    LW_CLEANUP(lw_free) uint8_t *out = lw_calloc(bytes, 1);
    if (!out)
        return LW_ENOMEM;
    memset(out, GRAY, bytes);
    for (int32_t l = 0; l < s.lines; l++)
        for (int32_t c = 0; c < s.columns; c++) {
            const int64_t row = rows[(int64_t)l * most.columns + c],
                          at = (l * s.cell_h + gap) * s.w + c * s.cell_w + gap;
            if (row >= 0)
                paste(d, row, zoom, out + 3 * at, 3 * (size_t)s.w);
        }
    *width = (int32_t)s.w;
    *height = (int32_t)s.h;
    *rgb = lw_steal(&out);
    return 0;
}
