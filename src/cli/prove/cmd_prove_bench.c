/* SPDX-License-Identifier: Apache-2.0 */
/* leeway prove bench: how long an evaluation takes, and where the time goes. */
#include "base/base.h"
#include "cli/cli_observer.h"
#include "cli/prove/cmd_prove.h"
#include "plan/plan.h"
#include "session/session.h"
#include "jobs/prove/walk/walk_job.h"
#include "jobs/prove/bench/prove_bench_job.h"

typedef struct bench_cli {
    lw_prove_cli prove; /* first: the shared tables lie over it */
    int32_t n_corruptions, mode, fixed_batch_size, rows, samples;
    int32_t batch[LW_PROVE_BENCH_MOST], n_batch;
    int64_t cache_memory; /* MiB */
    double seconds, temperature;
    bool steps, deterministic;
    const char *policy, *output_dir, *csv;
} bench_cli;

static const lw_option bench_options[] = {
    {LW_OPT(bench_cli, prove.split), .name = "split", .fallback = "test", .group = "Data",
     .unit = "name", .help = "queries: test, valid or train"},
    {LW_OPT(bench_cli, prove.n_queries), .name = "n-queries", .aliases = "n-test-queries",
     .fallback = "100", .max = 1e9, .unit = "queries", .group = "Data",
     .help = "only so many (--query-order), 0: all"},
    {LW_OPT(bench_cli, prove.query_order), .name = "query-order", .choices = "spaced|first|random",
     .fallback = "first", .group = "Data",
     .help = "which ones --n-queries takes; the first, as the published workload does"},
    {LW_OPT(bench_cli, n_corruptions), .name = "n-corruptions", .fallback = "100", .min = 1,
     .max = 1 << 20, .unit = "number", .group = "Candidates", .help = "of each query"},
    {LW_OPT(bench_cli, mode), .name = "corruption-modes", .choices = "head|tail|both",
     .fallback = "both", .group = "Candidates", .help = "what is replaced, in one list"},
    {LW_OPT(bench_cli, policy), .name = "policy", .path = LW_PATH_IN, .fallback = "formula:0",
     .unit = "policy", .group = "Policy",
     .help = "formula[:SEED], or run, checkpoint or model folder"},
    LW_PROVE_POLICY_OPTIONS(bench_cli),
    {LW_OPT(bench_cli, fixed_batch_size), .name = "fixed-batch-size", .fallback = "512", .min = 1,
     .max = 1 << 20, .unit = "proofs", .group = "Work",
     .help = "walked together, where that is not what is varied; the batch whose steps are timed"},
    {LW_OPT_LIST(bench_cli, batch, n_batch), .name = "batch-size", .distinct = true, .min = 1,
     .max = 1 << 20, .group = "Work",
     .help = "numbers of proofs to compare (default 64,128,..,4096)"},
    LW_PROVE_WORK_OPTIONS(bench_cli, "256"),
    {LW_OPT(bench_cli, samples), .name = "samples", .fallback = "3", .min = 1, .max = 1000,
     .group = "Timing", .help = "timed runs of each case, each on a set-up of its own"},
    {LW_OPT(bench_cli, seconds), .name = "seconds", .fallback = "60", .max = 86400, .unit = "s",
     .group = "Timing", .help = "no further samples of a case after this long; 0: no limit"},
    {LW_OPT(bench_cli, steps), .name = "steps", .fallback = "true", .group = "Timing",
     .help = "time the steps of one batch as well"},
    {LW_OPT(bench_cli, csv), .name = "csv", .path = LW_PATH_OUT, .unit = "csv", .endings = ".csv",
     .group = "Output", .help = "one row a case"},
    {LW_OPT(bench_cli, output_dir), .name = "output-dir", .path = LW_PATH_OUT_DIR, .unit = "dir",
     .files = "summary.json|cases.csv|steps.csv|report.html", .group = "Output",
     .help = "summary.json, cases.csv, steps.csv, report.html"},
    {.name = NULL}};

/* What is measured. */
typedef struct opened {
    lw_kb *kb;
    lw_queries queries;
    lw_prove_policy policy;
    lw_device *dev;
} opened;

static void opened_close(opened *d)
{
    lw_prove_policy_close(&d->policy);
    lw_backend_close(&d->dev);
    lw_queries_clear(&d->queries);
    lw_kb_free(&d->kb);
}

