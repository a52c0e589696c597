/* SPDX-License-Identifier: Apache-2.0 */
/* leeway prove check: read a dataset, count it, name what is wrong or meets a limit. */
#include <string.h>

#include "base/base.h"
#include "cli/prove/cmd_prove.h"

static const lw_option check_options[] = {
    {LW_OPT(lw_prove_cli, padding_atoms), .name = "padding-atoms",
     .fallback = LW_PROVE_PADDING_ATOMS, .min = 1, .max = LW_PROOF_MOST_ATOMS, .unit = "goals",
     .group = "Limits to warn of", .help = "goals of a state"},
    {LW_OPT(lw_prove_cli, env.padding_states), .name = "padding-states", .fallback = "120",
     .min = 1, .max = 65536, .unit = "states", .group = "Limits to warn of",
     .help = "successors of a state"},
    {LW_OPT(lw_prove_cli, max_fact_pairs), .name = "max-fact-pairs", .fallback = "0",
     .max = 2147483647, .unit = "facts", .group = "Limits to warn of",
     .help = "facts tried of each predicate, 0: all"},
    {.name = NULL}};

static const char *const splits[] = {"train", "valid", "test"};

/* A dataset opened as far as it goes. */
typedef struct looked {
    lw_kb *kb;
    lw_survey survey;
    lw_queries split[LW_COUNT(splits)];
    bool has[LW_COUNT(splits)];
    lw_problems problems;
} looked;

static int look(const lw_prove_cli *o, looked *l)
{
    lw_env_options env = lw_env_defaults();
    env.padding_atoms = o->padding_atoms;
    env.padding_states = o->env.padding_states;
    env.max_fact_pairs = o->max_fact_pairs;
    LW_TRY(lw_prove_open(o, &l->problems, &l->kb));
    LW_TRY(lw_survey_run(l->kb, &env, &l->problems, &l->survey));
    for (size_t i = 0; i < LW_COUNT(splits); i++) {
        const lw_query_options q = {.split = splits[i],
                                    .filter_by_rules = lw_str_eq(splits[i], "train"),
                                    .skip_unknown = o->skip_unknown,
                                    .optional = true};
        int rc = lw_queries_open(l->kb, &q, &l->problems, &l->split[i]);
        if (rc < 0 && rc != LW_EFORMAT) /* bad lines are listed: go on to the other splits */
            return rc;
        if (rc == 0 && l->split[i].absent)
            lw_problem_add(&l->problems.warnings, o->dataset, 0, "no %s.txt in it", splits[i]);
        l->has[i] = rc == 0 && !l->split[i].absent;
    }
    return lw_problems_fail(&l->problems);
}

static json_t *lines_json(const lw_problem_list *list)
{
    json_t *all = json_array();
    for (const char *at = lw_str_c(&list->text), *end; (end = strchr(at, '\n')); at = end + 1)
        json_array_append_new(all, json_stringn_nocheck(at, (size_t)(end - at)));
    return all;
}

static json_t *predicates_json(const looked *l)
{
    json_t *all = json_array();
    for (int32_t p = 1; p <= l->kb->n_predicates; p++) {
        const lw_predicate_survey *x = &l->survey.of[p];
        json_array_append_new(all,
                              json_pack("{s:s, s:i, s:i, s:b, s:i, s:i}", "name",
                                        l->kb->predicates.name[p], "facts", (int)x->facts, "rules",
                                        (int)x->heads, "recursive", x->recursive, "most_tails",
                                        (int)x->most_tails, "most_heads", (int)x->most_heads));
    }
    return all;
}

static json_t *splits_json(const looked *l)
{
    json_t *all = json_object();
    for (size_t i = 0; i < LW_COUNT(splits); i++)
        if (l->has[i])
            json_object_set_new(
                all, splits[i],
                json_pack("{s:i, s:I, s:I, s:I, s:i}", "queries", (int)l->split[i].n, "lines",
                          (json_int_t)l->split[i].lines, "no_rule", (json_int_t)l->split[i].no_rule,
                          "unknown", (json_int_t)l->split[i].unknown, "annotated",
                          (int)l->split[i].annotated));
    return all;
}

