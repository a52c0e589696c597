/* SPDX-License-Identifier: Apache-2.0 */
/* leeway prove compare: whatever ranks triples, on the same candidates, in one table. */
#include "base/base.h"
#include "cli/prove/cmd_prove_candidates.h"
#include "jobs/prove/provers/provers_job.h"

enum { MOST_POLICIES = 16 };

typedef struct compare_cli {
    lw_prove_cli prove; /* first: the shared tables lie over it */
    lw_prove_candidates candidates;
    const char *policy[MOST_POLICIES], *kge, *output_dir;
    int32_t n_policies, seeds, rule_score, protocol;
    bool ema;
} compare_cli;

enum { PROTOCOL_NONE, PROTOCOL_DPRL };

static const lw_option compare_options[] = {
    {LW_OPT(compare_cli, prove.split), .name = "split", .fallback = "test", .group = "Data",
     .unit = "name", .help = "queries: test, valid or train"},
    {LW_OPT_LIST(compare_cli, policy, n_policies), .name = "policy", .fallback = "",
     .distinct = true, .unit = "policies", .group = "Provers",
     .help = "runs, checkpoints, model folders (RUN, RUN/best); A+B+C is one row, of which seed k "
             "takes the k-th"},
    {LW_OPT(compare_cli, kge), .name = "kge", .path = LW_PATH_IN, .unit = "source",
     .group = "Provers", .help = "run of `prove kge`: a row alone, one with each policy's proofs"},
    {LW_OPT(compare_cli, ema), .name = "ema", .fallback = "true", .group = "Provers",
     .help = "use averaged weights where there are any"},
    {LW_OPT(compare_cli, rule_score), .name = "rule-score", .choices = LW_RULE_SCORE_CHOICES,
     .fallback = "max-plus", .group = "Provers", .help = "of rules, as `prove rank` has it"},
    {LW_OPT(compare_cli, candidates.precision), .name = "precision",
     .choices = LW_PRECISION_TRAIN_CHOICES, .fallback = "f32", .group = "Provers",
     .help = "operands of the networks' products"},
    {LW_OPT(compare_cli, seeds), .name = "seeds", .fallback = "5", .min = 1, .max = 1000,
     .group = "Candidates",
     .help = "each draws other candidates and walks anew, counted up from --seed"},
    {LW_OPT(compare_cli, protocol), .name = "protocol", .choices = "none|dprl-2026",
     .fallback = "none", .group = "Candidates",
     .help = "dprl-2026: the published table's first 500 queries, 100 corruptions drawn, heads and "
             "tails"},
    LW_PROVE_CANDIDATES_N(compare_cli, candidates, "100", "Candidates"),
    {LW_OPT_LIST(compare_cli, candidates.modes, candidates.n_modes), .name = "corruption-modes",
     .distinct = true, .fallback = "head,tail", .choices = "head|tail", .group = "Candidates",
     .help = "what is replaced"},
    LW_PROVE_CANDIDATES_FILTERED(compare_cli, candidates, "Candidates"),
    LW_PROVE_CANDIDATES_DOMAINS(compare_cli, candidates, "Candidates"),
    LW_PROVE_CANDIDATES_RULE(compare_cli, candidates, "Candidates"),
    {LW_OPT(compare_cli, candidates.ranks_only), .name = "ranks-only", .group = "Work",
     .help = "walk a corruption no further than its rank needs: no share of corruptions proved"},
    LW_PROVE_CANDIDATES_STAGES(compare_cli, candidates, "Work"),
    {LW_OPT(compare_cli, prove.least_model_memory), .name = "least-model-memory", .fallback = "128",
     .max = 1 << 24, .unit = "MiB", .group = "Work",
     .help = "for everything that follows: the ceiling, and lengths of proofs; 0: without"},
    {LW_OPT(compare_cli, output_dir), .name = "output-dir", .path = LW_PATH_OUT_DIR, .unit = "dir",
     .group = "Output", .help = "summary.json, compare.csv, report.html"},
    {.name = NULL}};

static int options_of(const lw_cli *cli, const compare_cli *o, lw_provers_options *out)
{
    lw_prove_eval_options e;
    LW_TRY(lw_prove_ranking(cli, &o->prove, &o->candidates, &e));
    *out = (lw_provers_options){.eval = e,
                                .policy = o->policy,
                                .n_policies = o->n_policies,
                                .seeds = o->seeds,
                                .kge = o->kge,
                                .ema = o->ema,
                                .rule_score = o->rule_score,
                                .threads = cli->global.threads};
    return 0;
}

