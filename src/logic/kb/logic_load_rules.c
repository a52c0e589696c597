/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a dataset: variables numbered in each rule, heads grouped by predicate. */
#include "logic/kb/logic_load.h"

#include <string.h>

/* The variables of the rule being read. */
typedef struct rule_vars {
    lw_span name[LW_PROOF_MOST_VARS];
    int32_t n;
    bool too_many;
} rule_vars;

static bool same(lw_span a, lw_span b)
{
    return a.n == b.n && strncmp(a.s, b.s, a.n) == 0;
}

static bool is_variable(const lw_rule_text *r, lw_span s, bool quoted)
{
    const bool capital = s.s[0] >= 'A' && s.s[0] <= 'Z';
    if (quoted)
        return false;
    switch (r->style) {
    case LW_RULE_PROLOG:
        return capital || s.s[0] == '_';
    case LW_RULE_ANYBURL:
        return capital && s.n == 1;
    case LW_RULE_AMIE:
        return s.s[0] == '?';
    default:
        return true;
    }
}

/* Number of a variable, a new one if need be; Prolog's lone _ is always new. */
static int32_t variable(rule_vars *v, const lw_rule_text *r, lw_span s)
{
    bool nameless = r->style == LW_RULE_PROLOG && s.n == 1 && s.s[0] == '_';
    for (int32_t k = 0; k < v->n && !nameless; k++)
        if (same(v->name[k], s))
            return k;
    if (v->n == LW_PROOF_MOST_VARS) {
        v->too_many = true;
        return 0;
    }
    v->name[v->n] = s;
    return v->n++;
}

static int intern(lw_load *l, const lw_rule_text *r, rule_vars *v, const lw_atom_text *t,
                  lw_atom *out)
{
    LW_TRY(lw_symbols_add(&l->kb->predicates, t->pred, &out->p));
    for (int i = 0; i < 2; i++) {
        if (is_variable(r, t->arg[i], t->quoted[i]))
            out->arg[i] = -1 - variable(v, r, t->arg[i]);
        else
            LW_TRY(lw_symbols_add(&l->kb->constants, t->arg[i], &out->arg[i]));
    }
    return 0;
}

/* An argument of the head that no atom of the body has, or NULL. */
static const lw_span *unbound(const lw_rule_text *r, const lw_rule *rule, const lw_atom *body)
{
    for (int i = 0; i < 2; i++) {
        bool bound = rule->head.arg[i] > 0;
        for (int32_t b = 0; b < rule->n_body && !bound; b++)
            bound = body[b].arg[0] == rule->head.arg[i] || body[b].arg[1] == rule->head.arg[i];
        if (!bound)
            return &r->head.arg[i];
    }
    return NULL;
}

static int add_rule(lw_load *l, const char *path, int64_t line, const lw_rule_text *r)
{
    lw_kb *kb = l->kb;
    rule_vars v = {.n = 0};
    LW_TRY(lw_grow(&kb->rules, &l->cap_rules, (size_t)kb->n_rules + 1, sizeof *kb->rules));
    LW_TRY(lw_grow(&kb->body, &l->cap_body, l->n_body + (size_t)r->n_body, sizeof *kb->body));
    lw_rule *rule = &kb->rules[kb->n_rules];
    lw_atom *body = kb->body + l->n_body;
    *rule = (lw_rule){.first = (int32_t)l->n_body,
                      .n_body = r->n_body,
                      .line = (int32_t)line,
                      .weight = r->weight};
    LW_TRY(intern(l, r, &v, &r->head, &rule->head));
    for (int32_t i = 0; i < r->n_body; i++)
        LW_TRY(intern(l, r, &v, &r->body[i], &body[i]));
    rule->n_vars = v.n;
    const lw_span *free_var = unbound(r, rule, body);
    if (v.too_many)
        lw_problem_add(&l->problems->errors, path, line, "more than %d variables in a rule",
                       LW_PROOF_MOST_VARS);
    else if (free_var)
        lw_problem_add(&l->problems->errors, path, line,
                       "the head's variable %.*s is not bound: no atom of the body has it",
                       (int)LW_MIN(free_var->n, (size_t)60), free_var->s);
    for (int32_t i = 0; i < r->n_body; i++)
        if (lw_atom_eq(body[i], rule->head))
            lw_problem_add(&l->problems->warnings, path, line,
                           "the head is an atom of its own body: the rule proves nothing");
    kb->n_rules++;
    l->n_body += (size_t)r->n_body;
    kb->most_body = LW_MAX(kb->most_body, r->n_body);
    return 0;
}

int lw_load_rules(lw_load *l, const char *path, lw_lines lines)
{
    lw_span line;
    lw_rule_text r;
    const lw_rule_style style = lw_parse_rule_style(lines);
    while (lw_lines_next(&lines, &line)) {
        const char *why = style == LW_RULE_ARROW ? lw_parse_rule(line, &r)
                                                 : lw_parse_mined(line, style, &r);
        if (why)
            lw_problem_add(&l->problems->errors, path, lines.line, "%s: %.*s", why,
                           (int)LW_MIN(line.n, (size_t)80), line.s);
        else if (r.skipped)
            lw_problem_add(&l->problems->warnings, path, lines.line, "%s", r.skipped);
        else
            LW_TRY(add_rule(l, path, lines.line, &r));
    }
    if (l->kb->n_rules == 0)
        lw_problem_add(&l->problems->warnings, path, 0,
                       "there is no rule in it: only facts prove anything");
    return 0;
}

static void renumber(const lw_kb *kb, lw_atom *a, const int32_t *constant, const int32_t *predicate)
{
    a->p = predicate[a->p];
    for (int i = 0; i < 2; i++)
        a->arg[i] = a->arg[i] > 0 ? constant[a->arg[i]] : kb->n_constants - a->arg[i];
}

int lw_load_rules_renumber(lw_load *l, const int32_t *constant, const int32_t *predicate)
{
    lw_kb *kb = l->kb;
    for (size_t i = 0; i < l->n_body; i++)
        renumber(kb, &kb->body[i], constant, predicate);
    kb->rule_first = lw_calloc((size_t)kb->n_predicates + 2, sizeof *kb->rule_first);
    kb->rule_order = lw_calloc((size_t)kb->n_rules + 1, sizeof *kb->rule_order);
    if (!kb->rule_first || !kb->rule_order)
        return LW_ENOMEM;
    for (int32_t r = 0; r < kb->n_rules; r++) {
        renumber(kb, &kb->rules[r].head, constant, predicate);
        kb->rule_first[kb->rules[r].head.p + 1]++;
    }
    for (int32_t p = 0; p <= kb->n_predicates; p++)
        kb->rule_first[p + 1] += kb->rule_first[p];
    /* Counting sort; afterwards the start of p + 1 has moved to its end: shift back by one. */
    for (int32_t r = 0; r < kb->n_rules; r++)
        kb->rule_order[kb->rule_first[kb->rules[r].head.p]++] = r;
    for (int32_t p = kb->n_predicates + 1; p > 0; p--)
        kb->rule_first[p] = kb->rule_first[p - 1];
    kb->rule_first[0] = 0;
    return 0;
}
