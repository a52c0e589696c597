/* SPDX-License-Identifier: Apache-2.0 */
/* leeway convert: networks in the files of another library. */
#include "cli/cli.h"
#include "formats/formats.h"
#include "jobs/convert/convert_job.h"

static const lw_option options[] = {
    {LW_OPT(lw_convert_config, source), .name = "source", .path = LW_PATH_IN, .positional = true,
     .required = true,
     .help = "folder or file of weights (safetensors, .pth, .bin) of an encoder; before a file the "
             "word of a family may stand, as in resnet:FILE"},
    {LW_OPT(lw_convert_config, to), .name = "to", .choices = LW_CONVERT_FORMS, .required = true,
     .group = "Output",
     .help = "the library that opens the folder; hf is transformers; onnx: model.onnx, of "
             "generators too, for ONNX Runtime and OpenVINO"},
    {LW_OPT(lw_convert_config, output_dir), .name = "output-dir", .path = LW_PATH_OUT_DIR,
     .required = true, .unit = "dir", .group = "Output",
     .help = "the folder written, whole or not at all; it must not hold anything yet"},
    {LW_OPT(lw_convert_config, type), .name = "dtype", .choices = "keep|f32|bf16|f16",
     .fallback = "keep", .group = "Output",
     .help = "of the tensors; keep: the narrowest that holds all of the source's (f32 for bytes "
             "with scales)"},
    {LW_OPT(lw_convert_config, batch), .name = "batch-size", .fallback = "1", .min = 1, .max = 4096,
     .group = "ONNX", .help = "rows at once: an ONNX file has fixed shapes"},
    {LW_OPT(lw_convert_config, image_size), .name = "image-size", .unit = "pixels", .fallback = "0",
     .min = 0, .max = 32768, .group = "ONNX", .help = "side of the pictures; 0: the network's own"},
    {LW_OPT(lw_convert_config, layer), .name = "layer", .unit = "name", .group = "ONNX",
     .help = "what comes out, as in leeway run; without: the network's answer"},
    {.name = NULL}};

static void print_json(const lw_cli *cli, const lw_convert_config *c, const lw_convert_result *r)
{
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:s, s:I, s:o, s:s, s:I, s:O, s:O, s:O, s:O, s:b}", "network",
                          r->network, "parameters", (json_int_t)r->parameters, "output_dir",
                          lw_json_name(c->output_dir), "dtype", lw_elem_name(r->type), "bytes",
                          (json_int_t)r->bytes, "files", r->files, "config", r->config, "left_out",
                          r->left_out, "notes", r->notes, "written", !cli->global.dry_run);
    lw_cli_print_json(j);
}

static void print_list(const char *title, const json_t *list)
{
    if (json_array_size(list) > 0)
        lw_cli_print("%s", title);
    for (size_t i = 0; i < json_array_size(list); i++)
        lw_cli_print("  %s\n", json_string_value(json_array_get(list, i)));
}

static void print_text(const lw_cli *cli, const lw_convert_config *c, const lw_convert_result *r)
{
    char bytes[32];
    lw_cli_print("%s (%lld parameters) %s %s: %s of %s in\n", r->network, (long long)r->parameters,
                 cli->global.dry_run ? "would go to" : "is in", c->output_dir,
                 lw_fmt_bytes(bytes, r->bytes), lw_elem_name(r->type));
    print_list("", r->files);
    print_list("left out:\n", r->left_out);
    for (size_t i = 0; i < json_array_size(r->notes); i++)
        lw_cli_print("note: %s\n", json_string_value(json_array_get(r->notes, i)));
}

static int run(const lw_cli *cli, const void *config)
{
    lw_convert_config c = *(const lw_convert_config *)config;
    LW_CLEANUP(lw_convert_result_clear) lw_convert_result r = {0};
    c.dry_run = cli->global.dry_run;
    LW_TRY(lw_job_convert(&c, &r));
    if (cli->global.json)
        print_json(cli, &c, &r);
    else
        print_text(cli, &c, &r);
    return 0;
}

const lw_command lw_cmd_convert = {
    .name = "convert",
    .dry_run = true,
    .summary = "a network's files as the folder that another library opens, or as ONNX",
    .usage = "SOURCE --to hf|timm|open_clip|onnx --output-dir DIR [options]",
    .notes = "Values are kept to the bit, there and back. Nothing in a .pth runs. Tensors that the "
             "library's network has no place for are listed, and so is whatever it computes in "
             "another way. Families and their files: docs/encoders.md.",
    .examples = "leeway convert clip-vit-base-patch32 --to timm --output-dir clip-timm\n"
                "leeway convert dinov2_vitb14_pretrain.pth --to hf --output-dir dinov2-base\n"
                "leeway convert resnet50.pth --to hf --output-dir resnet50-hf --dry-run --json\n"
                "leeway convert runs/ddpm/model --to onnx --output-dir ddpm-onnx",
    .options = {options},
    .config_size = sizeof(lw_convert_config),
    .run = run,
};
