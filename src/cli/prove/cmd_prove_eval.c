/* SPDX-License-Identifier: Apache-2.0 */
/* leeway prove eval: how high a policy's proofs rank true triples among corrupted ones. */
#include <string.h>

#include "base/base.h"
#include "cli/prove/cmd_prove_candidates.h"
#include "plan/plan.h"
#include "session/session.h"
#include "jobs/prove/walk/walk_job.h"
#include "jobs/prove/kge/kge_job.h"

typedef struct eval_cli {
    lw_prove_cli prove; /* first: the shared tables lie over it */
    lw_prove_candidates candidates;
    int32_t fixed_batch_size, rows;
    bool deterministic, ema;
    const char *policy, *output_dir, *save_scores;
    int64_t cache_memory, memory_limit; /* MiB */
    double penalty, temperature;
    const char *kge;
    double kge_weight, kge_bonus, fail_penalty;
} eval_cli;

static const lw_option eval_options[] = {
    {LW_OPT(eval_cli, prove.split), .name = "split", .fallback = "test", .group = "Data",
     .unit = "name", .help = "queries: test, valid or train"},
    {LW_OPT(eval_cli, prove.filter_queries_by_rules), .name = "filter-queries-by-rules",
     .group = "Data", .help = "leave out, and count, queries whose predicate heads no rule"},
    LW_PROVE_CANDIDATES_N(eval_cli, candidates, "100", "Candidates"),
    LW_PROVE_CANDIDATES_MODES(eval_cli, candidates, "Candidates"),
    LW_PROVE_CANDIDATES_FILTERED(eval_cli, candidates, "Candidates"),
    LW_PROVE_CANDIDATES_DOMAINS(eval_cli, candidates, "Candidates"),
    {LW_OPT(eval_cli, policy), .name = "policy", .path = LW_PATH_IN, .fallback = "uniform",
     .unit = "policy", .group = "Policy",
     .help = "run, checkpoint or model folder; .safetensors file of weights (ours or published); "
             "uniform; formula[:SEED] (weights for measuring)"},
    {LW_OPT(eval_cli, ema), .name = "ema", .fallback = "true", .group = "Policy",
     .help = "use averaged weights where there are any, but the last ones"},
    LW_PROVE_POLICY_OPTIONS(eval_cli),
    {LW_OPT(eval_cli, candidates.precision), .name = "precision",
     .choices = LW_PRECISION_TRAIN_CHOICES, .fallback = "f32", .group = "Policy",
     .help = "operands of the network's products"},
    LW_PROVE_CANDIDATES_RULE(eval_cli, candidates, "Scores"),
    {LW_OPT(eval_cli, penalty), .name = "penalty", .fallback = "100", .max = 1e9, .group = "Scores",
     .help = "taken off the score of a candidate without a proof"},
    {LW_OPT(eval_cli, kge), .name = "kge", .path = LW_PATH_IN, .unit = "source", .group = "Scores",
     .help = "run of `prove kge`: the score is kge-weight * log sigmoid of its score, plus "
             "kge-bonus when proved, less fail-penalty when not"},
    {LW_OPT(eval_cli, kge_weight), .name = "kge-weight", .fallback = "2", .max = 1e9,
     .group = "Scores", .help = "with --kge"},
    {LW_OPT(eval_cli, kge_bonus), .name = "kge-bonus", .fallback = "1", .max = 1e9,
     .group = "Scores", .help = "with --kge"},
    {LW_OPT(eval_cli, fail_penalty), .name = "fail-penalty", .fallback = "0.5", .max = 1e9,
     .group = "Scores", .help = "with --kge; bonus 0 and penalty 0 rank by the embedding alone"},
    {LW_OPT(eval_cli, candidates.ranks_only), .name = "ranks-only", .group = "Work",
     .help = "walk a corruption no further once it is sure to stand above or below its query: the "
             "same ranks, sooner; no AUC-PR, no share of corruptions proved"},
    LW_PROVE_CANDIDATES_STAGES(eval_cli, candidates, "Work"),
    {LW_OPT(eval_cli, fixed_batch_size), .name = "fixed-batch-size", .fallback = "512", .min = 1,
     .max = 1 << 20, .unit = "proofs", .group = "Work", .help = "walked together"},
    LW_PROVE_WORK_OPTIONS(eval_cli, "64"),
    {LW_OPT(eval_cli, memory_limit), .name = "memory-limit", .fallback = "0", .max = 1 << 24,
     .unit = "MiB", .group = "Work",
     .help = "for the whole process, 0: none; cache and batch are made as small as it asks"},
    {LW_OPT(eval_cli, prove.least_model_memory), .name = "least-model-memory", .fallback = "128",
     .max = 1 << 24, .unit = "MiB", .group = "Work",
     .help = "for everything that follows from facts and rules, which says what any prover could "
             "reach; 0, or when it does not fit: that is not said"},
    {LW_OPT(eval_cli, output_dir), .name = "output-dir", .path = LW_PATH_OUT_DIR, .unit = "dir",
     .files = "summary.json|per_query.csv|report.html", .group = "Output",
     .help = "summary.json, per_query.csv, report.html"},
    {LW_OPT(eval_cli, save_scores), .name = "save-scores", .path = LW_PATH_OUT, .unit = "csv",
     .endings = ".csv", .group = "Output", .help = "every candidate with score, end and depth"},
    {.name = NULL}};

