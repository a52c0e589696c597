/* SPDX-License-Identifier: Apache-2.0 */
/* The tiny Prolog of proof_naive.h as a world: not a line of the engine is in it. Limits other than
 * the number of goals and the path itself are not met by programs that small. */
#ifndef LW_TESTS_PROVE_REFERENCE_NAIVE_H
#define LW_TESTS_PROVE_REFERENCE_NAIVE_H

#include "prove/prove_reference.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "unit/proof_naive.h"
#include "logic/logic.h"
#pragma GCC diagnostic pop

enum { NAIVE_ATOMS = 3, NAIVE_STATES = MOST_FACTS + MOST_RULES + 1, NAIVE_DEPTH = 7 };

typedef struct naive_state {
    natom goal[MOST_GOALS]; /* variables FIRST_VAR, FIRST_VAR + 1, .. by first appearance */
    int n, n_vars;
} naive_state;

typedef struct naive_world {
    nprogram *g;
    const lw_kb *kb;
    naive_state now, seen[NAIVE_DEPTH + 1], next[NAIVE_STATES];
    int n_seen, n_next;
    bool proved;
} naive_world;

static int naive_terminal(int32_t predicate, lw_atom *out)
{
    *out = (lw_atom){predicate, {0, 0}};
    return 1;
}

static naive_state naive_renamed(const natom *goal, int n)
{
    naive_state s = {.n = n};
    int var[2 * MOST_GOALS];
    for (int i = 0; i < n; i++) {
        s.goal[i] = goal[i];
        for (int j = 0; j < 2; j++) {
            int v = 0, x = goal[i].a[j];
            if (x < FIRST_VAR)
                continue;
            while (v < s.n_vars && var[v] != x)
                v++;
            if (v == s.n_vars)
                var[s.n_vars++] = x;
            s.goal[i].a[j] = FIRST_VAR + v;
        }
    }
    return s;
}

/* Equal as multisets, number for number. */
static bool naive_same(const naive_state *a, const naive_state *b)
{
    bool used[MOST_GOALS] = {false};
    int found = 0;
    for (int i = 0; i < a->n && a->n == b->n; i++)
        for (int k = 0; k < b->n; k++)
            if (!used[k] && natom_same(a->goal[i], b->goal[k])) {
                used[k] = true;
                found++;
                break;
            }
    return a->n == b->n && found == a->n;
}

static bool naive_each(nprogram *g, const natom *goal, int n, void *arg)
{
    naive_world *w = arg;
    (void)g;
    w->proved |= n == 0;
    if (n == 0 || n > NAIVE_ATOMS)
        return n == 0;
    naive_state s = naive_renamed(goal, n);
    for (int i = 0; i < w->n_seen; i++)
        if (naive_same(&s, &w->seen[i]))
            return false;
    w->next[w->n_next++] = s;
    return false;
}

/* Numbers as the knowledge base has them, by the names. */
static lw_atom naive_numbers(const lw_kb *kb, natom a)
{
    char name[16];
    lw_atom out;
    snprintf(name, sizeof name, "p%d", a.p);
    out.p = lw_symbols_find(&kb->predicates, lw_span_of(name));
    for (int j = 0; j < 2; j++) {
        snprintf(name, sizeof name, "c%d", a.a[j]);
        out.arg[j] = a.a[j] >= FIRST_VAR ? kb->n_constants + 1 + a.a[j] - FIRST_VAR
                                         : lw_symbols_find(&kb->constants, lw_span_of(name));
    }
    return out;
}

static void naive_go(naive_world *w, naive_state s)
{
    w->now = s;
    w->seen[w->n_seen++] = s;
}

/* The query is set in the program by the caller too. */
static void naive_begin(void *self, lw_atom query)
{
    naive_world *w = self;
    (void)query;
    w->n_seen = 0;
    naive_go(w, naive_renamed(&w->g->query, 1));
}

static int32_t naive_offer(void *self, lw_atom *padded)
{
    naive_world *w = self;
    w->n_next = 0;
    w->proved = false;
    w->g->n_vars = w->now.n_vars;
    for (int i = 0; i < w->now.n_vars; i++)
        w->g->bind[i] = -1;
    n_resolve(w->g, w->now.goal, w->now.n, naive_each, w);
    if (w->proved)
        return naive_terminal(lw_kb_true(w->kb), padded);
    if (w->n_next == 0)
        return naive_terminal(lw_kb_false(w->kb), padded);
    for (int k = 0; k < w->n_next; k++)
        for (int i = 0; i < w->next[k].n; i++)
            padded[k * NAIVE_ATOMS + i] = naive_numbers(w->kb, w->next[k].goal[i]);
    naive_terminal(lw_kb_endf(w->kb), padded + w->n_next * NAIVE_ATOMS);
    return w->n_next + 1;
}

static void naive_take(void *self, int32_t k)
{
    naive_world *w = self;
    naive_go(w, w->next[k]);
}

static ref_world naive_open(nprogram *g, const lw_kb *kb, naive_world *w)
{
    w->g = g;
    w->kb = kb;
    return (ref_world){.self = w,
                       .kb = kb,
                       .atoms = NAIVE_ATOMS,
                       .states = NAIVE_STATES,
                       .depth = NAIVE_DEPTH,
                       .begin = naive_begin,
                       .offer = naive_offer,
                       .take = naive_take};
}

#endif
