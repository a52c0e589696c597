/* SPDX-License-Identifier: Apache-2.0 */
/* Labels in ascending order of their costs, and the instances of rules that a settled one completes. */
#include "logic/search/logic_least_parts.h"

#include <string.h>

/* ---- the heap: lowest cost first, of equal ones the lowest label ------------------------------- */

static bool before(lw_least_entry a, lw_least_entry b)
{
    return a.cost != b.cost ? a.cost < b.cost : a.label < b.label;
}

int lw_settling_push(lw_settling *s, int32_t cost, uint32_t label)
{
    LW_TRY(lw_grow(&s->heap, &s->cap_heap, s->n_heap + 1, sizeof *s->heap));
    const lw_least_entry e = {cost, label};
    size_t i = s->n_heap++;
    for (; i > 0 && before(e, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
    return 0;
}

static lw_least_entry take(lw_settling *s)
{
    const lw_least_entry top = s->heap[0], last = s->heap[--s->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < s->n_heap; i = child) {
        if (child + 1 < s->n_heap && before(s->heap[child + 1], s->heap[child]))
            child++;
        if (!before(s->heap[child], last))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return top;
}

bool lw_settling_pop(lw_settling *s, uint32_t *label)
{
    while (s->n_heap > 0) {
        const lw_least_entry e = take(s);
        if (s->settled[e.label])
            continue; /* it had a lower cost */
        s->settled[e.label] = 1;
        *label = e.label;
        return true;
    }
    return false;
}

/* ---- joins ----------------------------------------------------------------------------------- */

/* An instance of a rule being made. */
typedef struct instance {
    lw_settling *s;
    const lw_rule *rule;
    int32_t r;
    const lw_atom *body;
    const uint8_t *order;
    int32_t n_order;
    uint8_t heads;                       /* patterns of the head that are asked for: bits */
    int32_t value[LW_PROOF_MOST_VARS];   /* 0: not known */
    uint32_t number[LW_PROOF_MOST_BODY]; /* of its atoms */
} instance;

static int32_t value_of(const instance *x, int32_t arg)
{
    const lw_kb *kb = x->s->m->kb;
    return lw_kb_is_var(kb, arg) ? x->value[arg - kb->n_constants - 1] : arg;
}

/* Atom `a` of the rule becomes `is`. False: it cannot. *bound: bits of the arguments whose variables got
 * their values by it. */
static bool bind(instance *x, lw_atom a, lw_atom is, unsigned *bound)
{
    const int32_t constants = x->s->m->kb->n_constants;
    *bound = 0;
    for (int i = 0; i < 2; i++) {
        int32_t have = value_of(x, a.arg[i]);
        if (have == 0) {
            x->value[a.arg[i] - constants - 1] = is.arg[i];
            *bound |= 1U << i;
        } else if (have != is.arg[i]) {
            return false;
        }
    }
    return true;
}

static void unbind(instance *x, lw_atom a, unsigned bound)
{
    for (int i = 0; i < 2; i++)
        if (bound & 1U << i)
            x->value[a.arg[i] - x->s->m->kb->n_constants - 1] = 0;
}

static int complete(instance *x)
{
    const lw_least_model *m = x->s->m;
    const lw_atom head = {x->rule->head.p,
                          {value_of(x, x->rule->head.arg[0]), value_of(x, x->rule->head.arg[1])}};
    const int32_t patterns = m->rules.patterns, n = x->rule->n_body;
    uint32_t label[LW_PROOF_MOST_BODY];
    for (int32_t goal = 0; goal < patterns; goal++) {
        const uint8_t *pattern = m->rules.pattern + m->rules.pattern_first[x->r] + goal * n;
        int64_t cost = 1;
        bool all = x->heads >> goal & 1 && (goal != LW_GOAL_SAME || head.arg[0] == head.arg[1]);
        for (int32_t i = 0; i < n && all; i++) {
            label[i] = x->number[i] * (uint32_t)patterns + pattern[i];
            all = x->s->settled[label[i]];
            cost += all ? x->s->cost[label[i]] : 0;
        }
        if (all)
            LW_TRY(x->s->reach(x->s, head, (lw_pattern)goal,
                               (int32_t)LW_MIN(cost, (int64_t)LW_MOST_COST), x->r, label));
    }
    return 0;
}

static int join(instance *x, int32_t at);

static int join_with(instance *x, int32_t at, int32_t i, uint32_t number)
{
    unsigned bound;
    int rc = 0;
    x->number[i] = number;
    if (bind(x, x->body[i], x->s->m->atom[number], &bound))
        rc = join(x, at + 1);
    unbind(x, x->body[i], bound);
    return rc;
}

/* Atoms that joins add may move the lists. */
static int follow(instance *x, int32_t at, int32_t i, const lw_chain *c, int which)
{
    for (uint32_t k = c ? c->newest : 0; k != 0; k = x->s->m->next[which][k - 1])
        LW_TRY(join_with(x, at, i, k - 1));
    return 0;
}

static int join(instance *x, int32_t at)
{
    const lw_least_model *m = x->s->m;
    enum { ASK = 0xffff };
    if ((++x->s->steps & ASK) == 0 && x->s->obs && lw_observe_stop(x->s->obs))
        return lw_fail(LW_ESTOPPED, "interrupted after %zu atoms of the least model", m->n);
    if (at == x->n_order)
        return complete(x);
    const int32_t i = x->order[at];
    const lw_atom a = x->body[i];
    const int32_t first = value_of(x, a.arg[0]), second = value_of(x, a.arg[1]);
    if (first && second) {
        uint32_t k = lw_least_find(m, (lw_atom){a.p, {first, second}});
        return k == LW_NO_ATOM ? 0 : join_with(x, at, i, k);
    }
    if (first)
        return follow(x, at, i, lw_least_chain(m, 0, a.p, first), 0);
    if (second)
        return follow(x, at, i, lw_least_chain(m, 1, a.p, second), 1);
    return follow(x, at, i, &m->of[a.p], 2);
}

/* `given`: the atom of the body that is atom `number`, or n_body for the head. */
static int start(lw_settling *s, int32_t r, int32_t given, lw_atom is, uint32_t number,
                 uint8_t heads)
{
    const lw_least_model *m = s->m;
    const lw_rule *rule = &m->kb->rules[r];
    const bool head = given == rule->n_body;
    instance x;
    x.s = s;
    x.rule = rule;
    x.r = r;
    x.body = m->kb->body + rule->first;
    x.order = m->rules.order + m->rules.order_first[r] + given * rule->n_body;
    x.n_order = rule->n_body - !head;
    x.heads = heads;
    memset(x.value, 0, (size_t)rule->n_vars * sizeof *x.value);
    if (!head)
        x.number[given] = number;
    unsigned bound;
    return bind(&x, head ? rule->head : x.body[given], is, &bound) ? join(&x, 0) : 0;
}

int lw_settling_fire(lw_settling *s, uint32_t label)
{
    const lw_least_rules *rules = &s->m->rules;
    const uint32_t number = label / (uint32_t)rules->patterns,
                   pattern = label % (uint32_t)rules->patterns;
    const lw_atom a = s->m->atom[number];
    for (int32_t u = rules->use_first[a.p]; u < rules->use_first[a.p + 1]; u++)
        if (rules->use[u].heads[pattern])
            LW_TRY(start(s, rules->use[u].rule, rules->use[u].at, a, number,
                         rules->use[u].heads[pattern]));
    return 0;
}

int lw_settling_fire_head(lw_settling *s, uint32_t label)
{
    const lw_kb *kb = s->m->kb;
    const uint32_t patterns = (uint32_t)s->m->rules.patterns;
    const lw_atom a = s->m->atom[label / patterns];
    for (int32_t k = kb->rule_first[a.p]; k < kb->rule_first[a.p + 1]; k++) {
        int32_t r = kb->rule_order[k];
        LW_TRY(start(s, r, kb->rules[r].n_body, a, LW_NO_ATOM, (uint8_t)(1U << label % patterns)));
    }
    return 0;
}
