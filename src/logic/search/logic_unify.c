/* SPDX-License-Identifier: Apache-2.0 */
/* One goal against facts and rules. Nothing is allocated: a successor is built on the stack. */
#include "logic/search/logic_unify.h"

#include <string.h>

/* What unifying the goal bound: at most its two arguments, 0: nothing. */
typedef struct bindings {
    int32_t var[2], term[2];
} bindings;

/* The state, and one successor of it being built. */
typedef struct building {
    lw_derivation *d;
    const lw_atom *state;
    int32_t n;
    lw_atom out[LW_PROOF_WIDEST];
    int32_t m;
    bool stop;
    bool over;        /* max_successors are out: only proofs are looked for */
    bool facts_prove; /* some fact could leave nothing of the other goals */
} building;

static inline int32_t bound(const bindings *b, int32_t x)
{
    /* var is 0 where nothing is bound, and no argument of a goal is 0. */
    if (x == b->var[0])
        return b->term[0];
    return x == b->var[1] ? b->term[1] : x;
}

/* The atom goes into the successor unless it is a known fact. */
static inline void add(building *s, lw_atom a)
{
    const lw_derivation *d = s->d;
    int32_t constants = d->kb->n_constants;
    if (a.arg[0] <= constants && a.arg[1] <= constants && lw_known(d->kb, a, d->query))
        return;
    s->out[s->m++] = a;
}

/* Only proofs are wanted and this successor is none. */
static inline bool hopeless(const building *s)
{
    return s->m > 0 && (s->d->proofs_only || s->over);
}

/* Goals behind the first. Those that no binding changes need no look-up: a state holds no known
 * facts. */
static inline void add_rest(building *s, const bindings *b)
{
    for (int32_t i = 1; i < s->n && !hopeless(s); i++) {
        lw_atom a = s->state[i];
        int32_t x = bound(b, a.arg[0]), y = bound(b, a.arg[1]);
        if (x == a.arg[0] && y == a.arg[1]) {
            s->out[s->m++] = a;
        } else {
            a.arg[0] = x;
            a.arg[1] = y;
            add(s, a);
        }
    }
}

/* Hands the successor over; true when the derivation is at its end. */
static bool finish(building *s, lw_proof_origin origin)
{
    lw_derivation *d = s->d;
    if (s->m == 0 && (!s->over || origin >= 0)) {
        d->proved = true;
        d->proof = origin;
        return s->stop = true;
    }
    if (s->over) {
        d->successors_cut++;
        return false;
    }
    s->over = ++d->emitted == d->max_successors;
    if (d->proofs_only)
        return false;
    if (d->numbering == LW_NUMBER_CANONICAL)
        lw_state_canonical(d->kb, s->out, s->m);
    return s->stop = d->emit(d->arg, s->out, s->m, origin) != 0;
}

/* Other goals under the bindings of a fact; s->m of them are left. */
static void bind_fact(building *s, int32_t fact)
{
    const lw_atom f = s->d->kb->facts.atom[fact], goal = s->state[0];
    int32_t constants = s->d->kb->n_constants;
    bindings b = {{0, 0}, {0, 0}};
    for (int i = 0; i < 2; i++)
        if (goal.arg[i] > constants) {
            b.var[i] = goal.arg[i];
            b.term[i] = f.arg[i];
        }
    s->m = 0;
    add_rest(s, &b);
}

static bool with_fact(building *s, int32_t fact)
{
    lw_derivation *d = s->d;
    if (lw_atom_eq(d->kb->facts.atom[fact], d->query))
        return false;
    if (d->max_fact_pairs > 0 &&
        fact - d->kb->facts.pred_first[s->state[0].p] >= d->max_fact_pairs) {
        d->facts_cut++;
        return false;
    }
    bind_fact(s, fact);
    return finish(s, fact);
}

/* True when this fact ends the proof: nothing but proofs is looked for. */
static bool fact_proves(building *s, int32_t fact)
{
    if (lw_atom_eq(s->d->kb->facts.atom[fact], s->d->query))
        return false;
    bind_fact(s, fact);
    return s->m == 0 && finish(s, fact);
}

/* A fact proves the state only if it makes every other goal ground, and changes it: an unchanged
 * one is no known fact. */
static bool facts_may_prove(const building *s)
{
    const lw_atom goal = s->state[0];
    int32_t constants = s->d->kb->n_constants;
    for (int32_t i = 1; i < s->n; i++) {
        int changed = 0;
        for (int j = 0; j < 2; j++) {
            int32_t x = s->state[i].arg[j];
            if (x > constants && x != goal.arg[0] && x != goal.arg[1])
                return false;
            changed += x > constants;
        }
        if (changed == 0)
            return false;
    }
    return true;
}

