/* SPDX-License-Identifier: Apache-2.0 */
/* leeway bench: timings with every sample kept, compared with earlier ones. */
#include <math.h>

#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "cli/commands/cmd_network.h"
#include "formats/formats.h"
#include "session/session.h"
#include "bench/bench.h"

typedef struct bench_cli {
    lw_bench_config c;
    const char *save, *csv, *tune, *compare[2];
    int32_t n_compare;
    double limit_gib, child; /* child: when a parent started this process; < 0: nobody did */
    bool force;
    bool ladder; /* instead of cases */
    lw_ladder_config steps;
} bench_cli;

enum { TUNE_SAMPLES = 15 }; /* of each of two or three ways, of 148 convolutions */

static const lw_option options[] = {
    {LW_OPT(bench_cli, c.suite), .name = "suite", .positional = true,
     .choices =
         "kernels|unet|resolution|train|field|mae|dit|queue|table8|parity|attention|sampling|"
         "startup|prove|eval|mc|"
         "stream",
     .help = "kernels: single ops; unet: forward by method and batch; resolution: one picture of "
             "32 to 256 pixels; train: training steps; field: the drift field; mae: 86 keys of the "
             "published autoencoder and their fields; dit: the drifting transformer, forward and "
             "training; "
             "queue: real rows of a drift step; table8: drift steps of one batch in few and many "
             "groups; parity: a drift "
             "step planned and as built; attention; "
             "sampling: one step and DDIM between prepared networks; startup: a fresh process to "
             "its first result; prove: walks of proofs by a policy; eval: distances of sets of "
             "features; mc: passes of an encoder with dropout, and without; stream: networks of "
             "live video, frame "
             "by frame (default: all)"},
    {LW_OPT_LIST(bench_cli, c.batch, c.n_batch), .name = "batch-size", .distinct = true, .min = 1,
     .max = 4096, .group = "Cases",
     .help = "batch sizes (default: unet 1,2,4,8,16,32,64,128; train 1,16,64; dit 8 and "
             "4)"},
    {LW_OPT_LIST(bench_cli, c.size, c.n_size), .name = "image-size", .distinct = true, .min = 8,
     .max = 4096, .unit = "pixels", .group = "Cases",
     .help =
         "sizes of resolution (default: 32,64,96,128,192,256; with --latents 256,512), and of a "
         "model of stream"},
    {LW_OPT(bench_cli, c.large), .name = "large", .group = "Cases",
     .help = "the U-Net of 210M parameters"},
    {LW_OPT(bench_cli, c.dropout), .name = "dropout", .fallback = "0.1", .max = 0.9,
     .group = "Cases", .help = "dropout of training steps"},
    {LW_OPT(bench_cli, c.model), .name = "model", .path = LW_PATH_IN, .unit = "dir",
     .group = "Cases",
     .help = "model folder of startup (default: the shared U-Net with random weights); of stream "
             "lightweight, medium, heavy, NAME:WIDTH as in docs/live.md, or what `leeway stream "
             "--model` takes, at each --image-size"},
    {LW_OPT(bench_cli, c.latents), .name = "latents", .path = LW_PATH_IN, .unit = "autoencoder",
     .group = "Cases",
     .help =
         "of stream: the model is in latents of this one (taef2:DIR); of resolution: the U-Net is, "
         "from noise to decoded bytes in one plan"},
    LW_WINDOW_OPTION(bench_cli, c.window, "Cases"),
    {LW_OPT_LIST(bench_cli, c.scale, c.n_scale), .name = "scale", .distinct = true, .min = 4,
     .max = 512, .unit = "widths", .group = "Cases",
     .help = "of stream: gpu-stress and gpu-intensive-lsd at these widths, instead of --model"},
    {LW_OPT(bench_cli, c.precision), .name = "precision", .choices = LW_PRECISION_CHOICES,
     .fallback = "f32", .group = "Cases",
     .help = "of stream, of sampling (not int8), and of resolution with --latents: operands of "
             "products"},
    {LW_OPT(bench_cli, ladder), .name = "ladder", .group = "Ladder of mc",
     .help =
         "instead of cases: a loop over noisy passes step by step, from decoding pictures in each "
         "pass to all passes in one batch; times of whole experiments predicted from it"},
    {LW_OPT_LIST(bench_cli, steps.models, steps.n_models), .name = "models", .path = LW_PATH_IN,
     .group = "Ladder of mc",
     .help = "encoders, as for `leeway mc` (default: CLIP B/32 with random weights)"},
    {LW_OPT(bench_cli, steps.data), .name = "data", .path = LW_PATH_IN, .unit = "dir",
     .group = "Ladder of mc", .help = "a folder of pictures (default: some are drawn)"},
    {LW_OPT(bench_cli, steps.sites), .name = "sites", .group = "Ladder of mc",
     .help = "as for `leeway mc`"},
    {LW_OPT(bench_cli, steps.pictures), .name = "num-images", .fallback = "32", .min = 1,
     .max = 10000, .unit = "pictures", .group = "Ladder of mc", .help = "of each rung"},
    {LW_OPT(bench_cli, steps.passes), .name = "passes", .fallback = "4", .min = 2, .max = 4096,
     .group = "Ladder of mc", .help = "of each rung"},
    {LW_OPT(bench_cli, c.filter), .name = "filter", .unit = "text", .group = "Cases",
     .help = "only cases whose SUITE.NAME contains this"},
    {LW_OPT(bench_cli, c.list), .name = "list", .group = "Cases",
     .help = "print the names of the cases and run nothing"},
    {LW_OPT(bench_cli, limit_gib), .name = "memory-limit", .max = 1e6, .unit = "GiB",
     .group = "Cases",
     .help = "cases that would take more are reported, not run (default: what "
             "this process may use)"},
    {LW_OPT(bench_cli, c.warm_up), .name = "warm-up", .aliases = "warmup", .fallback = "20",
     .max = 100000, .group = "Timing", .help = "runs that are not timed"},
    {LW_OPT(bench_cli, c.samples), .name = "samples", .aliases = "iterations|steps",
     .fallback = "100", .min = 1, .max = 100000, .group = "Timing",
     .help =
         "timed runs (startup: at most 20, --tune: at most 15; sampling: in fives, and of DDIM one "
         "for each five)"},
    {LW_OPT(bench_cli, c.seconds), .name = "seconds", .aliases = "duration", .fallback = "60",
     .max = 86400, .unit = "s", .group = "Timing",
     .help = "no further samples of a case after this long (and at least 3); 0: no limit"},
    {LW_OPT(bench_cli, c.reference), .name = "reference", .fallback = "true", .group = "Timing",
     .help = "compare results with the reference kernels, or for large work with those of another "
             "instruction set: no errors beside the speeds then"},
    {LW_OPT(bench_cli, c.profile), .name = "profile", .group = "Timing",
     .help = "time per kind of op, from three further runs"},
    {LW_OPT(bench_cli, save), .name = "save", .path = LW_PATH_OUT, .unit = "json",
     .endings = ".json", .group = "Output", .help = "write machine, build and all samples"},
    {LW_OPT_LIST(bench_cli, compare, n_compare), .name = "compare", .path = LW_PATH_IN,
     .unit = "json", .group = "Output",
     .help = "run, then compare with a saved file; BASE,NEW: compare two files and run nothing. A "
             "regression ends with exit code 1"},
    {LW_OPT(bench_cli, force), .name = "force", .group = "Output",
     .help = "compare times of different machines"},
    {LW_OPT(bench_cli, csv), .name = "csv", .path = LW_PATH_OUT, .unit = "csv", .endings = ".csv",
     .group = "Output", .help = "write one row per case"},
    {LW_OPT(bench_cli, tune), .name = "tune", .path = LW_PATH_OUT, .unit = "json",
     .endings = ".json", .group = "Output",
     .help = "instead of cases: measure every way of computing 3x3 convolutions of usual shapes on "
             "this machine, 4 pictures at a time, and write the fastest for --tuned; what the "
             "program would do anyway stays unless another way is 5 % faster. --filter: "
             "f32.forward.128_128@32"},
    {LW_OPT(bench_cli, child), .name = "child", .fallback = "-1", .min = -1, .max = 1e300,
     .unit = "s", .group = "Output", .transient = true, .hidden = true,
     .help = "one start, as the processes that startup starts do it: the clock at which they were "
             "started"},
    {.name = NULL}};

