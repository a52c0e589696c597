/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: a command's options. The first line names the command; then come words of a command
 * line, one a line, and behind a line "====" a config file. What is accepted is written as a config
 * file, and that reads back as the same.
 */
#include "fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "formats/formats.h"

enum { MAX_WORDS = 32 };

/* A command's tables over a fresh struct. */
typedef struct filled {
    lw_arena *arena;
    lw_opts opts;
    lw_cli_globals global;
} filled;

static void lay(const lw_command *c, filled *f)
{
    *f = (filled){0};
    if (lw_arena_new(&f->arena) < 0)
        abort();
    f->opts.arena = f->arena;
    void *config = lw_arena_alloc(f->arena, LW_MAX(c->config_size, (size_t)1));
    for (size_t i = 0; i < LW_COUNT(c->options) && c->options[i]; i++)
        if (!config || lw_opts_add(&f->opts, c->options[i], config) < 0)
            abort();
    if (lw_opts_add(&f->opts, lw_global_options, &f->global) < 0)
        abort();
}

/* Numbers that an option's range cannot have meant. */
static void check_finite(const json_t *v)
{
    if (json_is_null(v) || (json_is_real(v) && !isfinite(json_real_value(v))))
        abort();
    for (size_t i = 0; i < json_array_size(v); i++)
        check_finite(json_array_get(v, i));
}

static void check_written(const lw_command *c, const filled *f)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL, *back = NULL, *again = NULL;
    const char *key;
    json_t *v;
    filled g;
    if (lw_opts_get_tree(&f->opts, c->name, &tree) < 0)
        return; /* texts that are not UTF-8 */
    json_object_foreach(tree, key, v) check_finite(v);
    lay(c, &g);
    if (lw_yaml_dump(tree, &text) < 0 ||
        lw_yaml_parse("written", lw_str_c(&text), text.len, &back) < 0 ||
        lw_opts_set_tree(&g.opts, "written", c->name, back) < 0)
        abort();
    if (lw_opts_get_tree(&g.opts, c->name, &again) < 0 || !json_equal(tree, again))
        abort();
    lw_arena_free(&g.arena);
}

static int fill(const lw_command *c, const filled *f, char *words, const char *yaml, size_t n)
{
    char *argv[MAX_WORDS];
    int argc = 0;
    for (char *w = words, *next; w && argc < MAX_WORDS; w = next) {
        next = strchr(w, '\n');
        if (next)
            *next++ = '\0';
        if (next || *w) /* the last line ends with the text */
            argv[argc++] = w;
    }
    if (yaml) {
        LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
        LW_TRY(lw_yaml_parse("config", yaml, n, &tree));
        LW_TRY(lw_opts_set_tree(&f->opts, "config", c->name, tree));
    }
    int rc = lw_opts_parse(&f->opts, argc, argv, 0, true);
    return rc < 0 ? rc : lw_opts_check_required(&f->opts);
}

/* The command that the first line names, and where that line ends; NULL: none. */
static const lw_command *command_of(const char *text, size_t n, const char **rest)
{
    const char *line = memchr(text, '\n', n);
    for (const lw_command *const *c = lw_commands; line && *c; c++)
        if (strlen((*c)->name) == (size_t)(line - text) &&
            memcmp((*c)->name, text, (size_t)(line - text)) == 0) {
            *rest = line + 1;
            return *c;
        }
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char mark[] = "====\n";
    const char *text = NULL, *end = (const char *)data + size;
    const lw_command *c = command_of((const char *)data, size, &text);
    if (!c)
        return 0;
    const char *cut = memmem(text, (size_t)(end - text), mark, sizeof mark - 1);
    char *words = strndup(text, (size_t)((cut ? cut : end) - text));
    const char *yaml = cut ? cut + sizeof mark - 1 : NULL;
    filled f;
    if (!words)
        abort();
    lay(c, &f);
    if (fill(c, &f, words, yaml, yaml ? (size_t)(end - yaml) : 0) == 0)
        check_written(c, &f);
    lw_arena_free(&f.arena);
    free(words);
    lw_errclear();
    return 0;
}
