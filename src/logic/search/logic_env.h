/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proofs walked step by step: given a state, its successors as flat rows ready for an embedding
 * look-up; given a choice, the next state. The rules of the published environment hold, with every
 * cut counted:
 *
 *   1. successors as in logic_unify.h, at most padding_states of them (states_cut)
 *   2. a successor without goals is a proof: then True is the only successor
 *   3. successors of more than padding_atoms goals are rejected, never shortened (atoms_cut)
 *   4. so are those already on this path, as multisets of goals (visited)
 *   5. without any left, False is the only successor
 *   6. with end_proof_action Endf is offered too, unless True or False was; when there is no room,
 *      the last successor goes (end_cut)
 *   7. the proof ends with True, False, Endf or at max_depth
 *
 * An env is one worker's: scratch and counters. A path is one proof: plain memory that any env of
 * the same knowledge base and options may continue, so a scheduler can keep thousands of them and
 * any worker can take any of them. Nothing is allocated after set-up, and what comes out depends on
 * knowledge base, options and choices alone, never on the worker.
 */
#ifndef LW_LOGIC_ENV_H
#define LW_LOGIC_ENV_H

#include "logic/search/logic_unify.h"

typedef struct lw_env_options {
    int32_t max_depth;      /* 20: choices */
    int32_t padding_atoms;  /* 6: goals of a state, at most LW_PROOF_MOST_ATOMS */
    int32_t padding_states; /* 120: successors of a state, 1..65536 */
    int32_t max_fact_pairs; /* 0, all: facts tried of a predicate */
    int32_t max_total_vars; /* 100: variables n_constants + 1 .. n_constants + 100 */
    lw_numbering numbering;
    bool memory_pruning;     /* drop states already on the path */
    bool end_proof_action;   /* offer Endf */
    bool skip_unary_actions; /* take the only successor without counting a step */
} lw_env_options;

/* C(field, what it counts) */
#define LW_ENV_COUNTS(C)                                           \
    C(steps, "states expanded")                                    \
    C(successors, "successors offered")                            \
    C(proofs, "states with a proof among their successors")        \
    C(dead_ends, "states without a successor")                     \
    C(facts_cut, "facts behind max_fact_pairs")                    \
    C(states_cut, "successors behind padding_states")              \
    C(atoms_cut, "successors with more goals than padding_atoms")  \
    C(vars_cut, "successors with variables behind max_total_vars") \
    C(end_cut, "successors that made room for Endf")               \
    C(visited, "successors already on their path")                 \
    C(unary_steps, "steps taken without a choice")                 \
    C(depth_cut, "proofs ended by max_depth")

typedef struct lw_env_counts {
#define C(field, what) int64_t field;
    LW_ENV_COUNTS(C)
#undef C
} lw_env_counts;

typedef enum lw_proof_end {
    LW_PROOF_OPEN,
    LW_PROOF_PROVED,   /* True chosen */
    LW_PROOF_FAILED,   /* False chosen */
    LW_PROOF_STOPPED,  /* Endf chosen */
    LW_PROOF_DEEP,     /* max_depth choices without a proof */
    LW_PROOF_ABANDONED /* walked no further by whoever walks: never set by an env */
} lw_proof_end;

/* One proof being walked. state i of history: atoms[i * padding_atoms ..], n_atoms[i] of them; the
 * last one is the current state. */
typedef struct lw_path {
    lw_atom query;
    lw_proof_end end;
    int32_t depth, next_var, n_states, free_steps;
    uint64_t *hash;
    int32_t *n_atoms;
    lw_atom *atoms;
} lw_path;

/* Successors of a state. Rows live in the env until its next lw_env_moves, or in a copy. */
typedef struct lw_moves {
    int32_t n, next_var;
    lw_atom *atoms;                /* goals of successor k: atoms[first[k] .. first[k + 1]) */
    int32_t *first;                /* [n + 1] */
    uint64_t *hash;                /* [n]: of the goals as a multiset; equal goals, equal hash */
    const lw_proof_origin *origin; /* [n]: the fact or rule used; 0 for Endf and False */
} lw_moves;

typedef struct lw_env lw_env;

lw_env_options lw_env_defaults(void);
/* LW_EUSAGE with the option's name when one is out of its range. */
int lw_env_new(const lw_kb *kb, const lw_env_options *o, lw_env **out);
void lw_env_free(lw_env **pp);
const lw_env_counts *lw_env_counted(const lw_env *e);
void lw_env_counts_add(lw_env_counts *sum, const lw_env_counts *more);

/* n paths in one block of memory, all at their ends until lw_env_begin. */
int lw_paths_new(const lw_env_options *o, int64_t n, lw_path **out);
void lw_paths_free(lw_path **pp);
size_t lw_path_bytes(const lw_env_options *o);

/* Room for n copies of successors in one block, without their origins. */
int lw_moves_new(const lw_env_options *o, int64_t n, lw_moves **out);
void lw_moves_free(lw_moves **pp);
size_t lw_moves_bytes(const lw_env_options *o);
void lw_moves_copy(const lw_moves *from, lw_moves *to);

/* The state is the query alone. Known or not, the query is no fact of this proof. */
void lw_env_begin(const lw_env *e, lw_path *path, lw_atom query);
/* Successors of the path's state; n = 0 when the proof has ended. */
void lw_env_moves(lw_env *e, lw_path *path, lw_moves *out);
/* Goes to successor k of the moves just given for this path. */
void lw_env_take(lw_env *e, lw_path *path, const lw_moves *moves, int32_t k);
/* The same from its goals, their hash and the moves' next_var. */
void lw_env_go(lw_env *e, lw_path *path, const lw_atom *state, int32_t n, uint64_t hash,
               int32_t next_var);

/* Goals of the current state. */
static inline const lw_atom *lw_path_state(const lw_path *p, const lw_env_options *o, int32_t *n)
{
    *n = p->n_atoms[p->n_states - 1];
    return p->atoms + (size_t)(p->n_states - 1) * (size_t)o->padding_atoms;
}

/* Hash of goals as a multiset. */
uint64_t lw_state_hash(const lw_atom *atoms, int32_t n);
/* Equal as multisets. */
bool lw_state_same(const lw_atom *a, const lw_atom *b, int32_t n);

#endif
