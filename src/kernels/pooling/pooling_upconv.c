/* SPDX-License-Identifier: Apache-2.0 */
/* Weights for upsampling and 3x3 convolution in one: sums of taps, transposed. Tiles of output
 * channels keep both sides of the transposition in the first-level cache. */
#include "kernels/pooling/pooling.h"

enum { TILE = 16 };

/* (w0, w1, w2), `step` apart, to (w2, w1 + w2, w0 + w1, w0). */
static void spread(float *out, const float *w, ptrdiff_t step)
{
    out[0] = w[2 * step];
    out[1] = w[step] + w[2 * step];
    out[2] = w[0] + w[step];
    out[3] = w[0];
}

void lw_upconv_weight_ref(float *y, const float *w, ptrdiff_t o, ptrdiff_t c, ptrdiff_t begin,
                          ptrdiff_t end)
{
    for (ptrdiff_t i0 = 0; i0 < o; i0 += TILE) {
        ptrdiff_t i1 = i0 + TILE < o ? i0 + TILE : o;
        for (ptrdiff_t k = begin; k < end; k++)
            for (ptrdiff_t i = i0; i < i1; i++) {
                const float *at = w + i * 9 * c + k;
                float row[3][4], column[4];
                for (int a = 0; a < 3; a++)
                    spread(row[a], at + 3 * a * c, c);
                for (int b = 0; b < 4; b++) {
                    spread(column, &row[0][b], 4);
                    for (int a = 0; a < 4; a++)
                        y[((k * 4 + a) * 4 + b) * o + i] = column[a];
                }
            }
    }
}

/* The adjoint of spread: (g0 .. g3), `step` apart, to (g2 + g3, g1 + g2, g0 + g1). */
static void gather(float *out, const float *g, ptrdiff_t step)
{
    out[0] = g[2 * step] + g[3 * step];
    out[1] = g[step] + g[2 * step];
    out[2] = g[0] + g[step];
}

void lw_upconv_weight_grad_ref(float *dw, const float *dy, ptrdiff_t o, ptrdiff_t c,
                               ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t k0 = 0; k0 < c; k0 += TILE) {
        ptrdiff_t k1 = k0 + TILE < c ? k0 + TILE : c;
        for (ptrdiff_t i = begin; i < end; i++)
            for (ptrdiff_t k = k0; k < k1; k++) {
                const float *at = dy + k * 16 * o + i;
                float row[4][3], column[3];
                for (int a = 0; a < 4; a++)
                    gather(row[a], at + 4 * a * o, o);
                for (int b = 0; b < 3; b++) {
                    gather(column, &row[0][b], 3);
                    for (int a = 0; a < 3; a++)
                        dw[((i * 3 + a) * 3 + b) * c + k] = column[a];
                }
            }
    }
}
