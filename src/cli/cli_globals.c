/* SPDX-License-Identifier: Apache-2.0 */
/* The options every command has, and the list of commands. */
#include "cli/cli_command.h"

const lw_option lw_global_options[] = {
    {LW_OPT(lw_cli_globals, threads), .name = "threads", .resume = LW_RESUME_FREE, .min = 1,
     .max = 4096, .group = "Global options",
     .help = "threads to compute with (default: all CPUs this process may use)"},
    {LW_OPT(lw_cli_globals, bind), .name = "bind", .resume = LW_RESUME_FREE, .fallback = "none",
     .choices = "none|cores", .group = "Global options",
     .help = "cores: each thread but the first has a core of its own, the first and whatever reads "
             "or writes beside it have the others; --threads is then at most the cores that "
             "this process may use, which is its default (none: the system places them)"},
    {LW_OPT(lw_cli_globals, conv), .name = "conv", .fallback = "auto",
     .choices = "auto|direct|winograd", .group = "Global options",
     .help =
         "convolutions of 3x3, 1x3 and 1x7: with Winograd's tiles where measured faster (auto), "
         "never, or wherever they apply; results differ by rounding"},
    {LW_OPT(lw_cli_globals, tuned), .name = "tuned", .path = LW_PATH_IN, .unit = "json",
     .group = "Global options",
     .help =
         "compute 3x3 convolutions as `leeway bench --tune` measured them on this machine; results "
         "differ by rounding (default: by the rules that come with the program, the same for "
         "all processors of a level)"},
    {LW_OPT(lw_cli_globals, seed), .name = "seed", .fallback = "0", .group = "Global options",
     .help = "seed of every random number"},
    {LW_OPT(lw_cli_globals, device), .name = "device", .resume = LW_RESUME_FREE, .fallback = "cpu",
     .group = "Global options",
     .help = "cpu; cuda[:N]: an NVIDIA GPU, for running networks in f32 and bf16 (no "
             "training yet); auto: cuda:0 where it is there and computes all that the command "
             "needs, else the CPU, and stderr says which and why; mps is refused"},
    {LW_OPT(lw_cli_globals, config), .name = "config", .path = LW_PATH_IN,
     .group = "Global options", .transient = true,
     .help = "YAML file with option names as keys, or FILE#SECTION of a recipe (docs/recipes); "
             "argv wins over it"},
    {LW_OPT(lw_cli_globals, json), .name = "json", .group = "Global options", .transient = true,
     .help = "print the result as JSON"},
    {LW_OPT(lw_cli_globals, quiet), .name = "quiet", .group = "Global options", .transient = true,
     .help = "only errors on stderr"},
    {LW_OPT(lw_cli_globals, verbose), .name = "verbose", .group = "Global options",
     .transient = true, .help = "more log on stderr"},
    {LW_OPT(lw_cli_globals, progress), .name = "progress", .fallback = "true",
     .group = "Global options", .transient = true, .help = "show progress on stderr"},
    {LW_OPT(lw_cli_globals, dry_run), .name = "dry-run", .group = "Global options",
     .transient = true,
     .help =
         "say what would be done and do nothing, but decode pictures into the cache; only where "
         "that is long work"},
    {LW_OPT(lw_cli_globals, version), .name = "version", .group = "Global options",
     .transient = true, .help = "print the version"},
    {LW_OPT(lw_cli_globals, help), .name = "help", .group = "Global options", .transient = true,
     .help = "print this text"},
    {.name = NULL}};

#define C(name) extern const lw_command lw_cmd_##name;
#include "cli/commands/commands.def"
#undef C

const lw_command *const lw_commands[] = {
#define C(name) &lw_cmd_##name,
#include "cli/commands/commands.def"
#undef C
    NULL};

int lw_command_tables(const lw_command *command, lw_opts *o, void *config)
{
    for (size_t i = 0; i < LW_COUNT(command->options) && command->options[i]; i++)
        LW_TRY(lw_opts_add(o, command->options[i], config));
    return 0;
}