/* ---- comparison ------------------------------------------------------------------------------ */

static json_t *changes_json(const lw_bench_change *c, int32_t n)
{
    json_t *a = json_array();
    for (int32_t i = 0; i < n; i++)
        json_array_append_new(a,
                              json_pack("{s:s, s:s, s:o, s:o, s:o, s:s}", "suite", c[i].suite,
                                        "name", c[i].name, "base_ms", lw_json_real(c[i].base.p50),
                                        "new_ms", lw_json_real(c[i].now.p50), "change",
                                        lw_json_real(c[i].now.p50 / c[i].base.p50 - 1), "verdict",
                                        lw_bench_verdict_name(c[i].verdict)));
    return a;
}

/* The table of changes, or its rows into `tree` (NULL: printed as JSON of its own with --json).
 * LW_EFAILED when a case got worse, LW_EUSAGE when the two have no case in common. */
static int compare(const lw_cli *cli, const bench_cli *o, const lw_bench *base, const lw_bench *now,
                   json_t *tree)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_CLEANUP(lw_free) lw_bench_change *change = NULL;
    int32_t n = 0, worse = 0, common = 0;
    if (!o->force)
        LW_TRY(lw_bench_same_machine(base, now));
    LW_TRY(lw_bench_compare(base, now, o->n_compare == 2, &change, &n));
    for (int32_t i = 0; i < n; i++) {
        worse += change[i].verdict == LW_BENCH_WORSE;
        common += change[i].verdict < LW_BENCH_NEW;
    }
    if (common == 0)
        return lw_fail(LW_EUSAGE, "%s and the new times have no case in common", o->compare[0]);
    LW_TRY(lw_bench_changes_text(change, n, &text));
    if (tree)
        json_object_set_new(tree, "comparison", changes_json(change, n));
    if (!cli->global.json)
        lw_cli_print("\n%s", lw_str_c(&text));
    return worse ? lw_fail(LW_EFAILED, "%d case%s slower than in %s", (int)worse,
                           worse > 1 ? "s are" : " is", o->compare[0])
                 : 0;
}

