/* SPDX-License-Identifier: Apache-2.0 */
/* A config file over option tables, and the tables as a config file. */
#include <stdio.h>
#include <string.h>

#include "cli/cli_options.h"
#include "formats/formats.h"

enum { MOST_BASES = 8 };

static int fail_section(const char *path, const json_t *recipe, const char *section)
{
    LW_CLEANUP(lw_str_clear) lw_str names = {0};
    json_t *map = (json_t *)(uintptr_t)recipe; /* jansson iterates over trees that could change */
    for (void *it = json_object_iter(map); it; it = json_object_iter_next(map, it))
        if (json_is_object(json_object_iter_value(it)))
            lw_str_addf(&names, "%s%s", names.len ? ", " : "", json_object_iter_key(it));
    return lw_fail(LW_EUSAGE, names.len ? "%s: has no section %s, but %s" : "%s: has no section %s",
                   path, section, lw_str_c(&names));
}

/* A section and all that it stands on. */
typedef struct gathering {
    const char *section; /* asked for */
    json_t *all;         /* options so far: the first section that has one decides */
    int bases;
} gathering;

static int add_section(gathering *g, const char *path, const json_t *recipe, const char *section);

/* What a section stands on: NAME of the same recipe, or FILE#NAME of one that lies beside it. */
static int add_base(gathering *g, const char *path, const json_t *recipe, const char *section,
                    const json_t *base)
{
    const char *name = json_string_value(base), *hash = name ? strrchr(name, '#') : NULL,
               *slash = strrchr(path, '/');
    LW_CLEANUP(lw_json_drop) json_t *beside = NULL;
    LW_CLEANUP(lw_str_clear) lw_str file = {0};
    if (!name)
        return lw_fail(LW_EUSAGE, "%s: %s: base must name a section, or a list of them", path,
                       section);
    if (g->bases++ == MOST_BASES)
        return lw_fail(LW_EUSAGE, "%s: %s: stands on more than %d sections", path, g->section,
                       MOST_BASES);
    if (!hash)
        return add_section(g, path, recipe, name);
    lw_str_addf(&file, "%.*s%.*s", slash ? (int)(slash + 1 - path) : 0, path, (int)(hash - name),
                name);
    LW_TRY(lw_yaml_load(lw_str_c(&file), &beside));
    return add_section(g, lw_str_c(&file), beside, hash + 1);
}

static int add_section(gathering *g, const char *path, const json_t *recipe, const char *section)
{
    json_t *one = json_object_get(recipe, section);
    const json_t *base = json_object_get(one, "base");
    if (!json_is_object(one))
        return fail_section(path, recipe, section);
    if (json_object_update_missing(g->all, one) < 0)
        return lw_fail(LW_ENOMEM, "no memory for %s", path);
    if (base && !json_is_array(base))
        return add_base(g, path, recipe, section, base);
    for (size_t i = 0; i < json_array_size(base); i++)
        LW_TRY(add_base(g, path, recipe, section, json_array_get(base, i)));
    return 0;
}

int lw_opts_section(const char *path, const json_t *recipe, const char *section, json_t **out)
{
    LW_CLEANUP(lw_json_drop) json_t *all = json_object();
    LW_TRY(add_section(&(gathering){section, all, 0}, path, recipe, section));
    json_object_del(all, "base");
    *out = lw_steal(&all);
    return 0;
}

int lw_opts_load(const char *name, json_t **out)
{
    const char *hash = strrchr(name, '#');
    LW_CLEANUP(lw_json_drop) json_t *recipe = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    if (!hash || lw_path_exists(name))
        return lw_yaml_load(name, out);
    lw_str_addf(&path, "%.*s", (int)(hash - name), name);
    LW_TRY(lw_yaml_load(lw_str_c(&path), &recipe));
    return lw_opts_section(lw_str_c(&path), recipe, hash + 1, out);
}