static json_t *report_json(const lw_prove_cli *o, const looked *l, bool ok)
{
    json_t *j = json_pack("{s:o, s:b}", "dataset", lw_json_name(o->dataset), "ok", ok);
    json_object_set_new(j, "errors", lines_json(&l->problems.errors));
    json_object_set_new(j, "warnings", lines_json(&l->problems.warnings));
    if (!l->kb || !l->survey.of)
        return j;
    json_object_set_new(j, "facts", json_integer(l->kb->facts.n));
    json_object_set_new(j, "duplicate_facts", json_integer((json_int_t)l->kb->duplicate_facts));
    json_object_set_new(j, "rules", json_integer(l->kb->n_rules));
    json_object_set_new(j, "predicates", json_integer(l->kb->n_predicates));
    json_object_set_new(j, "constants", json_integer(l->kb->n_constants));
    json_object_set_new(j, "domains", json_integer(l->kb->domains.names.n));
    json_object_set_new(j, "recursive_predicates", json_integer(l->survey.recursive));
    json_object_set_new(j, "bytes", json_integer((json_int_t)lw_kb_bytes(l->kb)));
    json_object_set_new(j, "splits", splits_json(l));
    json_object_set_new(j, "by_predicate", predicates_json(l));
    return j;
}

static const char *s_of(int32_t n)
{
    return n == 1 ? "" : "s";
}

static void print_tables(const looked *l)
{
    enum { SHOWN = 60 };
    const lw_kb *kb = l->kb;
    char text[32];
    lw_cli_print("%d fact%s, %d rule%s, %d predicate%s (%d recursive), %d constant%s, %d domain%s; "
                 "%s\n",
                 kb->facts.n, s_of(kb->facts.n), kb->n_rules, s_of(kb->n_rules), kb->n_predicates,
                 s_of(kb->n_predicates), l->survey.recursive, kb->n_constants,
                 s_of(kb->n_constants), kb->domains.names.n, s_of(kb->domains.names.n),
                 lw_fmt_bytes(text, lw_kb_bytes(kb)));
    for (size_t i = 0; i < LW_COUNT(splits); i++)
        if (l->has[i])
            lw_cli_print("%-6s %9d %s, %d with a published depth%s\n", splits[i], l->split[i].n,
                         l->split[i].n == 1 ? "query" : "queries", l->split[i].annotated,
                         l->split[i].no_rule ? ", only of predicates that head a rule" : "");
    lw_cli_print("%-40s %9s %6s %9s %11s %11s\n", "predicate", "facts", "rules", "recursive",
                 "most tails", "most heads");
    for (int32_t p = 1; p <= LW_MIN(kb->n_predicates, SHOWN); p++) {
        const lw_predicate_survey *x = &l->survey.of[p];
        lw_cli_print("%-40s %9d %6d %9s %11d %11d\n", kb->predicates.name[p], x->facts, x->heads,
                     x->recursive ? "yes" : "", x->most_tails, x->most_heads);
    }
    if (kb->n_predicates > SHOWN)
        lw_cli_print("and %d more predicates (--json has them all)\n", kb->n_predicates - SHOWN);
}

static void print_lines(const char *kind, const lw_problem_list *list)
{
    for (const char *at = lw_str_c(&list->text), *end; (end = strchr(at, '\n')); at = end + 1)
        lw_cli_print("%s: %.*s\n", kind, (int)(end - at), at);
    if (list->n > list->kept)
        lw_cli_print("%s: and %lld more\n", kind, (long long)(list->n - list->kept));
}

static int run(const lw_cli *cli, const void *config)
{
    const lw_prove_cli *o = config;
    looked l = {0};
    int rc = look(o, &l);
    if (cli->global.json && (rc == 0 || rc == LW_EFORMAT)) {
        LW_CLEANUP(lw_json_drop) json_t *j = report_json(o, &l, rc == 0);
        lw_cli_print_json(j);
    } else if (!cli->global.json) {
        if (l.survey.of)
            print_tables(&l);
        print_lines("warning", &l.problems.warnings);
        print_lines("error", &l.problems.errors);
    }
    lw_kb_free(&l.kb);
    lw_survey_clear(&l.survey);
    for (size_t i = 0; i < LW_COUNT(splits); i++)
        lw_queries_clear(&l.split[i]);
    lw_problems_clear(&l.problems);
    return rc;
}

const lw_command lw_cmd_prove_check = {
    .name = "prove check",
    .summary = "read a dataset of facts, rules and queries, count it, name what is wrong",
    .usage = "DATASET [options]",
    .notes = "Exit code 3 when a line is bad; every one is named. Warnings do not count.",
    .examples = "leeway prove check data/family\n"
                "leeway prove check data/wn18rr --json",
    .options = {lw_prove_data_options, check_options},
    .config_size = sizeof(lw_prove_cli),
    .run = run,
};
