/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules applied once, a whole goal at a time: what p(a,V) or p(V,b) gets when each rule's body is matched with
 * the facts, and by which rules. This is how learned rules are scored for link prediction; rules are not
 * chained (logic_least_model.h does that).
 *
 *   goal -> for each rule of p, most confident first: join its body's atoms, those with most known arguments
 *           first, keep only the variables that are still needed, each row once -> constants
 *        -> of each constant the rules that gave it -> one score
 *
 * Score: `max` the highest confidence; `max-plus` that, ties by the next highest and so on; `noisy-or`
 * 1 - product(1 - confidence), which wants confidences in [0, 1]. A constant that no rule gives is below all.
 */
#ifndef LW_LOGIC_RULE_ANSWERS_H
#define LW_LOGIC_RULE_ANSWERS_H

#include "base/base.h"
#include "logic/kb/logic_kb.h"

typedef enum lw_rule_score {
    LW_RULE_MAX_PLUS,
    LW_RULE_MAX,
    LW_RULE_NOISY_OR,
    LW_RULE_SCORES
} lw_rule_score;
#define LW_RULE_SCORE_CHOICES "max-plus|max|noisy-or"

typedef struct lw_rule_plans lw_rule_plans;
/* confidence[n_rules], or NULL: the rules' own weights. LW_EFORMAT: one that is not finite, or for noisy-or
 * outside [0, 1]. Borrows kb; read-only afterwards, for any number of threads. */
int lw_rule_plans_new(const lw_kb *kb, const double *confidence, lw_rule_score score,
                      lw_rule_plans **out);
void lw_rule_plans_free(lw_rule_plans **pp);

/* Confidences of kb's rules from a text: a number at the end of each line (what stands before it, a rule or its
 * name, is not read), as many lines as rules, in their order. LW_EFORMAT with the line. confidence[n_rules]. */
int lw_rule_confidences(const lw_kb *kb, const char *path, lw_span text, double *confidence);

/* Answers of one goal at a time; one thread each. */
typedef struct lw_rule_asker lw_rule_asker;
int lw_rule_asker_new(const lw_rule_plans *p, lw_rule_asker **out);
void lw_rule_asker_free(lw_rule_asker **pp);

/* The goal that is `query` with argument `side` unknown. without: the query itself is no fact. Until the next
 * call the asker has its answers. LW_ENOMEM naming the rule whose body has more than 4 million matches. */
int lw_rule_ask(lw_rule_asker *q, lw_atom query, int side, bool without);
/* Constants with a score, in the order in which they were found. */
int32_t lw_rule_answers(const lw_rule_asker *q, const int32_t **constant);
/* 1, 0, -1: constant x is above, level with, below y. */
int lw_rule_compare(const lw_rule_asker *q, int32_t x, int32_t y);
/* The score as one number (max-plus: the highest confidence); 0 without a rule. */
double lw_rule_value(const lw_rule_asker *q, int32_t x);
/* Remembers the score of x, whatever is asked next; then compares with what was remembered. */
int lw_rule_keep(lw_rule_asker *q, int32_t x);
int lw_rule_compare_kept(const lw_rule_asker *q, int32_t x);

#endif
