/* SPDX-License-Identifier: Apache-2.0 */
/* Replaying a derivation with all its bindings, which the search forgets. */
#include "logic/search/logic_trace.h"

#include <string.h>

#include "base/base.h"

typedef struct replay {
    const lw_kb *kb;
    lw_atom query;
    lw_trace *t;
    size_t cap;
    int32_t *term; /* of variable n_constants + 1 + i, 0: free */
    size_t n_vars, cap_vars;
    int32_t *goal; /* open nodes, the first goal last */
    size_t n_goals, cap_goals;
} replay;

static int32_t value(const replay *r, int32_t x)
{
    while (x > r->kb->n_constants && r->term[x - r->kb->n_constants - 1] != 0)
        x = r->term[x - r->kb->n_constants - 1];
    return x;
}

static lw_atom value_of(const replay *r, lw_atom a)
{
    return (lw_atom){a.p, {value(r, a.arg[0]), value(r, a.arg[1])}};
}

static bool unify(replay *r, lw_atom a, lw_atom b)
{
    int32_t constants = r->kb->n_constants;
    for (int i = 0; i < 2; i++) {
        int32_t x = value(r, a.arg[i]), y = value(r, b.arg[i]);
        if (x == y)
            continue;
        if (x > constants)
            r->term[x - constants - 1] = y;
        else if (y > constants)
            r->term[y - constants - 1] = x;
        else
            return false;
    }
    return a.p == b.p;
}

static int add_node(replay *r, lw_atom a, int32_t parent)
{
    LW_TRY(lw_grow(&r->t->node, &r->cap, (size_t)r->t->n + 1, sizeof *r->t->node));
    r->t->node[r->t->n++] = (lw_trace_node){.atom = a, .parent = parent};
    return 0;
}

static lw_atom shifted(const replay *r, lw_atom a, size_t by)
{
    for (int j = 0; j < 2; j++)
        if (a.arg[j] > r->kb->n_constants)
            a.arg[j] += (int32_t)by;
    return a;
}

/* The node becomes the head of a rule with fresh variables; its body's atoms the next goals. */
static int apply_rule(replay *r, int32_t at, const lw_rule *rule, bool *ok)
{
    size_t by = r->n_vars;
    LW_TRY(lw_grow(&r->term, &r->cap_vars, r->n_vars + (size_t)rule->n_vars + 1, sizeof *r->term));
    r->n_vars += (size_t)rule->n_vars;
    LW_TRY(lw_grow(&r->goal, &r->cap_goals, r->n_goals + (size_t)rule->n_body, sizeof *r->goal));
    *ok = unify(r, shifted(r, rule->head, by), r->t->node[at].atom);
    r->t->node[at].child = r->t->n;
    r->t->node[at].n_children = rule->n_body;
    for (int32_t i = 0; i < rule->n_body; i++)
        LW_TRY(add_node(r, shifted(r, r->kb->body[rule->first + i], by), at));
    for (int32_t i = rule->n_body - 1; i >= 0; i--)
        r->goal[r->n_goals++] = r->t->node[at].child + i;
    return 0;
}

/* Goals that have become known facts are proved. */
static void prune(replay *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->n_goals; i++) {
        lw_trace_node *x = &r->t->node[r->goal[i]];
        lw_atom a = value_of(r, x->atom);
        bool ground = a.arg[0] <= r->kb->n_constants && a.arg[1] <= r->kb->n_constants;
        if (ground && lw_known(r->kb, a, r->query))
            x->origin = lw_facts_find(&r->kb->facts, a);
        else
            r->goal[kept++] = r->goal[i];
    }
    r->n_goals = kept;
}

static int step(replay *r, lw_proof_origin origin, bool *ok)
{
    *ok = r->n_goals > 0 && origin < r->kb->facts.n && ~origin < r->kb->n_rules;
    if (!*ok)
        return 0;
    int32_t at = r->goal[--r->n_goals];
    r->t->node[at].origin = origin;
    if (origin >= 0)
        *ok = unify(r, r->kb->facts.atom[origin], r->t->node[at].atom);
    else
        LW_TRY(apply_rule(r, at, &r->kb->rules[~origin], ok));
    prune(r);
    return 0;
}

static int replay_all(replay *r, const lw_proof_origin *origin, int32_t steps)
{
    bool ok = true;
    LW_TRY(add_node(r, r->query, -1));
    LW_TRY(lw_grow(&r->goal, &r->cap_goals, 1, sizeof *r->goal));
    r->n_goals = 1;
    for (int32_t i = 0; i < steps && ok; i++)
        LW_TRY(step(r, origin[i], &ok));
    if (!ok || r->n_goals > 0)
        return lw_fail(LW_EFORMAT, "these steps do not prove the query");
    for (int32_t i = 0; i < r->t->n; i++)
        r->t->node[i].atom = value_of(r, r->t->node[i].atom);
    return 0;
}

int lw_trace_build(const lw_kb *kb, lw_atom query, const lw_proof_origin *origin, int32_t steps,
                   lw_trace *out)
{
    LW_CLEANUP(lw_trace_clear) lw_trace t = {.steps = steps};
    replay r = {.kb = kb, .query = query, .t = &t};
    int rc = replay_all(&r, origin, steps);
    lw_free(&r.term);
    lw_free(&r.goal);
    LW_TRY(rc);
    *out = t;
    t = (lw_trace){0};
    return 0;
}

void lw_trace_clear(lw_trace *t)
{
    lw_free(&t->node);
    *t = (lw_trace){0};
}
