/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear resizing, the oracle. Coordinates are float, as PyTorch computes them; sums
 * are double. */
#include "kernels/resample/resample_tap.h"

#include <string.h>

void lw_bilinear_ref(float *y, const float *x, const lw_resize_shape *s, ptrdiff_t begin,
                     ptrdiff_t end)
{
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *image = x + r / s->oh * s->h * s->w * s->c;
        tap v = tap_of(r % s->oh, s->h, s->oh);
        for (ptrdiff_t o = 0; o < s->ow; o++) {
            tap u = tap_of(o, s->w, s->ow);
            for (ptrdiff_t c = 0; c < s->c; c++) {
                double a = (double)image[(v.i0 * s->w + u.i0) * s->c + c];
                double b = (double)image[(v.i0 * s->w + u.i1) * s->c + c];
                double d = (double)image[(v.i1 * s->w + u.i0) * s->c + c];
                double e = (double)image[(v.i1 * s->w + u.i1) * s->c + c];
                double top = (1.0 - u.t) * a + u.t * b, low = (1.0 - u.t) * d + u.t * e;
                y[(r * s->ow + o) * s->c + c] = (float)((1.0 - v.t) * top + v.t * low);
            }
        }
    }
}

static void scatter(float *dx, const float *dy, ptrdiff_t c, double weight)
{
    for (ptrdiff_t i = 0; i < c; i++)
        dx[i] += (float)(weight * (double)dy[i]);
}

void lw_bilinear_grad_ref(float *dx, const float *dy, const lw_resize_shape *s, ptrdiff_t begin,
                          ptrdiff_t end)
{
    ptrdiff_t size = s->h * s->w * s->c;
    for (ptrdiff_t b = begin; b < end; b++) {
        float *image = dx + b * size;
        memset(image, 0, (size_t)size * sizeof *image);
        for (ptrdiff_t r = 0; r < s->oh; r++) {
            tap v = tap_of(r, s->h, s->oh);
            for (ptrdiff_t o = 0; o < s->ow; o++) {
                tap u = tap_of(o, s->w, s->ow);
                const float *g = dy + ((b * s->oh + r) * s->ow + o) * s->c;
                scatter(image + (v.i0 * s->w + u.i0) * s->c, g, s->c, (1.0 - v.t) * (1.0 - u.t));
                scatter(image + (v.i0 * s->w + u.i1) * s->c, g, s->c, (1.0 - v.t) * u.t);
                scatter(image + (v.i1 * s->w + u.i0) * s->c, g, s->c, v.t * (1.0 - u.t));
                scatter(image + (v.i1 * s->w + u.i1) * s->c, g, s->c, v.t * u.t);
            }
        }
    }
}