/* ---- options --------------------------------------------------------------------------------- */

/* Weights of a score that is not there would be thought to count. */
static int check_kge(const lw_cli *cli, const eval_cli *o)
{
    static const char *const weights[] = {"kge-weight", "kge-bonus", "fail-penalty"};
    for (size_t i = 0; i < LW_COUNT(weights) && !o->kge; i++)
        if (lw_cli_given(cli, weights[i]))
            return lw_fail(LW_EUSAGE, "--%s: only with --kge", weights[i]);
    return 0;
}

static int options_of(const lw_cli *cli, const eval_cli *o, lw_prove_eval_options *out)
{
    lw_prove_eval_options e;
    LW_TRY(check_kge(cli, o));
    LW_TRY(lw_prove_ranking(cli, &o->prove, &o->candidates, &e));
    e.walks.fixed_batch_size = o->fixed_batch_size;
    e.walks.rows = o->rows;
    e.walks.cache_bytes = (size_t)o->cache_memory << 20;
    e.walks.sample = !o->deterministic;
    e.penalty = o->penalty;
    e.memory_limit = (size_t)o->memory_limit << 20;
    e.save_scores = o->save_scores;
    e.kge.weight = o->kge_weight;
    e.kge.bonus = o->kge_bonus;
    e.kge.penalty = o->fail_penalty;
    *out = e;
    return 0;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* What an evaluation is about. */
typedef struct opened {
    lw_kb *kb;
    lw_queries queries;
    lw_positives known;
    lw_prove_policy policy;
    lw_device *dev;
    lw_kge *kge;
} opened;

static void opened_close(opened *d)
{
    lw_kge_close(&d->kge);
    lw_prove_policy_close(&d->policy);
    lw_backend_close(&d->dev);
    lw_positives_clear(&d->known);
    lw_queries_clear(&d->queries);
    lw_kb_free(&d->kb);
}

static int open_all(const lw_cli *cli, const eval_cli *o, lw_prove_eval_options *e,
                    lw_problems *problems, opened *d)
{
    LW_TRY(lw_prove_open_queries(&o->prove, problems, &d->kb, &d->queries));
    if (o->candidates.filtered)
        LW_TRY(lw_positives_open(d->kb, &d->known));
    LW_TRY(lw_prove_policy_open(o->policy, o->ema, d->kb, &e->walks.env, &d->policy));
    if (o->temperature > 0)
        d->policy.config.temperature = (float)o->temperature;
    LW_TRY(lw_session_device(cli->global.threads, &d->dev));
    if (!o->kge)
        return 0;
    LW_TRY(lw_kge_open(o->kge, o->ema, d->kb, d->dev, &d->kge));
    return lw_kge_plausibility(d->kge, &e->kge);
}

/* ---- run ------------------------------------------------------------------------------------- */

static int report(const lw_cli *cli, const eval_cli *o, const lw_prove_context *c,
                  const lw_prove_eval *e)
{
    if (o->output_dir)
        LW_TRY(lw_prove_eval_save(c, e, o->output_dir));
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop) json_t *j = lw_prove_eval_json(c, e);
        lw_cli_print_json(j);
    } else {
        LW_CLEANUP(lw_str_clear) lw_str text = {0};
        LW_TRY(lw_prove_eval_text(c, e, &text));
        lw_cli_print("%s", lw_str_c(&text));
        if (o->output_dir)
            lw_cli_print("%s/report.html\n", o->output_dir);
    }
    if (e->interrupted)
        return lw_fail(LW_ESTOPPED,
                       "interrupted: %d of %d lists (a query in a mode) are ranked; this result is "
                       "partial",
                       e->whole, e->n_lists);
    return 0;
}