/* Facts that match the goal: rows of one of the two orders. */
typedef struct matches {
    const int32_t *order; /* NULL: row i is fact i */
    int32_t first, end;
} matches;

static int32_t fact_of(const matches *m, int32_t row)
{
    return m->order ? m->order[row] : row;
}

static matches find_matches(const building *s, lw_atom goal)
{
    const lw_facts *f = &s->d->kb->facts;
    int32_t constants = s->d->kb->n_constants;
    bool free0 = goal.arg[0] > constants, free1 = goal.arg[1] > constants;
    lw_fact_range r;
    if (!free0 && !free1) {
        int32_t fact = lw_facts_find(f, goal);
        r = (lw_fact_range){fact, fact >= 0};
    } else if (free0 && !free1) {
        r = lw_facts_with(f, goal.p, 1, goal.arg[1]);
        return (matches){f->by_second, r.first, r.first + r.n};
    } else {
        r = free0 ? lw_facts_of(f, goal.p) : lw_facts_with(f, goal.p, 0, goal.arg[0]);
    }
    return (matches){NULL, r.first, r.first + r.n};
}

/* The other goal with one constant and fewest facts: each of them gives the goal's variable a
 * value. -1: no goal has one constant. *out: its facts. */
static int32_t narrowest(const building *s, matches *out)
{
    int32_t best = -1, constants = s->d->kb->n_constants;
    for (int32_t i = 1; i < s->n; i++) {
        const lw_atom a = s->state[i];
        if ((a.arg[0] > constants) == (a.arg[1] > constants))
            continue;
        matches m = find_matches(s, a);
        if (best < 0 || m.end - m.first < out->end - out->first) {
            best = i;
            *out = m;
        }
    }
    return best;
}

/* Looks for a fact that ends the proof: through the narrowest other goal when that has fewer facts
 * than the first goal, else one by one. */
static void prove_by_facts(building *s, const matches *all)
{
    matches few = {NULL, 0, 0};
    int32_t at = narrowest(s, &few), constants = s->d->kb->n_constants;
    if (at < 0 || few.end - few.first >= all->end - all->first) {
        for (int32_t i = all->first; i < all->end && !fact_proves(s, fact_of(all, i)); i++) {
        }
        return;
    }
    int side = s->state[at].arg[0] > constants ? 0 : 1; /* of its variable */
    for (int32_t i = few.first; i < few.end; i++) {
        lw_atom goal = s->state[0];
        int32_t value = s->d->kb->facts.atom[fact_of(&few, i)].arg[side];
        for (int j = 0; j < 2; j++)
            if (goal.arg[j] == s->state[at].arg[side])
                goal.arg[j] = value;
        const matches m = find_matches(s, goal);
        for (int32_t k = m.first; k < m.end; k++)
            if (fact_proves(s, fact_of(&m, k)))
                return;
    }
}

/* What is left to do with rows i.. when only proofs count: the rows are counted, not built. */
static void finish_facts(building *s, const matches *m, int32_t i)
{
    lw_derivation *d = s->d;
    int32_t left = m->end - i, query = lw_facts_find(&d->kb->facts, d->query);
    if (query >= 0 && d->query.p == s->state[0].p) {
        /* Rows ascend in their facts; is the query's among them? */
        int32_t low = i, high = m->end;
        while (low < high) {
            int32_t middle = low + (high - low) / 2;
            if (fact_of(m, middle) < query)
                low = middle + 1;
            else
                high = middle;
        }
        left -= low < m->end && fact_of(m, low) == query;
    }
    if (s->facts_prove)
        prove_by_facts(s, m);
    if (s->stop)
        return;
    if (s->over)
        d->successors_cut += left;
    else
        d->emitted += left;
}

static void with_facts(building *s)
{
    const lw_derivation *d = s->d;
    const lw_atom goal = s->state[0];
    const matches m = find_matches(s, goal);
    bool same = goal.arg[0] == goal.arg[1] && goal.arg[0] > d->kb->n_constants;
    bool countable = !same && d->max_fact_pairs == 0;
    for (int32_t i = m.first; i < m.end; i++) {
        int32_t fact = fact_of(&m, i);
        const lw_atom *f = &d->kb->facts.atom[fact];
        if (countable && (s->over || d->proofs_only)) {
            finish_facts(s, &m, i);
            return;
        }
        if ((!same || f->arg[0] == f->arg[1]) && with_fact(s, fact))
            return;
    }
}

