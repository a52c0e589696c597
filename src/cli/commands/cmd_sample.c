/* SPDX-License-Identifier: Apache-2.0 */
/* leeway sample: pictures from a trained generator. */
#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "cli/commands/cmd_network.h"
#include "formats/formats.h"
#include "session/session.h"
#include "jobs/sample/sample_job.h"

#include <stdio.h>
#include <unistd.h>

typedef struct sample_cli {
    lw_sample_config c;
    int32_t weights;
} sample_cli;

static const lw_option options[] = {
    {LW_OPT(sample_cli, c.source), .name = "source", .path = LW_PATH_IN, .positional = true,
     .required = true, .help = "run directory (its newest checkpoint), checkpoint or model folder"},
    {LW_OPT(sample_cli, c.n), .name = "num-images", .aliases = "n", .fallback = "64", .min = 1,
     .max = 1e9, .unit = "pictures", .group = "Samples", .help = "how many"},
    {LW_OPT(sample_cli, c.classes), .name = "classes", .fallback = "all", .unit = "list",
     .group = "Samples",
     .help = "class names or numbers, gone through in turn; all: every class in turn"},
    {LW_OPT(sample_cli, c.kind), .name = "sampler", .choices = LW_SAMPLER_CHOICES,
     .fallback = "auto", .group = "Samples",
     .help = "auto: one step for drift, ddim for ddpm, euler for flow (docs/sampling.md)"},
    {LW_OPT(sample_cli, c.steps), .name = "steps", .fallback = "0", .min = 0, .max = 4000,
     .unit = "evaluations", .group = "Samples",
     .help =
         "of the network per picture, spread over the times of the noise schedule, each twice "
         "with --guidance-scale; 0: 1 for drift, 50 for ddim, 20 for dpm-solver, euler and heun, "
         "every time of the schedule for ancestral"},
    {LW_OPT(sample_cli, c.spacing), .name = "timestep-spacing", .fallback = "auto",
     .choices = LW_SAMPLER_SPACINGS, .group = "Samples",
     .help = "times of the evaluations: every so many from 0, from the last, or evenly between "
             "both; auto: as the folder's scheduler_config.json says, else leading (dpm-solver: "
             "linspace; flow: trailing)"},
    {LW_OPT(sample_cli, c.alpha), .name = "alpha", .fallback = "0", .min = 0, .max = 1000,
     .group = "Samples",
     .help = "strength of guidance, of generators trained with --alpha-dist; 0: 1, which is none"},
    {LW_OPT(sample_cli, c.alpha_schedule), .name = "alpha-schedule", .choices = LW_ALPHA_SCHEDULES,
     .fallback = "constant", .group = "Samples",
     .help =
         "strengths of the pictures: --alpha for all, from --alpha-start of the first evenly to "
         "--alpha-end of the last, or --alpha-values in turn"},
    {LW_OPT(sample_cli, c.alpha_start), .name = "alpha-start", .fallback = "1", .min = 1,
     .max = 1000, .group = "Samples", .help = "with linear"},
    {LW_OPT(sample_cli, c.alpha_end), .name = "alpha-end", .fallback = "1", .min = 1, .max = 1000,
     .group = "Samples", .help = "with linear"},
    {LW_OPT_LIST(sample_cli, c.alpha_values, c.n_alpha_values), .name = "alpha-values", .min = 1,
     .max = 1000, .group = "Samples", .help = "with list"},
    LW_GUIDANCE_OPTION(sample_cli, c.guidance_scale, "Samples"),
    LW_CLIPPED_OPTION(sample_cli, c.use_clipped_model_output, "Samples"),
    LW_WEIGHTS_OPTION(sample_cli, weights),
    LW_WINDOW_OPTION(sample_cli, c.window, "Model"),
    LW_PRECISION_OPTION(sample_cli, c.precision, "Model"),
    {LW_OPT(sample_cli, c.batch), .name = "batch-size", .fallback = "64", .min = 1, .max = 65536,
     .group = "Model", .help = "pictures at a time; never changes them"},
    {LW_OPT(sample_cli, c.output), .name = "output", .path = LW_PATH_OUT_ANY, .required = true,
     .endings = ".png, a .npy, a .npz or a folder", .unit = "path", .group = "Output",
     .help =
         "x.png: one grid; x.npy, or - for stdout: [N,C,H,W] f32 in [-1,1]; x.npz: u8 [N,H,W,C] "
         "as arr_0 and classes as arr_1, as evaluators of ADM read it; else a folder of "
         "pictures"},
    {.name = NULL}};

