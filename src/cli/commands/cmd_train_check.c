/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a training that goes on, against those its run was made with. */
#include <string.h>

#include "cli/commands/cmd_train.h"

static void add_value(const json_t *v, lw_str *out)
{
    if (!v || json_is_null(v))
        lw_str_add(out, "none");
    else
        lw_json_typed(v, out);
}

/* Compares one row of both tables; appends "--lr 0.001 (was 0.002)" to the list it belongs to. */
static void compare_row(const lw_opt_set *now, const lw_opt_set *then, const lw_option *row,
                        lw_str *fixed, lw_str *schedule)
{
    if (row->transient || row->resume == LW_RESUME_FREE || row->resume == LW_RESUME_GOAL)
        return;
    LW_CLEANUP(lw_json_drop) json_t *a = lw_opt_get_json((lw_opt_ref){now, row});
    LW_CLEANUP(lw_json_drop) json_t *b = lw_opt_get_json((lw_opt_ref){then, row});
    if ((!a && !b) || (a && b && json_equal(a, b)))
        return;
    lw_str *to = row->resume == LW_RESUME_SCHEDULE ? schedule : fixed;
    lw_str_addf(to, "%s%s%s ", to->len ? "; " : "", row->positional ? "" : "--", row->name);
    add_value(a, to);
    lw_str_add(to, " (was ");
    add_value(b, to);
    lw_str_add(to, ")");
}

/* The command's options and the globals as they are when nobody names them. */
static int add_defaults(const lw_cli *cli, lw_opts *o)
{
    *o = (lw_opts){.arena = cli->opts.arena};
    for (int s = 0; s + 1 < cli->opts.n; s++) { /* the last table is that of the globals */
        void *base = s ? o->set[0].base : lw_arena_alloc(o->arena, cli->command->config_size);
        LW_TRY(base ? lw_opts_add(o, cli->opts.set[s].rows, base) : LW_ENOMEM);
    }
    void *globals = lw_arena_alloc(o->arena, sizeof(lw_cli_globals));
    return globals ? lw_opts_add(o, lw_global_options, globals) : LW_ENOMEM;
}

/* A file that was cut is YAML still, whose options would be the defaults: every run writes its seed near the end. */
static int set_options(lw_opts *o, const char *path, const char *command, const json_t *tree)
{
    LW_TRY(lw_opts_set_tree(o, path, command, tree));
    return json_object_get(tree, "seed") ? 0 : lw_fail(LW_EFORMAT, "%s: ends before 'seed'", path);
}

static int fail_damaged(void)
{
    LW_CLEANUP(lw_str_clear) lw_str why = {0};
    lw_str_add(&why, lw_errmsg());
    return lw_fail(LW_EFORMAT,
                   "%s: not as the run wrote it: put a copy back, or remove the file and name all "
                   "options of the run",
                   lw_str_c(&why));
}

/* The options of a run's config file over those. */
static int read_options(const lw_cli *cli, const char *path, lw_opts *o)
{
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    LW_TRY(add_defaults(cli, o));
    int rc = lw_yaml_load(path, &tree);
    const char *of = json_string_value(json_object_get(tree, "command"));
    rc = rc < 0 ? rc : set_options(o, path, cli->command->name, tree);
    const bool foreign = of && !lw_str_eq(of, cli->command->name);
    return !foreign && (rc == LW_EFORMAT || rc == LW_EUSAGE) ? fail_damaged() : rc;
}

int lw_cmd_train_unused(const lw_cli *cli, const char *group, const char *but, const char *why)
{
    lw_opts usual;
    LW_TRY(add_defaults(cli, &usual));
    for (int s = 0; s < usual.n; s++)
        for (const lw_option *row = usual.set[s].rows; row->name; row++) {
            if (!row->group || !lw_str_eq(row->group, group) || lw_str_eq(row->name, but))
                continue;
            LW_CLEANUP(lw_json_drop)
            json_t *a = lw_opt_get_json((lw_opt_ref){&cli->opts.set[s], row});
            LW_CLEANUP(lw_json_drop) json_t *b = lw_opt_get_json((lw_opt_ref){&usual.set[s], row});
            if ((a || b) && !(a && b && json_equal(a, b)))
                return lw_fail(LW_EUSAGE, "--%s: %s", row->name, why);
        }
    return 0;
}

int lw_cmd_train_check(const lw_cli *cli, const lw_train_config *t, lw_str *changes)
{
    LW_CLEANUP(lw_str_clear) lw_str run = {0}, path = {0}, fixed = {0};
    lw_opts then;
    LW_TRY(lw_train_origin(t, &run));
    if (!run.len || !lw_path_exists(lw_path_join(&path, lw_str_c(&run), "config.yaml")))
        return 0;
    LW_TRY(read_options(cli, lw_str_c(&path), &then));
    for (int s = 0; s < then.n; s++)
        for (const lw_option *row = then.set[s].rows; row->name; row++)
            compare_row(&cli->opts.set[s], &then.set[s], row, &fixed, changes);
    if (fixed.len)
        return lw_fail(LW_EUSAGE,
                       "%s: what makes the steps done cannot change: %s; go on with --config %s, "
                       "or begin a new run",
                       lw_str_c(&run), lw_str_c(&fixed), lw_str_c(&path));
    if (changes->len && !t->reschedule)
        return lw_fail(LW_EUSAGE, "%s: %s: to go on with another schedule say --reschedule",
                       lw_str_c(&run), lw_str_c(changes));
    return changes->failed || fixed.failed ? LW_ENOMEM : 0;
}
