/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tiny Prolog, written without a look at src/logic: random small programs, a resolver that is one
 * recursive function over a substitution, forward chaining to the least model, and the
 * environment's successors as strings. Slow and obvious: what the engine is compared with.
 *
 * Terms: constants 0..99, variables of the program -1, -2, ..; run-time variables from 1000.
 */
#ifndef LW_PROOF_NAIVE_H
#define LW_PROOF_NAIVE_H

#include "test_proof_util.h"
#include "base/base.h"
#include "logic/logic.h"

enum { NP = 3, NC = 4, MOST_FACTS = 24, MOST_RULES = 8, MOST_GOALS = 64, FIRST_VAR = 1000 };

typedef struct natom {
    int p, a[2];
} natom;

typedef struct nrule {
    natom head, body[3];
    int n_body;
} nrule;

typedef struct nprogram {
    natom fact[MOST_FACTS]; /* sorted, no doubles */
    nrule rule[MOST_RULES];
    int n_facts, n_rules;
    natom query;
    int bind[100000], n_vars; /* of run-time variable FIRST_VAR + i; -1 free */
} nprogram;

/* ---- random programs ---------------------------------------------------------------------- */

typedef struct dice {
    lw_rng_key key;
    uint64_t at;
} dice;

static int roll(dice *d, int n)
{
    return (int)lw_rng_below(d->key, 0, d->at++, 0, (uint32_t)n);
}

static int natom_order(const void *va, const void *vb)
{
    const natom *a = va, *b = vb;
    if (a->p != b->p)
        return a->p - b->p;
    return a->a[0] != b->a[0] ? a->a[0] - b->a[0] : a->a[1] - b->a[1];
}

static bool natom_same(natom a, natom b)
{
    return natom_order(&a, &b) == 0;
}

static bool n_is_fact(const nprogram *g, natom a)
{
    for (int i = 0; i < g->n_facts; i++)
        if (natom_same(g->fact[i], a))
            return true;
    return false;
}

/* A rule whose head's variables its body has: the head is drawn from the terms of the body. */
static nrule random_rule(dice *d)
{
    nrule r = {.n_body = 1 + roll(d, 3)};
    for (int i = 0; i < r.n_body; i++) {
        r.body[i].p = roll(d, NP);
        for (int j = 0; j < 2; j++)
            r.body[i].a[j] = roll(d, 8) == 0 ? roll(d, NC) : -1 - roll(d, 4);
    }
    r.head.p = roll(d, NP);
    for (int j = 0; j < 2; j++)
        r.head.a[j] = roll(d, 8) == 0 ? roll(d, NC) : r.body[roll(d, r.n_body)].a[roll(d, 2)];
    return r;
}

static void random_program(nprogram *g, uint64_t seed)
{
    dice d = {lw_rng_key_of(seed, lw_hash_name("program")), 0};
    g->n_facts = g->n_rules = 0;
    for (int n = 3 + roll(&d, MOST_FACTS - 4); n > 0; n--) {
        natom a = {roll(&d, NP), {roll(&d, NC), roll(&d, NC)}};
        if (!n_is_fact(g, a))
            g->fact[g->n_facts++] = a;
    }
    qsort(g->fact, (size_t)g->n_facts, sizeof *g->fact, natom_order);
    for (int n = 1 + roll(&d, MOST_RULES); n > 0; n--)
        g->rule[g->n_rules++] = random_rule(&d);
    g->query = (natom){roll(&d, NP), {roll(&d, NC), roll(&d, NC)}};
}

static void natom_text(natom a, lw_str *out)
{
    lw_str_addf(out, "p%d(", a.p);
    for (int j = 0; j < 2; j++)
        if (a.a[j] < 0)
            lw_str_addf(out, "%sX%d", j ? "," : "", -a.a[j]);
        else
            lw_str_addf(out, "%sc%d", j ? "," : "", a.a[j]);
    lw_str_add(out, ")");
}

/* The same program for the engine. A line of rules keeps every name known. */
static lw_kb *program_kb(const nprogram *g)
{
    LW_CLEANUP(lw_str_clear) lw_str facts = {0}, rules = {0}, domain = {0};
    lw_problems problems = {0};
    lw_kb *kb = NULL;
    for (int i = 0; i < g->n_facts; i++) {
        natom_text(g->fact[g->n_facts - 1 - i], &facts);
        lw_str_add(&facts, ".\n");
    }
    for (int i = 0; i < g->n_rules; i++) {
        natom_text(g->rule[i].head, &rules);
        for (int k = 0; k < g->rule[i].n_body; k++) {
            lw_str_add(&rules, k ? ", " : " :- ");
            natom_text(g->rule[i].body[k], &rules);
        }
        lw_str_add(&rules, ".\n");
    }
    lw_str_add(&domain, "all c0 c1 c2 c3\n");
    const lw_kb_texts t = {lw_span_of(lw_str_c(&facts)), lw_span_of(lw_str_c(&rules)),
                           lw_span_of(lw_str_c(&domain))};
    ok(lw_kb_parse(&t, &problems, &kb));
    lw_problems_clear(&problems);
    return kb;
}

/* ---- unification with undo ---------------------------------------------------------------- */