/* A scalar as the text a user would have typed. */
static int scalar_text(const char *what, const json_t *v, lw_str *out)
{
    if (json_is_string(v))
        lw_str_add(out, json_string_value(v));
    else if (json_is_boolean(v))
        lw_str_add(out, json_is_true(v) ? "true" : "false");
    else if (json_is_integer(v))
        lw_str_addf(out, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        lw_str_addf(out, "%.17g", json_real_value(v));
    else
        return lw_fail(LW_EUSAGE, "%s: must be a plain value or a list of them", what);
    return out->failed ? LW_ENOMEM : 0;
}

static int value_text(const char *what, const json_t *v, lw_str *out)
{
    if (!json_is_array(v))
        return scalar_text(what, v, out);
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (i > 0)
            lw_str_add(out, ",");
        LW_TRY(scalar_text(what, json_array_get(v, i), out));
    }
    return 0;
}

static int set_key(const lw_opts *o, const char *path, const char *key, const json_t *value)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    char what[256];
    snprintf(what, sizeof what, "%.160s: %.80s", path, key);
    lw_opt_ref ref = lw_opts_find(o, key, strlen(key));
    if (!ref.row && json_is_object(value))
        return lw_fail(LW_EUSAGE, "%s: is a section with options of its own: take %s#%s", what,
                       path, key);
    if (!ref.row) {
        const char *near = lw_opts_nearest(o, key);
        lw_opts_familiar(o, key, &text);
        if (text.len)
            return lw_fail(LW_EUSAGE, "%s: unknown key: %s", what, lw_str_c(&text));
        return lw_fail(LW_EUSAGE, *near ? "%s: unknown key: did you mean %s?" : "%s: unknown key%s",
                       what, near);
    }
    if (json_is_null(value))
        return 0;
    bool is_list = ref.row->type >= LW_OPT_I32S;
    if (json_is_array(value) && !is_list)
        return lw_fail(LW_EUSAGE, "%s: must be one value, not a list", what);
    LW_TRY(value_text(what, value, &text));
    return lw_opt_set_text(o, ref, what, lw_str_c(&text));
}

int lw_opts_set_tree(const lw_opts *o, const char *path, const char *command, const json_t *tree)
{
    if (!json_is_object(tree))
        return lw_fail(LW_EUSAGE, "%s: must be a map of option names to values", path);
    const json_t *of = json_object_get(tree, "command");
    if (of && !(json_is_string(of) && lw_str_eq(json_string_value(of), command)))
        return lw_fail(LW_EUSAGE, "%s: is a config of `leeway %s`, not of `leeway %s`", path,
                       json_is_string(of) ? json_string_value(of) : "?", command);
    /* jansson's foreach macros take a non-const tree; nothing here changes it */
    json_t *map = (json_t *)(uintptr_t)tree;
    for (void *it = json_object_iter(map); it; it = json_object_iter_next(map, it)) {
        const char *key = json_object_iter_key(it);
        if (!lw_str_eq(key, "command"))
            LW_TRY(set_key(o, path, key, json_object_iter_value(it)));
    }
    return 0;
}

/* JSON is UTF-8; file names need not be. */
static bool is_text_lost(const json_t *value, lw_opt_ref ref)
{
    if (!value)
        return ref.row->type == LW_OPT_TEXT && ref.set->given[ref.row - ref.set->rows];
    if (ref.row->type != LW_OPT_TEXTS)
        return false;
    const char *count = (const char *)ref.set->base + ref.row->count;
    return json_array_size(value) != (size_t) * (const int32_t *)(const void *)count;
}

int lw_opts_get_tree(const lw_opts *o, const char *command, json_t **out)
{
    LW_CLEANUP(lw_json_drop) json_t *tree = json_object();
    json_object_set_new(tree, "command", json_string(command));
    for (int s = 0; s < o->n; s++) {
        for (const lw_option *row = o->set[s].rows; row->name; row++) {
            bool given = o->set[s].given[row - o->set[s].rows];
            if (row->transient || (!given && !row->fallback))
                continue;
            json_t *value = lw_opt_get_json((lw_opt_ref){&o->set[s], row});
            if (is_text_lost(value, (lw_opt_ref){&o->set[s], row})) {
                json_decref(value);
                return lw_fail(LW_EUSAGE, "%s: is not UTF-8 and cannot be written to a config file",
                               row->name);
            }
            if (value)
                json_object_set_new(tree, row->name, value);
        }
    }
    if (!tree)
        return lw_fail(LW_ENOMEM, "no memory for the configuration");
    *out = lw_steal(&tree);
    return 0;
}
