/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a minibatch as the inputs of an update graph: different states and pairs, each once. */
#ifndef LW_PROVE_PPO_PART_H
#define LW_PROVE_PPO_PART_H

#include "jobs/prove/ppo/prove_ppo_update.h"

typedef struct lw_ppo_part {
    lw_ppo_sizes most;
    int32_t states, pairs, choices; /* in it */
    /* What the graphs read; bound to the execs of all sizes. */
    int32_t *predicates, *arguments, *from, *to, *state, *place, *action;
    int64_t *rows;
    float *scale, *mask, *advantage, *old_log_prob, *old_value, *target, *weight;
    float entropy_coef[16]; /* one, with room for the alignment of inputs */
    /* Finding what is there already. */
    int32_t *local; /* [n_local]: number in this part of a state of the roll-out */
    uint32_t *stamp, now;
    size_t n_local, n_stamp;
    uint64_t *pair_key; /* from, to + 1; 0: free */
    int32_t *pair_at;
    size_t n_table;
} lw_ppo_part;

int lw_ppo_part_open(lw_ppo_sizes most, int32_t max_atoms, lw_ppo_part *out);
void lw_ppo_part_clear(lw_ppo_part *p);
/* Points every input of an exec at the part. */
int lw_ppo_part_bind(lw_ppo_part *p, lw_exec *e);
/* Empties it, for choices among `states` states. */
int lw_ppo_part_begin(lw_ppo_part *p, int32_t states);
/* Does a choice of n successors fit, whatever it shares? */
bool lw_ppo_part_fits(const lw_ppo_part *p, int32_t n);
void lw_ppo_part_add(lw_ppo_part *p, const lw_ppo_rollout *r, const lw_ppo_choice *x,
                     float advantage, float weight);
/* Fills what is left of inputs of these sizes with what has no effect. */
void lw_ppo_part_pad(lw_ppo_part *p, lw_ppo_sizes z, int32_t max_atoms);

#endif