static void print_json(const lw_sample_config *c, const lw_sample_result *r)
{
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack(
        "{s:s, s:I, s:i, s:s, s:s, s:i, s:s, s:o*, s:I, s:o, s:I, s:f, s:f, s:I, s:s}", "output",
        c->output, "n", (json_int_t)r->n, "image_size", (int)r->image_size, "method", r->method,
        "sampler", r->sampler, "evaluations", (int)r->evaluations, "weights",
        r->averaged ? "ema" : "model", "step",
        r->step < 0 ? NULL : json_integer((json_int_t)r->step), "seed", (json_int_t)c->seed,
        "model_hash", lw_json_hash(r->hash), "parameters", (json_int_t)r->parameters, "seconds",
        r->seconds, "images_per_sec", r->images_per_second, "memory_bytes", (json_int_t)r->bytes,
        "precision", r->precision);
    LW_CLEANUP(lw_json_drop) json_t *more = lw_sample_options(c, r->kind);
    json_object_update(j, more);
    lw_cli_print_result(j);
}

/* Pictures on stdout leave no room there for anything else. */
static int to_stdout(const lw_cli *cli, lw_sample_config *c, bool *yes)
{
    *yes = lw_str_eq(c->output, "-") || lw_str_eq(c->output, "/dev/stdout");
    if (!*yes)
        return 0;
    if (cli->global.json)
        return lw_fail(LW_EUSAGE, "--json: stdout carries the pictures; leave it out, or give "
                                  "--output a file");
    if (isatty(STDOUT_FILENO))
        return lw_fail(LW_EUSAGE,
                       "--output %s: stdout is a terminal; pipe the array, or give "
                       "--output a file",
                       c->output);
    c->output = "/dev/stdout";
    return 0;
}

static void print_text(const lw_sample_config *c, const lw_sample_result *r)
{
    char step[40] = "";
    if (r->step >= 0)
        snprintf(step, sizeof step, " of step %lld", (long long)r->step);
    lw_cli_print("%lld pictures %dx%d by %s, %s, %d evaluation%s each, %s weights%s, %s\n"
                 "%.3f s, %.4g pictures/s\n%s\n",
                 (long long)r->n, (int)r->image_size, (int)r->image_size, r->method, r->sampler,
                 (int)r->evaluations, r->evaluations == 1 ? "" : "s",
                 r->averaged ? "averaged" : "model", step, r->precision, r->seconds,
                 r->images_per_second, c->output);
}

static int run(const lw_cli *cli, const void *config)
{
    const sample_cli *o = config;
    lw_sample_config c = o->c;
    lw_sample_result r;
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs = {0};
    c.ema = o->weights == 1;
    c.seed = (uint64_t)cli->global.seed;
    c.threads = cli->global.threads;
    c.conv = cli->global.conv;
    bool piped = false;
    LW_TRY(to_stdout(cli, &c, &piped));
    lw_cli_observer_open(&obs, cli);
    LW_TRY(lw_job_sample(&c, &obs.calls, &r));
    if (piped)
        return 0;
    if (cli->global.json)
        print_json(&c, &r);
    else
        print_text(&c, &r);
    return 0;
}

const lw_command lw_cmd_sample = {
    .name = "sample",
    .summary = "pictures from a trained generator",
    .usage = "SOURCE --output x.png|x.npy|x.npz|DIR|- [options]",
    .notes = "Picture number i depends on the weights, --seed, i and its class only: a larger --n "
             "or another "
             "--batch-size never changes it.",
    .examples = "leeway sample runs/drift --output grid.png\n"
                "leeway sample runs/ddpm --guidance-scale 2 --output grid.png\n"
                "leeway sample runs/ddpm --sampler ddim --steps 100 --n 1000 --output samples/\n"
                "leeway sample runs/ddpm --sampler ancestral --steps 250 --output grid.png\n"
                "leeway sample runs/drift --classes 3,7 --n 16 --output x.npy --json\n"
                "leeway sample runs/drift --n 16 --output - | python3 -c 'import io, sys, numpy; "
                "print(numpy.load(io.BytesIO(sys.stdin.buffer.read())).shape)'",
    .options = {options},
    .config_size = sizeof(sample_cli),
    .run = run,
};
