/* SPDX-License-Identifier: Apache-2.0 */
/* cli: every option of every command that names a file or directory says so in its table, is never
 * empty, and as an output is tried before the command does anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"

static char dir[64];

typedef void visit(const lw_command *c, const lw_option *row);

static void each_text(visit *see)
{
    for (const lw_command *const *c = lw_commands; *c; c++)
        for (size_t t = 0; t < LW_COUNT((*c)->options) && (*c)->options[t]; t++)
            for (const lw_option *row = (*c)->options[t]; row->name; row++)
                if ((row->type == LW_OPT_TEXT || row->type == LW_OPT_TEXTS) && !row->choices)
                    see(*c, row);
}

/* Texts that name nothing on disk. Whoever adds another puts it here, or says what it names. */
static bool is_word(const char *name)
{
    static const char *const words[] = {"classes",
                                        "corruption-modes",
                                        "feature-keys",
                                        "feature-selected-stages",
                                        "filter",
                                        "layer",
                                        "method",
                                        "n-corruptions",
                                        "noise-shape",
                                        "pass",
                                        "query",
                                        "only",
                                        "sites",
                                        "split",
                                        "teacher-keys",
                                        "title",
                                        "precision",
                                        "raw",
                                        "planted-network",
                                        "templates",
                                        "batch-size",
                                        "serve",
                                        "size",
                                        "output-size",
                                        "condition",
                                        "degrade",
                                        "distribution",
                                        "ablation"};
    for (size_t i = 0; i < LW_COUNT(words); i++)
        if (lw_str_eq(words[i], name))
            return true;
    return false;
}

static void check_declared(const lw_command *c, const lw_option *row)
{
    if (row->unit && lw_str_eq(row->unit, "sinks"))
        return; /* several, each a word or a path, opened before the first frame is read */
    if (row->unit && lw_str_eq(row->unit, "policies"))
        return; /* several, each a word or paths with + between them */
    bool output = lw_str_starts(row->name, "output") || lw_str_starts(row->name, "save") ||
                  (row->group && lw_str_eq(row->group, "Output") && row->type == LW_OPT_TEXT);
    if (!is_word(row->name) && row->path == LW_PATH_NONE)
        fail_msg("leeway %s: --%s has no .path: is it a file, a directory, or a word?", c->name,
                 row->name);
    if (output && !is_word(row->name) && row->path < LW_PATH_OUT)
        fail_msg("leeway %s: --%s is an output, its .path does not say so", c->name, row->name);
}

/* leeway COMMAND with all that it requires and this option at `value`. */
static int call(const lw_command *c, const lw_option *asked, const char *value)
{
    enum { MOST = 32, ROOM = 256 };
    static char word[MOST][ROOM];
    char *argv[MOST];
    int n = 0;
    snprintf(word[n++], ROOM, "leeway");
    for (const char *p = c->name; *p; p += strcspn(p, " "), p += *p == ' ')
        snprintf(word[n++], ROOM, "%.*s", (int)strcspn(p, " "), p);
    for (size_t t = 0; t < LW_COUNT(c->options) && c->options[t]; t++)
        for (const lw_option *row = c->options[t]; row->name && n < MOST; row++) {
            const char *text = row == asked ? value : row->choices ? row->choices : dir;
            if (row != asked && !row->required)
                continue;
            if (row != asked && row->path == LW_PATH_OUT)
                text = "/dev/null";
            int length = (int)strcspn(text, row->choices ? "|" : "");
            snprintf(word[n++], ROOM, "%s%s%s%.*s", row->positional ? "" : "--",
                     row->positional ? "" : row->name, row->positional ? "" : "=", length, text);
        }
    for (int i = 0; i < n; i++)
        argv[i] = word[i];
    return lw_cli_main(n, argv);
}

static void check_empty(const lw_command *c, const lw_option *row)
{
    char message[128];
    if (row->path == LW_PATH_NONE)
        return;
    snprintf(message, sizeof message, "%s%s: is empty", row->positional ? "" : "--", row->name);
    assert_int_equal(call(c, row, ""), 2);
    assert_string_equal(lw_errmsg(), message);
}

