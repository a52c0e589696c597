/* SPDX-License-Identifier: Apache-2.0 */
/* leeway profile: where the time and the memory of one network go. */
#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "bench/bench.h"

typedef struct profile_cli {
    lw_profile_config c;
    lw_profile_view view;
    const char *output;
} profile_cli;

static const lw_option options[] = {
    {LW_OPT(profile_cli, c.source), .name = "source", .path = LW_PATH_IN, .positional = true,
     .required = true,
     .help =
         "run, checkpoint or model folder; unet, unet-large: the shared U-Nets, random weights"},
    {LW_OPT(profile_cli, c.batch), .name = "batch-size", .fallback = "1", .min = 1, .max = 65536,
     .group = "Network", .help = "pictures in a run"},
    {LW_OPT(profile_cli, c.image_size), .name = "image-size", .max = 4096, .unit = "pixels",
     .group = "Network", .help = "picture size (default: the network's own, or 32)"},
    {LW_OPT(profile_cli, c.method), .name = "precision", .fallback = "f32", .unit = "name",
     .group = "Network",
     .help = "whose steps are shown, as the bench names methods: f32-unfused, "
             "f32 and those of the table of precisions"},
    {LW_OPT(profile_cli, c.train), .name = "train", .group = "Network",
     .help = "a training step of unet or unet-large, without the optimiser"},
    {LW_OPT(profile_cli, c.runs), .name = "runs", .fallback = "10", .min = 1, .max = 1000,
     .group = "Timing", .help = "timed and profiled runs, after one for warm-up"},
    {LW_OPT(profile_cli, c.compare), .name = "compare-precisions", .fallback = "true",
     .group = "Timing", .help = "time the other precisions as wholes and compare their results"},
    {LW_OPT_LIST(profile_cli, c.model, c.n_model), .name = "threads-model", .distinct = true,
     .min = 1, .max = 1024, .unit = "threads", .group = "Timing",
     .help =
         "what so many threads could give, by the number of tasks of each step and the measured "
         "barrier: a bound, in all and for each step shown; --threads 1 measures best"},
    {LW_OPT(profile_cli, view.layers), .name = "layers", .group = "Output",
     .help = "times by layer too"},
    {LW_OPT(profile_cli, view.depth), .name = "depth", .fallback = "4", .min = 1, .max = 16,
     .group = "Output", .help = "dotted parts of a name that make a layer"},
    {LW_OPT(profile_cli, view.top), .name = "top", .fallback = "10", .max = 100000,
     .group = "Output", .help = "slowest steps shown; 0: all, in order"},
    {LW_OPT(profile_cli, output), .name = "output", .path = LW_PATH_OUT, .unit = "html",
     .endings = ".html", .group = "Output", .help = "write a page with plots"},
    {.name = NULL}};

static int run(const lw_cli *cli, const void *config)
{
    const profile_cli *o = config;
    lw_profile_config c = o->c;
    LW_CLEANUP(lw_profile_clear) lw_profile p = {0};
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    lw_cli_observer_open(&obs, cli);
    c.threads = (int)cli->global.threads;
    c.conv = cli->global.conv;
    LW_TRY(lw_job_profile(&c, &obs.calls, &p));
    if (o->output)
        LW_TRY(lw_profile_page(&p, &o->view, o->output));
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop) json_t *tree = lw_profile_to_json(&p, &o->view);
        lw_cli_print_result(tree);
        return 0;
    }
    LW_TRY(lw_profile_text(&p, &o->view, &text));
    lw_cli_print("%s", lw_str_c(&text));
    return 0;
}

const lw_command lw_cmd_profile = {
    .name = "profile",
    .summary = "where the time and the memory of one network go",
    .usage = "SOURCE [--layers] [options]",
    .notes = "Times every step of the plan: milliseconds, share, arithmetic and traffic per second "
             "by the ops' own count, share of this machine's measured peak. Values alive are bytes "
             "of the frame in use while a step runs. Other precisions are timed as wholes; their "
             "error is the largest difference to f32 without fusion over its largest value.",
    .examples = "leeway profile unet --layers\n"
                "leeway profile runs/drift --batch-size 8 --top 20 --output profile.html\n"
                "leeway profile unet --train --batch-size 16 --json",
    .options = {options},
    .config_size = sizeof(profile_cli),
    .run = run,
};
