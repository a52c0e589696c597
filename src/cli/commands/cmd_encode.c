/* SPDX-License-Identifier: Apache-2.0 */
/* leeway encode: features of pictures, into one file. */
#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "cli/commands/cmd_network.h"
#include "data/data.h"
#include "formats/formats.h"
#include "session/session.h"
#include "jobs/encode/encode_job.h"

typedef struct encode_cli {
    lw_encode_config c;
    int32_t weights;
} encode_cli;

static const lw_option options[] = {
    {LW_OPT(encode_cli, c.source), .name = "model", .path = LW_PATH_IN, .positional = true,
     .required = true,
     .help = "run directory, checkpoint, model folder, or the weights file of a known encoder"},
    {LW_OPT(encode_cli, c.data), .name = "data", .path = LW_PATH_IN, .unit = "spec",
     .group = "Data", .help = LW_DATA_SPEC_HELP},
    {LW_OPT(encode_cli, c.manifest), .name = "manifest", .path = LW_PATH_IN, .unit = "file",
     .group = "Data",
     .help = "JSON with the paths of pictures, read in its order: manifest:FILE, below the folder "
             "of --data folder:DIR if that is given"},
    {LW_OPT(encode_cli, c.split), .name = "split", .choices = "train|held-out|all",
     .fallback = "all", .group = "Data", .help = "which part"},
    {LW_OPT(encode_cli, c.limit), .name = "limit", .max = 1e12, .fallback = "0", .unit = "pictures",
     .group = "Data", .help = "use only the first so many; 0: all"},
    {LW_OPT(encode_cli, c.num_images), .name = "num-images", .aliases = "n", .max = 1e12,
     .fallback = "0", .unit = "pictures", .group = "Data", .help = LW_DATA_DRAW_HELP},
    {LW_OPT(encode_cli, c.on_error), .name = "on-error", .choices = LW_DATA_ON_ERROR,
     .fallback = "fail", .group = "Data", .help = LW_DATA_ON_ERROR_HELP},
    {LW_OPT(encode_cli, c.image_size), .name = "image-size", .max = 1024, .fallback = "0",
     .unit = "pixels", .group = "Data",
     .help = "side of the pictures, for networks that take any; 0: the data's own"},
    LW_WEIGHTS_OPTION(encode_cli, weights),
    {LW_OPT_LIST(encode_cli, c.layers, c.n_layers), .name = "layer", .aliases = "layers",
     .distinct = true, .group = "Model",
     .help = "outputs by name: pooled, cls, tokens, logits, s0, s1, ...; default: pooled, or the "
             "first there is"},
    {LW_OPT(encode_cli, c.l2_normalize), .name = "l2-normalize", .fallback = "false",
     .group = "Model", .help = "give the vectors of pooled, cls or logits length 1"},
    LW_PRECISION_OPTION(encode_cli, c.precision, "Model"),
    {LW_OPT(encode_cli, c.batch), .name = "batch-size", .fallback = "8", .min = 1, .max = 65536,
     .group = "Model", .help = "pictures at a time; results do not depend on it"},
    {LW_OPT(encode_cli, c.output), .name = "output", .path = LW_PATH_OUT, .required = true,
     .unit = "file", .group = "Output",
     .help = ".safetensors or .npz: all layers and the labels; .npy: one layer. FILE.json says "
             "which picture each row is"},
    {LW_OPT(encode_cli, c.resume), .name = "resume", .fallback = "false", .group = "Output",
     .transient = true, .help = "go on with an encode that was interrupted"},
    {LW_OPT(encode_cli, c.device_change), .name = "device-change", .fallback = "false",
     .group = "Output", .transient = true,
     .help = "with --resume, go on with rows that the CPU began on a GPU, or the other way round; "
             "their last bits differ"},
    {.name = NULL}};

static json_t *taps_json(const lw_encode_result *r)
{
    json_t *taps = json_object();
    for (int k = 0; k < r->n_taps; k++) {
        json_t *shape = json_array();
        for (int d = 0; d < r->tap[k].rank; d++)
            json_array_append_new(shape, json_integer((json_int_t)r->tap[k].shape[d]));
        json_object_set_new(taps, r->tap[k].name, shape);
    }
    return taps;
}

