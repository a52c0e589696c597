/* SPDX-License-Identifier: Apache-2.0 */
/* What commands print and write down about themselves. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_command.h"
#include "session/session.h"
#include "formats/formats.h"

bool lw_cli_given(const lw_cli *cli, const char *option)
{
    return lw_opts_given(&cli->opts, option);
}

int lw_cli_config_yaml(const lw_cli *cli, lw_str *out)
{
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    LW_TRY(lw_opts_get_tree(&cli->opts, cli->command->name, &tree));
    return lw_yaml_dump(tree, out);
}

/* Single quotes around anything a shell might read in its own way. */
static void add_quoted(lw_str *out, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        lw_str_add(out, word);
        return;
    }
    lw_str_add(out, "'");
    for (; *word; word++)
        if (*word == '\'')
            lw_str_add(out, "'\\''");
        else
            lw_str_add_n(out, word, 1);
    lw_str_add(out, "'");
}

void lw_cli_command_line(const lw_cli *cli, lw_str *out)
{
    for (int i = 0; i < cli->argc; i++) {
        lw_str_add(out, i > 0 ? " " : "");
        add_quoted(out, cli->argv[i]);
    }
}

void lw_cli_print(const char *fmt, ...)
{
    LW_CLEANUP(lw_str_clear) lw_str raw = {0}, text = {0};
    va_list args;
    va_start(args, fmt);
    lw_str_addv(&raw, fmt, args);
    va_end(args);
    lw_str_add_clean(&text, lw_str_c(&raw), "\n");
    fputs(lw_str_c(&text), stdout); /* its error flag is looked at when the command has ended */
}

void lw_cli_print_result(json_t *tree)
{
    json_object_set_new(tree, "device", json_string(lw_cli_device_used()));
    lw_cli_print_json(tree);
}

void lw_cli_print_json(const json_t *tree)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    if (!tree) /* packed without memory, or with a name that is not UTF-8: "null" is no result */
        lw_json_lose();
    lw_json_dump(tree, 2, &text);
    if (!text.failed) /* else lw_json_lost() says so when the command has ended */
        puts(lw_str_c(&text));
}
