/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The noise schedule of a DDPM (Ho et al. 2020) and its samplers' moves: DDIM (Song et al. 2021),
 * ancestral, and DPM-Solver++(2M) (Lu et al. 2022). Ours, or what a folder's scheduler_config.json
 * says, as diffusers computes it.
 */
#ifndef LW_SESSION_DIFFUSION_H
#define LW_SESSION_DIFFUSION_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/formats.h"
#include "kernels/kernels.h"

enum { LW_DDPM_MAX_STEPS = 4000 };

/* The times of n evaluations out of T: k (T / n) rounded down, from the low end; T - k T / n, from
 * the high end; or both ends and evenly between them. DPM-Solver leaves out the lowest of n + 1
 * leading or linspace times. */
typedef enum lw_spacing { LW_SPACING_LEADING, LW_SPACING_TRAILING, LW_SPACING_LINSPACE } lw_spacing;

typedef struct lw_diffusion {
    int32_t timesteps;
    double beta[LW_DDPM_MAX_STEPS], alpha_bar[LW_DDPM_MAX_STEPS];
    lw_prediction prediction;
    lw_spacing spacing;
    bool spaced;          /* somebody said which; else DPM-Solver's are linspace, as in diffusers */
    int32_t steps_offset; /* added to leading times */
    double ddim_clip, ancestral_clip; /* largest |x0| that is believed */
    double limit;                     /* of what the last move makes */
    double ddim_end;                  /* alpha_bar behind DDIM's last move */
    bool small_variance; /* ancestral: the lower of the two bounds of Ho et al., not the upper */
} lw_diffusion;

/* Ours: beta linear from 1e-4 to 0.02 over `timesteps` (1000), leading times, x0 in [-1, 1] in DDIM
 * and never clipped in ancestral sampling, the upper bound of the variance. */
int lw_diffusion_init(lw_diffusion *d, int32_t timesteps);
/* For networks conditioned on frames, which run with few steps: the first time is the last of the
 * schedule, where the picture is noise alone. */
static inline void lw_diffusion_condition(lw_diffusion *d)
{
    d->spacing = LW_SPACING_TRAILING;
}
/* For latents, which have no bounds. */
static inline void lw_diffusion_unbound(lw_diffusion *d)
{
    d->ddim_clip = d->ancestral_clip = d->limit = (double)INFINITY;
}
/* A diffusers scheduler's configuration. LW_EFORMAT, LW_EUNSUPPORTED: the key that is wrong or not
 * computed here; `where` names the file. */
int lw_diffusion_from_json(const json_t *scheduler, const char *where, lw_diffusion *out);
/* Of a model folder with config.json `config`: scheduler_config.json beside it or, where the folder
 * is part of a pipeline, in ../scheduler; else ours with "leeway_timesteps" of config. Of a network in
 * latents ("leeway_latents") without bounds. */
int lw_diffusion_find(const char *dir, const json_t *config, lw_diffusion *out);
/* Ours as a scheduler_config.json, whose one clip_sample holds for ancestral sampling too. New
 * reference; NULL: no memory. */
json_t *lw_diffusion_to_json(int32_t timesteps);
/* LW_EUSAGE: n evaluations have no times in this schedule. */
int lw_diffusion_check_steps(const lw_diffusion *d, int32_t n);
/* The same of DPM-Solver, whose times must differ. */
int lw_solver_check_steps(const lw_diffusion *d, int32_t n);

/* One reverse step: kernels/reverse/reverse.h says what it computes. */
typedef struct lw_diffusion_move {
    int32_t t; /* the network's time */
    lw_reverse by;
    lw_prediction prediction;
    bool keep_eps;
} lw_diffusion_move;

/* Moves k = 0 .. n - 1 of n; the last bounds its result to [-1, 1]. DDIM is that of eta 0. */
lw_diffusion_move lw_ddim_move(const lw_diffusion *d, int32_t n, int32_t k);
/* With n below timesteps, beta is 1 - alpha_bar(t) / alpha_bar(the next time) (Nichol and Dhariwal
 * 2021). */
lw_diffusion_move lw_ancestral_move(const lw_diffusion *d, int32_t n, int32_t k);
/* DPM-Solver++(2M): the straight line through this picture x0 and the one of the move before, which
 * takes the place of the noise (c2 is 0 in the first and the last move). */
lw_diffusion_move lw_solver_move(const lw_diffusion *d, int32_t n, int32_t k);
/* The move to the picture x0 that move m believes: "the one before" of the next move. */
lw_diffusion_move lw_picture_move(const lw_diffusion_move *m);
/* Applies a move to n numbers; noise may be NULL when c2 is 0. */
void lw_diffusion_apply(const lw_diffusion_move *m, float *x, const float *y, const float *noise,
                        int64_t n);

#endif
