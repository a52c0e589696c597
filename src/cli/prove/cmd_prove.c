/* SPDX-License-Identifier: Apache-2.0 */
/* leeway prove: options and steps that its verbs share. */
#include "cli/prove/cmd_prove.h"

#include <string.h>

const lw_option lw_prove_data_options[] = {
    {LW_OPT(lw_prove_cli, dataset), .name = "dataset", .path = LW_PATH_IN, .positional = true,
     .required = true, .help = "directory with train.txt, rules.txt and so on"},
    {LW_OPT(lw_prove_cli, rules), .name = "rules", .path = LW_PATH_IN, .unit = "file",
     .group = "Data",
     .help = "rules; a name without slash is looked up in the dataset first (rules.txt)"},
    {LW_OPT(lw_prove_cli, facts_file), .name = "facts-file", .path = LW_PATH_IN, .unit = "file",
     .group = "Data", .help = "facts (train.txt)"},
    {LW_OPT(lw_prove_cli, domains_file), .name = "domains-file", .path = LW_PATH_IN, .unit = "file",
     .group = "Data", .help = "domains of constants (domain2constants.txt)"},
    {LW_OPT(lw_prove_cli, skip_unknown), .name = "skip-unknown", .group = "Data",
     .help = "leave out, and count, queries with names that no fact, rule or domain has; without "
             "it they are errors"},
    {.name = NULL}};

const lw_option lw_prove_limit_options[] = {
    {LW_OPT(lw_prove_cli, n_queries), .name = "n-queries", .aliases = "n-test-queries",
     .fallback = "0", .max = 1e9, .unit = "queries", .group = "Data",
     .help = "only so many (--query-order), 0: all"},
    {LW_OPT(lw_prove_cli, query_order), .name = "query-order", .choices = "spaced|first|random",
     .fallback = "spaced", .group = "Data",
     .help = "which ones --n-queries takes: evenly spaced over the file, which is often sorted by "
             "predicate; the first; drawn by --query-seed"},
    {LW_OPT(lw_prove_cli, seed), .name = "query-seed", .fallback = "0", .max = 9e15,
     .group = "Data", .help = "of --query-order random"},
    {.name = NULL}};

const lw_option lw_prove_search_options[] = {
    {LW_OPT(lw_prove_cli, max_depth), .name = "max-depth", .fallback = "20", .min = 1,
     .max = 1000000, .unit = "steps", .group = "Search", .help = "longest proof looked for"},
    {LW_OPT(lw_prove_cli, padding_atoms), .name = "padding-atoms", .aliases = "max-atoms",
     .fallback = LW_PROVE_PADDING_ATOMS, .min = 1, .max = LW_PROOF_MOST_ATOMS, .unit = "goals",
     .group = "Search", .help = "longer states are rejected and counted"},
    {LW_OPT(lw_prove_cli, max_fact_pairs), .name = "max-fact-pairs", .fallback = "0",
     .max = 2147483647, .unit = "facts", .group = "Search",
     .help = "facts tried of each predicate, 0: all"},
    {LW_OPT(lw_prove_cli, max_states), .name = "max-states", .fallback = "200000", .min = 1,
     .max = 4e9, .unit = "states", .group = "Search", .help = "kept for one query"},
    {LW_OPT(lw_prove_cli, query_memory), .name = "query-memory", .fallback = "256", .min = 1,
     .max = 1 << 20, .unit = "MiB", .group = "Search", .help = "for the states of one query"},
    {LW_OPT(lw_prove_cli, memory_limit), .name = "memory-limit", .fallback = "1024", .min = 1,
     .max = 1 << 24, .unit = "MiB", .group = "Search",
     .help = "for the states of all queries at work; fewer threads work when it does not hold "
             "query-memory for each"},
    {.name = NULL}};

const lw_option lw_prove_least_options[] = {
    {LW_OPT(lw_prove_cli, least_model_memory), .name = "least-model-memory", .fallback = "128",
     .max = 1 << 24, .unit = "MiB", .group = "Search",
     .help = "for everything that follows from facts and rules, which decides what has no proof; "
             "when it does not hold that, or with 0 or --max-fact-pairs, queries are searched for "
             "alone"},
    {.name = NULL}};

const lw_option lw_prove_env_options[] = {LW_PROVE_ENV_OPTIONS(lw_prove_cli), {.name = NULL}};

static int want_queries(const lw_prove_cli *o, const lw_queries *q)
{
    if (q->n > 0)
        return 0;
    if (q->lines == 0)
        return lw_fail(LW_EFORMAT, "%s: there is no query in its %s split", o->dataset, o->split);
    return lw_fail(LW_EFORMAT,
                   "%s: of the %lld queries of its %s split none is left: %lld have a predicate "
                   "that heads no rule, %lld an unknown name",
                   o->dataset, (long long)q->lines, o->split, (long long)q->no_rule,
                   (long long)q->unknown);
}

