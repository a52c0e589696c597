/* SPDX-License-Identifier: Apache-2.0 */
/* The atoms of the least model and their table, and how they come to be. */
#include "logic/search/logic_least_parts.h"

#include <string.h>

/* What is being made. */
typedef struct making {
    lw_settling s; /* first: `reach` gets it */
    lw_least_model *m;
    size_t cap_settled, cap_chained;
    uint8_t *chained; /* [n] joins meet it */
    bool full;        /* the bound on memory is met, which is no error */
} making;

size_t lw_least_model_bytes(const lw_least_model *m)
{
    size_t bytes = m->cap * sizeof *m->atom + m->n_slots * sizeof *m->slot;
    for (int k = 0; k < 3; k++)
        bytes += m->cap_next[k] * sizeof *m->next[k];
    for (int side = 0; side < 2; side++)
        bytes += m->n_chains[side] * sizeof *m->chain[side];
    bytes += m->cap_cost * sizeof *m->cost + m->cap_proof * sizeof *m->proof +
             m->cap_body * sizeof *m->body;
    if (m->user) /* as many users as a body has atoms, less its rule */
        bytes += m->n_body * sizeof *m->user +
                 (m->n * (size_t)m->rules.patterns + 1) * sizeof *m->user_first;
    return bytes;
}

/* Growing may hold a block twice. */
static int check_memory(making *k)
{
    const size_t now = lw_least_model_bytes(k->m) + k->s.cap_heap * sizeof *k->s.heap +
                       k->cap_settled + k->cap_chained;
    k->full = 2 * now > k->m->memory;
    return k->full ? LW_ENOMEM : 0;
}

/* ---- table and chains ------------------------------------------------------------------------ */

uint32_t lw_least_find(const lw_least_model *m, lw_atom a)
{
    const size_t mask = m->n_slots - 1;
    for (size_t k = (size_t)lw_atom_hash(a) & mask; m->slot[k] != 0; k = (k + 1) & mask)
        if (lw_atom_eq(m->atom[m->slot[k] - 1], a))
            return m->slot[k] - 1;
    return LW_NO_ATOM;
}

static lw_chain *chain_place(lw_chain *table, size_t n, int32_t p, int32_t arg)
{
    const size_t mask = n - 1;
    size_t k = (size_t)lw_atom_hash((lw_atom){p, {arg, 0}}) & mask;
    while (table[k].p != 0 && (table[k].p != p || table[k].arg != arg))
        k = (k + 1) & mask;
    return &table[k];
}

const lw_chain *lw_least_chain(const lw_least_model *m, int side, int32_t p, int32_t arg)
{
    const lw_chain *c = chain_place(m->chain[side], m->n_chains[side], p, arg);
    return c->p ? c : NULL;
}

static int grow_chains(lw_least_model *m, int side)
{
    const size_t was = m->n_chains[side], n = was ? 2 * was : 256;
    lw_chain *grown = lw_calloc(n, sizeof *grown);
    if (!grown)
        return LW_ENOMEM;
    for (size_t i = 0; i < was; i++) {
        const lw_chain *c = &m->chain[side][i];
        if (c->p)
            *chain_place(grown, n, c->p, c->arg) = *c;
    }
    lw_free(&m->chain[side]);
    m->chain[side] = grown;
    m->n_chains[side] = n;
    return 0;
}

static int grow_slots(lw_least_model *m)
{
    const size_t n = m->n_slots ? 2 * m->n_slots : 256;
    uint32_t *grown = lw_calloc(n, sizeof *grown);
    if (!grown)
        return LW_ENOMEM;
    for (size_t i = 0; i < m->n; i++) {
        size_t k = (size_t)lw_atom_hash(m->atom[i]) & (n - 1);
        while (grown[k] != 0)
            k = (k + 1) & (n - 1);
        grown[k] = (uint32_t)i + 1;
    }
    lw_free(&m->slot);
    m->slot = grown;
    m->n_slots = n;
    return 0;
}

static void link_atom(lw_least_model *m, lw_chain *c, int which, uint32_t number)
{
    m->next[which][number] = c->newest;
    c->newest = number + 1;
    c->n++;
}

