/* SPDX-License-Identifier: Apache-2.0 */
/* One reverse step of a diffusion process. */
#include "kernels/reverse/reverse.h"

#include <math.h>

/* x0 and eps that the network's y means at x. */
static void estimate(const lw_reverse *r, lw_prediction prediction, double x, double y, double *x0,
                     double *e)
{
    switch (prediction) {
    case LW_PREDICT_EPSILON:
        *x0 = (x - r->s * y) / r->a;
        *e = y;
        return;
    case LW_PREDICT_SAMPLE:
        *x0 = y;
        *e = (x - r->a * y) / r->s;
        return;
    case LW_PREDICT_VELOCITY:
        *x0 = r->a * x - r->s * y;
        *e = r->a * y + r->s * x;
        return;
    case LW_PREDICT_FLOW:
        *x0 = x - r->s * y;
        *e = x + r->a * y;
        return;
    }
}

void lw_reverse_step(float *out, const float *x, const float *y, const float *noise,
                     const lw_reverse *r, lw_prediction prediction, bool keep_eps, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double v = (double)x[i], x0 = 0.0, e = 0.0;
        estimate(r, prediction, v, (double)y[i], &x0, &e);
        if (fabs(x0) > r->clip) {
            x0 = copysign(r->clip, x0);
            e = keep_eps ? e : (v - r->a * x0) / r->s;
        }
        v = r->c0 * x0 + r->c1 * e + r->c3 * v;
        if (noise && r->c2 != 0.0)
            v += r->c2 * (double)noise[i];
        out[i] = (float)(v < -r->limit ? -r->limit : v > r->limit ? r->limit : v); /* NaN stays */
    }
}
