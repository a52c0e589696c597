/* SPDX-License-Identifier: Apache-2.0 */
/* Rules by predicate and confidence, and the order in which their bodies are joined. */
#include "logic/search/logic_rule_plans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "logic/kb/logic_parse.h"

/* ---- one rule ---------------------------------------------------------------------------------- */

/* A body being put in order. */
typedef struct planning {
    const lw_kb *kb;
    const lw_rule *rule;
    const lw_atom *body;
    int32_t given, wanted; /* variables of the head, -1: none */
    bool done[LW_PROOF_MOST_BODY];
    int32_t column[LW_PROOF_MOST_VARS]; /* variables of a row */
    int32_t width;
} planning;

static int32_t var_of(const planning *p, int32_t arg)
{
    return lw_kb_is_var(p->kb, arg) ? arg - p->kb->n_constants - 1 : -1;
}

static lw_value value_of(const planning *p, int32_t arg)
{
    const int32_t v = var_of(p, arg);
    if (v < 0)
        return (lw_value){.of = LW_OF_CONSTANT, .constant = arg};
    if (v == p->given)
        return (lw_value){.of = LW_OF_GOAL};
    for (int32_t c = 0; c < p->width; c++)
        if (p->column[c] == v)
            return (lw_value){.of = LW_OF_COLUMN, .column = (uint8_t)c};
    return (lw_value){.of = LW_OF_FACT};
}

/* The atom with most known arguments, the first of equals. */
static int32_t choose(const planning *p)
{
    int32_t best = -1;
    int most = -1;
    for (int32_t i = 0; i < p->rule->n_body; i++) {
        int known = 0;
        for (int a = 0; a < 2; a++)
            known += value_of(p, p->body[i].arg[a]).of != LW_OF_FACT;
        if (p->done[i] || known <= most)
            continue;
        most = known;
        best = i;
    }
    return best;
}

/* A later atom has it, or it is the answer. */
static bool is_needed(const planning *p, int32_t v)
{
    if (v == p->wanted)
        return true;
    for (int32_t i = 0; i < p->rule->n_body; i++)
        for (int a = 0; a < 2 && !p->done[i]; a++)
            if (var_of(p, p->body[i].arg[a]) == v)
                return true;
    return false;
}

static void add_join(planning *p, int32_t i, lw_join *j)
{
    const lw_atom a = p->body[i];
    int32_t column[LW_PROOF_MOST_VARS], width = 0;
    *j = (lw_join){.p = a.p, .arg = {value_of(p, a.arg[0]), value_of(p, a.arg[1])}};
    j->same = j->arg[0].of == LW_OF_FACT && j->arg[1].of == LW_OF_FACT && a.arg[0] == a.arg[1];
    p->done[i] = true;
    for (int32_t c = 0; c < p->width; c++)
        if (is_needed(p, p->column[c])) {
            j->out[width] = (lw_value){.of = LW_OF_COLUMN, .column = (uint8_t)c};
            column[width++] = p->column[c];
        }
    for (int k = 0; k < 2 - j->same; k++)
        if (j->arg[k].of == LW_OF_FACT && is_needed(p, var_of(p, a.arg[k]))) {
            j->out[width] = (lw_value){.of = LW_OF_FACT, .column = (uint8_t)k};
            column[width++] = var_of(p, a.arg[k]);
        }
    memcpy(p->column, column, (size_t)width * sizeof *column);
    p->width = width;
    j->width = (uint8_t)width;
}

static int plan_rule(lw_rule_plans *s, int32_t rule, int side, lw_rule_plan *out)
{
    planning p = {.kb = s->kb, .rule = &s->kb->rules[rule], .given = -1, .wanted = -1};
    const int32_t known = p.rule->head.arg[!side], asked = p.rule->head.arg[side];
    p.body = s->kb->body + p.rule->first;
    p.given = var_of(&p, known);
    p.wanted = known == asked ? -1 : var_of(&p, asked);
    out->given = value_of(&p, known);
    out->first = (int32_t)s->n_joins;
    out->n = p.rule->n_body;
    LW_TRY(lw_grow(&s->join, &s->cap_joins, s->n_joins + (size_t)out->n, sizeof *s->join));
    for (int32_t k = 0; k < out->n; k++)
        add_join(&p, choose(&p), &s->join[s->n_joins++]);
    out->answer = value_of(&p, asked);
    return 0;
}

/* ---- confidences from a file ------------------------------------------------------------------- */

/* The last word of a line as a number. */
static bool last_number(lw_span line, double *out)
{
    char text[64];
    size_t n = 0;
    while (n < line.n && line.s[line.n - 1 - n] != ' ' && line.s[line.n - 1 - n] != '\t')
        n++;
    if (n >= sizeof text)
        return false;
    memcpy(text, line.s + line.n - n, n);
    text[n] = '\0';
    if (lw_parse_f64(text, out) == 0 && isfinite(*out))
        return true;
    lw_errclear();
    return false;
}

