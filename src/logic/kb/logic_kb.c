/* SPDX-License-Identifier: Apache-2.0 */
/* A knowledge base's end, its size, and its atoms as text. */
#include "logic/kb/logic_kb.h"

#include <string.h>

#include "logic/kb/logic_parse.h"

void lw_kb_free(lw_kb **pp)
{
    lw_kb *kb = *pp;
    if (!kb)
        return;
    lw_symbols_clear(&kb->constants);
    lw_symbols_clear(&kb->predicates);
    lw_facts_clear(&kb->facts);
    lw_free(&kb->rules);
    lw_free(&kb->body);
    lw_free(&kb->rule_first);
    lw_free(&kb->rule_order);
    lw_symbols_clear(&kb->domains.names);
    lw_free(&kb->domains.first);
    lw_free(&kb->domains.member);
    lw_free(&kb->domains.of);
    lw_free(&kb->domains.of_arg[0]);
    lw_free(&kb->domains.of_arg[1]);
    lw_arena_free(&kb->arena);
    lw_free(pp);
}

uint64_t lw_kb_bytes(const lw_kb *kb)
{
    uint64_t names = (uint64_t)kb->constants.n_slots + kb->predicates.n_slots;
    return lw_facts_bytes(&kb->facts, kb->n_predicates) + lw_arena_bytes(kb->arena) +
           names * sizeof(int32_t) + (kb->constants.cap + kb->predicates.cap) * sizeof(char *) +
           (uint64_t)kb->n_rules * (sizeof *kb->rules + sizeof *kb->rule_order);
}

static int unknown(const lw_symbols *s, const char *kind, lw_span name, const char *text)
{
    const char *near = lw_symbols_nearest(s, name);
    return lw_fail(LW_EFORMAT, "%s: %s %.*s is unknown%s%s%s", text, kind, (int)name.n, name.s,
                   *near ? "; did you mean " : "", near, *near ? "?" : "");
}

/* The variable that argument i of a goal is, 0: it is none. */
static int32_t variable(const lw_kb *kb, const lw_atom_text *t, const lw_atom *a, int i)
{
    const lw_span s = t->arg[i], before = t->arg[0];
    if (t->quoted[i] || !(s.s[0] == '_' || (s.s[0] >= 'A' && s.s[0] <= 'Z')))
        return 0;
    if (i == 0 || !lw_kb_is_var(kb, a->arg[0]))
        return kb->n_constants + 1;
    const bool nameless = s.n == 1 && s.s[0] == '_',
               same = s.n == before.n && strncmp(s.s, before.s, s.n) == 0;
    return same && !nameless ? a->arg[0] : kb->n_constants + 2;
}

static int read_atom(const lw_kb *kb, const char *text, bool variables, lw_atom *out)
{
    lw_atom_text t;
    lw_span rest;
    const char *why = lw_parse_triple(lw_span_of(text), &t, &rest);
    if (!why && rest.n > 0)
        why = "there is something behind it";
    if (why)
        return lw_fail(LW_EFORMAT, "%s: %s", text, why);
    lw_atom a = {lw_symbols_find(&kb->predicates, t.pred), {0, 0}};
    if (a.p == 0)
        return unknown(&kb->predicates, "predicate", t.pred, text);
    for (int i = 0; i < 2; i++) {
        a.arg[i] = lw_symbols_find(&kb->constants, t.arg[i]);
        if (a.arg[i] == 0 && variables)
            a.arg[i] = variable(kb, &t, &a, i);
        if (a.arg[i] == 0)
            return unknown(&kb->constants, "constant", t.arg[i], text);
    }
    *out = a;
    return 0;
}

int lw_kb_atom(const lw_kb *kb, const char *text, lw_atom *out)
{
    return read_atom(kb, text, false, out);
}

int lw_kb_goal(const lw_kb *kb, const char *text, lw_atom *out, bool *open)
{
    LW_TRY(read_atom(kb, text, true, out));
    *open = lw_kb_is_var(kb, out->arg[0]) || lw_kb_is_var(kb, out->arg[1]);
    return 0;
}

