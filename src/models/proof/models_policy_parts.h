/* SPDX-License-Identifier: Apache-2.0 */
/* Private to models_policy*.c: from ids to the vector of a state, and the layers all parts use.
 * Letters: R states, A atoms a state, n = R A atoms, E embedding. */
#ifndef LW_MODELS_POLICY_PARTS_H
#define LW_MODELS_POLICY_PARTS_H

#include "models/models.h"

#define POLICY_GAIN 1.4142135623730951 /* of initial values behind a relu */

/* Parameters "weight" [out,in] and "bias" [out] under the current scope. */
lw_val lw_policy_weight(lw_builder *b, int32_t in, int32_t out, double gain);
lw_val lw_policy_bias(lw_builder *b, int32_t out);
lw_val lw_policy_linear(lw_builder *b, const char *name, lw_val x, int32_t out, double gain);
/* x [n,C] times column [n]. */
lw_val lw_policy_times_column(lw_graph *g, lw_val x, lw_val column);

/* What the pieces of one batch of states share. */
typedef struct policy_states {
    lw_builder *b;
    lw_graph *g;
    const lw_policy_config *c;
    int32_t r, a; /* states, atoms a state */
} policy_states;

/* The parts of every atom as rows of the tables. */
typedef struct policy_atoms {
    lw_val p;    /* [n,Wp] */
    lw_val args; /* [2n,Wc]: h0 t0 h1 t1 .. */
    lw_val h, t; /* [n,Wc]: the same in two */
    int32_t n;
} policy_atoms;

/* Columns of the two tables. */
int32_t lw_policy_predicate_width(const lw_policy_config *c);
int32_t lw_policy_constant_width(const lw_policy_config *c);
/* Atoms -> [n,E] by c->atom; [n,E] -> [R,E] by c->state. */
lw_val lw_policy_compose_atom(const policy_states *m, const policy_atoms *atoms);
lw_val lw_policy_join_atoms(const policy_states *m, lw_val atoms, lw_val scale);
/* A step of a GRU with parameters under scope `name`: new hidden state [n,E] from x and h [n,E]. */
lw_val lw_policy_gru(lw_builder *b, const char *name, lw_val x, lw_val h);
/* in_proj of torch's MultiheadAttention under the current scope: q | k | v, [n,3E]. */
lw_val lw_policy_in_proj(lw_builder *b, lw_val x);

/* Zeroes the pad rows of PARAM and starts EMA from it. */
void lw_policy_clear_pads(lw_store *s);

/* The vector of each state, f32[R,E]. */
lw_val lw_policy_embed(lw_builder *b, const lw_policy_config *c, const lw_policy_in *in);
/* Is the state's vector a signed sum of rows, so that the first Linear can go into the tables? */
bool lw_policy_folds(const lw_policy_config *c);
/* The first Linear's result, f32[R,H], from projected tables. */
lw_val lw_policy_embed_folded(lw_builder *b, const lw_policy_config *c, const lw_policy_in *in);

#endif
