/* SPDX-License-Identifier: Apache-2.0 */
/* Composing pictures: grids of samples, pictures beside each other, text. */
#ifndef LW_REPORT_GRID_H
#define LW_REPORT_GRID_H

#include <stdint.h>

#include "formats/formats.h"

typedef struct lw_grid {
    int32_t columns;                  /* 0: the squarest grid */
    int32_t padding;                  /* pixels around every sample, before scaling; may be 0 */
    int32_t channels;                 /* of the samples; 0 means 3. Of one or two the first is shown
                                         as gray, of more than three the first three */
    int32_t scale;                    /* every sample pixel becomes scale x scale; 0 means 1 */
    uint8_t background[3];            /* of the padding; black when zeroed */
    bool see_through;                 /* the padding is transparent instead, for pages */
    const char *const *row_labels;    /* one per row, or NULL */
    const char *const *column_labels; /* one per column, or NULL */
} lw_grid;

/* x: [n][h][w][channels] in [-1, 1], values outside are clipped, NaN is drawn magenta. n >= 1. */
int lw_grid_f32(const lw_grid *g, const float *x, int32_t n, int32_t h, int32_t w, lw_image *out);
int lw_grid_u8(const lw_grid *g, const uint8_t *x, int32_t n, int32_t h, int32_t w, lw_image *out);

/* Pictures side by side, aligned at the top, `gap` pixels apart, each under its title (titles may
 * be NULL). White background. */
int lw_image_beside(const lw_image *const *pictures, const char *const *titles, int n, int32_t gap,
                    lw_image *out);

/* Text in a 5x7 font (cells of 6x9 pixels times scale), upper left corner at x, y; clipped at the
 * edges. Characters that are not ASCII are drawn as '?'. */
void lw_image_text(lw_image *im, int32_t x, int32_t y, int32_t scale, const uint8_t rgb[3],
                   const char *text);
int32_t lw_text_width(const char *text, int32_t scale);
#define LW_TEXT_HEIGHT 9 /* of a line, times scale */

#endif
