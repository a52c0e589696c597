/* SPDX-License-Identifier: Apache-2.0 */
/* leeway quantize: ranges for int8, and the model folder that holds them. */
#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "cli/commands/cmd_network.h"
#include "data/data.h"
#include "formats/formats.h"
#include "jobs/quantize/quantize_job.h"

typedef struct quantize_cli {
    lw_quantize_config c;
    int32_t weights;
} quantize_cli;

static const lw_option options[] = {
    {LW_OPT(quantize_cli, c.source), .name = "source", .path = LW_PATH_IN, .positional = true,
     .required = true,
     .help = "run directory, checkpoint, model folder, or the weights file of a known encoder"},
    {LW_OPT(quantize_cli, c.calibration), .name = "calibration", .path = LW_PATH_IN, .unit = "spec",
     .group = "Calibration",
     .help = "pictures an encoder reads, or a DDPM with noise on them; default: a generator's own "
             "inputs"},
    {LW_OPT(quantize_cli, c.n), .name = "num-images", .aliases = "n", .fallback = "64", .min = 1,
     .max = 1e6, .unit = "pictures", .group = "Calibration",
     .help = "how many (rounded up to whole batches)"},
    {LW_OPT(quantize_cli, c.on_error), .name = "on-error", .choices = LW_DATA_ON_ERROR,
     .fallback = "fail", .group = "Calibration", .help = LW_DATA_ON_ERROR_HELP},
    {LW_OPT(quantize_cli, c.steps), .name = "steps", .fallback = "20", .min = 1, .max = 4000,
     .unit = "evaluations", .group = "Calibration",
     .help = "of a DDPM or flow per picture, spread over its times"},
    {LW_OPT(quantize_cli, c.batch), .name = "batch-size", .fallback = "8", .min = 1, .max = 1024,
     .group = "Calibration", .help = "pictures at a time"},
    {LW_OPT(quantize_cli, c.rule), .name = "range", .choices = "mse|percentile|minmax",
     .fallback = "mse", .group = "Calibration",
     .help = "what bytes cover: where rounding and clipping err least, a percentile, or everything "
             "seen"},
    {LW_OPT(quantize_cli, c.percentile), .name = "percentile", .fallback = "99.99", .min = 50,
     .max = 100, .unit = "%", .group = "Calibration",
     .help = "of the values, at each end, with --range percentile"},
    LW_WEIGHTS_OPTION(quantize_cli, weights),
    {LW_OPT(quantize_cli, c.output_dir), .name = "output-dir", .path = LW_PATH_OUT_DIR,
     .unit = "dir", .group = "Output", .help = "the model folder written; default: SOURCE-int8"},
    {.name = NULL}};

static void print_json(const lw_quantize_result *r)
{
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:o, s:s, s:i, s:I, s:f, s:f, s:s, s:f, s:f}", "output_dir",
                          lw_json_name(r->output_dir), "inputs", r->inputs, "edges", (int)r->edges,
                          "evaluations", (json_int_t)r->evaluations, "mean_error", r->mean_error,
                          "worst_error", r->worst_error, "worst", r->worst, "output_error",
                          r->output_error, "seconds", r->seconds);
    lw_cli_print_json(j);
}

static int run(const lw_cli *cli, const void *config)
{
    const quantize_cli *o = config;
    lw_quantize_config c = o->c;
    lw_quantize_result r;
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs = {0};
    if (c.rule != LW_RANGE_PERCENTILE && lw_cli_given(cli, "percentile"))
        return lw_fail(LW_EUSAGE, "--percentile: only with --range percentile");
    c.ema = o->weights == 1;
    c.seed = (uint64_t)cli->global.seed;
    c.threads = cli->global.threads;
    c.conv = cli->global.conv;
    lw_cli_observer_open(&obs, cli);
    LW_TRY(lw_job_quantize(&c, &obs.calls, &r));
    if (cli->global.json)
        print_json(&r);
    else
        lw_cli_print("%d products, ranges of %lld evaluations on %s\n"
                     "rounding of activations: %.2f %% on average, %.2f %% at worst (%s)\n"
                     "output against f32: %.2f %% of its root mean square\n%s (use it with "
                     "--precision int8)\n",
                     (int)r.edges, (long long)r.evaluations, r.inputs, 100 * r.mean_error,
                     100 * r.worst_error, r.worst, 100 * r.output_error, r.output_dir);
    return 0;
}

const lw_command lw_cmd_quantize = {
    .name = "quantize",
    .summary = "measure the ranges int8 needs and write a model folder with them",
    .usage = "SOURCE [--calibration DATA] [--output-dir DIR] [options]",
    .notes =
        "The folder holds the f32 weights and quantization.json: it also runs in f32 and bf16, "
        "and `sample`, `run` and `compare` take it as SOURCE.",
    .examples = "leeway quantize runs/drift\n"
                "leeway quantize runs/ddpm --calibration cifar10:data --output-dir ddpm-int8\n"
                "leeway sample runs/drift-int8 --precision int8 --output grid.png",
    .options = {options},
    .cpu_only = "int8 is not computed on GPUs yet",
    .config_size = sizeof(quantize_cli),
    .run = run,
};