static int evaluate(const lw_cli *cli, const eval_cli *o, lw_problems *problems, opened *d)
{
    LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval e = {0};
    LW_CLEANUP(lw_str_clear) lw_str command = {0}, config = {0};
    lw_prove_eval_options eo;
    LW_TRY(options_of(cli, o, &eo));
    LW_TRY(open_all(cli, o, &eo, problems, d));
    if (lw_prove_dry_run(cli, "rank", &d->queries, (int64_t)d->queries.n * o->candidates.n_modes,
                         eo.corrupt.n))
        return 0;
    if (o->output_dir) /* before the work: not every name can be written down */
        LW_TRY(lw_cli_config_yaml(cli, &config));
    {
        LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
        lw_cli_observer_open(&obs, cli);
        LW_TRY(lw_prove_eval_run(d->kb, &d->queries, d->known.set,
                                 o->candidates.filtered ? LW_QUERIES_SPLITS : 0, d->dev,
                                 &d->policy.source, &eo, &obs.calls, &e));
    }
    lw_cli_command_line(cli, &command);
    const lw_prove_context c = {.kb = d->kb,
                                .queries = &d->queries,
                                .o = &eo,
                                .device = lw_cli_device_used(),
                                .dataset = o->prove.dataset,
                                .split = o->prove.split,
                                .policy = d->policy.name,
                                .precision = lw_precision_name(eo.walks.precision),
                                .command = lw_str_c(&command),
                                .config = o->output_dir ? lw_str_c(&config) : NULL};
    return report(cli, o, &c, &e);
}

static int run(const lw_cli *cli, const void *config)
{
    lw_problems problems = {0};
    opened d = {0};
    int rc = evaluate(cli, config, &problems, &d);
    opened_close(&d);
    lw_problems_clear(&problems);
    return rc;
}

const lw_command lw_cmd_prove_eval = {
    .name = "prove eval",
    .dry_run = true,
    .summary = "rank true triples among corrupted ones by a policy's proofs",
    .usage = "DATASET [options]",
    .notes = "Every query and each of its corruptions is proved by the policy, step by step; the "
             "score is the log-probability of the walk, minus --penalty without a proof. Results "
             "do not depend on batch size, cache, memory limit or threads. An interrupt (Ctrl-C) "
             "reports the queries ranked so far, marked as partial, with exit code 130.",
    .examples =
        "leeway prove eval data/countries_s3 --policy runs/ppo --corruption-modes tail "
        "--n-corruptions all\n"
        "leeway prove eval data/family --policy formula --corruption-modes both "
        "--n-queries 100 --query-order first --json\n"
        "leeway prove eval data/wn18rr --policy runs/ppo --n-corruptions all --memory-limit 512 "
        "--output-dir eval",
    .options = {lw_prove_data_options, lw_prove_limit_options, eval_options, lw_prove_env_options},
    .config_size = sizeof(eval_cli),
    .run = run,
};
