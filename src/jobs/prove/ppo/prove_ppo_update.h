/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The update of proximal policy optimisation: graphs of a fixed number of rows, filled with the
 * different states of a part of a minibatch.
 *
 *   U states -> body -> head [U,E], value [U,1]
 *   P pairs (current, successor), each different pair once: logit = scale <head, head>
 *   B choices of at most S successors: logits gathered from the pairs, the rest masked
 *   loss = sum over the choices of weight (- min(A r, A clip(r)) - ent H + vf (target - v)^2)
 *
 * with r the ratio of new to old probability, H the entropy, v the value (moved by at most
 * clip_range_vf). A minibatch that does not fit is computed in parts whose gradients add up.
 */
#ifndef LW_PROVE_PPO_UPDATE_H
#define LW_PROVE_PPO_UPDATE_H

#include "jobs/prove/ppo/prove_ppo_rollout.h"

enum { LW_PPO_PLANS = 4 };

/* Capacities of one graph. */
typedef struct lw_ppo_sizes {
    int32_t states, pairs, choices, successors;
} lw_ppo_sizes;

/* Inputs (a row per state: predicates, arguments, scale, rows with dropout; per pair: from, to; per
 * choice: state, place [B S] (a pair), mask [B,S], action, advantage, old_log_prob, old_value,
 * target, weight; and entropy_coef [1]); outputs loss [1], and per choice nlp (-log pi), new_value,
 * entropy. The gradient goes to the store's slab when asked for. */
int lw_ppo_graph(const lw_ppo_config *c, lw_store *store, lw_ppo_sizes z, bool gradient,
                 lw_graph *g);

/* Means over all choices of an iteration's updates; divergence: of the last epoch. */
typedef struct lw_ppo_report {
    double loss, policy_loss, value_loss, entropy, divergence, clipped;
    double grad_norm;
    int32_t epochs, updates;
    int64_t parts; /* runs of a plan */
} lw_ppo_report;

typedef struct lw_ppo_update lw_ppo_update;

int lw_ppo_update_open(const lw_ppo_config *c, lw_store *store, lw_device *dev,
                       lw_ppo_update **out);
void lw_ppo_update_free(lw_ppo_update **pp);
/* The plan of the largest size, for predictions. */
const lw_plan *lw_ppo_update_plan(const lw_ppo_update *u);

typedef struct lw_ppo_rates {
    double lr, entropy_coef;
    bool stop_early;  /* at target_kl */
    int64_t *updates; /* done so far, counted on: Adam's step number */
} lw_ppo_rates;

/* All epochs over the roll-out's choices. LW_ENUMERIC when the loss or a gradient is not finite:
 * `step` counts from 0. LW_ESTOPPED when the roll-out's observer asks for it. */
int lw_ppo_update_run(lw_ppo_update *u, const lw_ppo_rollout *r, int64_t step,
                      const lw_ppo_rates *rates, lw_ppo_report *out);

/* Bytes of the frames of all its plans. */
size_t lw_ppo_update_bytes(const lw_ppo_update *u);
/* FLOP of all epochs over the roll-out's choices; runs nothing. */
int lw_ppo_update_flops(lw_ppo_update *u, const lw_ppo_rollout *r, double *flops);

#endif
