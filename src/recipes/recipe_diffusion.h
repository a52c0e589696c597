/* SPDX-License-Identifier: Apache-2.0 */
/* The DDPM noise schedule (Ho et al. 2020) and its samplers' coefficients (Song et al. 2021, DDIM).
 */
#ifndef LW_RECIPE_DIFFUSION_H
#define LW_RECIPE_DIFFUSION_H

#include <stdint.h>

enum { LW_DDPM_MAX_STEPS = 4000 };

typedef struct lw_diffusion {
    int32_t timesteps;
    double beta[LW_DDPM_MAX_STEPS], alpha_bar[LW_DDPM_MAX_STEPS];
} lw_diffusion;

/* beta linear from 1e-4 to 0.02 over `timesteps` (1000). */
int lw_diffusion_init(lw_diffusion *d, int32_t timesteps);

/* One reverse step as x <- clip-free affine forms:
 *   x0 = clip((x - s eps) / a, -1, 1);  x <- c0 x0 + c1 eps + c2 noise + c3 x */
typedef struct lw_diffusion_move {
    int32_t t;   /* the network's time */
    double a, s; /* sqrt(alpha_bar), sqrt(1 - alpha_bar) */
    double c0, c1, c2, c3;
    int clip; /* DDIM clips x0; ancestral sampling does not form it */
} lw_diffusion_move;

/* DDIM, eta 0: move k of n, k = 0 first. Times are (n - 1 - k) * (timesteps / n). */
lw_diffusion_move lw_ddim_move(const lw_diffusion *d, int32_t n, int32_t k);
/* Ancestral: move k of timesteps. */
lw_diffusion_move lw_ancestral_move(const lw_diffusion *d, int32_t k);
/* Applies a move to n numbers; noise may be NULL when c2 is 0. final: clip the result to [-1, 1].
 */
void lw_diffusion_apply(const lw_diffusion_move *m, float *x, const float *eps, const float *noise,
                        int64_t n, int final);

#endif
