/* SPDX-License-Identifier: Apache-2.0 */
/* pixels, reference: one pixel after the other. */
#include "kernels/pixels/pixels_point.h"

void lw_pixels_to_u8_ref(uint8_t *rgb, const uint8_t *frame, const lw_pixels *p, ptrdiff_t begin,
                         ptrdiff_t end)
{
    for (ptrdiff_t line = begin * p->lines; line < LW_MIN(end * p->lines, p->h); line++)
        lw_pixels_to_line(rgb, NULL, frame, p, line, 0);
}

void lw_pixels_to_f32_ref(float *rgb, const uint8_t *frame, const lw_pixels *p, ptrdiff_t begin,
                          ptrdiff_t end)
{
    for (ptrdiff_t line = begin * p->lines; line < LW_MIN(end * p->lines, p->h); line++)
        lw_pixels_to_line(NULL, rgb, frame, p, line, 0);
}

void lw_pixels_from_u8_ref(uint8_t *frame, const uint8_t *rgb, const lw_pixels *p, ptrdiff_t begin,
                           ptrdiff_t end)
{
    for (ptrdiff_t band = begin; band < end; band++)
        lw_pixels_from_band(frame, rgb, NULL, p, band, 0);
}

void lw_pixels_from_f32_ref(uint8_t *frame, const float *rgb, const lw_pixels *p, ptrdiff_t begin,
                            ptrdiff_t end)
{
    for (ptrdiff_t band = begin; band < end; band++)
        lw_pixels_from_band(frame, NULL, rgb, p, band, 0);
}