static lw_prove_bench_config config_of(const lw_cli *cli, const bench_cli *o)
{
    lw_prove_bench_config c = lw_prove_bench_defaults();
    c.walks.env = lw_prove_env(&o->prove);
    c.walks.fixed_batch_size = o->fixed_batch_size;
    c.walks.rows = o->rows;
    c.walks.cache_bytes = (size_t)o->cache_memory << 20;
    c.walks.seed = (uint64_t)cli->global.seed;
    c.walks.sample = !o->deterministic;
    c.corrupt = (lw_corrupt_options){.n = o->n_corruptions, .seed = (uint64_t)cli->global.seed};
    c.mode = o->mode;
    c.samples = o->samples;
    c.seconds = o->seconds;
    c.steps = o->steps;
    if (o->n_batch > 0)
        c.n_batch = o->n_batch;
    for (int32_t i = 0; i < o->n_batch; i++)
        c.batch[i] = o->batch[i];
    return c;
}

static int report(const lw_cli *cli, const bench_cli *o, const lw_prove_bench_context *c,
                  const lw_prove_bench *b)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0}, csv = {0};
    if (o->output_dir)
        LW_TRY(lw_prove_bench_save(c, b, o->output_dir));
    if (o->csv) {
        LW_TRY(lw_prove_bench_csv(b, &csv));
        LW_TRY(lw_file_write(o->csv, lw_str_c(&csv), csv.len));
    }
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop) json_t *j = lw_prove_bench_json(c, b);
        lw_cli_print_result(j);
        return 0;
    }
    LW_TRY(lw_prove_bench_text(c, b, &text));
    lw_cli_print("%s", lw_str_c(&text));
    if (o->output_dir)
        lw_cli_print("%s/report.html\n", o->output_dir);
    return 0;
}

static int measure(const lw_cli *cli, const bench_cli *o, lw_problems *problems, opened *d)
{
    LW_CLEANUP(lw_prove_bench_clear) lw_prove_bench b = {0};
    LW_CLEANUP(lw_str_clear) lw_str command = {0};
    const lw_prove_bench_config c = config_of(cli, o);
    LW_TRY(lw_prove_open_queries(&o->prove, problems, &d->kb, &d->queries));
    LW_TRY(lw_prove_policy_open(o->policy, true, d->kb, &c.walks.env, &d->policy));
    if (o->temperature > 0)
        d->policy.config.temperature = (float)o->temperature;
    if (lw_prove_dry_run(cli, "walk, sample after sample,", &d->queries, 0, 0))
        return 0;
    LW_TRY(lw_session_device(cli->global.threads, &d->dev));
    {
        LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
        lw_cli_observer_open(&obs, cli);
        LW_TRY(
            lw_prove_bench_run(d->kb, &d->queries, d->dev, &d->policy.source, &c, &obs.calls, &b));
    }
    lw_cli_command_line(cli, &command);
    return report(cli, o,
                  &(lw_prove_bench_context){o->prove.dataset, d->policy.name, lw_str_c(&command)},
                  &b);
}

static int run(const lw_cli *cli, const void *config)
{
    lw_problems problems = {0};
    opened d = {0};
    int rc = measure(cli, config, &problems, &d);
    opened_close(&d);
    lw_problems_clear(&problems);
    return rc;
}

const lw_command lw_cmd_prove_bench = {
    .name = "prove bench",
    .dry_run = true,
    .summary = "how long an evaluation takes, and where the time goes",
    .usage = "DATASET [options]",
    .notes = "The first queries and their corruptions are walked without a network, in f32 with "
             "each batch size, without keeping features, as many times the first query, and in "
             "bf16; they are ranked without whole walks, in f32 and in two stages; then the steps "
             "of one batch "
             "are timed one by one. Every sample has a set-up of its own, so nothing is known from "
             "the one before. Fails when results depend on batch or cache, or ranks on the stages.",
    .examples = "leeway prove bench data/family --rules rules48.txt --output-dir bench\n"
                "leeway prove bench data/family --n-test-queries 5 --batch-size 512 --samples 1\n"
                "leeway prove bench data/countries_s3 --policy runs/ppo --json",
    .options = {lw_prove_data_options, bench_options, lw_prove_env_options},
    .config_size = sizeof(bench_cli),
    .run = run,
};
