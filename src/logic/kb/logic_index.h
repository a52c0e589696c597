/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts sorted by (predicate, first, second argument), with what a goal needs to find its own:
 * the range of a predicate, of a predicate and its first argument (a range of the same order), of
 * a predicate and its second argument (a range of `by_second`), and one fact by all three.
 */
#ifndef LW_LOGIC_INDEX_H
#define LW_LOGIC_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "logic/kb/logic_atom.h"

/* Rows [first, first + n) of an order of the facts. */
typedef struct lw_fact_range {
    int32_t first, n;
} lw_fact_range;

/* One entry of a table from (predicate, argument) to a range; p 0 is empty. */
typedef struct lw_fact_key {
    int32_t p, arg, first, n;
} lw_fact_key;

/* One entry of the table of facts; the atom is here too, so that a look-up reads one place. p 0 is
 * empty. */
typedef struct lw_fact_slot {
    lw_atom atom;
    int32_t fact;
} lw_fact_slot;

typedef struct lw_facts {
    lw_atom *atom; /* [n], sorted, no duplicates */
    int32_t n;
    int32_t *by_second;  /* [n] numbers of facts, by (predicate, second, first) */
    int32_t *pred_first; /* [n_predicates + 2] */
    lw_fact_key *key[2]; /* by first and by second argument */
    size_t n_keys[2];    /* powers of two */
    lw_fact_slot *slot;  /* one fact by all three */
    size_t n_slots;
} lw_facts;

/* Takes over atom[n] (any order, duplicates allowed; n >= 1), sorts and indexes it. */
int lw_facts_index(lw_facts *f, lw_atom *atom, int32_t n, int32_t n_predicates);
void lw_facts_clear(lw_facts *f);
uint64_t lw_facts_bytes(const lw_facts *f, int32_t n_predicates);

/* Number of the fact, -1: not one. */
int32_t lw_facts_find(const lw_facts *f, lw_atom a);
/* Facts of predicate p whose argument `side` (0 or 1) is arg: side 0 in `atom`, side 1 in
 * `by_second`; both ascend in the other argument. */
lw_fact_range lw_facts_with(const lw_facts *f, int32_t p, int side, int32_t arg);

static inline lw_fact_range lw_facts_of(const lw_facts *f, int32_t p)
{
    return (lw_fact_range){f->pred_first[p], f->pred_first[p + 1] - f->pred_first[p]};
}

#endif
