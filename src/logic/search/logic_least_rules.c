/* SPDX-License-Identifier: Apache-2.0 */
/* In which order the atoms of a body are joined, and in which patterns they are selected. */
#include "logic/search/logic_least_parts.h"

#include <string.h>

static int32_t var_of(const lw_kb *kb, int32_t arg)
{
    return lw_kb_is_var(kb, arg) ? arg - kb->n_constants - 1 : -1;
}

/* ---- patterns -------------------------------------------------------------------------------- */

/* What is known of a rule's variables while its body is worked off from left to right. */
typedef struct knowing {
    const lw_kb *kb;
    bool known[LW_PROOF_MOST_VARS];
    int32_t same, as; /* variable `same` is `as`, both unknown; -1: none are the same */
} knowing;

static int32_t name_of(const knowing *k, int32_t arg)
{
    int32_t v = var_of(k->kb, arg);
    return v >= 0 && v == k->same ? k->as : v;
}

static bool knows(const knowing *k, int32_t arg)
{
    int32_t v = name_of(k, arg);
    return v < 0 || k->known[v];
}

static void learn(knowing *k, int32_t arg)
{
    int32_t v = name_of(k, arg);
    if (v >= 0)
        k->known[v] = true;
}

/* The head meets a goal of this pattern. */
static void meet_goal(knowing *k, lw_atom head, lw_pattern goal)
{
    if (goal == LW_GOAL_KNOWN || goal == LW_GOAL_HEAD)
        learn(k, head.arg[0]);
    if (goal == LW_GOAL_KNOWN || goal == LW_GOAL_TAIL)
        learn(k, head.arg[1]);
    if (goal != LW_GOAL_SAME)
        return;
    if (knows(k, head.arg[0])) {
        learn(k, head.arg[1]);
    } else if (knows(k, head.arg[1])) {
        learn(k, head.arg[0]);
    } else {
        k->same = var_of(k->kb, head.arg[1]);
        k->as = var_of(k->kb, head.arg[0]);
    }
}

static lw_pattern pattern_of(const knowing *k, lw_atom a)
{
    if (knows(k, a.arg[0]))
        return knows(k, a.arg[1]) ? LW_GOAL_KNOWN : LW_GOAL_HEAD;
    if (knows(k, a.arg[1]))
        return LW_GOAL_TAIL;
    return name_of(k, a.arg[0]) == name_of(k, a.arg[1]) ? LW_GOAL_SAME : LW_GOAL_OPEN;
}

static void fill_patterns(const lw_kb *kb, const lw_rule *r, int32_t patterns, uint8_t *out)
{
    if (patterns == 1)
        return; /* all zero: known */
    for (int32_t goal = 0; goal < patterns; goal++) {
        knowing k = {.kb = kb, .same = -1};
        meet_goal(&k, r->head, (lw_pattern)goal);
        for (int32_t i = 0; i < r->n_body; i++) {
            const lw_atom a = kb->body[r->first + i];
            out[goal * r->n_body + i] = (uint8_t)pattern_of(&k, a);
            learn(&k, a.arg[0]);
            learn(&k, a.arg[1]);
        }
    }
}

/* ---- order of joins -------------------------------------------------------------------------- */

static void fill_order(const lw_kb *kb, const lw_rule *r, int32_t given, uint8_t *out)
{
    knowing k = {.kb = kb, .same = -1};
    bool done[LW_PROOF_MOST_BODY] = {false};
    const lw_atom first = given < r->n_body ? kb->body[r->first + given] : r->head;
    learn(&k, first.arg[0]);
    learn(&k, first.arg[1]);
    if (given < r->n_body)
        done[given] = true;
    for (int32_t n = given < r->n_body ? 1 : 0, m = 0; n < r->n_body; n++, m++) {
        int32_t best = 0, most = -1; /* one is always left */
        for (int32_t i = 0; i < r->n_body; i++) {
            const lw_atom a = kb->body[r->first + i];
            int32_t bound = knows(&k, a.arg[0]) + knows(&k, a.arg[1]);
            if (!done[i] && bound > most) {
                best = i;
                most = bound;
            }
        }
        done[best] = true;
        learn(&k, kb->body[r->first + best].arg[0]);
        learn(&k, kb->body[r->first + best].arg[1]);
        out[m] = (uint8_t)best;
    }
}

