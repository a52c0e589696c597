/* SPDX-License-Identifier: Apache-2.0 */
/* Private to logic_rule_plans.c and logic_rule_answers.c: bodies as sequences of joins. */
#ifndef LW_LOGIC_RULE_PLANS_H
#define LW_LOGIC_RULE_PLANS_H

#include "logic/search/logic_rule_answers.h"

/* Where a value comes from: a constant, the goal's known argument, a column of the row so far, or the fact. */
typedef enum lw_value_of { LW_OF_CONSTANT, LW_OF_GOAL, LW_OF_COLUMN, LW_OF_FACT } lw_value_of;

typedef struct lw_value {
    uint8_t of;
    uint8_t column; /* of the row, or argument of the fact */
    int32_t constant;
} lw_value;

/* A row meets the facts of one atom. */
typedef struct lw_join {
    int32_t p;
    lw_value arg[2]; /* LW_OF_FACT: not known yet */
    bool same;       /* both are one variable, not known yet */
    uint8_t width;   /* of the rows that come out */
    lw_value out[LW_PROOF_MOST_VARS];
} lw_join;

/* A rule asked for argument `side` of its head. */
typedef struct lw_rule_plan {
    int32_t rule, rank; /* rank: of its confidence, 0 the highest; equal ones share it */
    lw_value given; /* what the head has in the known place: LW_OF_GOAL, or a constant it must be */
    lw_value answer;  /* in the other: column 0 of the last row, a constant, or the goal's own */
    int32_t first, n; /* joins */
} lw_rule_plan;

struct lw_rule_plans {
    const lw_kb *kb;
    lw_rule_score score;
    double *confidence, *by_rank; /* [n_rules], [ranks] */
    lw_rule_plan *plan[2];        /* [n_rules] by predicate, then rank */
    int32_t *first;               /* [n_predicates + 2] */
    lw_join *join;
    size_t n_joins, cap_joins;
};

#endif
