/* SPDX-License-Identifier: Apache-2.0 */
/* leeway bench: timings with every sample kept, compared with earlier ones. */
#include <math.h>

#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "formats/formats.h"
#include "recipes/recipes.h"

typedef struct bench_cli {
    lw_bench_config c;
    const char *save, *compare, *csv;
    int32_t suite;
} bench_cli;

static const lw_option options[] = {
    {LW_OPT(bench_cli, suite), .name = "suite", .positional = true, .required = true,
     .choices = "unet|field|train",
     .help = "unet: the shared U-Net; field: the drift field; train: its training step alone"},
    {LW_OPT_LIST(bench_cli, c.batch, c.n_batch), .name = "batch-size", .min = 1, .max = 4096,
     .group = "Cases",
     .help = "batch sizes of the U-Net (default: forward 1 and 8, training step 16)"},
    {LW_OPT(bench_cli, c.train), .name = "train", .group = "Cases",
     .help = "time training steps, not forward passes"},
    {LW_OPT(bench_cli, c.large), .name = "large", .group = "Cases",
     .help = "the U-Net of 210M parameters"},
    {LW_OPT(bench_cli, c.dropout), .name = "dropout", .fallback = "0.1", .max = 0.9,
     .group = "Cases", .help = "dropout of training steps"},
    {LW_OPT(bench_cli, c.filter), .name = "filter", .unit = "text", .group = "Cases",
     .help = "only cases whose name contains this"},
    {LW_OPT(bench_cli, c.seconds), .name = "seconds", .fallback = "3", .max = 3600, .unit = "s",
     .group = "Timing", .help = "time for each case"},
    {LW_OPT(bench_cli, c.min_samples), .name = "min-samples", .fallback = "3", .min = 1,
     .max = 100000, .group = "Timing", .help = "at least this many samples of each case"},
    {LW_OPT(bench_cli, c.profile), .name = "profile", .group = "Timing",
     .help = "time per kind of op, from three further runs"},
    {LW_OPT(bench_cli, save), .name = "save", .unit = "json", .group = "Output",
     .help = "write all samples"},
    {LW_OPT(bench_cli, compare), .name = "compare", .unit = "json", .group = "Output",
     .help = "compare with a saved file; a regression ends with exit code 1"},
    {LW_OPT(bench_cli, csv), .name = "csv", .unit = "csv", .group = "Output",
     .help = "write one row per sample"},
    {.name = NULL}};

static void print_profile(const lw_bench_case *c)
{
    double total = 0;
    for (int32_t i = 0; i < c->n_part; i++)
        total += c->part[i].ms;
    for (int32_t i = 0; i < c->n_part; i++) {
        const lw_bench_part *p = &c->part[i];
        if (p->ms < 1e-3 * total / 100)
            continue; /* did not run: prepared once */
        lw_cli_print("    %-28s %4d steps %9.2f ms %5.1f %%  %8.1f GFLOP/s %7.1f GB/s\n", p->what,
                     (int)p->steps, p->ms, 100 * p->ms / total, 1e-6 * p->flops / p->ms,
                     1e-6 * p->bytes / p->ms);
    }
}

static void print_table(const lw_bench *b)
{
    char memory[32];
    lw_cli_print("%s, %d threads, %s\n", lw_cpu_name(), b->threads, b->isa);
    lw_cli_print("%-28s %10s %10s %10s %6s %9s %10s %9s %10s\n", "case", "median ms", "p10", "p90",
                 "n", "spread", "CPU ms", "GFLOP/s", "memory");
    for (int32_t i = 0; i < b->n; i++) {
        const lw_bench_case *c = &b->cases[i];
        double median = lw_bench_quantile(c, 0.5), p10 = lw_bench_quantile(c, 0.1),
               p90 = lw_bench_quantile(c, 0.9);
        lw_cli_print("%-28s %10.2f %10.2f %10.2f %6d %7.1f %% %10.2f %9.1f %10s\n", c->name, median,
                     p10, p90, (int)c->n, 100 * (p90 - p10) / median, c->cpu_ms,
                     1e-6 * c->flops / median, lw_fmt_bytes(memory, c->memory));
        print_profile(c);
    }
}

static int save_csv(const lw_bench *b, const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_str_add(&text, "case,sample,ms\n");
    for (int32_t i = 0; i < b->n; i++)
        for (int32_t k = 0; k < b->cases[i].n; k++)
            lw_str_addf(&text, "%s,%d,%.6f\n", b->cases[i].name, (int)k, b->cases[i].ms[k]);
    if (text.failed)
        return lw_fail(LW_ENOMEM, "no memory for %s", path);
    return lw_file_write(path, text.s, text.len);
}

/* Prints case, base, new, change, verdict; LW_EFAILED when a case got worse. Stdout is JSON's with
 * --json. */
static int compare(const lw_cli *cli, const lw_bench *b, const char *path)
{
    static const char *const word[] = {"noise", "better", "REGRESSION", "new"};
    LW_CLEANUP(lw_free) lw_bench_change *change = lw_calloc((size_t)b->n, sizeof *change);
    int worse = 0;
    if (!change)
        return LW_ENOMEM;
    LW_TRY(lw_bench_compare(b, path, change));
    for (int32_t i = 0; i < b->n; i++) {
        worse += change[i].verdict == LW_BENCH_WORSE;
        if (!cli->global.json)
            lw_cli_print("%-28s %10.2f -> %10.2f ms  %+6.1f %%  %s\n", b->cases[i].name,
                         change[i].base_ms, change[i].new_ms,
                         100 * (change[i].new_ms / change[i].base_ms - 1), word[change[i].verdict]);
    }
    return worse ? lw_fail(LW_EFAILED, "%d case%s slower than in %s", worse,
                           worse > 1 ? "s are" : " is", path)
                 : 0;
}

static int run(const lw_cli *cli, const void *config)
{
    const bench_cli *o = config;
    lw_bench_config c = o->c;
    LW_CLEANUP(lw_bench_clear) lw_bench b = {0};
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    c.suite = (lw_bench_suite)o->suite;
    c.threads = (int)cli->global.threads;
    lw_cli_observer_open(&obs, cli);
    LW_TRY(lw_recipe_bench(&c, &obs.calls, &b));
    LW_CLEANUP(lw_json_drop) json_t *tree = lw_bench_to_json(&b);
    if (cli->global.json)
        lw_cli_print_json(tree);
    else
        print_table(&b);
    if (o->save)
        LW_TRY(lw_json_save(o->save, tree));
    if (o->csv)
        LW_TRY(save_csv(&b, o->csv));
    return o->compare ? compare(cli, &b, o->compare) : 0;
}

const lw_command lw_cmd_bench = {
    .name = "bench",
    .summary = "timings of this machine, with every sample kept",
    .usage = "unet|field|train [options]",
    .notes = "Prints median, 10th and 90th percentile, the number of samples, their spread (p90 - "
             "p10 over the median), "
             "processor time per run of all threads together (well below threads times the median: "
             "others used the machine), "
             "arithmetic per second by the ops' own count, and memory. A comparison calls a case "
             "better or worse only "
             "when both its minimum and its median moved by more than 3 % and three times the "
             "median deviation.",
    .examples = "leeway bench unet --threads 2\n"
                "leeway bench unet --batch-size 1,4,64 --profile\n"
                "leeway bench field --save before.json\n"
                "leeway bench field --compare before.json",
    .options = {options},
    .config_size = sizeof(bench_cli),
    .run = run,
};
