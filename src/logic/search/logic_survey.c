/* SPDX-License-Identifier: Apache-2.0 */
/* Counts by predicate, cycles among rules, cap warnings. */
#include "logic/search/logic_survey.h"

/* Strongly connected predicates by Tarjan's algorithm (1972) with a stack of its own, so that a
 * chain of a million rules cannot overflow ours. An edge goes from a head to each of its bodies. */
typedef struct visit {
    int32_t p, rule, atom; /* where its edges are being followed */
} visit;

typedef struct cycles {
    const lw_kb *kb;
    lw_predicate_survey *of;
    int32_t *index, *low, *stack; /* index: 0 not seen */
    visit *open;
    int32_t seen, n_stack, n_open;
    bool *on_stack;
} cycles;

static void enter(cycles *c, int32_t p)
{
    c->index[p] = c->low[p] = ++c->seen;
    c->stack[c->n_stack++] = p;
    c->on_stack[p] = true;
    c->open[c->n_open++] = (visit){p, c->kb->rule_first[p], 0};
}

/* Closes a component; one of a single predicate is a cycle only with an edge to itself (marked
 * while it was followed). */
static void leave(cycles *c, int32_t p)
{
    int32_t top, size = 0;
    do {
        top = c->stack[--c->n_stack];
        c->on_stack[top] = false;
        size++;
        if (size > 1 || top != p)
            c->of[top].recursive = true;
    } while (top != p);
}

static void follow(cycles *c, int32_t root)
{
    const lw_kb *kb = c->kb;
    enter(c, root);
    while (c->n_open > 0) {
        visit *v = &c->open[c->n_open - 1];
        if (v->rule == kb->rule_first[v->p + 1]) {
            int32_t p = v->p;
            if (c->low[p] == c->index[p])
                leave(c, p);
            if (--c->n_open > 0)
                c->low[v[-1].p] = LW_MIN(c->low[v[-1].p], c->low[p]);
            continue;
        }
        const lw_rule *r = &kb->rules[kb->rule_order[v->rule]];
        if (v->atom == r->n_body) {
            v->rule++;
            v->atom = 0;
            continue;
        }
        int32_t q = kb->body[r->first + v->atom++].p;
        if (q == v->p)
            c->of[q].recursive = true;
        if (c->index[q] == 0)
            enter(c, q);
        else if (c->on_stack[q])
            c->low[v->p] = LW_MIN(c->low[v->p], c->index[q]);
    }
}

static int find_cycles(const lw_kb *kb, lw_predicate_survey *of)
{
    size_t n = (size_t)kb->n_predicates + 1;
    LW_CLEANUP(lw_free) int32_t *numbers = lw_calloc(3 * n, sizeof *numbers);
    LW_CLEANUP(lw_free) visit *open = lw_calloc(n, sizeof *open);
    LW_CLEANUP(lw_free) bool *on_stack = lw_calloc(n, sizeof *on_stack);
    if (!numbers || !open || !on_stack)
        return LW_ENOMEM;
    cycles c = {.kb = kb,
                .of = of,
                .index = numbers,
                .low = numbers + n,
                .stack = numbers + 2 * n,
                .open = open,
                .on_stack = on_stack};
    for (int32_t p = 1; p <= kb->n_predicates; p++)
        if (c.index[p] == 0)
            follow(&c, p);
    return 0;
}

static void count(const lw_kb *kb, lw_predicate_survey *of)
{
    for (int side = 0; side < 2; side++)
        for (size_t k = 0; k < kb->facts.n_keys[side]; k++) {
            const lw_fact_key *key = &kb->facts.key[side][k];
            int32_t *most = side ? &of[key->p].most_heads : &of[key->p].most_tails;
            *most = LW_MAX(*most, key->n);
        }
    for (int32_t p = 1; p <= kb->n_predicates; p++) {
        of[p].facts = lw_facts_of(&kb->facts, p).n;
        of[p].heads = kb->rule_first[p + 1] - kb->rule_first[p];
    }
    for (int32_t r = 0; r < kb->n_rules; r++)
        for (int32_t i = 0; i < kb->rules[r].n_body; i++)
            of[kb->body[kb->rules[r].first + i].p].bodies++;
}

static void warn(const lw_kb *kb, const lw_env_options *o, lw_problems *problems,
                 const lw_survey *s)
{
    lw_problem_list *w = &problems->warnings;
    if (s->pairs_cut)
        lw_problem_add(w, kb->dir, 0, "%d predicate%s more than %d facts: the rest is not tried",
                       s->pairs_cut, s->pairs_cut == 1 ? " has" : "s have", o->max_fact_pairs);
    if (s->states_cut)
        lw_problem_add(w, kb->dir, 0,
                       "goals with one constant of %d predicate%s can have more than %d successors",
                       s->states_cut, s->states_cut == 1 ? "" : "s", o->padding_states);
    if (s->free_cut)
        lw_problem_add(w, kb->dir, 0,
                       "goals without a constant of %d predicate%s have more than %d successors",
                       s->free_cut, s->free_cut == 1 ? "" : "s", o->padding_states);
    if (s->long_rules)
        lw_problem_add(w, kb->dir, 0,
                       "%d rule%s more than %d atoms in the body: most successors are rejected",
                       s->long_rules, s->long_rules == 1 ? " has" : "s have", o->padding_atoms);
    if (kb->duplicate_facts)
        lw_problem_add(w, kb->dir, 0, "%lld fact%s given more than once",
                       (long long)kb->duplicate_facts, kb->duplicate_facts == 1 ? " is" : "s are");
}

int lw_survey_run(const lw_kb *kb, const lw_env_options *o, lw_problems *problems, lw_survey *out)
{
    lw_survey s = {.of = lw_calloc((size_t)kb->n_predicates + 1, sizeof *s.of)};
    if (!s.of)
        return LW_ENOMEM;
    count(kb, s.of);
    int rc = find_cycles(kb, s.of);
    if (rc < 0) {
        lw_survey_clear(&s);
        return rc;
    }
    for (int32_t p = 1; p <= kb->n_predicates; p++) {
        const lw_predicate_survey *x = &s.of[p];
        s.recursive += x->recursive;
        s.pairs_cut += o->max_fact_pairs > 0 && x->facts > o->max_fact_pairs;
        s.states_cut += LW_MAX(x->most_tails, x->most_heads) > o->padding_states - x->heads;
        s.free_cut += x->facts > o->padding_states - x->heads;
        if (x->bodies > 0 && x->facts == 0 && x->heads == 0) {
            s.no_source++;
            lw_problem_add(&problems->warnings, kb->dir, 0,
                           "predicate %s of a rule's body has no fact and no rule: such rules "
                           "never prove anything",
                           kb->predicates.name[p]);
        }
    }
    for (int32_t r = 0; r < kb->n_rules; r++)
        s.long_rules += kb->rules[r].n_body > o->padding_atoms;
    warn(kb, o, problems, &s);
    *out = s;
    return 0;
}

void lw_survey_clear(lw_survey *s)
{
    lw_free(&s->of);
    *s = (lw_survey){0};
}
