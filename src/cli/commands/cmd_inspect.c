/* SPDX-License-Identifier: Apache-2.0 */
/* leeway inspect: what is in a run, model folder, array or picture; graphs and plans. */
#include <string.h>

#include "cli/cli.h"
#include "cli/commands/cmd_network.h"
#include "formats/formats.h"
#include "session/session.h"
#include "jobs/inspect/inspect_job.h"

typedef struct inspect_cli {
    const char *path, *pass;
    bool graph, plan, stats, train, recompute;
    int32_t batch, image_size, opt, precision;
} inspect_cli;

static const lw_option options[] = {
    {LW_OPT(inspect_cli, path), .name = "path", .path = LW_PATH_IN, .positional = true,
     .required = true,
     .help = "run, checkpoint, model folder, .safetensors, .pth, .npy, .npz or a picture"},
    {LW_OPT(inspect_cli, stats), .name = "stats", .group = "Arrays",
     .help = "range, RMS and number of values that are not finite, of every array"},
    {LW_OPT(inspect_cli, graph), .name = "graph", .group = "Networks",
     .help = "print the graph of a model folder"},
    {LW_OPT(inspect_cli, pass), .name = "pass", .unit = "name", .group = "Networks",
     .help =
         "the graph after this pass: graph (as built), simplify, upconv, fuse, join, precision, "
         "pack, chain, slices, outputs, recompute, or all that run (implies --graph)"},
    {LW_OPT(inspect_cli, plan), .name = "plan", .group = "Networks",
     .help = "print the plan: steps with shapes, tasks and cost, and the memory map"},
    {LW_OPT(inspect_cli, batch), .name = "batch-size", .fallback = "1", .min = 1, .max = 65536,
     .group = "Networks", .help = "batch size of graph and plan"},
    {LW_OPT(inspect_cli, image_size), .name = "image-size", .max = 4096, .group = "Networks",
     .help = "picture size, for networks that take any (default that of their preparation, or 32)"},
    {LW_OPT(inspect_cli, opt), .name = "opt", .fallback = "1", .max = 1, .group = "Networks",
     .help = "0: without simplification, fusion and reuse of memory"},
    LW_PRECISION_OPTION(inspect_cli, precision, "Networks"),
    {LW_OPT(inspect_cli, train), .name = "train", .group = "Networks",
     .help = "a U-Net's training graph: dropout, a loss (the mean of squared outputs), gradients"},
    {LW_OPT(inspect_cli, recompute), .name = "recompute", .group = "Networks",
     .help = "with cheap values made again in the backward pass (implies --train)"},
    {.name = NULL}};

/* ---- a JSON object as text ------------------------------------------------------------------- */

static void add_scalar(lw_str *s, const json_t *v)
{
    if (json_is_string(v))
        lw_str_add_clean(s, json_string_value(v), "");
    else
        lw_json_dump(v, 0, s);
}

static bool is_table(const json_t *v)
{
    return json_is_array(v) && json_array_size(v) > 0 && json_is_object(json_array_get(v, 0));
}

/* Columns as wide as their widest cell, two blanks between. */
static void print_table(const json_t *rows)
{
    const char *key;
    json_t *cell;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    int width[16] = {0}, columns = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        columns = 0;
        json_object_foreach(json_array_get(rows, i), key, cell)
        {
            if (columns >= 16)
                break;
            text.len = 0;
            add_scalar(&text, cell);
            width[columns] = LW_MAX(LW_MAX(width[columns], (int)text.len), (int)strlen(key));
            columns++;
        }
    }
    for (size_t i = 0; i <= json_array_size(rows); i++) {
        int k = 0;
        json_object_foreach(json_array_get(rows, i ? i - 1 : 0), key, cell)
        {
            if (k >= columns)
                break;
            text.len = 0;
            if (i == 0)
                lw_str_add(&text, key);
            else
                add_scalar(&text, cell);
            lw_cli_print("  %-*s", k + 1 < columns ? width[k] : 0, text.len ? lw_str_c(&text) : "");
            k++;
        }
        lw_cli_print("\n");
    }
}

static void print_object(json_t *o, int depth)
{
    const char *key;
    json_t *v;
    json_object_foreach(o, key, v)
    {
        LW_CLEANUP(lw_str_clear) lw_str text = {0}, name = {0};
        lw_str_add_clean(&name, key, "");
        if (json_is_object(v) && json_object_size(v) > 0) {
            lw_cli_print("%*s%s:\n", 2 * depth, "", lw_str_c(&name));
            print_object(v, depth + 1);
        } else if (is_table(v)) {
            lw_cli_print("%*s%s:\n", 2 * depth, "", lw_str_c(&name));
            print_table(v);
        } else {
            add_scalar(&text, v);
            lw_cli_print("%*s%s: %s\n", 2 * depth, "", lw_str_c(&name), lw_str_c(&text));
        }
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run_graph(const lw_cli *cli, const inspect_cli *o)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_inspect_graph c = {.source = o->path,
                          .pass = o->pass,
                          .graph = o->graph || o->pass,
                          .plan = o->plan,
                          .batch = o->batch,
                          .image_size = o->image_size,
                          .opt = o->opt,
                          .precision = o->precision,
                          .train = o->train,
                          .recompute = o->recompute,
                          .threads = (int)cli->global.threads,
                          .conv = cli->global.conv};
    LW_TRY(lw_job_inspect_graph(&c, &text));
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop)
        json_t *tree = json_pack("{s:s, s:s}", "path", o->path, "text", lw_str_c(&text));
        lw_cli_print_json(tree);
    } else {
        lw_cli_print("%s", lw_str_c(&text));
    }
    return 0;
}

static int run(const lw_cli *cli, const void *config)
{
    const inspect_cli *o = config;
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    if (o->graph || o->plan || o->pass)
        return run_graph(cli, o);
    LW_TRY(lw_job_inspect(o->path, o->stats, &tree));
    if (cli->global.json)
        lw_cli_print_json(tree);
    else
        print_object(tree, 0);
    return 0;
}

const lw_command lw_cmd_inspect = {
    .name = "inspect",
    .summary = "what is in a run, model folder, array or picture; graphs and plans",
    .usage = "PATH [--graph] [--pass NAME] [--plan] [--stats] [options]",
    .examples =
        "leeway inspect runs/drift\n"
        "leeway inspect runs/drift/checkpoints/last/diffusion_pytorch_model.safetensors --stats\n"
        "leeway inspect samples.png\n"
        "leeway inspect runs/drift --pass fuse --plan --batch-size 8\n"
        "leeway inspect runs/ddpm --pass recompute --recompute --precision bf16",
    .options = {options},
    .config_size = sizeof(inspect_cli),
    .run = run,
};