/* Nothing is run, so that what is said of cases or of their times would be passed over. */
static int check_files(const bench_cli *o)
{
    const struct {
        bool given;
        const char *name;
    } other[] = {{o->c.suite, "a suite"},
                 {o->c.filter, "--filter"},
                 {o->c.list, "--list"},
                 {o->save, "--save"},
                 {o->csv, "--csv"}};
    for (size_t i = 0; i < LW_COUNT(other); i++)
        if (other[i].given)
            return lw_fail(LW_EUSAGE,
                           "--compare of two files runs nothing and compares all that is in both; "
                           "it does not go with %s",
                           other[i].name);
    return 0;
}

static int compare_files(const lw_cli *cli, const bench_cli *o)
{
    LW_CLEANUP(lw_bench_clear) lw_bench base = {0}, now = {0};
    LW_CLEANUP(lw_json_drop) json_t *tree = json_object();
    LW_TRY(check_files(o));
    LW_TRY(lw_bench_load(o->compare[0], &base));
    LW_TRY(lw_bench_load(o->compare[1], &now));
    int rc = compare(cli, o, &base, &now, tree);
    if (cli->global.json && (rc == 0 || rc == LW_EFAILED))
        lw_cli_print_json(tree);
    return rc;
}

/* ---- running --------------------------------------------------------------------------------- */

static int write_files(const bench_cli *o, const lw_bench *b, const json_t *tree)
{
    LW_CLEANUP(lw_str_clear) lw_str csv = {0};
    if (o->save)
        LW_TRY(lw_json_save(o->save, tree));
    if (!o->csv)
        return 0;
    LW_TRY(lw_bench_csv(b, &csv));
    return lw_file_write(o->csv, lw_str_c(&csv), csv.len);
}

/* Files first: a regression is an error, and the samples are wanted then most. */
static int report(const lw_cli *cli, const bench_cli *o, const lw_bench *base, const lw_bench *b)
{
    LW_CLEANUP(lw_json_drop) json_t *tree = lw_bench_to_json(b);
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_TRY(write_files(o, b, tree));
    LW_TRY(lw_bench_text(b, &text));
    if (!cli->global.json)
        lw_cli_print("%s", lw_str_c(&text));
    int rc = o->n_compare > 0 ? compare(cli, o, base, b, tree) : 0;
    if (cli->global.json)
        lw_cli_print_json(tree);
    return rc;
}

