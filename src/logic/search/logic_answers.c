/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: the atoms in one chain of the least model, each asked for its length. */
#include "logic/search/logic_answers.h"

#include <stdlib.h>

#include "logic/search/logic_least_parts.h"

/* An answer unless it is neither a fact nor, without itself, proved. */
static int add(lw_least_asker *q, lw_atom a, lw_answers *out)
{
    lw_answer x = {.atom = a};
    LW_TRY(lw_least_ask(q, a, &x.depth));
    x.fact = lw_facts_find(&lw_least_asker_model(q)->kb->facts, a) >= 0;
    if (!x.fact && x.depth < 0)
        return 0;
    LW_TRY(lw_grow(&out->of, &out->cap, (size_t)out->n + 1, sizeof *out->of));
    out->of[out->n++] = x;
    out->facts += x.fact;
    out->proved += x.depth >= 0;
    return 0;
}

/* All atoms of a chain that the goal's variables leave. */
static int follow(lw_least_asker *q, const lw_chain *c, int which, bool same,
                  const lw_observer *obs, lw_answers *out)
{
    const lw_least_model *m = lw_least_asker_model(q);
    for (uint32_t k = c ? c->newest : 0; k != 0; k = m->next[which][k - 1]) {
        const lw_atom a = m->atom[k - 1];
        if (same && a.arg[0] != a.arg[1])
            continue;
        LW_TRY(add(q, a, out));
        if (obs && lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "interrupted after %lld answers", (long long)out->n);
    }
    return 0;
}

static int by_names(const void *x, const void *y)
{
    const lw_atom a = ((const lw_answer *)x)->atom, b = ((const lw_answer *)y)->atom;
    const int first = (a.arg[0] > b.arg[0]) - (a.arg[0] < b.arg[0]);
    return first ? first : (a.arg[1] > b.arg[1]) - (a.arg[1] < b.arg[1]);
}

int lw_answers_find(const lw_least_model *m, lw_atom goal, const lw_observer *obs, lw_answers *out)
{
    LW_CLEANUP(lw_least_asker_free) lw_least_asker *q = NULL;
    const bool first = lw_kb_is_var(m->kb, goal.arg[0]), second = lw_kb_is_var(m->kb, goal.arg[1]);
    *out = (lw_answers){0};
    LW_TRY(lw_least_asker_new(m, &q));
    if (!first && !second)
        return lw_least_model_has(m, goal) ? add(q, goal, out) : 0;
    if (first && second)
        LW_TRY(follow(q, &m->of[goal.p], 2, goal.arg[0] == goal.arg[1], obs, out));
    else
        LW_TRY(
            follow(q, lw_least_chain(m, first, goal.p, goal.arg[first]), first, false, obs, out));
    if (out->n > 0)
        qsort(out->of, (size_t)out->n, sizeof *out->of, by_names);
    return 0;
}

void lw_answers_clear(lw_answers *a)
{
    lw_free(&a->of);
    *a = (lw_answers){0};
}