lw_env_options lw_prove_env(const lw_prove_cli *o)
{
    lw_env_options env = o->env;
    env.numbering = o->parity ? LW_NUMBER_PARITY : LW_NUMBER_CANONICAL;
    return env;
}

int lw_prove_open(const lw_prove_cli *o, lw_problems *problems, lw_kb **out)
{
    const lw_kb_options k = {o->dataset, o->facts_file, o->rules, o->domains_file};
    return lw_kb_open(&k, problems, out);
}

int lw_prove_open_queries(const lw_prove_cli *o, lw_problems *problems, lw_kb **kb,
                          lw_queries *queries)
{
    const lw_query_options q = {.split = o->split,
                                .filter_by_rules = o->filter_queries_by_rules,
                                .skip_unknown = o->skip_unknown,
                                .limit = o->n_queries,
                                .order = o->query_order,
                                .seed = (uint64_t)o->seed};
    LW_TRY(lw_prove_open(o, problems, kb));
    LW_TRY(lw_queries_open(*kb, &q, problems, queries));
    lw_prove_warn(problems);
    return want_queries(o, queries);
}

int lw_prove_open_least(const lw_prove_cli *o, const lw_kb *kb, int32_t max_depth,
                        const lw_observer *obs, lw_prove_least *out)
{
    const lw_least_options lo = {.depths = true,
                                 .max_depth = max_depth,
                                 .memory = (size_t)o->least_model_memory << 20,
                                 .obs = obs};
    *out = (lw_prove_least){.wanted = o->least_model_memory > 0 && o->max_fact_pairs == 0};
    const double began = lw_now();
    if (out->wanted)
        LW_TRY(lw_least_model_new(kb, &lo, &out->model));
    out->seconds = lw_now() - began;
    return 0;
}

void lw_prove_least_clear(lw_prove_least *m)
{
    lw_least_model_free(&m->model);
}

int lw_prove_need_least(const lw_prove_cli *o, const lw_prove_least *m)
{
    if (m->model)
        return 0;
    return lw_fail(LW_ENOMEM,
                   "%s: what follows from facts and rules does not fit in --least-model-memory "
                   "%lld MiB; raise it, or ask for shorter proofs (--max-depth)",
                   o->dataset, (long long)o->least_model_memory);
}

json_t *lw_prove_least_json(const lw_prove_least *m)
{
    if (!m->model)
        return json_null();
    return json_pack("{s:I, s:I, s:o}", "atoms", (json_int_t)lw_least_model_atoms(m->model),
                     "bytes", (json_int_t)lw_least_model_bytes(m->model), "seconds",
                     lw_json_real(m->seconds));
}

lw_search_options lw_prove_search(const lw_prove_cli *o)
{
    return (lw_search_options){.max_depth = o->max_depth,
                               .max_atoms = o->padding_atoms,
                               .max_fact_pairs = o->max_fact_pairs,
                               .max_states = o->max_states,
                               .memory = (size_t)o->query_memory << 20};
}

int lw_prove_count(const char *text, int64_t *n)
{
    *n = 0;
    if (lw_str_eq(text, "all") || (lw_parse_i64(text, n) == 0 && *n >= 0 && *n <= INT32_MAX))
        return 0;
    return lw_fail(LW_EUSAGE, "--n-corruptions %s: a number, or all", text);
}

void lw_prove_modes(const char *const *word, int32_t n, bool *mode)
{
    for (int m = 0; m < LW_CORRUPT_MODES; m++) {
        mode[m] = false;
        for (int32_t i = 0; i < n; i++)
            mode[m] |= lw_str_eq(word[i], lw_corrupt_mode_name((lw_corrupt_mode)m));
    }
}

bool lw_prove_dry_run(const lw_cli *cli, const char *what, const lw_queries *q, int64_t lists,
                      int64_t n_corruptions)
{
    if (!cli->global.dry_run)
        return false;
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop)
        json_t *j = json_pack("{s:b, s:s, s:I, s:I, s:I}", "dry_run", 1, "would", what, "queries",
                              (json_int_t)q->n, "lists", (json_int_t)lists, "n_corruptions",
                              (json_int_t)n_corruptions);
        lw_cli_print_json(j);
        return true;
    }
    lw_cli_print("would %s %d queries", what, q->n);
    if (lists > 0 && n_corruptions > 0)
        lw_cli_print(" in %lld lists with %lld corruptions each", (long long)lists,
                     (long long)n_corruptions);
    else if (lists > 0)
        lw_cli_print(" in %lld lists with all corruptions", (long long)lists);
    lw_cli_print("; nothing was done (--dry-run)\n");
    return true;
}

void lw_prove_warn(const lw_problems *p)
{
    const char *line = lw_str_c(&p->warnings.text);
    for (int n; (n = (int)strcspn(line, "\n")) > 0; line += line[n] ? n + 1 : n)
        lw_log(LW_LOG_WARN, "prove", "%.*s", n, line);
    if (p->warnings.n > p->warnings.kept)
        lw_log(LW_LOG_WARN, "prove", "and %lld more",
               (long long)(p->warnings.n - p->warnings.kept));
}
