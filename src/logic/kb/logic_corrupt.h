/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corruptions: triples that are like a true one but for one argument, streamed.
 *
 * The replacement is never the original. With domains it is a constant of the same domain: the one
 * declared for the predicate's argument (`pred:heads:tails`), else the original's own; a constant
 * without either may become any constant. n of them are drawn without replacement, or all are
 * given in ascending order; `both` is one list, heads first, half of n each (an odd one is a head).
 * Filtered: known positives are passed over and counted, and others drawn in their place while
 * there are any; what cannot be had is absent and counted as missing.
 *
 * A stream is a pure function of (knowledge base, options, query, mode): a cursor of a few words,
 * no list. Drawing is a permutation evaluated at 0, 1, 2, .. (lw_rng_permute), so that n of N
 * needs no memory either.
 */
#ifndef LW_LOGIC_CORRUPT_H
#define LW_LOGIC_CORRUPT_H

#include "logic/kb/logic_queries.h"

typedef enum lw_corrupt_mode {
    LW_CORRUPT_HEAD,
    LW_CORRUPT_TAIL,
    LW_CORRUPT_BOTH,
    LW_CORRUPT_MODES
} lw_corrupt_mode;

typedef enum lw_corrupt_domains {
    LW_DOMAINS_AUTO, /* when the dataset has domains */
    LW_DOMAINS_YES,  /* it must have them */
    LW_DOMAINS_NO
} lw_corrupt_domains;

typedef struct lw_corrupt_options {
    int64_t n;       /* of one query in one mode, 0: all */
    bool filtered;   /* pass over facts and positives */
    int32_t domains; /* lw_corrupt_domains */
    uint64_t seed;
    size_t memory; /* bytes for the table of positives that are no facts, 0: any */
} lw_corrupt_options;

typedef struct lw_corruptor lw_corruptor;

/*
 * positives: n_sets sets of true triples beside the knowledge base's facts (valid, test); copied,
 * may be NULL when n_sets is 0. LW_EUSAGE: n negative, domains asked for and absent, or the table
 * does not fit in `memory`. Read-only afterwards, for any number of threads; kb is borrowed.
 */
int lw_corruptor_new(const lw_kb *kb, const lw_corrupt_options *o,
                     const lw_queries *const *positives, int32_t n_sets, lw_corruptor **out);
void lw_corruptor_free(lw_corruptor **pp);
size_t lw_corruptor_bytes(const lw_corruptor *c);
/* Constants that may stand for argument `side` of `a`, the original not counted. */
int64_t lw_corruptor_pool(const lw_corruptor *c, lw_atom a, int side);

/* How many corruptions all of that side are, and whether `constant` makes one: what the stream of all would
 * give, without going through it. */
int64_t lw_corruptor_count(const lw_corruptor *c, lw_atom a, int side);
bool lw_corruptor_may(const lw_corruptor *c, lw_atom a, int side, int32_t constant);

/* A stream, a plain value. */
typedef struct lw_corruptions {
    lw_atom query;
    lw_corrupt_mode mode;
    int32_t side;                  /* being given: 0 heads, 1 tails, 2 over */
    int64_t at, wanted, pool;      /* of this side; pool < 0: not begun */
    int64_t of_side;               /* given of this side */
    const int32_t *member;         /* of the domain, NULL: all constants */
    int64_t original;              /* its place among the members, -1: not there */
    int64_t given, known, missing; /* so far, of both sides */
} lw_corruptions;

void lw_corruptions_begin(const lw_corruptor *c, lw_atom query, lw_corrupt_mode mode,
                          lw_corruptions *out);
/* The next one; false when there are no more. */
bool lw_corruptions_next(const lw_corruptor *c, lw_corruptions *s, lw_atom *out);

/*
 * One corruption of argument `side` (0 head, 1 tail) for training: uniform over the pool by
 * Philox(key, step, row), one block of numbers in most cases. Filtered: known positives are drawn
 * again a few times, then the next unknown one in order is taken. False when there is none; *out is
 * then the positive.
 */
bool lw_corrupt_one(const lw_corruptor *c, lw_atom positive, int side, lw_rng_key key,
                    uint32_t step, uint64_t row, lw_atom *out);

/* "head", "tail", "both" */
const char *lw_corrupt_mode_name(lw_corrupt_mode m);

#endif