static void print_arg(const lw_kb *kb, int32_t arg, lw_str *out)
{
    if (lw_kb_is_var(kb, arg))
        lw_str_addf(out, "V%d", arg - kb->n_constants);
    else
        lw_str_add(out, kb->constants.name[arg]);
}

void lw_kb_print_atom(const lw_kb *kb, lw_atom a, lw_str *out)
{
    static const char *const terminal[] = {"True", "False", "Endf"};
    if (a.p > kb->n_predicates) {
        lw_str_add(out, terminal[a.p - kb->n_predicates - 1]);
        return;
    }
    lw_str_addf(out, "%s(", kb->predicates.name[a.p]);
    print_arg(kb, a.arg[0], out);
    lw_str_add(out, ",");
    print_arg(kb, a.arg[1], out);
    lw_str_add(out, ")");
}

void lw_kb_print_atoms(const lw_kb *kb, const lw_atom *a, int32_t n, lw_str *out)
{
    for (int32_t i = 0; i < n; i++) {
        if (i > 0)
            lw_str_add(out, ", ");
        lw_kb_print_atom(kb, a[i], out);
    }
}

static uint64_t mix(uint64_t h, uint64_t with)
{
    return h * 0x9e3779b97f4a7c15u + with;
}

uint64_t lw_kb_names(const lw_kb *kb)
{
    uint64_t h = (uint64_t)kb->n_constants;
    for (int32_t i = 1; i <= kb->n_constants; i++)
        h = mix(h, lw_hash_name(kb->constants.name[i]));
    for (int32_t i = 1; i <= kb->n_predicates; i++)
        h = mix(h, lw_hash_name(kb->predicates.name[i]));
    return h ? h : 1;
}

uint64_t lw_kb_content(const lw_kb *kb, bool rules)
{
    uint64_t h = mix(lw_kb_names(kb), (uint64_t)kb->facts.n);
    for (int32_t i = 0; i < kb->facts.n; i++)
        h = mix(h, lw_atom_hash(kb->facts.atom[i]));
    for (int32_t i = 0; kb->domains.of && i <= kb->n_constants; i++)
        h = mix(h, (uint64_t)kb->domains.of[i]);
    for (int32_t i = 0; rules && i < kb->n_rules; i++) {
        const lw_rule *r = &kb->rules[i];
        h = mix(h, lw_atom_hash(r->head));
        for (int32_t k = 0; k < r->n_body; k++)
            h = mix(h, lw_atom_hash(kb->body[r->first + k]));
    }
    return h;
}

static bool is_plain(const char *name)
{
    if (name[0] < 'a' || name[0] > 'z')
        return false;
    for (const char *c = name; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
              *c == '_'))
            return false;
    return true;
}

/* A name as a Prolog atom: quoted unless it is a small letter and letters, digits and _. Numbers
 * are quoted too: 007 and 7 are different names. */
static void print_name(const char *name, lw_str *out)
{
    if (is_plain(name)) {
        lw_str_add(out, name);
        return;
    }
    lw_str_add(out, "'");
    for (const char *c = name; *c; c++) {
        if (*c == '\'' || *c == '\\')
            lw_str_add(out, "\\");
        lw_str_add_n(out, c, 1);
    }
    lw_str_add(out, "'");
}

void lw_kb_print_prolog(const lw_kb *kb, lw_atom a, lw_str *out)
{
    print_name(kb->predicates.name[a.p], out);
    for (int i = 0; i < 2; i++) {
        lw_str_add(out, i ? ", " : "(");
        if (lw_kb_is_var(kb, a.arg[i]))
            lw_str_addf(out, "V%d", a.arg[i] - kb->n_constants);
        else
            print_name(kb->constants.name[a.arg[i]], out);
    }
    lw_str_add(out, ")");
}

void lw_kb_print_rule(const lw_kb *kb, int32_t rule, lw_str *out)
{
    const lw_rule *r = &kb->rules[rule];
    lw_kb_print_prolog(kb, r->head, out);
    for (int32_t i = 0; i < r->n_body; i++) {
        lw_str_add(out, i ? ", " : " :- ");
        lw_kb_print_prolog(kb, kb->body[r->first + i], out);
    }
}
