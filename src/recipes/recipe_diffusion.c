/* SPDX-License-Identifier: Apache-2.0 */
/* Noise schedule and reverse moves. */
#include "recipes/recipe_diffusion.h"

#include <math.h>

#include "base/base.h"

int lw_diffusion_init(lw_diffusion *d, int32_t timesteps)
{
    if (timesteps < 1 || timesteps > LW_DDPM_MAX_STEPS)
        return lw_fail(LW_EUSAGE, "%d diffusion timesteps: 1 to %d are possible", timesteps,
                       LW_DDPM_MAX_STEPS);
    double product = 1.0;
    d->timesteps = timesteps;
    for (int32_t t = 0; t < timesteps; t++) {
        double at = timesteps > 1 ? (double)t / (timesteps - 1) : 0.0;
        d->beta[t] = 1e-4 + (0.02 - 1e-4) * at;
        product *= 1.0 - d->beta[t];
        d->alpha_bar[t] = product;
    }
    return 0;
}

/* Where move k of n is, and the signal left (alpha_bar) there and where it leads. */
typedef struct reach {
    int32_t t, stride;
    double here, next;
} reach;

static reach reach_of(const lw_diffusion *d, int32_t n, int32_t k)
{
    int32_t stride = d->timesteps / n, t = (n - 1 - k) * stride;
    return (reach){t, stride, d->alpha_bar[t], t >= stride ? d->alpha_bar[t - stride] : 1.0};
}

lw_diffusion_move lw_ddim_move(const lw_diffusion *d, int32_t n, int32_t k)
{
    reach r = reach_of(d, n, k);
    return (lw_diffusion_move){.t = r.t,
                               .a = sqrt(r.here),
                               .s = sqrt(1.0 - r.here),
                               .c0 = sqrt(r.next),
                               .c1 = sqrt(fmax(1.0 - r.next, 0.0)),
                               .clip = true};
}

lw_diffusion_move lw_ancestral_move(const lw_diffusion *d, int32_t n, int32_t k)
{
    reach r = reach_of(d, n, k);
    /* The table's own beta where the ratio would be that, but for its rounding. */
    double beta = r.stride == 1 ? d->beta[r.t] : 1.0 - r.here / r.next, root = sqrt(1.0 - beta);
    return (lw_diffusion_move){.t = r.t,
                               .a = sqrt(r.here),
                               .s = sqrt(1.0 - r.here),
                               .c1 = -beta / (sqrt(1.0 - r.here) * root),
                               .c2 = r.t ? sqrt(beta) : 0.0,
                               .c3 = 1.0 / root};
}

void lw_diffusion_apply(const lw_diffusion_move *m, float *x, const float *eps, const float *noise,
                        int64_t n, int final)
{
    for (int64_t i = 0; i < n; i++) {
        double e = (double)eps[i], v = (double)x[i], x0 = (v - m->s * e) / m->a;
        if (m->clip && fabs(x0) > 1.0) {
            x0 = copysign(1.0, x0);
            e = m->keep_eps ? e : (v - m->a * x0) / m->s;
        }
        v = m->c0 * x0 + m->c1 * e + m->c3 * v;
        if (noise && m->c2 != 0.0)
            v += m->c2 * (double)noise[i];
        x[i] = (float)(final ? fmin(fmax(v, -1.0), 1.0) : v);
    }
}
