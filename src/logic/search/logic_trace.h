/* SPDX-License-Identifier: Apache-2.0 */
/* A found proof as a tree of ground atoms, each by a rule from its children or by a fact. */
#ifndef LW_LOGIC_TRACE_H
#define LW_LOGIC_TRACE_H

#include "logic/search/logic_unify.h"

typedef struct lw_trace_node {
    lw_atom atom;
    lw_proof_origin origin;    /* fact, or ~ rule */
    int32_t parent;            /* -1: the query */
    int32_t child, n_children; /* nodes child .. child + n_children: the rule's body in its order */
} lw_trace_node;

typedef struct lw_trace {
    lw_trace_node *node; /* node[0] is the query; children come behind their parent */
    int32_t n, steps;
} lw_trace;

/* Replays the steps of a derivation (lw_search_proof, or the origins of moves taken in an env with
 * canonical numbering). LW_EFORMAT when they do not prove the query. */
int lw_trace_build(const lw_kb *kb, lw_atom query, const lw_proof_origin *origin, int32_t steps,
                   lw_trace *out);
void lw_trace_clear(lw_trace *t);

/* One line an atom, indented by its depth in the tree, with the rule or "fact". */
void lw_trace_print(const lw_kb *kb, const lw_trace *t, lw_str *out);
/* A Prolog program of the rules and facts used, the query, and the proof as a term
 * proof(Atom, fact) or proof(Atom, rule(Number), [proof(..), ..]). */
void lw_trace_prolog(const lw_kb *kb, const lw_trace *t, lw_str *out);

#endif