/* ---- all rules ------------------------------------------------------------------------------- */

static int count_places(const lw_kb *kb, lw_least_rules *out, int32_t *orders, int32_t *patterns)
{
    int64_t o = 0, p = 0;
    for (int32_t i = 0; i < kb->n_rules; i++) {
        int32_t n = kb->rules[i].n_body;
        out->order_first[i] = (int32_t)o;
        out->pattern_first[i] = (int32_t)p;
        o += (int64_t)n * (n + 1);
        p += (int64_t)n * out->patterns;
        if (o > INT32_MAX || p > INT32_MAX)
            return lw_fail(LW_ENOMEM, "no memory for the joins of %d rules", kb->n_rules);
    }
    *orders = (int32_t)o;
    *patterns = (int32_t)p;
    return 0;
}

static void fill_uses(const lw_kb *kb, lw_least_rules *out, int32_t *at)
{
    memcpy(at, out->use_first, ((size_t)kb->n_predicates + 2) * sizeof *at);
    for (int32_t r = 0; r < kb->n_rules; r++) {
        const lw_rule *rule = &kb->rules[r];
        for (int32_t i = 0; i < rule->n_body; i++) {
            lw_use *u = &out->use[at[kb->body[rule->first + i].p]++];
            *u = (lw_use){.rule = r, .at = i};
            for (int32_t goal = 0; goal < out->patterns; goal++)
                u->heads[out->pattern[out->pattern_first[r] + goal * rule->n_body + i]] |=
                    (uint8_t)(1U << goal);
        }
    }
}

static void count_uses(const lw_kb *kb, lw_least_rules *out)
{
    for (int32_t r = 0; r < kb->n_rules; r++)
        for (int32_t i = 0; i < kb->rules[r].n_body; i++)
            out->use_first[kb->body[kb->rules[r].first + i].p + 1]++;
    for (int32_t p = 0; p <= kb->n_predicates; p++)
        out->use_first[p + 1] += out->use_first[p];
}

static int make(const lw_kb *kb, lw_least_rules *out)
{
    const size_t rules = (size_t)kb->n_rules + 1, predicates = (size_t)kb->n_predicates + 2;
    int32_t orders = 0, patterns = 0;
    out->order_first = lw_calloc(rules, sizeof *out->order_first);
    out->pattern_first = lw_calloc(rules, sizeof *out->pattern_first);
    out->use_first = lw_calloc(predicates, sizeof *out->use_first);
    LW_CLEANUP(lw_free) int32_t *at = lw_calloc(predicates, sizeof *at);
    if (!out->order_first || !out->pattern_first || !out->use_first || !at)
        return LW_ENOMEM;
    LW_TRY(count_places(kb, out, &orders, &patterns));
    count_uses(kb, out);
    out->order = lw_calloc((size_t)orders + 1, sizeof *out->order);
    out->pattern = lw_calloc((size_t)patterns + 1, sizeof *out->pattern);
    out->use = lw_calloc((size_t)out->use_first[kb->n_predicates + 1] + 1, sizeof *out->use);
    if (!out->order || !out->pattern || !out->use)
        return LW_ENOMEM;
    for (int32_t r = 0; r < kb->n_rules; r++) {
        const lw_rule *rule = &kb->rules[r];
        fill_patterns(kb, rule, out->patterns, out->pattern + out->pattern_first[r]);
        for (int32_t i = 0; i <= rule->n_body; i++)
            fill_order(kb, rule, i, out->order + out->order_first[r] + i * rule->n_body);
    }
    fill_uses(kb, out, at);
    return 0;
}

int lw_least_rules_make(const lw_kb *kb, int32_t patterns, lw_least_rules *out)
{
    *out = (lw_least_rules){.patterns = patterns};
    int rc = make(kb, out);
    if (rc < 0)
        lw_least_rules_clear(out);
    return rc;
}

void lw_least_rules_clear(lw_least_rules *r)
{
    lw_free(&r->use);
    lw_free(&r->use_first);
    lw_free(&r->order);
    lw_free(&r->pattern);
    lw_free(&r->order_first);
    lw_free(&r->pattern_first);
}
