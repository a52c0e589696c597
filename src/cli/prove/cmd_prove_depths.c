/* SPDX-License-Identifier: Apache-2.0 */
/* leeway prove depths: the shortest proof of every query, by search alone. */
#include <stdio.h>

#include "base/base.h"
#include "cli/prove/cmd_prove.h"

static const lw_option depth_options[] = {
    {LW_OPT(lw_prove_cli, split), .name = "split", .fallback = "test", .group = "Data",
     .unit = "name", .help = "queries: test, valid or train"},
    {LW_OPT(lw_prove_cli, filter_queries_by_rules), .name = "filter-queries-by-rules",
     .group = "Data",
     .help = "leave out, and count, queries whose predicate heads no rule (train: always, unless "
             "--no-filter-queries-by-rules)"},
    {.name = NULL}};

/* The name of what is counted as a cut, and how often. */
typedef struct cut_row {
    const char *name, *text;
    int64_t n;
} cut_row;

enum { CUTS = 5 };

static void cuts_of(const lw_depths *d, cut_row row[CUTS])
{
    row[0] = (cut_row){"atoms", "successors with more goals than padding-atoms, rejected",
                       d->sum.atoms_cut};
    row[1] = (cut_row){"facts", "facts behind max-fact-pairs, not tried", d->sum.facts_cut};
    row[2] = (cut_row){"depth", "queries with states left at max-depth", d->ends[LW_SEARCH_DEPTH]};
    row[3] = (cut_row){"states", "queries that met max-states", d->ends[LW_SEARCH_STATES]};
    row[4] = (cut_row){"memory", "queries that met query-memory", d->ends[LW_SEARCH_MEMORY]};
}

static double per_second(int64_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0.0;
}

