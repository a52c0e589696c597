/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evaluation of a policy as it is published, slow and obvious: proofs one after another, every
 * one of the `states` places for successors computed whether it is used or not, in doubles, from
 * the tables up, nothing folded, kept or shared. Written without a look at src/jobs.
 *
 * Successors come from a world: the engine's environment, or the tiny Prolog of proof_naive.h.
 */
#ifndef LW_TESTS_PROVE_REFERENCE_H
#define LW_TESTS_PROVE_REFERENCE_H

#include "models/models.h"
#include "logic/logic.h"
#include "store/store.h"

/* One proof at a time. A state is `atoms` goals, zeros behind the real ones. */
typedef struct ref_world {
    void *self;
    const lw_kb *kb;
    int32_t atoms, states, depth;
    /* The state becomes the query alone. */
    void (*begin)(void *self, lw_atom query);
    /* The successors of the state, [states][atoms], terminals included; returns how many. */
    int32_t (*offer)(void *self, lw_atom *padded);
    /* Goes to successor k of the last offer, which is no terminal. */
    void (*take)(void *self, int32_t k);
} ref_world;

typedef struct ref_result {
    double log_prob;
    bool proved;
    int32_t depth;
} ref_result;

/* The most probable successor, the first of equals, until a terminal or `depth` choices. */
int ref_prove(const ref_world *w, const lw_policy_config *c, const lw_store *s, lw_atom query,
              ref_result *out);
/* f of one padded state into out[embed]. */
int ref_network(const lw_policy_config *c, const lw_store *s, const lw_atom *state, double *out);

/* 1 + higher + ties / 2 of score[0] among score[1 .. n). */
double ref_rank(const double *score, int32_t n);

/* ---- the engine's environment as a world ----------------------------------------------------- */

typedef struct ref_engine {
    lw_env_options o;
    lw_env *env;
    lw_path *path;
} ref_engine;
int ref_engine_open(const lw_kb *kb, const lw_env_options *o, ref_engine *e, ref_world *out);
void ref_engine_close(ref_engine *e);

#endif