/* From now on joins meet it. */
static int chain_atom(lw_least_model *m, uint32_t number)
{
    const lw_atom a = m->atom[number];
    for (int side = 0; side < 2; side++) {
        if (2 * (m->n_used[side] + 1) > m->n_chains[side])
            LW_TRY(grow_chains(m, side));
        lw_chain *c = chain_place(m->chain[side], m->n_chains[side], a.p, a.arg[side]);
        m->n_used[side] += c->p == 0;
        c->p = a.p;
        c->arg = a.arg[side];
        link_atom(m, c, side, number);
    }
    link_atom(m, &m->of[a.p], 2, number);
    return 0;
}

/* ---- atoms and their costs ------------------------------------------------------------------- */

static int add_atom(making *k, lw_atom a, uint32_t *number)
{
    lw_least_model *m = k->m;
    const size_t labels = (m->n + 1) * (size_t)m->rules.patterns;
    *number = lw_least_find(m, a);
    if (*number != LW_NO_ATOM)
        return 0;
    k->full = labels >= UINT32_MAX;
    LW_TRY(k->full ? LW_ENOMEM : check_memory(k));
    LW_TRY(lw_grow(&m->atom, &m->cap, m->n + 1, sizeof *m->atom));
    for (int i = 0; i < 3; i++)
        LW_TRY(lw_grow(&m->next[i], &m->cap_next[i], m->n + 1, sizeof *m->next[i]));
    LW_TRY(lw_grow(&m->cost, &m->cap_cost, labels, sizeof *m->cost));
    LW_TRY(lw_grow(&m->proof, &m->cap_proof, labels, sizeof *m->proof));
    LW_TRY(lw_grow(&k->s.settled, &k->cap_settled, labels, sizeof *k->s.settled));
    k->s.cost = m->cost;
    for (size_t l = labels - (size_t)m->rules.patterns; l < labels; l++)
        m->cost[l] = LW_NO_COST;
    *number = (uint32_t)m->n;
    m->atom[m->n++] = a;
    if (2 * m->n > m->n_slots)
        return grow_slots(m);
    size_t at = (size_t)lw_atom_hash(a) & (m->n_slots - 1);
    while (m->slot[at] != 0)
        at = (at + 1) & (m->n_slots - 1);
    m->slot[at] = (uint32_t)m->n;
    return 0;
}

static int keep_proof(making *k, uint32_t label, int32_t rule, const uint32_t *body)
{
    lw_least_model *m = k->m;
    const size_t n = (size_t)m->kb->rules[rule].n_body;
    size_t at = m->proof[label];
    if (at == 0 || (size_t)m->kb->rules[m->body[at]].n_body < n) {
        k->full = m->n_body + n + 1 >= UINT32_MAX;
        LW_TRY(k->full ? LW_ENOMEM : check_memory(k));
        LW_TRY(lw_grow(&m->body, &m->cap_body, m->n_body + n + 1, sizeof *m->body));
        at = m->n_body;
        m->n_body += n + 1;
    }
    m->proof[label] = (uint32_t)at;
    m->body[at] = (uint32_t)rule;
    memcpy(m->body + at + 1, body, n * sizeof *body);
    return 0;
}

static int reach(lw_settling *s, lw_atom head, lw_pattern pattern, int32_t cost, int32_t rule,
                 const uint32_t *body)
{
    making *k = (making *)s;
    uint32_t number;
    if (cost > k->m->most_cost)
        return 0;
    LW_TRY(add_atom(k, head, &number));
    const uint32_t label = number * (uint32_t)k->m->rules.patterns + (uint32_t)pattern;
    if (cost >= k->m->cost[label])
        return 0;
    LW_TRY(keep_proof(k, label, rule, body));
    k->m->cost[label] = cost;
    return lw_settling_push(s, cost, label);
}

static int add_facts(making *k)
{
    const lw_facts *f = &k->m->kb->facts;
    for (int32_t i = 0; i < f->n; i++) {
        uint32_t number;
        LW_TRY(add_atom(k, f->atom[i], &number));
        for (int32_t p = 0; p < k->m->rules.patterns; p++) {
            const uint32_t label = number * (uint32_t)k->m->rules.patterns + (uint32_t)p;
            if (p == LW_GOAL_SAME && f->atom[i].arg[0] != f->atom[i].arg[1])
                continue;
            k->m->cost[label] = p != LW_GOAL_KNOWN;
            LW_TRY(lw_settling_push(&k->s, k->m->cost[label], label));
        }
    }
    return 0;
}

