/* SPDX-License-Identifier: Apache-2.0 */
/* The program from argv to exit code. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "session/session.h"
#include "cli/cli_signal.h"
#include "formats/formats.h"

/* Number of argv words that spell the command's name, 0 if they do not. */
static int words_matched(const char *name, int argc, char **argv, int from)
{
    int words = 0;
    size_t n;
    for (const char *word; (word = lw_str_word(&name, ' ', &n)); words++)
        if (from + words >= argc || strlen(argv[from + words]) != n ||
            memcmp(argv[from + words], word, n) != 0)
            return 0;
    return words;
}

static const lw_command *find_command(int argc, char **argv, int from, int *words)
{
    const lw_command *best = NULL;
    *words = 0;
    for (const lw_command *const *c = lw_commands; *c; c++) {
        int n = words_matched((*c)->name, argc, argv, from);
        if (n > *words) {
            *words = n;
            best = *c;
        }
    }
    return best;
}

/* `leeway x` may be a program leeway-x beside this one. Returns only if there is none. */
static void try_program_beside(char **argv)
{
    char path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n <= 0 || strchr(argv[0], '/'))
        return;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    snprintf(slash + 1, sizeof path - (size_t)(slash + 1 - path), "leeway-%.50s", argv[0]);
    lw_signal_writes(false);
    execv(path, argv);
    lw_signal_writes(true);
}

/* `next` (or NULL) stands behind a word that is none by itself. */
static int fail_command(const char *word, const char *next)
{
    LW_CLEANUP(lw_str_clear) lw_str group = {0}, text = {0};
    const char *near = "";
    int least = 3;
    lw_str_addf(&group, "%s ", word);
    for (const lw_command *const *c = lw_commands; *c; c++) {
        const char *rest = (*c)->name + group.len;
        if (!lw_str_starts((*c)->name, lw_str_c(&group)))
            continue;
        lw_str_addf(&text, "%s%s", text.len ? ", " : "", rest);
        int d = next ? lw_str_distance(next, rest) : least;
        if (d < least) {
            least = d;
            near = rest;
        }
    }
    if (*near)
        return lw_fail(LW_EUSAGE, "unknown command '%s %s': did you mean '%s %s'?", word, next,
                       word, near);
    if (text.len > 0)
        return lw_fail(LW_EUSAGE, "'%s' needs one of %s behind it: see leeway %s --help", word,
                       lw_str_c(&text), word);
    int behind = INT_MAX; /* of commands as near, by what stands behind the word */
    for (const lw_command *const *c = lw_commands; *c; c++) {
        const size_t n = strcspn((*c)->name, " ");
        char first[64];
        snprintf(first, sizeof first, "%.*s", (int)n, (*c)->name);
        int d = LW_MIN(lw_str_distance(word, first), lw_str_distance(word, (*c)->name));
        int rest = lw_str_distance(next ? next : "", (*c)->name + n + ((*c)->name[n] == ' '));
        if (d < least || (*near && d == least && rest < behind)) {
            least = d;
            behind = rest;
            near = (*c)->name;
        }
    }
    return lw_fail(LW_EUSAGE,
                   *near ? "unknown command '%s': did you mean '%s'?"
                         : "unknown command '%s': see leeway --help%s",
                   word, near);
}

/* Tables of the command and the globals over fresh structs, all at their defaults. */
static int lay_tables(lw_cli *cli, lw_arena *arena)
{
    cli->opts = (lw_opts){.arena = arena};
    memset(&cli->global, 0, sizeof cli->global);
    if (cli->command) {
        void *config = lw_arena_alloc(arena, LW_MAX(cli->command->config_size, (size_t)1));
        if (!config)
            return LW_ENOMEM;
        cli->config = config;
        LW_TRY(lw_command_tables(cli->command, &cli->opts, config));
    }
    return lw_opts_add(&cli->opts, lw_global_options, &cli->global);
}

/* Global options, then the command's words, then the rest. */
static int parse_argv(lw_cli *cli, int words)
{
    int at = lw_opts_parse(&cli->opts, cli->argc, cli->argv, 1, false);
    LW_TRY(at);
    return lw_opts_parse(&cli->opts, cli->argc, cli->argv, at + words, true);
}

/* Defaults, then the config file, then argv: argv is read twice because it names the file. */
static int resolve(lw_cli *cli, lw_arena *arena, int words)
{
    LW_TRY(lay_tables(cli, arena));
    LW_TRY(parse_argv(cli, words));
    lw_opts typed = cli->opts;
    if (cli->global.config) {
        LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
        const char *path = cli->global.config;
        LW_TRY(lw_opts_load(path, &tree));
        LW_TRY(lay_tables(cli, arena));
        LW_TRY(lw_opts_set_tree(&cli->opts, path, cli->command->name, tree));
        LW_TRY(parse_argv(cli, words));
    }
    return lw_opts_choose_one(&cli->opts, &typed);
}

static int print_text(lw_str *text)
{
    fputs(lw_str_c(text), stdout);
    return text->failed ? LW_ENOMEM : 0;
}

static int print_version(void)
{
    printf("leeway %s (%s)\n", lw_build_version(), lw_build_commit());
    return 0;
}

/* Before anything is opened: a command that finds out late has read its data in vain. */
static int place_threads(lw_cli_globals *g)
{
    enum { NONE, CORES };
    int cores = lw_whole_core_count();
    if (g->bind == CORES && g->threads > cores)
        return lw_fail(
            LW_EUSAGE,
            "--bind cores: %d threads, but this process may use %d core%s: use --threads "
            "%d, or --bind none",
            (int)g->threads, cores, cores == 1 ? "" : "s", cores);
    if (g->threads == 0)
        g->threads = g->bind == CORES ? cores : lw_core_count();
    lw_backend_bind(g->bind == CORES);
    return 0;
}

