/* SPDX-License-Identifier: Apache-2.0 */
/* The queries of one split, with the proof depths that came with the dataset. */
#ifndef LW_LOGIC_QUERIES_H
#define LW_LOGIC_QUERIES_H

#include "logic/kb/logic_kb.h"

enum { LW_DEPTH_NONE = -1, LW_DEPTH_UNKNOWN = -2 }; /* no proof; nobody said */

/* Which queries a limit leaves: files are often sorted by predicate. */
typedef enum lw_query_order {
    LW_QUERY_SPACED, /* evenly over the file */
    LW_QUERY_FIRST,
    LW_QUERY_RANDOM, /* drawn; the other two and this in the order of the file */
    LW_QUERY_ORDERS
} lw_query_order;

typedef struct lw_query_options {
    const char *split;    /* "test": test.txt and test_depths.txt of the dataset's directory; also
                             .tsv, and dev.* for "valid" */
    bool filter_by_rules; /* leave out queries whose predicate heads no rule */
    bool skip_unknown;    /* leave out queries with unknown names; else they are errors */
    int64_t limit;        /* at most so many, 0: all */
    int32_t order;        /* lw_query_order, of a limit */
    uint64_t seed;        /* of LW_QUERY_RANDOM */
    bool optional;        /* a split without a file has no queries, instead of LW_EIO */
} lw_query_options;

typedef struct lw_queries {
    lw_atom *atom;
    int32_t *published; /* depth of the annotation file, LW_DEPTH_NONE or LW_DEPTH_UNKNOWN */
    int32_t n, annotated;
    int64_t lines;            /* queries in the file */
    int64_t no_rule, unknown; /* left out */
    int64_t uncut;            /* before the limit; n: it cut nothing */
    int32_t predicates,
        predicates_cut; /* of these queries, and those of which the limit left none */
    bool absent;        /* an optional split has no file */
} lw_queries;

/* LW_EIO when the split has no file; LW_EFORMAT with file and line of the first bad line. An empty
 * file has n = 0. */
int lw_queries_open(const lw_kb *kb, const lw_query_options *o, lw_problems *problems,
                    lw_queries *out);
/* The same from texts in memory; depths may be empty. */
int lw_queries_parse(const lw_kb *kb, const lw_query_options *o, lw_span queries, lw_span depths,
                     lw_problems *problems, lw_queries *out);
/* n of all, 0 or more than there are: all of them. LW_ENOMEM. */
int lw_queries_choose(const lw_queries *all, int64_t n, lw_query_order order, uint64_t seed,
                      lw_queries *out);
void lw_queries_clear(lw_queries *q);

/* What is true beside the facts: train, valid and test as far as they are there, without the
 * queries whose names nobody knows, which no corruption can equal. */
enum { LW_QUERIES_TRAIN, LW_QUERIES_VALID, LW_QUERIES_TEST, LW_QUERIES_SPLITS };
typedef struct lw_positives {
    lw_queries split[LW_QUERIES_SPLITS];
    const lw_queries *set[LW_QUERIES_SPLITS]; /* of the above: do not copy the struct */
} lw_positives;
int lw_positives_open(const lw_kb *kb, lw_positives *out);
void lw_positives_clear(lw_positives *p);

#endif
