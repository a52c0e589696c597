/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: bytes as a knowledge base. Lines "====" cut them into facts, rules, domains,
 * queries and depths. What is accepted is searched, traced and walked through with small limits.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "logic/logic.h"

enum { PARTS = 5 };

static void cut(const char *text, size_t n, lw_span part[PARTS])
{
    static const char line[] = "====\n";
    for (int i = 0; i < PARTS; i++) {
        const char *end = i + 1 < PARTS && n ? memmem(text, n, line, sizeof line - 1) : NULL;
        size_t len = end ? (size_t)(end - text) : n, skip = end ? len + sizeof line - 1 : n;
        part[i] = (lw_span){text, len};
        text += skip;
        n -= skip;
    }
}

/* A proof found must be one; the search must keep its bound. */
static void search(const lw_kb *kb, lw_atom query)
{
    const lw_search_options o = {
        .max_depth = 6, .max_atoms = 8, .max_states = 300, .memory = 128 << 10};
    lw_proof_origin origin[6];
    lw_search *s = NULL;
    lw_search_result r;
    lw_trace t = {0};
    lw_str text = {0};
    if (lw_search_new(kb, &o, &s) != 0 || lw_search_run(s, query, &r) != 0 ||
        lw_search_bytes(s) > o.memory)
        abort();
    if (r.depth > 0) {
        lw_search_proof(s, origin);
        if (lw_trace_build(kb, query, origin, r.depth, &t) != 0)
            abort();
        lw_trace_print(kb, &t, &text);
        lw_trace_prolog(kb, &t, &text);
        fuzz_touch(lw_str_c(&text), text.len);
    }
    lw_trace_clear(&t);
    lw_str_clear(&text);
    lw_search_free(&s);
}

/* Rules applied to the query's goals, and the goals' answers. */
static void answer(const lw_kb *kb, lw_atom query)
{
    lw_rule_plans *plans = NULL;
    lw_rule_asker *q = NULL;
    lw_least_model *m = NULL;
    lw_answers a = {0};
    const int32_t *constant;
    const lw_least_options o = {.depths = true, .max_depth = 3, .memory = 1 << 20};
    if (lw_rule_plans_new(kb, NULL, LW_RULE_MAX_PLUS, &plans) == 0) {
        if (lw_rule_asker_new(plans, &q) != 0)
            abort();
        for (int side = 0; side < 2; side++)
            if (lw_rule_ask(q, query, side, true) == 0) {
                const int32_t n = lw_rule_answers(q, &constant);
                for (int32_t k = 0; k < n; k++)
                    if (constant[k] < 1 || constant[k] > kb->n_constants ||
                        lw_rule_compare(q, constant[k], 0) != 1)
                        abort();
            }
    }
    query.arg[1] = kb->n_constants + 1;
    if (lw_least_model_new(kb, &o, &m) != 0 || (m && lw_answers_find(m, query, NULL, &a) != 0))
        abort();
    lw_answers_clear(&a);
    lw_least_model_free(&m);
    lw_rule_asker_free(&q);
    lw_rule_plans_free(&plans);
}

static void walk(const lw_kb *kb, lw_atom query, uint32_t choice)
{
    lw_env_options o = lw_env_defaults();
    lw_env *e = NULL;
    lw_path *path = NULL;
    lw_moves m;
    o.padding_states = 4 + (int32_t)(choice % 5);
    o.padding_atoms = 1 + (int32_t)(choice % 7);
    o.max_depth = 8;
    o.skip_unary_actions = choice % 2;
    o.numbering = (lw_numbering)(choice % 3);
    if (lw_env_new(kb, &o, &e) != 0 || lw_paths_new(&o, 1, &path) != 0)
        abort();
    lw_env_begin(e, path, query);
    for (lw_env_moves(e, path, &m); m.n > 0; lw_env_moves(e, path, &m)) {
        fuzz_touch(m.atoms, (size_t)m.first[m.n] * sizeof *m.atoms);
        fuzz_touch(m.hash, (size_t)m.n * sizeof *m.hash);
        choice = choice * 1664525u + 1013904223u;
        lw_env_take(e, path, &m, (int32_t)((choice >> 8) % (uint32_t)m.n));
    }
    lw_paths_free(&path);
    lw_env_free(&e);
}

static void use(const lw_kb *kb, lw_span queries, lw_span depths, lw_problems *problems)
{
    const lw_query_options qo = {.split = "test", .skip_unknown = true, .limit = 4};
    const lw_env_options eo = lw_env_defaults();
    lw_queries q = {0};
    lw_survey s = {0};
    if (lw_survey_run(kb, &eo, problems, &s) == 0)
        lw_survey_clear(&s);
    if (lw_queries_parse(kb, &qo, queries, depths, problems, &q) == 0)
        for (int32_t i = 0; i < q.n; i++) {
            search(kb, q.atom[i]);
            answer(kb, q.atom[i]);
            walk(kb, q.atom[i], (uint32_t)i * 7919u + (uint32_t)queries.n);
        }
    lw_queries_clear(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lw_span part[PARTS];
    lw_problems problems = {0};
    lw_kb *kb = NULL;
    cut((const char *)data, size, part);
    const lw_kb_texts t = {part[0], part[1], part[2]};
    int rc = lw_kb_parse(&t, &problems, &kb);
    if ((rc == 0) != (kb != NULL) || (problems.errors.n > 0 && rc == 0))
        abort();
    if (kb)
        use(kb, part[3], part[4], &problems);
    lw_problems_clear(&problems);
    lw_kb_free(&kb);
    return 0;
}