static json_t *depth_list(const lw_kb *kb, const lw_queries *q, const lw_depths *d)
{
    json_t *list = json_array();
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    for (int32_t i = 0; i < d->n; i++) {
        lw_str_clear(&text);
        lw_kb_print_atom(kb, q->atom[i], &text);
        json_t *one = json_pack("{s:s, s:i}", "query", lw_str_c(&text), "depth", d->of[i].depth);
        if (d->of[i].by_model)
            json_object_set_new(one, "by", json_string("least model"));
        if (d->of[i].depth < 0)
            json_object_set_new(one, "end", json_string(lw_search_end_name(d->of[i].end)));
        if (q->published[i] != LW_DEPTH_UNKNOWN)
            json_object_set_new(one, "published", json_integer(q->published[i]));
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *report_json(const lw_prove_cli *o, const lw_kb *kb, const lw_queries *q,
                           const lw_depths *d, const lw_prove_least *m)
{
    cut_row cut[CUTS];
    json_t *j = json_pack("{s:o, s:o, s:i}", "dataset", lw_json_name(o->dataset), "split",
                          lw_json_name(o->split), "queries", q->n);
    json_t *histogram = json_object(), *cuts = json_object();
    if (d->histogram[0] > 0)
        json_object_set_new(histogram, "-1", json_integer((json_int_t)d->histogram[0]));
    for (int32_t k = 1; k <= d->most_depth; k++) {
        char name[16];
        snprintf(name, sizeof name, "%d", k);
        if (d->histogram[k] > 0)
            json_object_set_new(histogram, name, json_integer((json_int_t)d->histogram[k]));
    }
    json_object_set_new(j, "histogram", histogram);
    json_object_set_new(j, "depths", depth_list(kb, q, d));
    json_object_set_new(j, "no_proof", json_integer((json_int_t)d->ends[LW_SEARCH_NONE]));
    json_object_set_new(j, "only_longer", json_integer((json_int_t)d->deep));
    json_object_set_new(j, "undecided", json_integer((json_int_t)d->undecided));
    if (d->compared > 0)
        json_object_set_new(j, "published",
                            json_pack("{s:I, s:I, s:I}", "compared", (json_int_t)d->compared,
                                      "equal", (json_int_t)d->equal, "deeper",
                                      (json_int_t)d->deeper));
    cuts_of(d, cut);
    for (int i = 0; i < CUTS; i++)
        json_object_set_new(cuts, cut[i].name, json_integer((json_int_t)cut[i].n));
    json_object_set_new(j, "cuts", cuts);
    json_object_set_new(j, "left_out",
                        json_pack("{s:I, s:I}", "no_rule", (json_int_t)q->no_rule, "unknown",
                                  (json_int_t)q->unknown));
    json_t *model = lw_prove_least_json(m);
    if (m->model)
        json_object_set_new(model, "decided", json_integer((json_int_t)d->by_model));
    json_object_set_new(j, "least_model", model);
    json_object_set_new(j, "max_depth", json_integer(o->max_depth));
    json_object_set_new(j, "threads", json_integer(d->threads));
    json_object_set_new(j, "query_memory", json_integer((json_int_t)d->query_memory));
    json_object_set_new(j, "most_states", json_integer((json_int_t)d->sum.states));
    json_object_set_new(j, "seconds", json_real(d->seconds));
    json_object_set_new(j, "steps", json_integer((json_int_t)d->sum.expanded));
    json_object_set_new(j, "steps_per_second", json_real(per_second(d->sum.expanded, d->seconds)));
    json_object_set_new(j, "successors", json_integer((json_int_t)d->sum.successors));
    json_object_set_new(j, "successors_per_second",
                        json_real(per_second(d->sum.successors, d->seconds)));
    return j;
}

static void print_model(const lw_prove_cli *o, const lw_kb *kb, const lw_depths *d,
                        const lw_prove_least *m)
{
    if (m->model)
        lw_cli_print("least model: %lld atoms from %d facts and %d rules in %.3f s (%.3g MiB); it "
                     "decided %lld queries\n",
                     (long long)lw_least_model_atoms(m->model), kb->facts.n, kb->n_rules,
                     m->seconds, (double)lw_least_model_bytes(m->model) / (1 << 20),
                     (long long)d->by_model);
    else if (m->wanted)
        lw_cli_print("least model: does not fit in --least-model-memory %lld MiB, so done "
                     "without\n",
                     (long long)o->least_model_memory);
}

static void print_unproved(const lw_depths *d)
{
    if (d->histogram[0] == 0)
        return;
    lw_cli_print("%8d %10lld  (%lld have no proof at all", -1, (long long)d->histogram[0],
                 (long long)d->ends[LW_SEARCH_NONE]);
    if (d->deep > 0)
        lw_cli_print(", %lld only longer ones", (long long)d->deep);
    if (d->undecided > 0)
        lw_cli_print(", %lld undecided: a limit was met", (long long)d->undecided);
    lw_cli_print(")\n");
}

static void print_report(const lw_prove_cli *o, const lw_queries *q, const lw_depths *d)
{
    cut_row cut[CUTS];
    int64_t proved = d->n - d->histogram[0];
    lw_cli_print("%s, %s: %d queries, %lld proved, %lld not\n", o->dataset, o->split, d->n,
                 (long long)proved, (long long)d->histogram[0]);
    if (q->no_rule || q->unknown)
        lw_cli_print("left out: %lld whose predicate heads no rule, %lld with unknown names\n",
                     (long long)q->no_rule, (long long)q->unknown);
    lw_cli_print("%8s %10s\n", "depth", "queries");
    for (int32_t k = 1; k <= d->most_depth; k++)
        if (d->histogram[k] > 0)
            lw_cli_print("%8d %10lld\n", k, (long long)d->histogram[k]);
    print_unproved(d);
    if (d->compared > 0)
        lw_cli_print("published depths: %lld of %lld equal\n", (long long)d->equal,
                     (long long)d->compared);
    if (d->deeper > 0)
        lw_cli_print("published beyond --max-depth, not compared: %lld\n", (long long)d->deeper);
    cuts_of(d, cut);
    for (int i = 0; i < CUTS; i++)
        if (cut[i].n > 0)
            lw_cli_print("cut: %lld %s\n", (long long)cut[i].n, cut[i].text);
    lw_cli_print("%.3f s, %d thread%s: %lld steps (%.3g/s), %lld successors (%.3g/s), at most %lld "
                 "states for a query\n",
                 d->seconds, d->threads, d->threads == 1 ? "" : "s", (long long)d->sum.expanded,
                 per_second(d->sum.expanded, d->seconds), (long long)d->sum.successors,
                 per_second(d->sum.successors, d->seconds), (long long)d->sum.states);
}

static bool tick(void *self, int64_t done, int64_t total)
{
    const lw_observer *obs = self;
    lw_observe_progress(obs, "proofs", done, total, NULL);
    return !lw_observe_stop(obs);
}

static int find_depths(const lw_cli *cli, const lw_prove_cli *o, const lw_kb *kb,
                       const lw_queries *q, lw_prove_least *m, lw_depths *out)
{
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    lw_cli_observer_open(&obs, cli);
    LW_TRY(lw_prove_open_least(o, kb, 0, &obs.calls, m));
    const lw_depths_options run = {.search = lw_prove_search(o),
                                   .memory_limit = (size_t)o->memory_limit << 20,
                                   .model = m->model,
                                   .threads = cli->global.threads,
                                   .self = &obs.calls,
                                   .tick = tick};
    return lw_depths_run(kb, q, &run, out);
}

static int depths(const lw_cli *cli, const lw_prove_cli *o, const lw_kb *kb, const lw_queries *q)
{
    LW_CLEANUP(lw_depths_clear) lw_depths d = {0};
    LW_CLEANUP(lw_prove_least_clear) lw_prove_least m = {0};
    LW_TRY(find_depths(cli, o, kb, q, &m, &d));
    if (!cli->global.json) {
        print_report(o, q, &d);
        print_model(o, kb, &d, &m);
        return 0;
    }
    LW_CLEANUP(lw_json_drop) json_t *j = report_json(o, kb, q, &d, &m);
    lw_cli_print_json(j);
    return 0;
}

static int open_and_run(const lw_cli *cli, const lw_prove_cli *o, lw_problems *problems)
{
    LW_CLEANUP(lw_kb_free) lw_kb *kb = NULL;
    LW_CLEANUP(lw_queries_clear) lw_queries q = {0};
    bool by_rules = lw_cli_given(cli, "filter-queries-by-rules") ? o->filter_queries_by_rules
                                                                 : lw_str_eq(o->split, "train");
    const lw_query_options qo = {.split = o->split,
                                 .filter_by_rules = by_rules,
                                 .skip_unknown = o->skip_unknown,
                                 .limit = o->n_queries,
                                 .order = o->query_order,
                                 .seed = (uint64_t)o->seed};
    LW_TRY(lw_prove_open(o, problems, &kb));
    LW_TRY(lw_queries_open(kb, &qo, problems, &q));
    lw_prove_warn(problems);
    if (lw_prove_dry_run(cli, "search proofs of", &q, 0, 0))
        return 0;
    return depths(cli, o, kb, &q);
}

static int run(const lw_cli *cli, const void *config)
{
    lw_problems problems = {0};
    int rc = open_and_run(cli, config, &problems);
    lw_problems_clear(&problems);
    return rc;
}

const lw_command lw_cmd_prove_depths = {
    .name = "prove depths",
    .dry_run = true,
    .summary = "the shortest proof of every query, breadth first",
    .usage = "DATASET [options]",
    .notes =
        "The depth of a proof is its number of steps: a step resolves the first goal with a fact "
        "or a rule, and goals that are known facts fall away. The query itself is never used as "
        "a fact. -1: no proof was found; the report says how many have none at all and how many "
        "are "
        "undecided because a limit was met. What follows from facts and rules is computed first, "
        "bottom up: it decides at once which queries have no proof at all, in recursive datasets "
        "too. Exit code 0 either way.",
    .examples = "leeway prove depths data/countries_s3\n"
                "leeway prove depths data/wn18rr --max-depth 3 --json\n"
                "leeway prove depths data/family --rules rules_amie.txt --max-depth 2",
    .options = {lw_prove_data_options, lw_prove_limit_options, depth_options,
                lw_prove_search_options, lw_prove_least_options},
    .config_size = sizeof(lw_prove_cli),
    .run = run,
};