static int settle(making *k)
{
    uint32_t label;
    LW_TRY(add_facts(k));
    while (lw_settling_pop(&k->s, &label)) {
        const uint32_t number = label / (uint32_t)k->m->rules.patterns;
        LW_TRY(lw_grow(&k->chained, &k->cap_chained, k->m->n, 1));
        if (!k->chained[number])
            LW_TRY(chain_atom(k->m, number));
        k->chained[number] = 1;
        LW_TRY(lw_settling_fire(&k->s, label));
    }
    return check_memory(k);
}

/* ---- which labels stand on which ------------------------------------------------------------- */

static int32_t body_of(const lw_least_model *m, size_t label, const uint32_t **body)
{
    const uint32_t at = m->proof[label];
    if (at == 0)
        return 0;
    *body = m->body + at + 1;
    return m->kb->rules[m->body[at]].n_body;
}

static int turn_round(lw_least_model *m)
{
    const size_t labels = m->n * (size_t)m->rules.patterns;
    const uint32_t *body = NULL;
    m->user_first = lw_calloc(labels + 2, sizeof *m->user_first);
    m->user = lw_calloc(m->n_body + 1, sizeof *m->user);
    if (!m->user_first || !m->user)
        return LW_ENOMEM;
    /* Counted two places on, filled one place on: at the end the first of l is at l. */
    for (size_t l = 0; l < labels; l++)
        for (int32_t n = body_of(m, l, &body), i = 0; i < n; i++)
            m->user_first[body[i] + 2]++;
    for (size_t l = 2; l < labels + 2; l++)
        m->user_first[l] += m->user_first[l - 1];
    for (size_t l = 0; l < labels; l++)
        for (int32_t n = body_of(m, l, &body), i = 0; i < n; i++)
            m->user[m->user_first[body[i] + 1]++] = (uint32_t)l;
    return 0;
}

/* ---- the model ------------------------------------------------------------------------------- */

static void making_clear(making *k)
{
    lw_free(&k->s.settled);
    lw_free(&k->s.heap);
    lw_free(&k->chained);
}

static int make(making *k)
{
    lw_least_model *m = k->m;
    m->of = lw_calloc((size_t)m->kb->n_predicates + 1, sizeof *m->of);
    if (!m->of)
        return LW_ENOMEM;
    LW_TRY(grow_slots(m));
    for (int side = 0; side < 2; side++)
        LW_TRY(grow_chains(m, side));
    m->n_body = 1; /* 0 is no proof */
    LW_TRY(settle(k));
    return turn_round(m);
}

int lw_least_model_new(const lw_kb *kb, const lw_least_options *o, lw_least_model **out)
{
    *out = NULL;
    LW_CLEANUP(lw_least_model_free) lw_least_model *m = lw_calloc(1, sizeof *m);
    if (!m)
        return LW_ENOMEM;
    LW_CLEANUP(making_clear)
    making k = {.s = {.m = m, .reach = reach, .obs = o->obs}, .m = m};
    m->kb = kb;
    m->memory = o->memory;
    m->most_cost = o->depths && o->max_depth > 0 ? o->max_depth : LW_MOST_COST;
    LW_TRY(lw_least_rules_make(kb, o->depths ? LW_GOAL_PATTERNS : 1, &m->rules));
    int rc = make(&k);
    if (k.full)
        return 0;
    LW_TRY(rc);
    *out = m;
    m = NULL;
    return 0;
}

void lw_least_model_free(lw_least_model **pp)
{
    lw_least_model *m = *pp;
    if (!m)
        return;
    lw_least_rules_clear(&m->rules);
    lw_free(&m->atom);
    for (int k = 0; k < 3; k++)
        lw_free(&m->next[k]);
    lw_free(&m->slot);
    lw_free(&m->chain[0]);
    lw_free(&m->chain[1]);
    lw_free(&m->of);
    lw_free(&m->cost);
    lw_free(&m->proof);
    lw_free(&m->body);
    lw_free(&m->user);
    lw_free(&m->user_first);
    lw_free(pp);
}

int64_t lw_least_model_atoms(const lw_least_model *m)
{
    return (int64_t)m->n;
}

bool lw_least_model_has(const lw_least_model *m, lw_atom a)
{
    return lw_least_find(m, a) != LW_NO_ATOM;
}
