/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures from a generator: one evaluation (drift), or DDIM, ancestral sampling or DPM-Solver
 * (DDPM), Euler's or Heun's method (rectified flow) with any number of evaluations. Of a network in latents (session_decoding.h) they are decoded.
 * Sample number i is a pure function of (weights, seed, i, its class): never of the batch it was
 * made in.
 */
#ifndef LW_SESSION_SAMPLER_H
#define LW_SESSION_SAMPLER_H

#include "session/session_diffusion.h"
#include "session/session_forward.h"
#include "session/session_unet.h"

typedef enum lw_sampler_kind {
    LW_SAMPLER_AUTO,
    LW_SAMPLER_ONE_STEP,
    LW_SAMPLER_DDIM,
    LW_SAMPLER_ANCESTRAL,
    LW_SAMPLER_DPM_SOLVER,
    LW_SAMPLER_EULER,
    LW_SAMPLER_HEUN,
    LW_SAMPLER_KINDS
} lw_sampler_kind;
#define LW_SAMPLER_CHOICES "auto|one-step|ddim|ancestral|dpm-solver|euler|heun"
#define LW_SAMPLER_SPACINGS "auto|leading|trailing|linspace"
const char *lw_sampler_kind_name(lw_sampler_kind k); /* as users type it */

typedef struct lw_sampler_opts {
    lw_method method;
    int32_t kind;  /* lw_sampler_kind; auto: one step for drift, DDIM for ddpm, Euler for flow */
    int32_t steps; /* evaluations (guided: pairs of them), at most those of the schedule; 0: 1 for
                      drift, 50 (or all of a shorter schedule) for DDIM, 20 for DPM-Solver, Euler and
                      Heun, all for ancestral */
    const lw_diffusion
        *diffusion; /* noise schedule of a DDPM or flow, borrowed by lw_sampler_new; NULL:
                                      ours with `timesteps`, where 0 is 1000 */
    int32_t timesteps;
    int32_t
        spacing; /* of the times, of LW_SAMPLER_SPACINGS; 0: as the schedule says (DPM-Solver where it says nothing:
                         linspace), else 1 + lw_spacing */
    double alpha;         /* strength of guidance, of networks that are told one; 0: 1, none */
    const double *alphas; /* instead: of picture i number i modulo n_alphas; NULL. Borrowed */
    int64_t n_alphas;
    /* Classifier-free guidance (Ho and Salimans 2022), of networks with a null class: the answer without
     * a class and so many times what the class changes in it, two evaluations a step. 0: 1, none */
    double guidance_scale;
    bool keep_eps;    /* DDIM: go on with the noise estimate as it is where the picture it implies
                        was clipped, as diffusers does by default; lw_diffusion_move */
    int32_t batch;    /* capacity of the plan */
    bool conditioned; /* the caller fills lw_sampler_condition: networks with a condition need it */
    uint64_t seed;
    lw_slab weights;
    int32_t precision;                 /* lw_num of the network's products */
    const lw_calibration *calibration; /* with LW_NUM_S8; borrowed by lw_sampler_new */
} lw_sampler_opts;

/* LW_EUSAGE: the generator is told no strength of guidance, or not this one. 0 asks for none. */
int lw_sampler_alpha_check(const lw_network *net, double alpha);
/* LW_EUSAGE: a generator of this method cannot be guided by a scale, or not this one. 0 and 1 ask for none. */
int lw_sampler_guidance_check(const lw_network *net, lw_method method, double scale);

typedef struct lw_sampler lw_sampler;
/* net: a generator. Borrows the device and what net holds. */
int lw_sampler_new(lw_device *dev, const lw_network *net, const lw_sampler_opts *o,
                   lw_sampler **out);
void lw_sampler_free(lw_sampler **pp);
lw_sampler_kind lw_sampler_get_kind(const lw_sampler *s); /* never auto */
int32_t lw_sampler_evaluations(const lw_sampler *s);  /* of the network per picture, all of them */
size_t lw_sampler_bytes(const lw_sampler *s);         /* of its plans' frames */
lw_plan_info lw_sampler_network(const lw_sampler *s); /* one step of a batch */
/* Spent in evaluations and moves so far; what lw_sampler_run takes beyond it is the first noise. */
double lw_sampler_network_seconds(const lw_sampler *s);
/* Where the frames of the next batch go, of a network with a condition: [batch][H][W][condition] in
 * [-1, 1]. Then lw_sampler_run makes at most a batch. */
float *lw_sampler_condition(lw_sampler *s);
/* Called after every step: `done` evaluations are made, y [n][H][W][C] is what they left of samples
 * (a picture, too) first .. first + n - 1, until the next. Not 0: sampling stops there (LW_ESTOPPED). NULL: nobody
 * looks. */
typedef int lw_sampler_look(void *self, int64_t first, int64_t n, int32_t done, const float *y);
void lw_sampler_watch(lw_sampler *s, lw_sampler_look *look, void *self);
const lw_network *lw_sampler_net(const lw_sampler *s);
int32_t lw_sampler_batch(const lw_sampler *s);
/* Samples first .. first + n - 1 into out [n][H][W][C] in [-1, 1], lw_picture_side wide and of
 * lw_picture_channels. classes [n], or NULL: sample i
 * gets class (first + i) mod classes. obs is asked between steps: LW_ESTOPPED. */
int lw_sampler_run(lw_sampler *s, int64_t first, int64_t n, const int32_t *classes,
                   const lw_observer *obs, float *out);
/* LW_ENUMERIC: one of n pictures of `row` numbers, called `first` and on, has a number that is infinite or none. */
int lw_pictures_check(const float *x, int64_t n, int64_t row, int64_t first);

/* What generators start from: normal numbers "noise" [B,side,side,C] of the stream WHO.noise, and what the
 * network draws beside (lw_network_draw; NULL: nothing), "latent" and "styles". */
int lw_noise_new(lw_device *dev, lw_type image, const lw_network *net, const char *who,
                 lw_forward **out);
/* Those of samples first, first + 1, ... */
int lw_noise_draw(lw_forward *noise, int64_t first, lw_tick tick);

#endif
