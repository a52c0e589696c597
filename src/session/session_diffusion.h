/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The noise schedule of a DDPM (Ho et al. 2020) and its samplers' moves: DDIM (Song et al. 2021),
 * ancestral, and DPM-Solver++(2M) (Lu et al. 2022); session_flow.h has the schedule that is a straight
 * line. Ours, or what a folder's scheduler_config.json says, as diffusers computes it.
 */
#ifndef LW_SESSION_DIFFUSION_H
#define LW_SESSION_DIFFUSION_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/formats.h"
#include "kernels/kernels.h"

enum { LW_DDPM_MAX_STEPS = 4000 };

/* beta(t), in the order and by the names of diffusers. SQUAREDCOS is the cosine of Nichol and Dhariwal 2021: alpha_bar
 * falls as cos^2, beta is at most 0.999; the others go from a first to a last beta. */
typedef enum lw_beta_schedule {
    LW_BETA_LINEAR,
    LW_BETA_SCALED_LINEAR, /* their roots are linear */
    LW_BETA_SQUAREDCOS,
    LW_BETA_SIGMOID
} lw_beta_schedule;
#define LW_BETA_FIRST 1e-4 /* of ours */
#define LW_BETA_LAST 0.02
#define LW_BETA_NAMES                                                   \
    {                                                                   \
        "linear", "scaled_linear", "squaredcos_cap_v2", "sigmoid", NULL \
    }
#define LW_PREDICTION_NAMES                       \
    {                                             \
        "epsilon", "sample", "v_prediction", NULL \
    } /* of lw_prediction */

/* What a training chooses of a schedule; zeroed but for timesteps it is that of lw_diffusion_init. */
typedef struct lw_noise_schedule {
    int32_t timesteps;
    lw_beta_schedule beta;
    lw_prediction
        prediction; /* LW_PREDICT_FLOW: a rectified flow (session_flow.h), without betas */
    double shift;   /* of its times; 0: 1 */
} lw_noise_schedule;
#define LW_FLOW_MAX_SHIFT 100.0

/* The times of n evaluations out of T: k (T / n) rounded down, from the low end; T - k T / n, from
 * the high end; or both ends and evenly between them. DPM-Solver leaves out the lowest of n + 1
 * leading or linspace times. */
typedef enum lw_spacing { LW_SPACING_LEADING, LW_SPACING_TRAILING, LW_SPACING_LINSPACE } lw_spacing;

typedef struct lw_diffusion {
    int32_t timesteps;
    double beta[LW_DDPM_MAX_STEPS], alpha_bar[LW_DDPM_MAX_STEPS]; /* not of a rectified flow */
    lw_prediction prediction;
    double shift; /* of a rectified flow's times; 1: none */
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
/* The same with another schedule or prediction. */
int lw_diffusion_choose(lw_diffusion *d, const lw_noise_schedule *s);
/* beta and alpha_bar of d->timesteps; from `lo` to `hi`. */
void lw_diffusion_betas(lw_diffusion *d, lw_beta_schedule beta, double lo, double hi);
/* Min-SNR-gamma (Hang et al. 2023): what the squared error of the prediction at time t is multiplied by,
 *
 *   min(snr, gamma) / snr   epsilon        snr = alpha_bar / (1 - alpha_bar)
 *   min(snr, gamma) / (snr + 1)   v_prediction
 *   min(snr, gamma)         sample
 *
 * so that pictures almost without noise do not outweigh the others. gamma 0: 1. */
double lw_diffusion_weight(const lw_diffusion *d, int32_t t, double gamma);
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
 * is part of a pipeline, in ../scheduler; else ours as lw_diffusion_note wrote it. Of a network in
 * latents ("leeway_latents") without bounds. */
int lw_diffusion_find(const char *dir, const json_t *config, lw_diffusion *out);
/* Ours as a scheduler_config.json, whose one clip_sample holds for ancestral sampling too. New
 * reference; NULL: no memory. */
json_t *lw_diffusion_to_json(const lw_noise_schedule *s);
/* Ours as "leeway_timesteps" in a config.json, and where no scheduler_config.json (`alone`) says them and they are not
 * the usual ones "leeway_beta_schedule", "leeway_prediction"; of a flow, which "leeway_method" says, "leeway_shift". */
int lw_diffusion_note(const lw_noise_schedule *s, bool alone, json_t *config);
/* LW_EUSAGE: n evaluations have no times in this schedule. what: the option that asks for them ("--steps"). */
int lw_diffusion_check_steps(const lw_diffusion *d, int32_t n, const char *what);
/* The same of DPM-Solver, whose times must differ. */
int lw_solver_check_steps(const lw_diffusion *d, int32_t n, const char *what);

/* One reverse step: kernels/reverse/reverse.h says what it computes. */
typedef struct lw_diffusion_move {
    double t; /* the network's time; of a DDPM a whole number */
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
