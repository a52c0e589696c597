/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Successors of a state: its first goal is resolved with every fact of its predicate, in the order
 * (first, second argument), then with every rule of its predicate, in the order of the file; what
 * the unification binds is applied to the other goals, and atoms that are known facts are left out.
 * The query itself is never used as a fact, for otherwise every known triple proved itself.
 *
 * Numbering of variables in a successor:
 *   canonical  by first appearance from n_constants + 1: equal states have equal atoms
 *   published  one shift for all successors of a state (the origin's fast mode)
 *   parity     by first appearance in all successors together, the state's own variables keep
 *              theirs, and rules come before facts (the origin's parity mode)
 *
 * Unification is that of Prolog (no functions, so no occurs check). With the two published
 * numberings a rule's variable that meets two different terms fails, as it does there; that
 * matters only to heads like p(X,X) against p(a,V).
 */
#ifndef LW_LOGIC_UNIFY_H
#define LW_LOGIC_UNIFY_H

#include "logic/kb/logic_kb.h"

typedef enum lw_numbering {
    LW_NUMBER_CANONICAL,
    LW_NUMBER_PUBLISHED,
    LW_NUMBER_PARITY
} lw_numbering;

/* How a successor came about: a fact's number, or ~ the number of a rule (negative). */
typedef int32_t lw_proof_origin;

/* Given each successor of 1 to LW_PROOF_WIDEST atoms; nonzero ends the derivation. */
typedef int lw_successor_fn(void *arg, const lw_atom *atoms, int32_t n, lw_proof_origin origin);

typedef struct lw_derivation {
    const lw_kb *kb;
    lw_atom query; /* not usable as a fact; p = 0: every fact is */
    lw_numbering numbering;
    int32_t next_var;       /* first unused variable (published numberings); canonical: ignored */
    int32_t max_fact_pairs; /* facts tried of a predicate, 0: all */
    int32_t max_successors; /* 0: all; the rest is counted, but a proof by a fact is still seen */
    bool proofs_only;       /* look for a proof, build and emit nothing */
    lw_successor_fn *emit;
    void *arg;
    /* what came of it */
    bool proved;           /* a successor without goals: nothing else counts then */
    lw_proof_origin proof; /* how */
    int32_t emitted;
    int64_t facts_cut;      /* matching facts behind max_fact_pairs */
    int64_t successors_cut; /* behind max_successors */
} lw_derivation;

/* state: 1..LW_PROOF_MOST_ATOMS goals without known facts (but for the query), none terminal.
 * Resets the outcome fields first. */
void lw_derive(lw_derivation *d, const lw_atom *state, int32_t n);

/* Renames the variables of a state by first appearance. */
void lw_state_canonical(const lw_kb *kb, lw_atom *atoms, int32_t n);
/* Largest variable plus one; n_constants + 1 for ground states. */
int32_t lw_state_next_var(const lw_kb *kb, const lw_atom *atoms, int32_t n);

/* Known as a fact and not the query. */
static inline bool lw_known(const lw_kb *kb, lw_atom a, lw_atom query)
{
    return lw_facts_find(&kb->facts, a) >= 0 && !lw_atom_eq(a, query);
}

#endif
