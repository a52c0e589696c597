/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shortest proof of a query: breadth first over states with canonical variables, each state
 * once. A step is one derivation (logic_unify.h), so the depth of a proof counts as the published
 * depth files do. Memory is bounded: what a search keeps never passes `memory` bytes, and every way
 * of giving up is told from "there is no proof".
 */
#ifndef LW_LOGIC_SEARCH_H
#define LW_LOGIC_SEARCH_H

#include "logic/search/logic_unify.h"

typedef struct lw_search_options {
    int32_t max_depth;      /* steps of a proof */
    int32_t max_atoms;      /* goals of a state, at most LW_PROOF_MOST_ATOMS: longer successors are
                               rejected and counted */
    int32_t max_fact_pairs; /* facts tried of a predicate, 0: all */
    int64_t max_states;     /* different states kept for one query */
    size_t memory;          /* bytes of states, goals and their table, at least 64 KiB */
} lw_search_options;

typedef enum lw_search_end {
    LW_SEARCH_PROVED,
    LW_SEARCH_NONE,   /* there is none: every state was expanded and nothing was cut */
    LW_SEARCH_CUT,    /* what was left after longer states or facts were cut has none */
    LW_SEARCH_DEPTH,  /* states of max_depth steps are left */
    LW_SEARCH_STATES, /* max_states kept */
    LW_SEARCH_MEMORY, /* memory used up */
    LW_SEARCH_ENDS
} lw_search_end;

typedef struct lw_search_result {
    lw_search_end end;
    int32_t depth;      /* steps of the shortest proof, -1: none found */
    int64_t expanded;   /* states whose successors were derived */
    int64_t successors; /* derived */
    int64_t states;     /* kept */
    int64_t atoms_cut, facts_cut;
    bool by_model; /* the least model says so (logic_depths.h), no search did */
} lw_search_result;

typedef struct lw_search lw_search;

/* LW_EUSAGE with the option's name when one is out of range. Memory is taken as it is needed and
 * kept for the next query. */
int lw_search_new(const lw_kb *kb, const lw_search_options *o, lw_search **out);
void lw_search_free(lw_search **pp);
/* LW_ENOMEM when the machine, not the bound, has no more. */
int lw_search_run(lw_search *s, lw_atom query, lw_search_result *out);
/* The steps of the proof just found, first to last: origin[depth]. */
void lw_search_proof(const lw_search *s, lw_proof_origin *origin);

/* Bytes of states, goals and table that the search holds now: never more than `memory`. */
size_t lw_search_bytes(const lw_search *s);

/* "proved", "no proof", "cut", "depth", "states", "memory" */
const char *lw_search_end_name(lw_search_end end);

#endif