static int run_child(const lw_cli *cli, const bench_cli *o)
{
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    if (!o->c.model)
        return lw_fail(LW_EUSAGE, "--child needs --model");
    LW_TRY(lw_bench_startup_child(o->c.model, (int)cli->global.threads, cli->global.conv, o->child,
                                  &tree));
    lw_cli_print_json(tree);
    return 0;
}

static void print_names(const lw_bench *b)
{
    for (int32_t i = 0; i < b->n; i++)
        lw_cli_print("%s.%s\n", b->cases[i].suite, b->cases[i].name);
}

/* Suites whose cases have a type of their own do not take --precision. */
static int check_precision(const bench_cli *o)
{
    const char *suite = o->c.suite;
    if (o->c.precision == LW_NUM_S8 && suite && lw_str_eq(suite, "sampling"))
        return lw_fail(LW_EUSAGE, "bench sampling: --precision int8 needs a model folder's ranges, "
                                  "and these networks have none: f32 or bf16");
    if (o->c.precision == LW_NUM_F32 || !suite || lw_str_eq(suite, "stream") ||
        lw_str_eq(suite, "sampling") || (lw_str_eq(suite, "resolution") && o->c.latents))
        return 0;
    return lw_fail(LW_EUSAGE,
                   "bench %s: --precision is of stream, sampling and, with --latents, resolution; "
                   "here cases are of a type each, try --filter %s",
                   suite, lw_precision_name(o->c.precision));
}

/* Networks of all other suites are their own. */
static int check_model(const bench_cli *o)
{
    const char *suite = o->c.suite;
    if (!o->c.model || !suite || lw_str_eq(suite, "stream") || lw_str_eq(suite, "startup"))
        return 0;
    return lw_fail(LW_EUSAGE,
                   "bench %s: --model is of startup and stream; networks here are the suite's own",
                   suite);
}

static int run_cases(const lw_cli *cli, const bench_cli *o)
{
    lw_bench_config c = o->c;
    LW_TRY(check_precision(o));
    LW_TRY(check_model(o));
    LW_CLEANUP(lw_bench_clear) lw_bench b = {0}, base = {0};
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    lw_cli_observer_open(&obs, cli);
    c.threads = (int)cli->global.threads;
    c.conv = cli->global.conv;
    c.memory_limit = o->limit_gib * (double)(1 << 30);
    c.list |= cli->global.dry_run;
    if (o->n_compare > 0)
        LW_TRY(lw_bench_load(o->compare[0], &base));
    LW_TRY(lw_job_bench(&c, &obs.calls, &b));
    if (!c.list)
        return report(cli, o, &base, &b);
    print_names(&b);
    return 0;
}

static int run_ladder(const lw_cli *cli, const bench_cli *o)
{
    static lw_ladder ladder;
    lw_ladder_config c = o->steps;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    if (!o->c.suite || !lw_str_eq(o->c.suite, "mc"))
        return lw_fail(LW_EUSAGE, "--ladder is of `leeway bench mc`");
    if (o->csv || o->n_compare > 0)
        return lw_fail(LW_EUSAGE, "--ladder has no rows for %s: --save FILE keeps all of it",
                       o->csv ? "--csv" : "--compare");
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    c.threads = (int32_t)cli->global.threads;
    c.conv = cli->global.conv;
    c.seed = (uint64_t)cli->global.seed;
    lw_cli_observer_open(&obs, cli);
    LW_TRY(lw_job_ladder(&c, &obs.calls, &ladder));
    LW_CLEANUP(lw_json_drop) json_t *tree = lw_ladder_json(&ladder);
    if (o->save)
        LW_TRY(lw_json_save(o->save, tree));
    lw_ladder_text(&ladder, &text);
    if (cli->global.json)
        lw_cli_print_result(tree);
    else
        lw_cli_print("%s", lw_str_c(&text));
    return text.failed ? LW_ENOMEM : 0;
}

static void print_tuned(const lw_tuned_row *row, int n)
{
    int other = 0;
    for (int i = 0; i < n; i++) {
        const lw_conv_choice *c = &row[i].choice;
        if (c->tile == row[i].shipped)
            continue;
        other++;
        lw_cli_print("%-4s %-9s %4d -> %4d @ %dx%d: tiles of %d in %.3f ms, shipped %d in %.3f\n",
                     lw_precision_name(c->num),
                     c->pass == LW_CONV_FORWARD ? "forward" : "data_grad", (int)c->C, (int)c->O,
                     (int)c->H, (int)c->W, c->tile, row[i].ms, row[i].shipped, row[i].shipped_ms);
    }
    lw_cli_print("%d convolutions, %d of them faster than as shipped\n", n, other);
}