/* Two terms of the goal's side made equal; false: they cannot be. */
static bool equate(const building *s, bindings *b, int32_t x, int32_t y)
{
    int32_t constants = s->d->kb->n_constants;
    if (x == y)
        return true;
    if (x <= constants && y <= constants)
        return false;
    int32_t slot = b->var[0] != 0;
    b->var[slot] = x > constants ? x : y;
    b->term[slot] = x > constants ? y : x;
    return true;
}

/* Unifies a rule's head with the goal. value[k]: term of the rule's variable k, 0: free. */
static bool unify_head(const building *s, const lw_rule *r, bindings *b, int32_t *value)
{
    int32_t constants = s->d->kb->n_constants;
    bool strict = s->d->numbering != LW_NUMBER_CANONICAL;
    for (int i = 0; i < 2; i++) {
        int32_t h = r->head.arg[i], g = s->state[0].arg[i];
        int32_t *v = h > constants ? &value[h - constants - 1] : NULL;
        if (v && *v == 0)
            *v = g;
        else if (v && strict && *v != g)
            return false;
        else if (!equate(s, b, bound(b, v ? *v : h), bound(b, g)))
            return false;
    }
    return true;
}

static void with_rule(building *s, int32_t number, int32_t next_var)
{
    const lw_kb *kb = s->d->kb;
    const lw_rule *r = &kb->rules[number];
    int32_t value[LW_PROOF_MOST_VARS], constants = kb->n_constants;
    bindings b = {{0, 0}, {0, 0}};
    memset(value, 0, (size_t)r->n_vars * sizeof *value);
    if (!unify_head(s, r, &b, value))
        return;
    for (int32_t k = 0; k < r->n_vars; k++)
        value[k] = value[k] ? bound(&b, value[k]) : next_var + k;
    s->m = 0;
    for (int32_t i = 0; i < r->n_body && !hopeless(s); i++) {
        lw_atom a = kb->body[r->first + i];
        for (int j = 0; j < 2; j++)
            if (a.arg[j] > constants)
                a.arg[j] = value[a.arg[j] - constants - 1];
        add(s, a);
    }
    add_rest(s, &b);
    finish(s, ~number);
}

static void with_rules(building *s)
{
    const lw_kb *kb = s->d->kb;
    int32_t p = s->state[0].p;
    int32_t next = s->d->numbering == LW_NUMBER_CANONICAL ? lw_state_next_var(kb, s->state, s->n)
                                                          : s->d->next_var;
    for (int32_t i = kb->rule_first[p]; i < kb->rule_first[p + 1] && !s->stop; i++)
        with_rule(s, kb->rule_order[i], next);
}

void lw_derive(lw_derivation *d, const lw_atom *state, int32_t n)
{
    building s;
    s.d = d;
    s.state = state;
    s.n = n;
    s.stop = s.over = false;
    s.facts_prove = facts_may_prove(&s);
    d->proved = false;
    d->proof = 0;
    d->emitted = 0;
    d->facts_cut = d->successors_cut = 0;
    LW_ASSERT(n >= 1 && n <= LW_PROOF_MOST_ATOMS, "a state of %d goals", n);
    if (d->numbering == LW_NUMBER_PARITY)
        with_rules(&s);
    if (!s.stop)
        with_facts(&s);
    if (!s.stop && d->numbering != LW_NUMBER_PARITY)
        with_rules(&s);
}

void lw_state_canonical(const lw_kb *kb, lw_atom *atoms, int32_t n)
{
    int32_t seen[2 * LW_PROOF_WIDEST], k = 0, constants = kb->n_constants;
    for (int32_t i = 0; i < n; i++)
        for (int j = 0; j < 2; j++) {
            int32_t *x = &atoms[i].arg[j], v = 0;
            if (*x <= constants)
                continue;
            while (v < k && seen[v] != *x)
                v++;
            if (v == k)
                seen[k++] = *x;
            *x = constants + 1 + v;
        }
}

int32_t lw_state_next_var(const lw_kb *kb, const lw_atom *atoms, int32_t n)
{
    int32_t most = kb->n_constants;
    for (int32_t i = 0; i < n; i++)
        most = LW_MAX(most, LW_MAX(atoms[i].arg[0], atoms[i].arg[1]));
    return most + 1;
}
