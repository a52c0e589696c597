/* SPDX-License-Identifier: Apache-2.0 */
/* All answers of a goal with variables, read off the least model at once. */
#ifndef LW_LOGIC_ANSWERS_H
#define LW_LOGIC_ANSWERS_H

#include "logic/search/logic_least_model.h"

typedef struct lw_answer {
    lw_atom atom;
    int32_t depth; /* as lw_least_ask: without itself as a fact; -1: only a fact */
    bool fact;
} lw_answer;

typedef struct lw_answers {
    lw_answer *of; /* in the order of their arguments' names */
    int64_t n, facts, proved;
    size_t cap;
} lw_answers;

/* goal: p(a,V), p(V,b), p(V,W), p(V,V), or an atom, which has at most itself as an answer. LW_ENOMEM;
 * LW_ESTOPPED when the observer (may be NULL) asks for it. */
int lw_answers_find(const lw_least_model *m, lw_atom goal, const lw_observer *obs, lw_answers *out);
void lw_answers_clear(lw_answers *a);

#endif
