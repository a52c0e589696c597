/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: argv -> one frozen config struct -> a command that calls a job and prints what comes
 * back. The only folder that writes to stdout; main.c is the only file that ends the process.
 *
 *   commands.def     the list of commands, one row each
 *   cmd_<name>.c     one command: its option table and its run function
 *   cli_options      option rows: find, set from text, read back
 *   cli_parse        argv over the tables; cli_config: YAML over the same tables
 *   cli_help         usage, groups, defaults
 *   cli_progress     bar on a terminal, lines elsewhere; cli_signal: SIGINT as a question
 *   cli_device       --device, and what auto takes
 *   cli_main         all of it in order, errors to exit codes
 *
 * An option is one static row. Its field in the config struct gives its type (bool, int32_t,
 * int64_t, float, double, const char *, an enum with `choices`, or an array of numbers or strings
 * with a count):
 *
 *   static const lw_option options[] = {
 *       {LW_OPT(my_config, steps), .name = "steps", .fallback = "1000", .min = 1, .max = 1e9,
 *        .unit = "steps", .group = "Training", .help = "optimizer steps"},
 *       {LW_OPT_LIST(my_config, temps, n_temps), .name = "feature-temperatures",
 *        .aliases = "temps", .fallback = "0.02,0.05,0.2", .help = "temperatures of the kernel"},
 *       {LW_OPT(my_config, source), .name = "source", .path = LW_PATH_IN,
 *        .positional = true, .required = true,
 *        .help = "run directory or model folder"},
 *       {.name = NULL}};
 *   const lw_command lw_cmd_mine = {.name = "mine", .options = {options}, .config_size =
 *       sizeof(my_config), .run = run, ...};
 *
 * Values come from `fallback`, then --config FILE, then argv; each passes the same parser and range
 * check. A row without `fallback` starts at zero / NULL / empty, and is written to config.yaml only
 * when given.
 */
#ifndef LW_CLI_H
#define LW_CLI_H

#include "cli/cli_command.h"
#include "cli/cli_observer.h"
#include "cli/cli_options.h"
#include "cli/cli_progress.h"
#include "cli/cli_signal.h"

#endif
