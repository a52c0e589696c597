/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train ddpm: a denoising diffusion model (Ho et al. 2020, arXiv 2006.11239) of the shared U-Net; train flow: the same
 * network and the same step on another way from noise to picture, the straight one (session_flow.h).
 */
#ifndef LW_DDPM_JOB_H
#define LW_DDPM_JOB_H

#include "session/session.h"
#include "train/train.h"

typedef struct lw_ddpm_config {
    lw_train_config train;
    lw_picture_config pictures;
    lw_net_config net;
    int32_t timesteps;
    int32_t
        eval_steps; /* evaluations of sample grids and held-out measures; 0: 50, with a condition 1,
                           of a flow 20 */
    int32_t prediction;    /* 0: sample with a condition, else epsilon; 1 + lw_prediction */
    int32_t beta_schedule; /* 0 linear, 1 cosine (squaredcos_cap_v2) */
    double snr_gamma;      /* of min-SNR weights; 0: the plain mean */
    /* Share of pictures whose class is the null class, for guidance without a classifier; 0: the
     * network has none */
    double class_dropout_prob;
    bool flow;          /* a rectified flow: prediction, beta_schedule and snr_gamma do not count */
    int32_t flow_times; /* its times: 0 uniform, 1 logit-normal */
    double flow_mean, flow_std; /* of the logit-normal distribution */
    double flow_shift;          /* of its times, in training and sampling; 0: 1, none */
    lw_heldout_config heldout;
} lw_ddpm_config;

/* Is the class of picture `row`, counted from the first step, left out? Depends on nothing else, so that parts of a step,
 * threads and resuming change nothing. */
bool lw_ddpm_drops_class(const lw_ddpm_config *c, int64_t row);

/* Trains, or with dry_run only predicts; "train ddpm" or, with c->flow, "train flow". */
int lw_train_ddpm(const lw_ddpm_config *c, const lw_observer *obs, lw_train_result *out);
/* The same ready to be run, in slices if need be (lw_training_advance); closing it frees all. *c is
 * copied, what it points to is not. */
int lw_train_ddpm_open(const lw_ddpm_config *c, const lw_observer *obs, lw_training **out);

#endif
