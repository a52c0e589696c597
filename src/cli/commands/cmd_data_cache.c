/* SPDX-License-Identifier: Apache-2.0 */
/* leeway data cache: what decoded pictures take on disk, and removing it. */
#include "base/base.h"
#include "cli/cli.h"
#include "data/data.h"
#include "formats/formats.h"

typedef struct cache_cli {
    double older_than;
} cache_cli;

#define DAY 86400.0

static const lw_option list_options[] = {{.name = NULL}};
static const lw_option clear_options[] = {
    {LW_OPT(cache_cli, older_than), .name = "older-than", .min = 0, .max = 1e6, .fallback = "0",
     .unit = "days", .group = "Cache", .help = "only what was written before that; 0: everything"},
    {.name = NULL}};

static int find_dir(char *buf, size_t size, lw_cached_list *l)
{
    if (!*lw_data_cache_dir(buf, size))
        return lw_fail(LW_EUSAGE,
                       "there is no cache: set LW_CACHE (or HOME) to a path of at most "
                       "%zu characters",
                       size - 1);
    return lw_data_cache_list(buf, l);
}

static json_t *row_json(const lw_cached *c)
{
    json_t *j = json_pack("{s:o, s:s, s:I, s:f}", "path", lw_json_name(c->path), "state",
                          lw_cached_state_name(c->state), "bytes", (json_int_t)c->bytes,
                          "age_seconds", c->age);
    if (*c->title) {
        json_object_set_new(j, "data", lw_json_name(c->title));
        json_object_set_new(j, "pictures", json_integer((json_int_t)c->rows));
    }
    if (c->height > 0) {
        if (c->height == c->width)
            json_object_set_new(j, "image_size", json_integer(c->height));
        json_object_set_new(j, "height", json_integer(c->height));
        json_object_set_new(j, "channels", json_integer(c->channels));
        json_object_set_new(j, "width", json_integer(c->width));
    }
    return j;
}

static void print_row(const lw_cached *c, const char *tail)
{
    char bytes[32], age[32];
    lw_cli_print("%10s  %10s  %-13s  %s\n", lw_fmt_bytes(bytes, c->bytes), lw_fmt_time(age, c->age),
                 lw_cached_state_name(c->state), c->path);
    if (*c->title && c->height == 0)
        lw_cli_print("%39s%s, of %lld pictures\n", "", c->title, (long long)c->rows);
    else if (*c->title)
        lw_cli_print("%39s%s, %lld of %dx%d\n", "", c->title, (long long)c->rows, c->width,
                     c->height);
    if (*tail)
        lw_cli_print("%39s%s\n", "", tail);
}

static int list(const lw_cli *cli, const char *dir, const lw_cached_list *l)
{
    char text[32];
    uint64_t bytes = 0;
    LW_CLEANUP(lw_json_drop) json_t *rows = json_array();
    LW_CLEANUP(lw_json_drop) json_t *all = NULL;
    for (size_t i = 0; i < l->n; i++) {
        bytes += l->at[i].bytes;
        if (cli->global.json)
            json_array_append_new(rows, row_json(&l->at[i]));
        else
            print_row(&l->at[i], "");
    }
    if (!cli->global.json) {
        lw_cli_print("%zu file%s, %s in %s\n", l->n, l->n == 1 ? "" : "s",
                     lw_fmt_bytes(text, bytes), dir);
        return 0;
    }
    all = json_pack("{s:o, s:O, s:I}", "directory", lw_json_name(dir), "files", rows, "bytes",
                    (json_int_t)bytes);
    lw_cli_print_json(all);
    return 0;
}

static int run_list(const lw_cli *cli, const void *config)
{
    char dir[4096];
    LW_CLEANUP(lw_data_cache_list_clear) lw_cached_list l = {0};
    (void)config;
    LW_TRY(find_dir(dir, sizeof dir, &l));
    return list(cli, dir, &l);
}

const lw_command lw_cmd_data_cache_list = {
    .name = "data cache list",
    .summary = "the decoded data and features that are kept on disk",
    .usage = "",
    .notes =
        "The folder is $LW_CACHE, else $XDG_CACHE_HOME/leeway, else ~/.cache/leeway. \"whole\" "
        "says that the header and labels hold together; `leeway data check` looks at every "
        "pixel.",
    .examples = "leeway data cache list",
    .options = {list_options},
    .config_size = sizeof(cache_cli),
    .run = run_list,
};

static int clear(const lw_cli *cli, const cache_cli *o, const char *dir, const lw_cached_list *l)
{
    char text[32];
    size_t n = 0;
    uint64_t bytes = 0;
    LW_CLEANUP(lw_json_drop) json_t *rows = json_array();
    LW_CLEANUP(lw_json_drop) json_t *all = NULL;
    for (size_t i = 0; i < l->n; i++) {
        const lw_cached *c = &l->at[i];
        if (c->age < o->older_than * DAY)
            continue;
        int rc = lw_data_cache_remove(c);
        LW_TRY(rc);
        n += rc == 0;
        bytes += rc == 0 ? c->bytes : 0;
        if (!cli->global.json)
            print_row(c, rc == 0 ? "removed" : "kept: a process is building it now");
        else if (rc == 0)
            json_array_append_new(rows, row_json(c));
    }
    if (!cli->global.json) {
        lw_cli_print("removed %zu file%s, %s, from %s\n", n, n == 1 ? "" : "s",
                     lw_fmt_bytes(text, bytes), dir);
        return 0;
    }
    all = json_pack("{s:o, s:O, s:I}", "directory", lw_json_name(dir), "removed", rows, "bytes",
                    (json_int_t)bytes);
    lw_cli_print_json(all);
    return 0;
}

static int run_clear(const lw_cli *cli, const void *config)
{
    char dir[4096];
    LW_CLEANUP(lw_data_cache_list_clear) lw_cached_list l = {0};
    LW_TRY(find_dir(dir, sizeof dir, &l));
    return clear(cli, config, dir, &l);
}

const lw_command lw_cmd_data_cache_clear = {
    .name = "data cache clear",
    .summary = "remove decoded data and features from disk; they are made again when needed",
    .usage = "[options]",
    .notes = "Removes what `leeway data cache list` shows and nothing else: files named and "
             "written as caches are, never links. Does not ask. Programs that use one keep it "
             "until they end.",
    .examples = "leeway data cache clear --older-than 30",
    .options = {clear_options},
    .config_size = sizeof(cache_cli),
    .run = run_clear,
};
