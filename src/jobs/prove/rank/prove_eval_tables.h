/* SPDX-License-Identifier: Apache-2.0 */
/* An evaluation's lists in groups, and the tables that terminal and page share. */
#ifndef LW_PROVE_EVAL_TABLES_H
#define LW_PROVE_EVAL_TABLES_H

#include "jobs/prove/rank/prove_eval_parts.h"
#include "report/report.h"

typedef enum lw_prove_by {
    LW_PROVE_BY_PREDICATE,
    LW_PROVE_BY_PUBLISHED, /* depth of the annotation file */
    LW_PROVE_BY_WALKED,    /* depth of the query's own proof */
    LW_PROVE_BYS
} lw_prove_by;

typedef struct lw_prove_group {
    const char *predicate; /* its name, of any length; NULL: the group is of another kind */
    char other[16];        /* "3", "no proof", "not annotated" */
    int32_t key;
    lw_prove_means m;
} lw_prove_group;

/* Groups that are not empty, predicates by name, depths rising and "no proof" last. Heap array. */
int lw_prove_groups(const lw_prove_context *c, const lw_prove_eval *e, lw_prove_by by,
                    lw_prove_group **out, int32_t *n);
const char *lw_prove_group_name(const lw_prove_group *g);
/* When there are more than `most` (0: any number): the largest, largest first. */
void lw_prove_keep_largest(lw_prove_group *g, int32_t *n, int32_t most);
/* Empty tables have no rows. most: rows shown, 0: all; the largest groups then. of: how many there are. */
int lw_prove_mode_table(const lw_prove_context *c, const lw_prove_eval *e, lw_table *t);
int lw_prove_group_table(const lw_prove_context *c, const lw_prove_eval *e, lw_prove_by by,
                         int32_t most, lw_table *t, int32_t *of);
int lw_prove_step_table(const lw_prove_eval *e, lw_table *t);
/* Limits that were met; `all`: every counter. */
int lw_prove_cut_table(const lw_prove_eval *e, bool all, lw_table *t);

/* What a score is, in one line. */
void lw_prove_score_rule(const lw_prove_eval_options *o, lw_str *out);
/* What was ranked against what, in one line. */
/* A line on what a prover that finds every proof would reach, or nothing. */
void lw_prove_ceiling(const lw_prove_context *c, const lw_prove_eval *e, lw_str *out);
void lw_prove_candidates_rule(const lw_prove_context *c, const lw_prove_eval *e, lw_str *out);
/* Share of looked-up states that were there, NaN when none was looked up. */
double lw_prove_hit_rate(const lw_prove_eval *e);
/* Whole lists without any corruption: their rank says nothing. */
int64_t lw_prove_alone(const lw_prove_eval *e);
int64_t lw_prove_total(const lw_prove_eval *e, int field); /* 0: known, 1: missing */
/* report.html */
int lw_prove_page(const lw_prove_context *c, const lw_prove_eval *e, const char *path);

#endif
