/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a knowledge base, and which of its parts meet the limits of a proof environment. */
#ifndef LW_LOGIC_SURVEY_H
#define LW_LOGIC_SURVEY_H

#include "logic/search/logic_env.h"
#include "logic/kb/logic_kb.h"

typedef struct lw_predicate_survey {
    int32_t facts, heads, bodies; /* facts; rules it heads; atoms of bodies */
    int32_t most_tails;           /* facts with the same first argument */
    int32_t most_heads;           /* facts with the same second argument */
    bool recursive;               /* a rule chain leads from it back to it */
} lw_predicate_survey;

typedef struct lw_survey {
    lw_predicate_survey *of; /* [n_predicates + 1] */
    int32_t recursive;       /* predicates on a cycle of rules */
    int32_t no_source;       /* predicates of bodies with neither facts nor rules */
    int32_t pairs_cut;       /* predicates with more facts than max_fact_pairs */
    int32_t states_cut;      /* predicates of which a goal with one constant can have more
                                successors than padding_states */
    int32_t free_cut;        /* likewise, a goal with no constant */
    int32_t long_rules;      /* rules with more atoms in the body than padding_atoms */
} lw_survey;

/* Adds what is doubtful to problems->warnings. */
int lw_survey_run(const lw_kb *kb, const lw_env_options *o, lw_problems *problems, lw_survey *out);
void lw_survey_clear(lw_survey *s);

#endif