/* Below a file there is nothing, and neither a directory can be a file nor the other way round. */
static void check_unusable(const lw_command *c, const lw_option *row)
{
    char file[96], below[96], name[64];
    if (row->path < LW_PATH_OUT)
        return;
    snprintf(file, sizeof file, "%s/file", dir);
    snprintf(below, sizeof below, "%s/file/below", dir);
    snprintf(name, sizeof name, "--%s ", row->name);
    assert_int_equal(call(c, row, below), 4);
    assert_true(lw_str_starts(lw_errmsg(), name));
    assert_non_null(strstr(lw_errmsg(), "Not a directory"));
    if (row->path == LW_PATH_OUT_ANY)
        return;
    assert_int_equal(call(c, row, row->path == LW_PATH_OUT ? dir : file), 4);
    assert_true(lw_str_starts(lw_errmsg(), name));
}

static void every_path_is_declared(void **state)
{
    (void)state;
    each_text(check_declared);
}

static void no_path_is_empty(void **state)
{
    (void)state;
    each_text(check_empty);
}

static void outputs_are_tried_first(void **state)
{
    (void)state;
    each_text(check_unusable);
}

static void probing_changes_nothing(void **state)
{
    (void)state;
    char path[128];
    char **names = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/file", dir);
    assert_int_equal(lw_output_check("--x", path, LW_OUT_FILE), 0);
    assert_int_equal(lw_output_check("--x", path, LW_OUT_DIR), LW_EIO);
    snprintf(path, sizeof path, "%s/new", dir);
    assert_int_equal(lw_output_check("--x", path, LW_OUT_FILE), 0);
    assert_int_equal(lw_output_check("--x", dir, LW_OUT_FILE), LW_EIO);
    assert_int_equal(lw_output_check("--x", dir, LW_OUT_DIR), 0);
    snprintf(path, sizeof path, "%s/new/deep", dir);
    assert_int_equal(lw_output_check("--x", path, LW_OUT_FILE), LW_EIO);
    assert_int_equal(lw_output_check("--x", path, LW_OUT_DIR), 0);
    assert_int_equal(lw_output_check("--x", path, LW_OUT_EITHER), 0);
    assert_int_equal(lw_output_check("--x", "/dev/null", LW_OUT_FILE), 0);
    assert_int_equal(lw_output_check("--x", "/dev/null", LW_OUT_DIR), LW_EIO);
    assert_int_equal(lw_output_check("--x", dir, LW_OUT_NEW_DIR), LW_EUSAGE);
    assert_int_equal(lw_output_check("--x", path, LW_OUT_NEW_DIR), 0);
    assert_int_equal(lw_output_check("--x", "/dev/null", LW_OUT_NEW_DIR), LW_EIO);
    assert_int_equal(lw_output_check("--x", "/proc/none", LW_OUT_FILE), LW_EIO);
    assert_true(lw_str_starts(lw_errmsg(), "--x /proc/none: cannot create: "));
    assert_int_equal(lw_list_dir(dir, &names, &n), 0);
    assert_int_equal(n, 1);
    lw_list_free(&names, n);
    if (geteuid() == 0) /* may write anywhere */
        return;
    assert_int_equal(chmod(dir, 0500), 0);
    assert_int_equal(lw_output_check("--x", path, LW_OUT_DIR), LW_EIO);
    assert_int_equal(chmod(dir, 0700), 0);
}

static int enter(void **state)
{
    char path[96];
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/leeway_paths_XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/file", dir);
    return lw_file_write(path, "", 0);
}

static int leave(void **state)
{
    (void)state;
    return lw_remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_is_declared),
        cmocka_unit_test(no_path_is_empty),
        cmocka_unit_test(outputs_are_tried_first),
        cmocka_unit_test(probing_changes_nothing),
    };
    return cmocka_run_group_tests_name("cli paths", tests, enter, leave);
}