/* A run keeps the path of the table, and may be resumed from another folder. */
static int choose_convolutions(lw_cli_globals *g, lw_arena *arena)
{
    if (!g->tuned)
        return 0;
    if (g->conv != LW_CONV_MODE_AUTO)
        return lw_fail(LW_EUSAGE,
                       "--conv %s computes all 3x3 convolutions one way, --tuned each as measured: "
                       "give one of them",
                       g->conv == LW_CONV_MODE_DIRECT ? "direct" : "winograd");
    LW_TRY(lw_session_tune(g->tuned));
    char *whole = realpath(g->tuned, NULL);
    g->tuned = whole ? lw_arena_strdup(arena, whole) : g->tuned;
    free(whole);
    return g->tuned ? 0 : LW_ENOMEM;
}

static int run_command(lw_cli *cli, lw_arena *arena, int words)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_TRY(resolve(cli, arena, words));
    if (cli->global.version)
        return print_version();
    if (cli->global.help) {
        lw_help_command(&text, cli->command);
        return print_text(&text);
    }
    LW_TRY(lw_opts_check_required(&cli->opts));
    LW_TRY(lw_cli_device_choose(cli));
    if (cli->global.dry_run && !cli->command->dry_run)
        return lw_fail(LW_EUSAGE, "--dry-run: `leeway %s` has none; nothing was done: leave it out",
                       cli->command->name);
    LW_TRY(lw_opts_check_outputs(&cli->opts));
    if (cli->global.quiet || cli->global.verbose)
        lw_log_set(cli->global.quiet ? LW_LOG_ERROR : LW_LOG_INFO);
    LW_TRY(place_threads(&cli->global));
    LW_TRY(choose_convolutions(&cli->global, arena));
    LW_TRY(lw_cli_device_run(cli));
    return lw_backend_failed();
}

/* leeway without a command: --version, --help, or a usage error. */
static int run_bare(const lw_cli *cli)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    if (cli->global.version)
        return print_version();
    lw_help_program(&text);
    if (cli->global.help)
        return print_text(&text);
    fputs(lw_str_c(&text), stderr);
    return lw_fail(LW_EUSAGE, "no command given");
}

static int run_help(int argc, char **argv, int from)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    int words = 0;
    const lw_command *command = find_command(argc, argv, from, &words);
    if (from < argc && lw_str_eq(argv[from], "--man"))
        return from + 2 == argc ? lw_help_man(argv[from + 1])
                                : lw_fail(LW_EUSAGE, "help --man: say the folder for the pages");
    if (command)
        lw_help_command(&text, command);
    else if (from < argc && lw_str_eq(argv[from], "--markdown"))
        lw_help_markdown(&text);
    else if (from < argc)
        lw_help_prefix(&text, argv[from]);
    else
        lw_help_program(&text);
    return text.len > 0 ? print_text(&text)
                        : fail_command(argv[from], from + 1 < argc ? argv[from + 1] : NULL);
}

static int dispatch(lw_cli *cli, lw_arena *arena)
{
    int words = 0;
    LW_TRY(lay_tables(cli, arena));
    int at = lw_opts_parse(&cli->opts, cli->argc, cli->argv, 1, false);
    LW_TRY(at);
    if (at >= cli->argc || cli->global.version)
        return run_bare(cli);
    if (lw_str_eq(cli->argv[at], "help"))
        return run_help(cli->argc, cli->argv, at + 1);
    cli->command = find_command(cli->argc, cli->argv, at, &words);
    if (cli->command)
        return run_command(cli, arena, words);
    bool asks_help = cli->global.help ||
                     (at + 1 < cli->argc && (lw_str_eq(cli->argv[at + 1], "--help") ||
                                             lw_str_eq(cli->argv[at + 1], "-h")));
    if (asks_help)
        return run_help(cli->argc, cli->argv, at);
    try_program_beside(cli->argv + at);
    return fail_command(cli->argv[at], at + 1 < cli->argc ? cli->argv[at + 1] : NULL);
}

/* A command ends with its first error: one behind a failed allocation is named after it, whatever a
 * library or a text cut short made of it. */
static int memory_first(int rc)
{
    char size[32];
    size_t bytes = lw_alloc_failed_bytes();
    if (rc >= 0 || bytes == 0 || (rc == LW_ENOMEM && *lw_errmsg()))
        return rc;
    return lw_fail(LW_ENOMEM, "no memory for a block of %s", lw_fmt_bytes(size, bytes));
}

int lw_cli_main(int argc, char **argv)
{
    lw_cli cli = {.argc = argc, .argv = argv};
    LW_CLEANUP(lw_arena_free) lw_arena *arena = NULL;
    lw_errclear();
    lw_json_watch_memory();
    lw_signal_writes(true);
    int rc = lw_log_config(NULL);
    if (rc == 0)
        rc = lw_arena_new(&arena);
    if (rc == 0)
        rc = dispatch(&cli, arena);
    errno = 0;
    bool cut = rc == LW_ESTOPPED && !lw_signal_stopped(); /* only a dead stdout asked for it */
    if ((fflush(stdout) != 0 || ferror(stdout)) && (rc >= 0 || cut))
        rc = lw_fail(lw_errno_code(errno), "cannot write to stdout: %s",
                     errno ? strerror(errno) : "output error");
    if (rc >= 0 && lw_json_lost())
        rc = lw_fail(LW_ENOMEM, "the result is none as JSON: no memory, or a name is not UTF-8");
    rc = memory_first(rc);
    if (rc < 0)
        fprintf(stderr, "leeway: %s\n", *lw_errmsg() ? lw_errmsg() : lw_errname(rc));
    return lw_exit_code(rc);
}
