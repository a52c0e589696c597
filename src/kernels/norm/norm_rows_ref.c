/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm of rows, backward: the reference. */
#include <string.h>

#include "kernels/norm/norm.h"

/* Adds one row's terms. */
static void add_terms(float *dgamma, float *dbeta, const float *dy, const float *x, float mean,
                      float rstd, ptrdiff_t c)
{
    for (ptrdiff_t i = 0; i < c; i++) {
        if (dgamma)
            dgamma[i] += dy[i] * (x[i] - mean) * rstd;
        if (dbeta)
            dbeta[i] += dy[i];
    }
}

void lw_norm_rows_backward_ref(float *dx, float *dgamma, float *dbeta, const float *dy,
                               const float *x, const float *mean, const float *rstd,
                               const float *gamma, const lw_norm_shape *s, ptrdiff_t rows)
{
    const ptrdiff_t c = s->c;
    if (dgamma)
        memset(dgamma, 0, (size_t)c * sizeof *dgamma);
    if (dbeta)
        memset(dbeta, 0, (size_t)c * sizeof *dbeta);
    for (ptrdiff_t r = 0; r < rows; r++) {
        const float *xr = x + r * c, *dr = dy + r * c;
        double m1 = 0, m2 = 0, m = (double)mean[r], q = (double)rstd[r];
        add_terms(dgamma, dbeta, dr, xr, mean[r], rstd[r], c);
        for (ptrdiff_t i = 0; i < c; i++) {
            double g = (double)dr[i] * (gamma ? (double)gamma[i] : 1.0);
            m1 += s->rms ? 0 : g / (double)c;
            m2 += g * ((double)xr[i] - m) * q / (double)c;
        }
        for (ptrdiff_t i = 0; dx && i < c; i++) {
            double g = (double)dr[i] * (gamma ? (double)gamma[i] : 1.0);
            dx[r * c + i] = (float)(q * (g - m1 - ((double)xr[i] - m) * q * m2));
        }
    }
}
