/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the least model share. A label is an atom in a pattern: number * patterns + pattern. */
#ifndef LW_LOGIC_LEAST_PARTS_H
#define LW_LOGIC_LEAST_PARTS_H

#include "logic/search/logic_least_model.h"

typedef enum lw_pattern {
    LW_GOAL_KNOWN, /* p(a,b) */
    LW_GOAL_HEAD,  /* p(a,V) */
    LW_GOAL_TAIL,  /* p(V,b) */
    LW_GOAL_OPEN,  /* p(V,W) */
    LW_GOAL_SAME,  /* p(V,V) */
    LW_GOAL_PATTERNS
} lw_pattern;

enum { LW_NO_COST = INT32_MAX, LW_MOST_COST = INT32_MAX / 2 };
#define LW_NO_ATOM UINT32_MAX

/* ---- rules, made ready for joins (logic_least_rules.c) ----------------------------------------- */

/* An atom of a rule's body. */
typedef struct lw_use {
    int32_t rule, at;
    uint8_t heads[LW_GOAL_PATTERNS]; /* of each pattern it may be selected in: bits of the goals' */
} lw_use;

typedef struct lw_least_rules {
    int32_t patterns;   /* LW_GOAL_PATTERNS, or 1: all goals count as known */
    lw_use *use;        /* by predicate */
    int32_t *use_first; /* [n_predicates + 2] */
    /* Of rule r, body of n: at order_first[r], n + 1 rows of n: the atoms to be joined when atom i is given,
     * those with most known arguments first (row n: when the head is). At pattern_first[r], a row of n for
     * each pattern of the goal: those of its atoms. */
    uint8_t *order;
    uint8_t *pattern;
    int32_t *order_first, *pattern_first; /* [n_rules] */
} lw_least_rules;

int lw_least_rules_make(const lw_kb *kb, int32_t patterns, lw_least_rules *out);
void lw_least_rules_clear(lw_least_rules *r);

/* ---- atoms ------------------------------------------------------------------------------------- */

/* The atoms of a predicate with one argument, newest first. */
typedef struct lw_chain {
    int32_t p, arg;
    uint32_t newest, n; /* number + 1 */
} lw_chain;

/* The atoms, chained as joins look them up; of each, what its labels cost and the instance of a rule that gave it. */
struct lw_least_model {
    const lw_kb *kb;
    lw_least_rules rules;
    size_t memory;
    int32_t most_cost;
    lw_atom *atom;
    uint32_t *next
        [3]; /* [n] number + 1 of the next in the chain by first, by second argument, of the predicate */
    size_t n, cap, cap_next[3];
    uint32_t *slot; /* number + 1 of an atom */
    size_t n_slots;
    lw_chain *chain[2];
    size_t n_chains[2], n_used[2];
    lw_chain *of;    /* [n_predicates + 1] of a predicate */
    int32_t *cost;   /* [n * patterns] */
    uint32_t *proof; /* [n * patterns] its place in `body`; 0: none, or a fact */
    size_t cap_cost, cap_proof;
    uint32_t *body; /* a rule, then its atoms' labels */
    size_t n_body, cap_body;
    /* labels whose proofs have label l: user[user_first[l] .. user_first[l + 1]) */
    uint32_t *user, *user_first;
};

const lw_least_model *lw_least_asker_model(const lw_least_asker *q);
uint32_t lw_least_find(const lw_least_model *m, lw_atom a); /* LW_NO_ATOM: none */
const lw_chain *lw_least_chain(const lw_least_model *m, int side, int32_t p, int32_t arg);

/* ---- costs being settled ----------------------------------------------------------------------- */

typedef struct lw_least_entry {
    int32_t cost;
    uint32_t label;
} lw_least_entry;

typedef struct lw_settling lw_settling;
struct lw_settling {
    const lw_least_model *m;
    int32_t *cost;    /* [labels] best so far */
    uint8_t *settled; /* [labels] */
    lw_least_entry *heap;
    size_t n_heap, cap_heap;
    /* A cost of a label that an instance gives: rule and labels of its body. */
    int (*reach)(lw_settling *s, lw_atom head, lw_pattern pattern, int32_t cost, int32_t rule,
                 const uint32_t *body);
    const lw_observer *obs;
    int64_t steps; /* of joins */
};

int lw_settling_push(lw_settling *s, int32_t cost, uint32_t label);
/* The next label to be settled, that is its cost is final; false: none is left. */
bool lw_settling_pop(lw_settling *s, uint32_t *label);
/* Instances of rules with label l in the body, all others settled. */
int lw_settling_fire(lw_settling *s, uint32_t label);
/* Instances with this label as the head. */
int lw_settling_fire_head(lw_settling *s, uint32_t label);

#endif
