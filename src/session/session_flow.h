/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rectified flow, also called flow matching (Liu et al. 2022, arXiv 2209.03003; Lipman et al. 2022): picture and
 * noise lie on a straight line,
 *
 *   x(s) = (1 - s) picture + s noise        0 <= s <= 1
 *
 * and the network says its direction, noise - picture, from x and the time T s. It is a lw_diffusion whose prediction
 * is LW_PREDICT_FLOW and which has no betas. Samplers go down the line by the steps of an ordinary differential
 * equation, as diffusers' FlowMatchEulerDiscreteScheduler and FlowMatchHeunDiscreteScheduler do.
 */
#ifndef LW_SESSION_FLOW_H
#define LW_SESSION_FLOW_H

#include "session/session_diffusion.h"

static inline bool lw_diffusion_flows(const lw_diffusion *d)
{
    return d->prediction == LW_PREDICT_FLOW;
}

/* Share of noise at place u of the way, 0 to 1: shift u / (1 + (shift - 1) u), which with a shift above 1 spends more
 * of the way where there is much noise (Esser et al. 2024, equation 23). */
double lw_flow_noise(const lw_diffusion *d, double u);
/* Where the training's time k of T lies. Uniform (`std` 0): (k + 1) / T, as in diffusers. Else of the logit-normal
 * distribution (Esser et al. 2024), sigmoid(mean + std z), the middle of its k-th T-quantile: drawing k evenly draws
 * the times of that distribution. */
double lw_flow_time(const lw_diffusion *d, int32_t k, double mean, double std);
/* LW_EUSAGE: n evaluations have no times. Spacing is trailing, 1, 1 - 1/n, .. (the default), or linspace, evenly from
 * 1 to 1 / T, as diffusers has it unless it is given its sigmas. */
int lw_flow_check_steps(const lw_diffusion *d, int32_t n, const char *what);
/* Evaluation k of n: a step each; the last ends without noise, bounded by d->limit. */
lw_diffusion_move lw_euler_move(const lw_diffusion *d, int32_t n, int32_t k);
/* Heun's method: two evaluations a step, at its beginning and where Euler's step would lead; where n is odd the last
 * step is Euler's. Every second move reads the velocity of the one before, in the place of the noise. */
lw_diffusion_move lw_heun_move(const lw_diffusion *d, int32_t n, int32_t k);
/* The "move" to the velocity that move m's evaluation says. */
lw_diffusion_move lw_velocity_move(const lw_diffusion_move *m);
/* Of the schedule's own first-order sampler, without noise: lw_euler_move, lw_ddim_move. */
lw_diffusion_move lw_plain_move(const lw_diffusion *d, int32_t n, int32_t k);

/* A FlowMatchEulerDiscreteScheduler's or FlowMatchHeunDiscreteScheduler's configuration; as
 * lw_diffusion_from_json, which calls it. */
int lw_flow_from_json(const json_t *scheduler, const char *where, lw_diffusion *out);
bool lw_flow_is_scheduler(const char *class_name);
/* New reference; NULL: no memory. */
json_t *lw_flow_to_json(const lw_noise_schedule *s);

#endif
