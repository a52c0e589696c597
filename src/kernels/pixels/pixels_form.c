/* SPDX-License-Identifier: Apache-2.0 */
/* What a form of frame is: its size, its numbers. */
#include <math.h>

#include "kernels/pixels/pixels.h"

void lw_pixels_init(lw_pixels *p, lw_pixels_form form, lw_pixels_matrix matrix, bool full_range,
                    ptrdiff_t w, ptrdiff_t h)
{
    LW_ASSERT(w >= 1 && h >= 1 && w <= ((ptrdiff_t)1 << 28) / h, "a frame of %td x %td", w, h);
    const double kr = matrix == LW_MATRIX_601 ? 0.299 : 0.2126;
    const double kb = matrix == LW_MATRIX_601 ? 0.114 : 0.0722;
    const double kg = 1 - kr - kb, one = 65536;
    const double y = full_range ? 1 : 219.0 / 255, c = full_range ? 1 : 224.0 / 255;
    const int lines = form == LW_PIXELS_420 || form == LW_PIXELS_NV12 ? 2 : 1;
    *p = (lw_pixels){.form = form,
                     .matrix = matrix,
                     .full_range = full_range,
                     .w = w,
                     .h = h,
                     .lines = lines,
                     .gray = 128};
    p->bands = (h + lines - 1) / lines;
    p->black = full_range ? 0 : 16;
    p->yy = (int32_t)lrint(one / y);
    p->rv = (int32_t)lrint(one * 2 * (1 - kr) / c);
    p->bu = (int32_t)lrint(one * 2 * (1 - kb) / c);
    p->gu = (int32_t)lrint(one * 2 * kb * (1 - kb) / kg / c);
    p->gv = (int32_t)lrint(one * 2 * kr * (1 - kr) / kg / c);
    p->y_of[0] = (int32_t)lrint(one * y * kr);
    p->y_of[2] = (int32_t)lrint(one * y * kb);
    p->y_of[1] = (int32_t)lrint(one * y) - p->y_of[0] - p->y_of[2]; /* white is white */
    p->u_of[0] = -(int32_t)lrint(one * c * kr / (2 * (1 - kb)));
    p->u_of[2] = (int32_t)lrint(one * c / 2);
    p->u_of[1] = -p->u_of[0] - p->u_of[2]; /* gray has no differences */
    p->v_of[0] = p->u_of[2];
    p->v_of[2] = -(int32_t)lrint(one * c * kb / (2 * (1 - kr)));
    p->v_of[1] = -p->v_of[0] - p->v_of[2];
}