static void print_json(const lw_cli *cli, const lw_encode_config *c, const lw_encode_result *r)
{
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack(
        "{s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:[i,i], s:s, s:o, s:I, s:I, s:I, s:I, s:o}", "output",
        c->output, "model", c->source, "network", r->network, "parameters",
        (json_int_t)r->parameters, "data", r->data, "rows", (json_int_t)r->rows, "skipped",
        (json_int_t)r->skipped, "picture", (int)r->height, (int)r->width, "preparation",
        r->preparation, "layers", taps_json(r), "file_bytes", (json_int_t)r->file_bytes,
        "disk_bytes", (json_int_t)r->disk_bytes, "picture_bytes", (json_int_t)r->picture_bytes,
        "memory_bytes", (json_int_t)r->memory_bytes,
        cli->global.dry_run ? "predicted_seconds" : "seconds", lw_json_real(r->seconds));
    int64_t now = r->rows - r->done_before;
    if (!cli->global.dry_run) {
        json_object_set_new(j, "rows_done_before", json_integer((json_int_t)r->done_before));
        json_object_set_new(j, "images_per_sec",
                            lw_json_real(r->seconds > 0 ? (double)now / r->seconds : 0.0));
        json_object_set_new(j, "decode_seconds", lw_json_real(r->decode));
        json_object_set_new(j, "prepare_seconds", lw_json_real(r->prepare));
        json_object_set_new(j, "forward_seconds", lw_json_real(r->forward));
        json_object_set_new(j, "write_seconds", lw_json_real(r->write));
    }
    json_object_set_new(j, "device", json_string(r->device));
    lw_cli_print_json(j);
}

static void print_speed(const lw_encode_result *r)
{
    char time[32];
    int64_t now = r->rows - r->done_before;
    if (r->done_before)
        lw_cli_print("%lld rows were there before\n", (long long)r->done_before);
    if (now == 0)
        return;
    lw_cli_print("%s, %.4g pictures/s: decode %.2f s, prepare %.2f s, forward %.2f s, write %.2f "
                 "s\n",
                 lw_fmt_time(time, r->seconds), (double)now / r->seconds, r->decode, r->prepare,
                 r->forward, r->write);
}

static void print_text(const lw_cli *cli, const lw_encode_config *c, const lw_encode_result *r)
{
    char shape[192], bytes[4][32], time[32];
    lw_cli_print("%s (%lld parameters): %lld pictures of %dx%d\n%s\n", r->network,
                 (long long)r->parameters, (long long)r->rows, (int)r->width, (int)r->height,
                 r->preparation);
    if (r->skipped)
        lw_cli_print("%lld could not be read\n", (long long)r->skipped);
    for (int k = 0; k < r->n_taps; k++)
        lw_cli_print("  %-10s %s\n", r->tap[k].name,
                     lw_shape_text(shape, r->tap[k].rank, r->tap[k].shape));
    if (cli->global.dry_run)
        lw_cli_print("%s would have %s (%s of disk while it is written, and %s of decoded pictures "
                     "in the cache), take %s of memory and about %s\n",
                     c->output, lw_fmt_bytes(bytes[0], r->file_bytes),
                     lw_fmt_bytes(bytes[1], r->disk_bytes),
                     lw_fmt_bytes(bytes[2], r->picture_bytes),
                     lw_fmt_bytes(bytes[3], r->memory_bytes), lw_fmt_time(time, r->seconds));
    else
        print_speed(r);
    if (!cli->global.dry_run)
        lw_cli_print("%s (%s), rows in %s.json\n", c->output, lw_fmt_bytes(bytes[0], r->file_bytes),
                     c->output);
}

static int run(const lw_cli *cli, const void *config)
{
    const encode_cli *o = config;
    lw_encode_config c = o->c;
    lw_encode_result r;
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs;
    c.ema = o->weights == 1;
    c.seed = (uint64_t)cli->global.seed;
    c.threads = cli->global.threads;
    c.conv = cli->global.conv;
    c.dry_run = cli->global.dry_run;
    lw_cli_observer_open(&obs, cli);
    LW_TRY(lw_job_encode(&c, &obs.calls, &r));
    if (cli->global.json)
        print_json(cli, &c, &r);
    else
        print_text(cli, &c, &r);
    return 0;
}

const lw_command lw_cmd_encode = {
    .name = "encode",
    .dry_run = true,
    .summary = "features of pictures by a frozen network, into one file",
    .usage = "--model SOURCE --data SPEC --output feats.safetensors [options]",
    .notes = "Pictures are resized, cut and scaled as the network's files say. Rows are written as "
             "they are made, so that neither pictures nor features need fit into memory; an "
             "interrupted encode goes on with --resume, to the same bytes.",
    .examples =
        "leeway encode --model resnet56.safetensors --data cifar10:data --split held-out "
        "--layer logits,pooled --output feats.safetensors\n"
        "leeway encode --model dinov2 --data folder:pictures --layer cls,pooled --output feats.npz",
    .options = {options},
    .config_size = sizeof(encode_cli),
    .run = run,
};
