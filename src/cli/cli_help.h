/* SPDX-License-Identifier: Apache-2.0 */
/* Private to help: what option tables say, row by row, for whoever lays it out (terminal, manual page). */
#ifndef LW_CLI_HELP_H
#define LW_CLI_HELP_H

#include "cli/cli_command.h"

#define LW_HELP_SUMMARY \
    "trains and runs image generators, and policies that prove, on CPUs and GPUs"

typedef struct lw_help_form {
    void (*group)(lw_str *out, const char *title);
    /* "--no-flip", "", ..; "--steps", "N", ..; value "" where there is none. */
    void (*row)(lw_str *out, const char *name, const char *value, const char *help);
    void (*paragraph)(lw_str *out, const char *text);
} lw_help_form;

/* Groups in the order of their first rows; arguments first. */
void lw_help_tables(lw_str *out, const lw_option *const *tables, const lw_help_form *form);
/* What --resume takes, for commands that have it. */
void lw_help_resume(lw_str *out, const lw_option *const *tables, const lw_help_form *form);

/* Ended by a NULL name. */
typedef struct lw_help_line {
    const char *name, *text;
} lw_help_line;
extern const lw_help_line lw_help_exit_codes[], lw_help_environment[];

#endif
