/* SPDX-License-Identifier: Apache-2.0 */
/* leeway data: the sources there are, a look at one dataset. */
#include <stdio.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "data/data.h"
#include "formats/formats.h"

/* ---- data list -------------------------------------------------------------------------- */

typedef struct list_cli {
    char none; /* has no options of its own */
} list_cli;
static const lw_option list_options[] = {{.name = NULL}};

static int run_list(const lw_cli *cli, const void *config)
{
    (void)config;
    LW_CLEANUP(lw_json_drop) json_t *all = json_array();
    for (const lw_data_info *i = lw_data_sources(); i->name; i++)
        if (cli->global.json)
            json_array_append_new(all, json_pack("{s:s, s:s, s:s}", "name", i->name, "usage",
                                                 i->usage, "summary", i->summary));
        else
            lw_cli_print("%-26s %s\n", i->usage, i->summary);
    if (cli->global.json)
        lw_cli_print_json(all);
    return 0;
}

const lw_command lw_cmd_data_list = {
    .name = "data list",
    .summary = "the kinds of data Leeway reads",
    .usage = "",
    .examples = "leeway data list",
    .options = {list_options},
    .config_size = sizeof(list_cli),
    .run = run_list,
};

/* ---- data check ------------------------------------------------------------------------- */

typedef struct look_cli {
    const char *spec, *output, *preparation;
    int32_t split, image_size, channels, on_error, lines, columns, zoom;
    int64_t num_images;
} look_cli;

#define LOOK_OPTIONS                                                                               \
    {LW_OPT(look_cli, spec), .name = "spec",   .path = LW_PATH_IN,                                 \
     .positional = true,     .required = true, .help = LW_DATA_SPEC_HELP},                         \
        {LW_OPT(look_cli, split), .name = "split", .choices = "train|held-out|all",                \
         .fallback = "train",     .group = "Data", .help = "which part"},                          \
        {LW_OPT(look_cli, num_images),                                                             \
         .name = "num-images",                                                                     \
         .aliases = "n",                                                                           \
         .max = 1e12,                                                                              \
         .fallback = "0",                                                                          \
         .unit = "pictures",                                                                       \
         .group = "Data",                                                                          \
         .help = LW_DATA_DRAW_HELP},                                                               \
        {LW_OPT(look_cli, on_error), .name = "on-error", .choices = LW_DATA_ON_ERROR,              \
         .fallback = "fail",         .group = "Data",    .help = LW_DATA_ON_ERROR_HELP},           \
        {LW_OPT(look_cli, image_size),                                                             \
         .name = "image-size",                                                                     \
         .fallback = "0",                                                                          \
         .max = 1024,                                                                              \
         .unit = "pixels",                                                                         \
         .group = "Data",                                                                          \
         .help = LW_DATA_SIZE_HELP},                                                               \
        {LW_OPT(look_cli, channels),   .name = "channels", .min = 0,                               \
         .max = LW_MAX_CHANNELS,       .fallback = "0",    .group = "Data",                        \
         .help = LW_DATA_CHANNELS_HELP},                                                           \
    {                                                                                              \
        LW_OPT(look_cli, preparation), .name = "preparation", .path = LW_PATH_IN, .unit = "file",  \
                                       .group = "Data",                                            \
                                       .help = "pictures as a published network is fed them: a "   \
                                               "preprocessor_config.json or timm config.json, or " \
                                               "the folder with it"                                \
    }

static const lw_option check_options[] = {LOOK_OPTIONS, {.name = NULL}};

static json_t *numbers(const lw_dataset *d, const double *v)
{
    json_t *a = json_array();
    for (int32_t c = 0; c < d->channels; c++)
        json_array_append_new(a, json_real(v[c]));
    return a;
}

static json_t *report_json(const look_cli *o, const lw_data_report *r)
{
    json_t *j = json_pack("{s:o, s:s, s:b}", "data", lw_json_name(o->spec), "split",
                          lw_split_name((lw_split)o->split), "ok",
                          r->set != NULL && r->n_problems == 0);
    json_t *problems = json_array(), *counts = json_object();
    for (size_t i = 0; i < r->n_problems; i++)
        json_array_append_new(problems,
                              json_pack("{s:o, s:o}", "path", lw_json_name(r->problems[i].path),
                                        "reason", lw_json_name(r->problems[i].reason)));
    if (r->set) {
        json_object_set_new(j, "pictures", json_integer((json_int_t)r->set->n));
        if (r->set->h == r->set->w)
            json_object_set_new(j, "image_size", json_integer(r->set->h));
        json_object_set_new(j, "height", json_integer(r->set->h));
        json_object_set_new(j, "width", json_integer(r->set->w));
        json_object_set_new(j, "channels", json_integer(r->set->channels));
        json_object_set_new(j, "skipped", json_integer((json_int_t)r->set->skipped));
        if (*r->set->note)
            json_object_set_new(j, "note", json_string(r->set->note));
        json_object_set_new(j, "labelled", json_boolean(r->set->labelled));
        json_object_set_new(j, "mean", numbers(r->set, r->mean));
        json_object_set_new(j, "sd", numbers(r->set, r->sd));
        json_object_set_new(j, "min", numbers(r->set, r->min));
        json_object_set_new(j, "max", numbers(r->set, r->max));
        json_object_set_new(j, "duplicates", json_integer((json_int_t)r->duplicates));
        for (int32_t c = 0; c < r->set->classes; c++)
            json_object_set_new(counts, r->set->class_names[c],
                                json_integer((json_int_t)r->class_counts[c]));
        json_object_set(j, "classes", counts);
    }
    json_decref(counts);
    json_object_set_new(j, "problems", problems);
    return j;
}

