/* SPDX-License-Identifier: Apache-2.0 */
/* What a command is and what it is given. */
#ifndef LW_CLI_COMMAND_H
#define LW_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli_options.h"

/* The global options, resolved. */
typedef struct lw_cli_globals {
    int32_t threads; /* at least 1 once a command runs */
    int32_t bind;    /* to cores or not */
    int32_t conv;    /* lw_conv_mode */
    int64_t seed;
    const char *device, *config, *tuned;
    bool json, quiet, verbose, progress, dry_run, version, help;
} lw_cli_globals;

typedef struct lw_cli lw_cli;

typedef struct lw_command {
    const char *name;                              /* "train drift": words as typed */
    const char *summary;                           /* one line */
    const char *usage;                             /* "SOURCE [options]": what follows the name */
    const char *notes;                             /* paragraphs after the options, or NULL */
    const char *examples;                          /* command lines, one a line, or NULL */
    const lw_option *options[LW_OPT_MAX_SETS - 1]; /* tables over the one config struct */
    bool dry_run;                                  /* has a --dry-run; else it is refused */
    const char *cpu_only; /* why it never computes on a GPU, or NULL: refused with --device cuda */
    const char *(*not_on_gpus)(const void *config); /* why --device auto is the CPU, or NULL; NULL:
                                                        nothing is known before plans are compiled */
    size_t config_size;                             /* bytes; zeroed, then defaults */
    int (*run)(const lw_cli *cli, const void *config); /* 0 or LW_E* */
} lw_command;

struct lw_cli {
    lw_cli_globals global;
    const lw_command *command;
    const void *config;
    lw_opts opts;
    int argc; /* as typed, for command.txt */
    char **argv;
};

extern const lw_command *const lw_commands[]; /* NULL-terminated, in the order of commands.def */
extern const lw_option lw_global_options[];
/* Adds the command's tables over its config struct, all at their defaults. */
int lw_command_tables(const lw_command *command, lw_opts *o, void *config);

/* The whole program: parses, runs, prints errors on stderr. Returns the process's exit code. */
int lw_cli_main(int argc, char **argv);

/* --device as it may be written; auto becomes the device that is taken, and is said on stderr where
 * that is known: LW_EUSAGE, LW_EDEVICE. Before anything is opened. */
int lw_cli_device_choose(lw_cli *cli);
/* Runs the command. Where auto took a GPU that turns out to lack something before it computed
 * anything, the command begins again on the CPU. */
int lw_cli_device_run(lw_cli *cli);
/* cpu_only of commands that train */
#define LW_CLI_TRAINS "gradients are not computed on GPUs yet, which training needs"

/* True when the user set this option by argv or --config. */
bool lw_cli_given(const lw_cli *cli, const char *option);
/* The resolved config as YAML (a valid --config), appended. */
int lw_cli_config_yaml(const lw_cli *cli, lw_str *out);
/* The command line as a shell would need it, appended. */
void lw_cli_command_line(const lw_cli *cli, lw_str *out);

/* printf to stdout; a failed write is reported once by lw_cli_main as LW_EIO. */
void lw_cli_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A JSON tree on stdout, indented, with a newline. */
void lw_cli_print_json(const json_t *tree);
/* The same of what a network computed: with "device", the one that did. */
void lw_cli_print_result(json_t *tree);
/* `cuda:0`, where this GPU has computed something; else `cpu`. */
const char *lw_cli_device_used(void);

/* Help texts, appended. */
void lw_help_program(lw_str *out);
void lw_help_prefix(lw_str *out, const char *prefix); /* all commands that begin with these words */
void lw_help_command(lw_str *out, const lw_command *command);
void lw_help_markdown(lw_str *out); /* of the program and every command: docs/cli.md */
/* Manual pages into a folder, which is made: leeway.1 and leeway-COMMAND.1 of every command. */
int lw_help_man(const char *dir);

#endif
