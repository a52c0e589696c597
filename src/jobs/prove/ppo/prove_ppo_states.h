/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The different states of one iteration, each kept once: its goals, and what the network makes of
 * it. Numbers are given in the order of first meeting, so they are as reproducible as the walks.
 */
#ifndef LW_PROVE_PPO_STATES_H
#define LW_PROVE_PPO_STATES_H

#include "models/proof/models_policy.h"
#include "plan/plan.h"
#include "logic/logic.h"

typedef struct lw_ppo_states {
    int32_t max_atoms, width; /* goals of a state; floats of a key */
    int32_t n;
    size_t cap, cap_atoms;
    lw_atom *atoms; /* [n][max_atoms], the rest 0 */
    int32_t *n_atoms;
    uint64_t *hash;
    int32_t *row;  /* [n]: of its features, -1: not asked for */
    int32_t *slot; /* open addressing, -1: free */
    size_t n_slots;
    int32_t *wanted; /* states by row; computed rows first */
    int32_t n_rows, n_computed;
    size_t cap_rows, cap_keys, cap_values;
    float *key;   /* [n_computed][width] */
    float *value; /* [n_computed] */
} lw_ppo_states;

void lw_ppo_states_init(lw_ppo_states *s, int32_t max_atoms, int32_t width);
void lw_ppo_states_clear(lw_ppo_states *s);
/* Forgets all states, keeps the memory. */
void lw_ppo_states_empty(lw_ppo_states *s);
/* Number of the state with these goals in this order; hash: of the goals in any order. */
int lw_ppo_states_add(lw_ppo_states *s, const lw_atom *atoms, int32_t n, uint64_t hash,
                      int32_t *out);
/* Asks for a state's features. */
int lw_ppo_states_want(lw_ppo_states *s, int32_t state);

/* Goals of a state as the network's rows: predicates[max_atoms], arguments[2 max_atoms]. */
void lw_ppo_states_row(const lw_ppo_states *s, int32_t state, int32_t *predicates,
                       int32_t *arguments);

/* The network as roll-outs use it: keys and values of states, queries of current states. With
 * dropout its masks are drawn by (tick, number of the state), in roll-outs as in the updates after
 * them: else the two would disagree before anything is learned. */
typedef struct lw_ppo_net {
    const lw_policy_config *config;
    int32_t rows, queries; /* of one run of each plan */
    lw_plan *plan, *query_plan;
    lw_exec *exec, *query;
} lw_ppo_net;

int lw_ppo_net_open(const lw_policy_config *c, lw_store *store, lw_device *dev, int32_t queries,
                    const lw_compile_opts *o, lw_ppo_net *out);
void lw_ppo_net_close(lw_ppo_net *n);
/* Features of all states asked for and not yet computed. */
int lw_ppo_net_states(lw_ppo_net *n, lw_ppo_states *s, const lw_tick *tick);

#endif