/* " of 1 channel"; nothing of RGB. */
static const char *of_channels(const lw_dataset *d, char buf[32])
{
    buf[0] = '\0';
    if (d->channels != 3)
        snprintf(buf, 32, " of %d channel%s", d->channels, d->channels == 1 ? "" : "s");
    return buf;
}

static void print_numbers(const lw_data_report *r)
{
    double lo = r->min[0], hi = r->max[0];
    lw_cli_print("mean ");
    for (int32_t c = 0; c < r->set->channels; c++)
        lw_cli_print(" %.4f", r->mean[c]);
    lw_cli_print("   sd");
    for (int32_t c = 0; c < r->set->channels; c++) {
        lw_cli_print(" %.4f", r->sd[c]);
        lo = LW_MIN(lo, r->min[c]);
        hi = LW_MAX(hi, r->max[c]);
    }
    lw_cli_print("   range %.3f .. %.3f\n", lo, hi);
}

static void print_report(const lw_data_report *r)
{
    char channels[32];
    if (r->set) {
        const lw_dataset *d = r->set;
        lw_cli_print("%s: %lld %s pictures of %dx%d%s, %d class%s\n", d->spec, (long long)d->n,
                     lw_split_name(d->split), d->w, d->h, of_channels(d, channels), d->classes,
                     d->classes == 1 ? "" : "es");
        print_numbers(r);
        for (int32_t c = 0; c < d->classes && d->labelled; c++)
            lw_cli_print("  %-16s %lld\n", d->class_names[c], (long long)r->class_counts[c]);
        if (r->duplicates)
            lw_cli_print("%lld duplicate%s, the first: rows %lld and %lld\n",
                         (long long)r->duplicates, r->duplicates == 1 ? "" : "s",
                         (long long)r->duplicate_a, (long long)r->duplicate_b);
    }
    if (r->set && *r->set->note)
        lw_cli_print("note: %s\n", r->set->note);
    for (size_t i = 0; i < r->n_problems; i++)
        lw_cli_print("%s: %s\n", r->problems[i].path, r->problems[i].reason);
}

/* *p and *obs, which is opened, are what opts may point at. */
static int look_opts(const lw_cli *cli, const look_cli *o, lw_preparation *p, lw_cli_observer *obs,
                     lw_data_opts *opts)
{
    lw_cli_observer_open(obs, cli);
    *opts = (lw_data_opts){.image_size = o->image_size,
                           .channels = o->channels,
                           .split = (lw_split)o->split,
                           .num_images = o->num_images,
                           .seed = (uint64_t)cli->global.seed,
                           .obs = &obs->calls,
                           .on_error = (lw_on_error)o->on_error};
    if (o->preparation) {
        LW_TRY(lw_preparation_load(o->preparation, p));
        opts->preparation = p;
    }
    return 0;
}

static int check(const lw_cli *cli, const look_cli *o, lw_data_report *r)
{
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    lw_preparation p;
    lw_data_opts opts;
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs = {0};
    LW_TRY(look_opts(cli, o, &p, &obs, &opts));
    LW_TRY(lw_data_check(o->spec, &opts, r));
    if (cli->global.json) {
        j = report_json(o, r);
        lw_cli_print_json(j);
    } else {
        print_report(r);
    }
    if (r->n_problems)
        return lw_fail(LW_EFORMAT, "%s: %zu problem%s", o->spec, r->n_problems,
                       r->n_problems == 1 ? "" : "s");
    return 0;
}

static int run_check(const lw_cli *cli, const void *config)
{
    lw_data_report r = {0};
    int rc = check(cli, config, &r);
    lw_data_report_clear(&r);
    return rc;
}

const lw_command lw_cmd_data_check = {
    .name = "data check",
    .summary = "open a dataset, count and measure it, name what is damaged",
    .usage = "SPEC [options]",
    .notes = "Exit code 3 when something is damaged. Every byte of the cache is compared with its "
             "hashes; "
             "a damaged cache is reported and built again.",
    .examples = "leeway data check synth:16\n"
                "leeway data check cifar10:data/cifar10 --split held-out --json",
    .options = {check_options},
    .config_size = sizeof(look_cli),
    .run = run_check,
};

/* ---- data sheet ------------------------------------------------------------------------- */

