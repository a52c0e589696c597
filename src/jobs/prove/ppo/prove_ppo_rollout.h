/* SPDX-License-Identifier: Apache-2.0 */
/* Walking proofs for training: sampled choices, rewards, advantages. */
#ifndef LW_PROVE_PPO_ROLLOUT_H
#define LW_PROVE_PPO_ROLLOUT_H

#include "jobs/prove/ppo/prove_ppo_source.h"
#include "jobs/prove/walk/walk_job.h"

/* One choice. States are slots of the roll-out's. Its successors are moves[first .. first + n), none
 * are kept when n is 1. */
typedef struct lw_ppo_choice {
    int32_t state, n, action;
    int64_t first;
    float log_prob, value; /* when it was made */
    float advantage, target;
    double reward;
    bool ends;
} lw_ppo_choice;

/* What happened, for the logs. */
typedef struct lw_ppo_counts {
    int64_t episodes[2], proved[2]; /* of corrupted, of true queries */
    int64_t length;                 /* choices of proofs that ended */
    double reward;
} lw_ppo_counts;

typedef struct lw_ppo_player lw_ppo_player;

typedef struct lw_ppo_rollout {
    const lw_ppo_config *c;
    lw_ppo_source source;
    lw_device *dev;
    const lw_observer *obs; /* asked between rounds and parts of minibatches; may be NULL */
    lw_state_rows *rows;    /* the states of an iteration, numbered in the order of first meeting */
    int32_t n_states;
    lw_env **env; /* one a worker */
    int n_env;
    lw_path *paths; /* one a player */
    lw_moves *moves_of;
    int32_t *slots;
    lw_ppo_player *player;
    lw_ppo_choice *choice; /* [n_envs][n_steps] */
    int32_t *moves;        /* states */
    int64_t n_moves;
    size_t cap_moves;
    lw_ppo_counts counts;
    int64_t iteration;
} lw_ppo_rollout;

/* Borrows everything it is given. With dropout its masks are drawn by (seed, iteration, state), as in
 * the updates after it: else the two would disagree before anything is learned. */
int lw_ppo_rollout_open(const lw_ppo_config *c, const lw_ppo_source *source, lw_device *dev,
                        lw_store *store, lw_ppo_rollout *out);
void lw_ppo_rollout_close(lw_ppo_rollout *r);
/* Fills choice, moves, states and counts: iteration `iteration` with the store's weights. LW_ESTOPPED
 * when the observer asks for it. */
int lw_ppo_rollout_run(lw_ppo_rollout *r, int64_t iteration);
/* LW_ESTOPPED when the observer asks for it. */
int lw_ppo_rollout_stopped(const lw_ppo_rollout *r);

/*
 * Generalised advantage estimation over one proof after another, n choices of one env in order:
 *   d_t = r_t + gamma V_{t+1} - V_t,  A_t = d_t + gamma lambda A_{t+1}
 *
 * V and A behind an end are 0. last: V behind the n-th choice. target = A + V.
 */
void lw_ppo_advantages(lw_ppo_choice *choice, int32_t n, double last, double gamma, double lambda);

#endif
