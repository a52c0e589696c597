/* SPDX-License-Identifier: Apache-2.0 */
/* leeway run: the forward of any model folder on arrays in files. */
#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "cli/commands/cmd_network.h"
#include "formats/formats.h"
#include "session/session.h"
#include "jobs/run/run_job.h"

typedef struct run_cli {
    lw_run_config c;
    int32_t weights;
} run_cli;

static const lw_option options[] = {
    {LW_OPT(run_cli, c.source), .name = "model", .path = LW_PATH_IN, .positional = true,
     .required = true,
     .help = "run directory, checkpoint, model folder, or the weights file of a known encoder"},
    {LW_OPT(run_cli, c.input), .name = "input", .path = LW_PATH_IN, .required = true, .unit = "npy",
     .group = "Input", .help = "pictures [N,C,H,W]"},
    {LW_OPT(run_cli, c.t), .name = "t", .path = LW_PATH_IN, .unit = "npy", .group = "Input",
     .help = "times [N], or one for all (default 0)"},
    {LW_OPT(run_cli, c.classes), .name = "class", .path = LW_PATH_IN, .aliases = "classes",
     .unit = "npy", .group = "Input", .help = "class numbers [N], or one for all"},
    {LW_OPT(run_cli, c.latent), .name = "latent", .path = LW_PATH_IN, .unit = "npy",
     .group = "Input", .help = "latent vectors [N,K]"},
    {LW_OPT(run_cli, c.styles), .name = "styles", .path = LW_PATH_IN, .unit = "npy",
     .group = "Input", .help = "style ids [N,K]"},
    {LW_OPT(run_cli, c.condition), .name = "condition", .path = LW_PATH_IN, .unit = "npy",
     .group = "Input",
     .help = "frames of a network with a condition [N,K,H,W]: the current one, previous answers"},
    LW_WEIGHTS_OPTION(run_cli, weights),
    {LW_OPT(run_cli, c.want), .name = "layer", .unit = "name", .group = "Model",
     .help = "output: y of a U-Net; logits, pooled, s0, s1, ... of an encoder (default: the first "
             "it has)"},
    LW_PRECISION_OPTION(run_cli, c.precision, "Model"),
    LW_WINDOW_OPTION(run_cli, c.window, "Model"),
    {LW_OPT(run_cli, c.batch), .name = "batch-size", .fallback = "8", .min = 1, .max = 65536,
     .group = "Model", .help = "rows at a time; results do not depend on it"},
    {LW_OPT(run_cli, c.output), .name = "output", .path = LW_PATH_OUT, .required = true,
     .unit = "npy", .endings = ".npy", .group = "Output",
     .help = "where the result goes: [N,C,H,W], [N,K] or [N,F]"},
    {.name = NULL}};

static void print_json(const lw_run_result *r)
{
    LW_CLEANUP(lw_json_drop) json_t *t = json_object();
    json_t *shape = json_array();
    for (int i = 0; i < r->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)r->shape[i]));
    json_object_set_new(t, "model", lw_json_name(r->name));
    json_object_set_new(t, "output", lw_json_name(r->want));
    json_object_set_new(t, "shape", shape);
    json_object_set_new(t, "parameters", json_integer((json_int_t)r->parameters));
    json_object_set_new(t, "seconds", lw_json_real(r->seconds));
    json_object_set_new(t, "memory_bytes", json_integer((json_int_t)r->memory));
    lw_cli_print_result(t);
}

static int run(const lw_cli *cli, const void *config)
{
    const run_cli *o = config;
    lw_run_config c = o->c;
    lw_run_result r;
    char shape[192];
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    c.ema = o->weights == 1;
    c.threads = (int)cli->global.threads;
    c.conv = cli->global.conv;
    lw_cli_observer_open(&obs, cli);
    LW_TRY(lw_job_run(&c, &obs.calls, &r));
    if (cli->global.json)
        print_json(&r);
    else
        lw_cli_print("%s (%lld parameters): %s %s in %.3f s\n", r.name, (long long)r.parameters,
                     r.want, lw_shape_text(shape, r.rank, r.shape), r.seconds);
    return 0;
}

const lw_command lw_cmd_run = {
    .name = "run",
    .summary = "the forward of any model folder on npy arrays: an oracle for other programs",
    .usage = "MODEL_DIR --input x.npy [--t t.npy] [--class c.npy] --output y.npy [options]",
    .examples = "leeway run runs/ddpm --input x.npy --t t.npy --output eps.npy\n"
                "leeway run resnet20.safetensors --input x.npy --layer s2 --output map.npy",
    .options = {options},
    .config_size = sizeof(run_cli),
    .run = run,
};