static int n_walk(const nprogram *g, int x)
{
    while (x >= FIRST_VAR && g->bind[x - FIRST_VAR] >= 0)
        x = g->bind[x - FIRST_VAR];
    return x;
}

static natom n_walk_atom(const nprogram *g, natom a)
{
    return (natom){a.p, {n_walk(g, a.a[0]), n_walk(g, a.a[1])}};
}

/* Undo list: variables bound since. */
typedef struct trail {
    int var[8], n;
} trail;

static bool n_unify(nprogram *g, trail *t, natom a, natom b)
{
    if (a.p != b.p)
        return false;
    for (int j = 0; j < 2; j++) {
        int x = n_walk(g, a.a[j]), y = n_walk(g, b.a[j]);
        if (x == y)
            continue;
        if (x < FIRST_VAR && y < FIRST_VAR)
            return false;
        int var = x >= FIRST_VAR ? x : y, to = x >= FIRST_VAR ? y : x;
        g->bind[var - FIRST_VAR] = to;
        t->var[t->n++] = var;
    }
    return true;
}

static void n_undo(nprogram *g, trail *t)
{
    while (t->n > 0)
        g->bind[t->var[--t->n] - FIRST_VAR] = -1;
}

static natom n_fresh(natom a, int base)
{
    for (int j = 0; j < 2; j++)
        if (a.a[j] < 0)
            a.a[j] = base - a.a[j];
    return a;
}

/* Goals without those that are ground known facts; the query is none. */
static int n_prune(const nprogram *g, const natom *in, int n, natom *out)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        natom a = n_walk_atom(g, in[i]);
        bool ground = a.a[0] < FIRST_VAR && a.a[1] < FIRST_VAR;
        if (!(ground && n_is_fact(g, a) && !natom_same(a, g->query)))
            out[kept++] = a;
    }
    return kept;
}

/* Called with the goals after each resolution of goal[0] with a fact or rule, in order; true ends
 * it. */
typedef bool n_each(nprogram *g, const natom *goal, int n, void *arg);

static bool n_resolve(nprogram *g, const natom *goal, int n, n_each *each, void *arg)
{
    natom next[MOST_GOALS], kept[MOST_GOALS];
    for (int i = 0; i < g->n_facts + g->n_rules; i++) {
        trail t = {.n = 0};
        int m = 0, saved = g->n_vars;
        bool fits;
        if (i < g->n_facts) {
            fits = !natom_same(g->fact[i], g->query) && n_unify(g, &t, goal[0], g->fact[i]);
        } else {
            const nrule *r = &g->rule[i - g->n_facts];
            int base = FIRST_VAR + g->n_vars;
            g->n_vars += 6;
            for (int k = saved; k < g->n_vars; k++)
                g->bind[k] = -1;
            fits = n_unify(g, &t, n_fresh(r->head, base), goal[0]);
            for (int k = 0; k < r->n_body; k++)
                next[m++] = n_fresh(r->body[k], base);
        }
        memcpy(next + m, goal + 1, (size_t)(n - 1) * sizeof *next);
        m += n - 1;
        bool done = fits && each(g, kept, n_prune(g, next, m, kept), arg);
        n_undo(g, &t);
        g->n_vars = saved;
        if (done)
            return true;
    }
    return false;
}

/* ---- shortest proof by iterative deepening ------------------------------------------------ */

static bool n_prove_each(nprogram *g, const natom *goal, int n, void *arg)
{
    int steps = *(int *)arg - 1; /* left after the one just made */
    if (n == 0)
        return true;
    return steps > 0 && n_resolve(g, goal, n, n_prove_each, &steps);
}

/* Steps of the shortest proof of the query, -1: none with at most `most` steps. */
static inline int n_depth(nprogram *g, int most)
{
    for (int steps = 1; steps <= most; steps++) {
        g->n_vars = 0;
        if (n_resolve(g, &g->query, 1, n_prove_each, &steps))
            return steps;
    }
    return -1;
}

/* ---- least model by forward chaining, without the query as a fact ------------------------- */

static inline bool n_in_model(const nprogram *g)
{
    bool in[NP][NC][NC] = {{{false}}}, changed = true;
    for (int i = 0; i < g->n_facts; i++)
        if (!natom_same(g->fact[i], g->query))
            in[g->fact[i].p][g->fact[i].a[0]][g->fact[i].a[1]] = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < g->n_rules; i++)
            for (int v = 0; v < NC * NC * NC * NC; v++) { /* all values of the four variables */
                const nrule *r = &g->rule[i];
                int value[5] = {0, v % NC, v / NC % NC, v / NC / NC % NC, v / NC / NC / NC};
                bool holds = true;
#define VALUE(x) ((x) < 0 ? value[-(x)] : (x))
                for (int k = 0; k < r->n_body; k++)
                    holds &= in[r->body[k].p][VALUE(r->body[k].a[0])][VALUE(r->body[k].a[1])];
                bool *head = &in[r->head.p][VALUE(r->head.a[0])][VALUE(r->head.a[1])];
#undef VALUE
                changed |= holds && !*head;
                *head |= holds;
            }
    }
    return in[g->query.p][g->query.a[0]][g->query.a[1]];
}

#endif