/* The published slice, unless an option says otherwise. */
static void follow_protocol(const lw_cli *cli, compare_cli *o)
{
    if (o->protocol != PROTOCOL_DPRL)
        return;
    if (!lw_cli_given(cli, "n-queries"))
        o->prove.n_queries = 500;
    if (!lw_cli_given(cli, "query-order"))
        o->prove.query_order = LW_QUERY_FIRST;
}

static int report(const lw_cli *cli, const compare_cli *o, const lw_provers_context *c)
{
    if (o->output_dir)
        LW_TRY(lw_provers_save(c, o->output_dir));
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop) json_t *j = lw_provers_json(c);
        lw_cli_print_result(j);
        return 0;
    }
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_TRY(lw_provers_text(c, &text));
    lw_cli_print("%s", lw_str_c(&text));
    if (o->output_dir)
        lw_cli_print("%s/report.html\n", o->output_dir);
    return 0;
}

/* Everything of one invocation. */
typedef struct opened {
    lw_kb *kb;
    lw_queries queries;
    lw_positives known;
    lw_provers provers;
} opened;

static void opened_clear(opened *d)
{
    lw_provers_clear(&d->provers);
    lw_positives_clear(&d->known);
    lw_queries_clear(&d->queries);
    lw_kb_free(&d->kb);
}

static int compare(const lw_cli *cli, const compare_cli *o, lw_problems *problems, opened *d)
{
    LW_CLEANUP(lw_str_clear) lw_str command = {0}, config = {0};
    lw_provers_options po;
    LW_TRY(options_of(cli, o, &po));
    LW_TRY(lw_prove_open_queries(&o->prove, problems, &d->kb, &d->queries));
    if (lw_prove_dry_run(cli, "compare provers on", &d->queries,
                         (int64_t)d->queries.n * o->candidates.n_modes * o->seeds,
                         po.eval.corrupt.n))
        return 0;
    if (o->candidates.filtered)
        LW_TRY(lw_positives_open(d->kb, &d->known));
    if (o->output_dir) /* before the work: not every name can be written down */
        LW_TRY(lw_cli_config_yaml(cli, &config));
    {
        LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
        lw_cli_observer_open(&obs, cli);
        LW_TRY(lw_provers_run(d->kb, &d->queries, &d->known, &po, &obs.calls, &d->provers));
    }
    lw_cli_command_line(cli, &command);
    const lw_provers_context c = {.p = &d->provers,
                                  .o = &po,
                                  .dataset = o->prove.dataset,
                                  .split = o->prove.split,
                                  .command = lw_str_c(&command),
                                  .config = o->output_dir ? lw_str_c(&config) : NULL};
    return report(cli, o, &c);
}

static int run(const lw_cli *cli, const void *config)
{
    LW_CLEANUP(opened_clear) opened d = {0};
    lw_problems problems = {0};
    compare_cli o = *(const compare_cli *)config;
    follow_protocol(cli, &o);
    int rc = compare(cli, &o, &problems, &d);
    lw_problems_clear(&problems);
    return rc;
}

const lw_command lw_cmd_prove_compare = {
    .name = "prove compare",
    .dry_run = true,
    .summary =
        "uniform and untrained walks, policies, an embedding, rules and the ceiling in one table",
    .usage = "DATASET [--policy RUN,..] [--kge RUN] [options]",
    .notes =
        "All rows rank the same queries among the same candidates; each seed draws other "
        "candidates. Numbers are means over seeds with their deviation, and MRR by predicate, by "
        "length of the shortest proof and by half links that were seen. Limits of the "
        "environment should be those of the training.",
    .examples =
        "leeway prove compare data/family --output-dir compare\n"
        "leeway prove compare data/countries_s3 --policy runs/a,runs/a/best --kge runs/complex "
        "--corruption-modes tail --padding-states 20 --skip-unary-actions\n"
        "leeway prove compare data/family --protocol dprl-2026 --policy runs/a+runs/b+runs/c "
        "--seeds 3",
    .options = {lw_prove_data_options, lw_prove_limit_options, compare_options,
                lw_prove_env_options},
    .config_size = sizeof(compare_cli),
    .run = run,
};
