/* SPDX-License-Identifier: Apache-2.0 */
/* Queries to a least model. One that is no fact is looked up; without a fact, what stands on it is settled again. */
#include "logic/search/logic_least_parts.h"

#include <string.h>

struct lw_least_asker {
    lw_settling
        s;       /* first: `reach` gets it; its costs are those of the model between two queries */
    uint8_t *in; /* [labels] stands on the query */
    uint32_t *list;
    size_t n_list, cap_list;
};

const lw_least_model *lw_least_asker_model(const lw_least_asker *q)
{
    return q->s.m;
}

static size_t labels_of(const lw_least_model *m)
{
    return m->n * (size_t)m->rules.patterns;
}

static int reach(lw_settling *s, lw_atom head, lw_pattern pattern, int32_t cost, int32_t rule,
                 const uint32_t *body)
{
    lw_least_asker *q = (lw_least_asker *)s;
    (void)rule;
    (void)body;
    if (cost > s->m->most_cost)
        return 0;
    const uint32_t label = lw_least_find(s->m, head) * (uint32_t)s->m->rules.patterns +
                           (uint32_t)pattern;
    if (!q->in[label] || cost >= s->cost[label])
        return 0;
    s->cost[label] = cost;
    return lw_settling_push(s, cost, label);
}

int lw_least_asker_new(const lw_least_model *m, lw_least_asker **out)
{
    const size_t n = labels_of(m);
    LW_CLEANUP(lw_least_asker_free) lw_least_asker *q = lw_calloc(1, sizeof *q);
    if (!q)
        return LW_ENOMEM;
    q->s = (lw_settling){.m = m, .reach = reach};
    q->s.cost = lw_calloc(n + 1, sizeof *q->s.cost);
    q->s.settled = lw_calloc(n + 1, 1);
    q->in = lw_calloc(n + 1, 1);
    if (!q->s.cost || !q->s.settled || !q->in)
        return LW_ENOMEM;
    memcpy(q->s.cost, m->cost, n * sizeof *m->cost);
    for (size_t l = 0; l < n; l++)
        q->s.settled[l] = m->cost[l] != LW_NO_COST;
    *out = q;
    q = NULL;
    return 0;
}

void lw_least_asker_free(lw_least_asker **pp)
{
    lw_least_asker *q = *pp;
    if (!q)
        return;
    lw_free(&q->s.cost);
    lw_free(&q->s.settled);
    lw_free(&q->s.heap);
    lw_free(&q->in);
    lw_free(&q->list);
    lw_free(pp);
}

static int take_out(lw_least_asker *q, uint32_t label)
{
    if (q->in[label])
        return 0;
    LW_TRY(lw_grow(&q->list, &q->cap_list, q->n_list + 1, sizeof *q->list));
    q->list[q->n_list++] = label;
    q->in[label] = 1;
    q->s.settled[label] = 0;
    q->s.cost[label] = LW_NO_COST;
    return 0;
}

/* The labels of a fact, and all whose proofs stand on these. */
static int take_out_all(lw_least_asker *q, uint32_t number)
{
    const lw_least_model *m = q->s.m;
    for (int32_t p = 0; p < m->rules.patterns; p++) {
        const uint32_t label = number * (uint32_t)m->rules.patterns + (uint32_t)p;
        if (m->cost[label] != LW_NO_COST)
            LW_TRY(take_out(q, label));
    }
    for (size_t i = 0; i < q->n_list; i++)
        for (uint32_t l = q->list[i], u = m->user_first[l]; u < m->user_first[l + 1]; u++)
            LW_TRY(take_out(q, m->user[u]));
    return 0;
}

static void put_back(lw_least_asker *q)
{
    for (size_t i = 0; i < q->n_list; i++) {
        const uint32_t l = q->list[i];
        q->in[l] = 0;
        q->s.settled[l] = 1;
        q->s.cost[l] = q->s.m->cost[l];
    }
    q->n_list = q->s.n_heap = 0;
}

static int settle_again(lw_least_asker *q, uint32_t wanted)
{
    uint32_t label;
    for (size_t i = 0; i < q->n_list; i++)
        LW_TRY(lw_settling_fire_head(&q->s, q->list[i]));
    while (!q->s.settled[wanted] && lw_settling_pop(&q->s, &label))
        LW_TRY(lw_settling_fire(&q->s, label));
    return 0;
}

int lw_least_ask(lw_least_asker *q, lw_atom query, int32_t *depth)
{
    const lw_least_model *m = q->s.m;
    const uint32_t number = lw_least_find(m, query);
    const bool lengths = m->rules.patterns > 1;
    *depth = -1;
    if (number == LW_NO_ATOM)
        return 0;
    const uint32_t label = number * (uint32_t)m->rules.patterns + LW_GOAL_KNOWN;
    int rc = 0;
    if (lw_facts_find(&m->kb->facts, query) >= 0) {
        rc = take_out_all(q, number);
        rc = rc < 0 ? rc : settle_again(q, label);
    }
    if (rc == 0 && q->s.settled[label])
        *depth = lengths ? q->s.cost[label] : 0;
    put_back(q);
    return rc;
}