/* Options that say something of cases. */
static int check_tune(const lw_cli *cli, const bench_cli *o)
{
    const struct {
        bool given;
        const char *name;
    } other[] = {{cli->global.tuned, "--tuned"},
                 {o->c.suite, "a suite"},
                 {o->save, "--save"},
                 {o->csv, "--csv"},
                 {o->n_compare, "--compare"},
                 {o->ladder, "--ladder"}};
    for (size_t i = 0; i < LW_COUNT(other); i++)
        if (other[i].given)
            return lw_fail(
                LW_EUSAGE,
                "--tune measures ways of computing convolutions, instead of cases and by "
                "the rules that come with the program; it does not go with %s: give one "
                "of them",
                other[i].name);
    if (!lw_str_starts(lw_backend_chosen(), "cuda"))
        return 0;
    lw_backend_refuse();
    return lw_fail(LW_EDEVICE, "bench --tune is of the CPU's convolutions; use --device cpu");
}

static int run_tune(const lw_cli *cli, const bench_cli *o)
{
    LW_CLEANUP(lw_free) lw_tuned_row *row = NULL;
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs = {0};
    const lw_tune_config c = {.threads = (int)cli->global.threads,
                              .samples = LW_MIN((int)o->c.samples, TUNE_SAMPLES),
                              .filter = o->c.filter,
                              .list = o->c.list || cli->global.dry_run};
    lw_isa isa;
    int n = 0;
    LW_TRY(check_tune(cli, o));
    LW_TRY(lw_isa_chosen(&isa));
    lw_cli_observer_open(&obs, cli);
    LW_TRY(lw_job_tune(&c, &obs.calls, &row, &n));
    for (int i = 0; c.list && i < n; i++) {
        char name[LW_TUNE_NAME];
        lw_tune_name(&row[i].choice, name);
        lw_cli_print("%s\n", name);
    }
    if (c.list)
        return 0;
    tree = lw_tuned_json(row, n, c.threads, isa);
    if (!tree)
        return lw_fail(LW_ENOMEM, "no memory for %s", o->tune);
    LW_TRY(lw_json_save(o->tune, tree));
    if (cli->global.json)
        lw_cli_print_json(tree);
    else
        print_tuned(row, n);
    return 0;
}

static int run(const lw_cli *cli, const void *config)
{
    const bench_cli *o = config;
    if (o->tune)
        return run_tune(cli, o);
    if (o->ladder)
        return run_ladder(cli, o);
    if (o->child >= 0)
        return run_child(cli, o);
    return o->n_compare == 2 ? compare_files(cli, o) : run_cases(cli, o);
}

const lw_command lw_cmd_bench = {
    .name = "bench",
    .dry_run = true,
    .summary = "timings of this machine, beside their errors, with every sample kept",
    .usage = "[SUITE] [options]",
    .notes =
        "Prints the mean, the median (p50), 95th and 99th percentile and standard deviation of "
        "n samples, processor time of all threads together (well below threads times the "
        "median: others used the machine), arithmetic per second by the ops' own count, the "
        "share of what this machine was measured to be able to do (arithmetic, or memory where "
        "that is the limit), and the largest error over the largest value of the reference. "
        "Nominal operations are counted, so Winograd and skipped borders may pass 100 %. A "
        "comparison calls a case better or worse only when both its minimum and its median "
        "moved by more than 3 % and three times the median deviation. docs/benchmarks.md says "
        "how to read all of it.",
    .examples =
        "leeway bench unet --threads 2\n"
        "leeway bench kernels --filter conv3x3 --seconds 1\n"
        "leeway bench unet --batch-size 1,8 --save before.json\n"
        "leeway bench unet --batch-size 1,8 --compare before.json\n"
        "leeway bench --compare before.json,after.json\n"
        "leeway bench stream --model lightweight --duration 30 --save before.json\n"
        "leeway bench mc --ladder --models clip=models/clip-vit-base-patch32 --data pictures",
    .options = {options},
    .config_size = sizeof(bench_cli),
    .run = run,
};
