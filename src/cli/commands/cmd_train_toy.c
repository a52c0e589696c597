/* SPDX-License-Identifier: Apache-2.0 */
/* leeway train toy */
#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "jobs/toy/toy_job.h"

static const lw_option options[] = {
    {LW_OPT_LIST(lw_toy_config, data, n_data), .name = "distribution", .distinct = true,
     .unit = "list", .group = "Suite", .help = "of all, " LW_TOY_DATA "; default all"},
    {LW_OPT_LIST(lw_toy_config, ablation, n_ablation), .name = "ablation", .distinct = true,
     .unit = "list", .group = "Suite", .help = "of all, " LW_TOY_ABLATIONS "; default all"},
    {LW_OPT(lw_toy_config, seeds), .name = "seeds", .min = 1, .max = 1000, .fallback = "5",
     .group = "Suite", .help = "trainings of each, with seeds from --seed on"},
    {LW_OPT(lw_toy_config, points), .name = "points", .min = 16, .max = 100000, .fallback = "5000",
     .group = "Suite", .help = "generated points that are measured beside as many held out"},
    {LW_OPT(lw_toy_config, train.output_dir), .name = "output-dir", .path = LW_PATH_OUT_DIR,
     .aliases = "workdir", .required = true, .unit = "dir", .group = "Suite",
     .help = "toy_results.json, pictures, report.html, and a run directory of each training"},
    {LW_OPT(lw_toy_config, train.resume), .name = "resume", .fallback = "false", .group = "Suite",
     .transient = true, .help = "go on: what --output-dir has of the suite is kept"},
    {LW_OPT(lw_toy_config, train.steps), .name = "steps", .min = 1, .max = 1e9, .fallback = "2000",
     .group = "Training", .help = "optimiser steps"},
    {LW_OPT(lw_toy_config, train.batch_size), .name = "batch-size", .min = 2, .max = 8192,
     .fallback = "512", .unit = "points", .group = "Training",
     .help = "generated in a step, and real ones beside them"},
    {LW_OPT(lw_toy_config, train.learning_rate), .name = "learning-rate", .aliases = "lr", .min = 0,
     .max = 10, .fallback = "1e-3", .group = "Training", .help = "Adam's"},
    {LW_OPT(lw_toy_config, temperature), .name = "temperature", .min = 1e-3, .max = 1e3,
     .fallback = "0.05", .group = "Training",
     .help = "of the kernel exp(-distance / tau), in the points' units"},
    {LW_OPT(lw_toy_config, hidden), .name = "hidden-dim", .min = 1, .max = 4096, .fallback = "256",
     .group = "Network", .help = "width of the hidden layers"},
    {LW_OPT(lw_toy_config, depth), .name = "depth", .min = 1, .max = 32, .fallback = "3",
     .group = "Network", .help = "hidden layers"},
    {LW_OPT(lw_toy_config, noise), .name = "noise-dim", .min = 1, .max = 4096, .fallback = "32",
     .group = "Network", .help = "random numbers a point is made of"},
    {.name = NULL}};

static int print(const lw_cli *cli, const lw_toy_result *r)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    if (cli->global.json) {
        lw_cli_print_json(r->json);
        return 0;
    }
    lw_table_text(&r->table, &text);
    if (text.failed)
        return LW_ENOMEM;
    lw_cli_print("%s%s\n", lw_str_c(&text), lw_str_c(&r->page));
    return 0;
}

static int print_prediction(const lw_cli *cli, const lw_toy_result *r)
{
    const lw_train_result *p = &r->predicted;
    double seconds = p->predicted_step_seconds * (double)p->steps * (double)r->runs;
    size_t bytes = p->bytes_slabs + p->bytes_frame + p->bytes_derived;
    char memory[32], time[32];
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop)
        json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:f}", "runs", (json_int_t)r->runs,
                              "parameters", (json_int_t)p->parameters, "steps",
                              (json_int_t)p->steps, "bytes", (json_int_t)bytes, "predicted_seconds",
                              seconds);
        lw_cli_print_json(j);
        return 0;
    }
    lw_cli_print("%lld trainings of %lld steps, %lld parameters, %s at a time: about %s\n",
                 (long long)r->runs, (long long)p->steps, (long long)p->parameters,
                 lw_fmt_bytes(memory, bytes), lw_fmt_time(time, seconds));
    return 0;
}

static int run(const lw_cli *cli, const void *config)
{
    lw_toy_config c = *(const lw_toy_config *)config;
    lw_toy_result result;
    c.train.seed = cli->global.seed;
    c.train.threads = cli->global.threads;
    c.train.conv = cli->global.conv;
    c.train.dry_run = cli->global.dry_run;
    c.train.grad_accum_steps = 1;
    c.train.adam_beta1 = 0.9;
    c.train.adam_beta2 = 0.999;
    c.train.adam_eps = 1e-12; /* far from all points the field is tiny */
    c.train.log_every = 100;
    lw_cli_observer o;
    lw_cli_observer_open(&o, cli);
    int rc = lw_train_toy(&c, &o.calls, &result);
    lw_cli_observer_close(&o);
    LW_TRY(rc);
    rc = c.train.dry_run ? print_prediction(cli, &result) : print(cli, &result);
    lw_toy_result_clear(&result);
    return rc;
}

const lw_command lw_cmd_train_toy = {
    .name = "train toy",
    .dry_run = true,
    .summary = "drift points of the plane, with attraction and repulsion in and out of balance",
    .usage = "--output-dir DIR [--ablation all] [options]",
    .notes = "The plain form of the field, without an encoder: its loss is the mean squared drift "
             "and may be compared between runs.",
    .examples = "leeway train toy --output-dir runs/toy\n"
                "leeway train toy --distribution checkerboard --ablation baseline,attraction_only "
                "--seeds 1 "
                "--output-dir runs/board",
    .options = {options},
    .cpu_only = LW_CLI_TRAINS,
    .config_size = sizeof(lw_toy_config),
    .run = run,
};