int lw_rule_confidences(const lw_kb *kb, const char *path, lw_span text, double *confidence)
{
    lw_lines lines = lw_lines_of(text);
    lw_span line;
    int32_t n = 0;
    while (lw_lines_next(&lines, &line)) {
        if (n == kb->n_rules)
            return lw_fail(LW_EFORMAT, "%s:%lld: a confidence more than the %d rules", path,
                           (long long)lines.line, kb->n_rules);
        if (!last_number(line, &confidence[n++]))
            return lw_fail(LW_EFORMAT, "%s:%lld: a number is expected at its end: %.*s", path,
                           (long long)lines.line, (int)LW_MIN(line.n, (size_t)80), line.s);
    }
    if (n < kb->n_rules)
        return lw_fail(LW_EFORMAT, "%s: %d confidences for %d rules", path, n, kb->n_rules);
    return 0;
}

/* ---- all of them ------------------------------------------------------------------------------- */

static int read_confidences(lw_rule_plans *s, const double *given)
{
    for (int32_t r = 0; r < s->kb->n_rules; r++) {
        const double c = given ? given[r] : s->kb->rules[r].weight;
        const bool noisy = s->score == LW_RULE_NOISY_OR;
        if (!isfinite(c) || (noisy && !(c >= 0 && c <= 1)))
            return lw_fail(LW_EFORMAT, "rule %d has a confidence of %g: %s", r + 1, c,
                           noisy ? "noisy-or wants 0 to 1 (--rule-score max-plus takes any)"
                                 : "not a number");
        s->confidence[r] = c;
    }
    return 0;
}

/* Highest first; qsort has no argument of its own, so rules are sorted with their confidence. */
typedef struct ranked {
    double confidence;
    int32_t rule;
} ranked;

static int highest_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->confidence != y->confidence)
        return x->confidence < y->confidence ? 1 : -1;
    return (x->rule > y->rule) - (x->rule < y->rule);
}

static int plan_all(lw_rule_plans *s)
{
    const int32_t n = s->kb->n_rules;
    LW_CLEANUP(lw_free) ranked *order = lw_calloc((size_t)n + 1, sizeof *order);
    if (!order)
        return LW_ENOMEM;
    for (int32_t r = 0; r < n; r++)
        order[r] = (ranked){s->confidence[r], r};
    qsort(order, (size_t)n, sizeof *order, highest_first);
    memcpy(s->first, s->kb->rule_first, ((size_t)s->kb->n_predicates + 2) * sizeof *s->first);
    for (int32_t k = 0, rank = -1; k < n; k++) {
        rank += k == 0 || order[k].confidence != order[k - 1].confidence;
        s->by_rank[rank] = order[k].confidence;
        const int32_t at = s->first[s->kb->rules[order[k].rule].head.p]++;
        for (int side = 0; side < 2; side++) {
            s->plan[side][at].rule = order[k].rule;
            s->plan[side][at].rank = rank;
            LW_TRY(plan_rule(s, order[k].rule, side, &s->plan[side][at]));
        }
    }
    memcpy(s->first, s->kb->rule_first, ((size_t)s->kb->n_predicates + 2) * sizeof *s->first);
    return 0;
}

int lw_rule_plans_new(const lw_kb *kb, const double *confidence, lw_rule_score score,
                      lw_rule_plans **out)
{
    const size_t n = (size_t)kb->n_rules + 1;
    LW_CLEANUP(lw_rule_plans_free) lw_rule_plans *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    s->kb = kb;
    s->score = score;
    s->confidence = lw_calloc(n, sizeof *s->confidence);
    s->by_rank = lw_calloc(n, sizeof *s->by_rank);
    s->first = lw_calloc((size_t)kb->n_predicates + 2, sizeof *s->first);
    for (int side = 0; side < 2; side++)
        s->plan[side] = lw_calloc(n, sizeof *s->plan[side]);
    if (!s->confidence || !s->by_rank || !s->first || !s->plan[0] || !s->plan[1])
        return LW_ENOMEM;
    LW_TRY(read_confidences(s, confidence));
    LW_TRY(plan_all(s));
    *out = lw_steal(&s);
    return 0;
}

void lw_rule_plans_free(lw_rule_plans **pp)
{
    lw_rule_plans *s = *pp;
    if (!s)
        return;
    lw_free(&s->confidence);
    lw_free(&s->by_rank);
    lw_free(&s->first);
    lw_free(&s->plan[0]);
    lw_free(&s->plan[1]);
    lw_free(&s->join);
    lw_free(pp);
}
