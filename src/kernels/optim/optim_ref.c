/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW, SGD and EMA, the oracle: double arithmetic, state rounded to float once per step. */
#include "kernels/optim/optim.h"

#include <math.h>

static void adamw_range(float *p, float *m, float *v, float *ema, const float *g, const lw_adamw *o,
                        double decay, ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t i = begin; i < end; i++) {
        double gi = (double)g[i] * o->grad_scale;
        double pi = (double)p[i] - o->lr * decay * (double)p[i];
        double mi = (double)m[i] + (1.0 - o->beta1) * (gi - (double)m[i]);
        double vi = o->beta2 * (double)v[i] + (1.0 - o->beta2) * gi * gi;
        pi -= o->lr / o->bias1 * mi / (sqrt(vi) / sqrt(o->bias2) + o->eps);
        p[i] = (float)pi;
        m[i] = (float)mi;
        v[i] = (float)vi;
    }
    if (ema)
        lw_optim_ema_ref(ema, p, o->ema_decay, begin, end);
}

void lw_optim_adamw_ref(float *p, float *m, float *v, float *ema, const float *g, const lw_adamw *o,
                        const lw_optim_range *range, ptrdiff_t n_range, ptrdiff_t begin,
                        ptrdiff_t end)
{
    for (ptrdiff_t k = 0; k < n_range; k++) {
        ptrdiff_t from = range[k].begin > begin ? range[k].begin : begin;
        ptrdiff_t to = range[k].end < end ? range[k].end : end;
        adamw_range(p, m, v, ema, g, o, range[k].decay ? o->weight_decay : 0.0, from, to);
    }
}

void lw_optim_sgd_ref(float *p, float *m, float *ema, const float *g, const lw_sgd *o,
                      ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t i = begin; i < end; i++) {
        double gi = (double)g[i] * o->grad_scale + o->weight_decay * (double)p[i];
        double mi = o->momentum * (double)m[i] + gi;
        p[i] = (float)((double)p[i] - o->lr * (gi + o->momentum * mi));
        m[i] = (float)mi;
    }
    if (ema)
        lw_optim_ema_ref(ema, p, o->ema_decay, begin, end);
}

void lw_optim_ema_ref(float *ema, const float *p, double decay, ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t i = begin; i < end; i++)
        ema[i] = (float)((double)ema[i] + (1.0 - decay) * ((double)p[i] - (double)ema[i]));
}

static double tree(const double *part, ptrdiff_t n)
{
    if (n <= 2)
        return n == 2 ? part[0] + part[1] : n == 1 ? part[0] : 0.0;
    ptrdiff_t half = (n + 1) / 2;
    return tree(part, half) + tree(part + half, n - half);
}

void lw_optim_clip_ref(double *coef, double *norm, const double *part, ptrdiff_t n, double scale,
                       double max_norm)
{
    double length = scale * sqrt(tree(part, n));
    double clip = max_norm / (length + 1e-6);
    *coef = max_norm > 0.0 && clip < 1.0 ? scale * clip : scale;
    *norm = length;
}