static const lw_option sheet_options[] = {
    LOOK_OPTIONS,
    {LW_OPT(look_cli, lines), .name = "lines", .fallback = "10", .min = 1, .max = 1000,
     .group = "Sheet", .help = "rows of pictures; with labels each row is a class"},
    {LW_OPT(look_cli, columns), .name = "columns", .fallback = "16", .min = 1, .max = 1000,
     .group = "Sheet", .help = "pictures in a row"},
    {LW_OPT(look_cli, zoom), .name = "zoom", .fallback = "2", .min = 1, .max = 32, .group = "Sheet",
     .help = "every pixel becomes so many"},
    {LW_OPT(look_cli, output), .name = "output", .path = LW_PATH_OUT, .required = true,
     .unit = "png", .endings = ".png", .group = "Sheet", .help = "where the sheet goes"},
    {.name = NULL}};

static int sheet(const lw_cli *cli, const look_cli *o, const lw_dataset *d)
{
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    LW_CLEANUP(lw_json_drop)
    json_t *texts = json_pack("{s:s, s:s, s:s}", "Software", "leeway", "data", d->spec, "split",
                              lw_split_name(d->split));
    LW_TRY(lw_data_sheet(d, o->lines, o->columns, o->zoom, 2, &im.width, &im.height, &im.rgb));
    LW_TRY(lw_png_save(o->output, &im, texts));
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop)
        json_t *j = json_pack("{s:o, s:i, s:i}", "output", lw_json_name(o->output), "width",
                              (int)im.width, "height", (int)im.height);
        lw_cli_print_json(j);
    } else {
        lw_cli_print("%s: %d x %d pixels%s\n", o->output, (int)im.width, (int)im.height,
                     d->channels > 3    ? ", of the first three channels"
                     : d->channels == 2 ? ", of the first channel"
                                        : "");
    }
    return 0;
}

static int run_sheet(const lw_cli *cli, const void *config)
{
    const look_cli *o = config;
    /* A sheet shows the first rows of each class: of what is drawn, a few thousand hold
     * them all. */
    lw_preparation p;
    lw_data_opts opts;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs = {0};
    LW_TRY(look_opts(cli, o, &p, &obs, &opts));
    if (lw_str_starts(o->spec, "synth") && o->num_images == 0)
        opts.count = LW_MIN((int64_t)o->lines * o->columns * 10, 10000);
    LW_TRY(lw_data_open(o->spec, &opts, &d));
    return sheet(cli, o, d);
}

const lw_command lw_cmd_data_sheet = {
    .name = "data sheet",
    .summary = "a contact sheet of a dataset",
    .usage = "SPEC --output x.png [options]",
    .examples = "leeway data sheet synth:16 --output sheet.png --zoom 3",
    .options = {sheet_options},
    .config_size = sizeof(look_cli),
    .run = run_sheet,
};

/* ---- data export ------------------------------------------------------------------------ */

static const lw_option export_options[] = {
    LOOK_OPTIONS,
    {LW_OPT(look_cli, output), .name = "output", .path = LW_PATH_OUT_ANY, .required = true,
     .endings = ".npy, a .npz or a folder", .unit = "file|dir", .group = "Export",
     .help = "x.npy (u8 [N,H,W,channels]), x.npz (arr_0, and labels as arr_1) or a folder of PNG "
             "by class"},
    {.name = NULL}};

static int run_export(const lw_cli *cli, const void *config)
{
    const look_cli *o = config;
    lw_preparation p;
    lw_data_opts opts;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    LW_CLEANUP(lw_cli_observer_close) lw_cli_observer obs = {0};
    LW_TRY(look_opts(cli, o, &p, &obs, &opts));
    LW_TRY(lw_data_open(o->spec, &opts, &d));
    LW_TRY(lw_data_export(d, o->output, &obs.calls));
    if (cli->global.json) {
        LW_CLEANUP(lw_json_drop)
        json_t *j = json_pack("{s:o, s:I, s:i, s:i, s:b}", "output", lw_json_name(o->output),
                              "pictures", (json_int_t)d->n, "height", (int)d->h, "width", (int)d->w,
                              "labelled", (int)d->labelled);
        json_object_set_new(j, "channels", json_integer(d->channels));
        lw_cli_print_json(j);
    } else {
        char channels[32];
        lw_cli_print("%s: %lld pictures of %dx%d%s\n", o->output, (long long)d->n, (int)d->w,
                     (int)d->h, of_channels(d, channels));
    }
    return 0;
}

const lw_command lw_cmd_data_export = {
    .name = "data export",
    .summary = "pictures of a dataset as an array or as files",
    .usage = "SPEC --output x.npy|x.npz|DIR [options]",
    .notes = "tensor:FILE and folder:DIR read them again.",
    .examples = "leeway data export cifar10:data --split held-out --output real.npz\n"
                "leeway data export folder:photos --num-images 100 --image-size 64 --output small",
    .options = {export_options},
    .config_size = sizeof(look_cli),
    .run = run_export,
};
