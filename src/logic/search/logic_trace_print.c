/* SPDX-License-Identifier: Apache-2.0 */
/* A proof as indented text and as Prolog. */
#include "base/base.h"
#include "logic/search/logic_trace.h"

/* Nodes are walked parent first, children in order, without recursion: the next node is the first
 * child, else the next sibling of the nearest ancestor that has one. -1 at the end; *depth kept. */
static int32_t next_node(const lw_trace *t, int32_t at, int32_t *depth)
{
    if (t->node[at].n_children > 0) {
        ++*depth;
        return t->node[at].child;
    }
    for (; t->node[at].parent >= 0; at = t->node[at].parent, --*depth) {
        const lw_trace_node *up = &t->node[t->node[at].parent];
        if (at + 1 < up->child + up->n_children)
            return at + 1;
    }
    return -1;
}

void lw_trace_print(const lw_kb *kb, const lw_trace *t, lw_str *out)
{
    int32_t depth = 0;
    for (int32_t at = 0; at >= 0; at = next_node(t, at, &depth)) {
        const lw_trace_node *x = &t->node[at];
        lw_str_addf(out, "%*s", 2 * depth, "");
        lw_kb_print_atom(kb, x->atom, out);
        if (x->origin >= 0) {
            lw_str_add(out, "  fact\n");
            continue;
        }
        lw_str_addf(out, "  rule %d: ", ~x->origin + 1);
        lw_kb_print_rule(kb, ~x->origin, out);
        lw_str_add(out, "\n");
    }
}

/* The first node with this origin is the one to print its clause. */
static bool is_first(const lw_trace *t, int32_t at)
{
    for (int32_t i = 0; i < at; i++)
        if (t->node[i].origin == t->node[at].origin)
            return false;
    return true;
}

static bool is_first_predicate(const lw_trace *t, int32_t at, bool rules)
{
    for (int32_t i = 0; i < at; i++)
        if (t->node[i].atom.p == t->node[at].atom.p && (!rules || t->node[i].origin < 0))
            return false;
    return true;
}

/* "name/2" of an atom: what stands before its arguments. */
static void add_name(const lw_kb *kb, int32_t p, lw_str *out)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_kb_print_prolog(kb, (lw_atom){p, {0, 0}}, &text); /* ends with "('', '')" */
    enum { ARGUMENTS = sizeof "('', '')" - 1 };
    lw_str_add_n(out, lw_str_c(&text), text.len > ARGUMENTS ? text.len - ARGUMENTS : 0);
    lw_str_add(out, "/2");
}

static void add_clauses(const lw_kb *kb, const lw_trace *t, lw_str *out)
{
    for (int32_t i = 0; i < t->n; i++)
        if (is_first_predicate(t, i, false)) {
            lw_str_add(out, ":- discontiguous ");
            add_name(kb, t->node[i].atom.p, out);
            lw_str_add(out, ".\n");
        }
    /* Rules may call themselves in circles: tabling lets them end. */
    for (int32_t i = 0; i < t->n; i++)
        if (t->node[i].origin < 0 && is_first_predicate(t, i, true)) {
            lw_str_add(out, ":- table ");
            add_name(kb, t->node[i].atom.p, out);
            lw_str_add(out, ".\n");
        }
    for (int32_t i = 0; i < t->n; i++)
        if (t->node[i].origin >= 0 && is_first(t, i)) {
            lw_kb_print_prolog(kb, t->node[i].atom, out);
            lw_str_add(out, ".\n");
        }
    for (int32_t i = 0; i < t->n; i++)
        if (t->node[i].origin < 0 && is_first(t, i)) {
            lw_kb_print_rule(kb, ~t->node[i].origin, out);
            lw_str_addf(out, ".  %% rule %d\n", ~t->node[i].origin + 1);
        }
}

/* Opens the term of a node; a leaf is closed at once. */
static void open_term(const lw_kb *kb, const lw_trace_node *x, lw_str *out)
{
    lw_str_add(out, "proof(");
    lw_kb_print_prolog(kb, x->atom, out);
    if (x->origin >= 0)
        lw_str_add(out, ", fact)");
    else
        lw_str_addf(out, ", rule(%d), [", ~x->origin + 1);
}

static void add_term(const lw_kb *kb, const lw_trace *t, lw_str *out)
{
    int32_t depth = 0, before = 0;
    for (int32_t at = 0; at >= 0; at = next_node(t, at, &depth)) {
        for (; before > depth; before--)
            lw_str_add(out, "])");
        if (at > 0)
            lw_str_addf(out, "%s\n%*s", at == t->node[t->node[at].parent].child ? "" : ",",
                        2 * depth, "");
        open_term(kb, &t->node[at], out);
        before = depth;
    }
    for (; before > 0; before--)
        lw_str_add(out, "])");
    lw_str_add(out, ".\n");
}

void lw_trace_prolog(const lw_kb *kb, const lw_trace *t, lw_str *out)
{
    lw_str_addf(out, "%% a proof of %d step%s; load this file and ask\n%% ?- ", t->steps,
                t->steps == 1 ? "" : "s");
    lw_kb_print_prolog(kb, t->node[0].atom, out);
    lw_str_add(out, ".\n");
    add_clauses(kb, t, out);
    add_term(kb, t, out);
}
