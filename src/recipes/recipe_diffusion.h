/* SPDX-License-Identifier: Apache-2.0 */
/* The DDPM noise schedule (Ho et al. 2020) and its samplers' coefficients (Song et al. 2021, DDIM).
 */
#ifndef LW_RECIPE_DIFFUSION_H
#define LW_RECIPE_DIFFUSION_H

#include <stdbool.h>
#include <stdint.h>

enum { LW_DDPM_MAX_STEPS = 4000 };

typedef struct lw_diffusion {
    int32_t timesteps;
    double beta[LW_DDPM_MAX_STEPS], alpha_bar[LW_DDPM_MAX_STEPS];
} lw_diffusion;

/* beta linear from 1e-4 to 0.02 over `timesteps` (1000). */
int lw_diffusion_init(lw_diffusion *d, int32_t timesteps);

/* One reverse step of x, given the network's noise estimate eps:
 *   x0 = clip((x - s eps) / a, -1, 1)
 *   eps = (x - a x0) / s                      where x0 was clipped, unless keep_eps
 *   x <- c0 x0 + c1 eps + c2 noise + c3 x */
typedef struct lw_diffusion_move {
    int32_t t;   /* the network's time */
    double a, s; /* sqrt(alpha_bar), sqrt(1 - alpha_bar) */
    double c0, c1, c2, c3;
    bool clip; /* DDIM clips x0; ancestral sampling does not form it */
    /* Without: the noise that x holds beside the picture that is believed. With: the noise of the
     * picture that was not believed, which moves x towards grey wherever x0 was clipped. */
    bool keep_eps;
} lw_diffusion_move;

/* Both are moves k = 0 .. n - 1 through the times (n - 1 - k) * (timesteps / n), 1 <= n <=
 * timesteps. DDIM is that of eta 0. */
lw_diffusion_move lw_ddim_move(const lw_diffusion *d, int32_t n, int32_t k);
/* Ancestral sampling adds noise of variance beta, the upper of the two bounds of Ho et al. With n
 * below timesteps, beta is 1 - alpha_bar(t) / alpha_bar(the next time) (Nichol and Dhariwal 2021).
 */
lw_diffusion_move lw_ancestral_move(const lw_diffusion *d, int32_t n, int32_t k);
/* Applies a move to n numbers; noise may be NULL when c2 is 0. final: clip the result to [-1, 1].
 */
void lw_diffusion_apply(const lw_diffusion_move *m, float *x, const float *eps, const float *noise,
                        int64_t n, int final);

#endif
