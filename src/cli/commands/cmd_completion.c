/* SPDX-License-Identifier: Apache-2.0 */
/* leeway completion: what a shell offers behind `leeway`, out of the command list and the option tables. */
#include "cli/cli.h"

#include <string.h>

typedef struct completion_cli {
    int32_t shell;
} completion_cli;

enum { BASH, ZSH, FISH };

static const lw_option options[] = {{LW_OPT(completion_cli, shell), .name = "shell",
                                     .choices = "bash|zsh|fish", .positional = true,
                                     .required = true, .help = "whose commands to write"},
                                    {.name = NULL}};

/* ---- words of the tables --------------------------------------------------------------------- */

/* No command before this one begins with the same n letters as words. */
static bool first_with(const lw_command *const *c, size_t n)
{
    for (const lw_command *const *d = lw_commands; d < c; d++)
        if (strncmp((*d)->name, (*c)->name, n) == 0 && ((*d)->name[n] == ' ' || !(*d)->name[n]))
            return false;
    return true;
}

/* `word` may stand behind the words `before`; about: the command's summary, "" of a group. */
typedef void add_word(lw_str *out, const char *before, const char *word, const char *about);

/* Every word of every command once, in order. */
static void each_word(lw_str *out, add_word *add)
{
    for (const lw_command *const *c = lw_commands; *c; c++) {
        const char *name = (*c)->name;
        for (size_t from = 0, n = 0; n < strlen(name); from = n + 1) {
            LW_CLEANUP(lw_str_clear) lw_str before = {0}, word = {0};
            n = from + strcspn(name + from, " ");
            lw_str_addf(&before, "%.*s", from ? (int)from - 1 : 0, name);
            lw_str_addf(&word, "%.*s", (int)(n - from), name + from);
            if (first_with(c, n))
                add(out, lw_str_c(&before), lw_str_c(&word), name[n] ? "" : (*c)->summary);
        }
    }
}

static bool is_switch(const lw_option *row)
{
    return row->type == LW_OPT_BOOL;
}

/* How a row is typed: a switch that is on by default is there to be turned off. */
static const char *negation(const lw_option *row)
{
    return is_switch(row) && row->fallback && lw_str_eq(row->fallback, "true") ? "no-" : "";
}

/* "auto|yes|no" -> "auto yes no" */
static void add_choices(lw_str *out, const char *choices)
{
    for (; *choices; choices++)
        lw_str_add_n(out, *choices == '|' ? " " : choices, 1);
}

typedef void add_option(lw_str *out, const lw_command *c, const lw_option *row);

/* Every option of a command, the global ones last. */
static void each_option(lw_str *out, const lw_command *c, add_option *add)
{
    for (size_t i = 0; i <= LW_COUNT(c->options); i++) {
        const lw_option *row = i < LW_COUNT(c->options) ? c->options[i] : lw_global_options;
        for (; row && row->name; row++)
            if (!row->positional && !row->hidden)
                add(out, c, row);
    }
}

/* Of the one argument of a command that takes one of several words; NULL: it takes others. */
static const char *word_choices(const lw_command *c)
{
    const lw_option *row = c->options[0];
    return row && row->name && row->positional ? row->choices : NULL;
}

/* In quotes of a shell; every ' ends the quotes, stands alone, and begins them again. */
static void add_quoted(lw_str *out, const char *text)
{
    lw_str_add(out, "'");
    for (; *text; text++)
        if (*text == '\'')
            lw_str_add(out, "'\\''");
        else
            lw_str_add_n(out, *text == '\n' ? " " : text, 1);
    lw_str_add(out, "'");
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_option(lw_str *out, const lw_command *c, const lw_option *row)
{
    (void)c;
    lw_str_addf(out, " --%s%s", negation(row), row->name);
}

static void bash_choices(lw_str *out, const lw_command *c, const lw_option *row)
{
    if (!row->choices)
        return;
    lw_str_addf(out, "    '%s --%s') words='", c->name, row->name);
    add_choices(out, row->choices);
    lw_str_add(out, "' ;;\n");
}

static void bash_known(lw_str *out, const char *before, const char *word, const char *about)
{
    (void)about;
    lw_str_addf(out, "|'%s%s%s'", before, *before ? " " : "", word);
}

static void bash_next(lw_str *out, const char *before, const char *word, const char *about)
{
    (void)about;
    lw_str_addf(out, "  [[ $command == '%s' ]] && next+=' %s'\n", before, word);
}

static void bash(lw_str *out)
{
    lw_str_add(out, "# Completion of leeway for bash, written by `leeway completion bash`.\n"
                    "_leeway() {\n"
                    "  local cur=${COMP_WORDS[COMP_CWORD]} command='' next='' words='' i\n"
                    "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
                    "    case \"$command${command:+ }${COMP_WORDS[i]}\" in\n    ''");
    each_word(out, bash_known);
    lw_str_add(out, ") command=\"$command${command:+ }${COMP_WORDS[i]}\" ;;\n    esac\n  done\n"
                    "  case \"$command ${COMP_WORDS[COMP_CWORD-1]}\" in\n");
    for (const lw_command *const *c = lw_commands; *c; c++)
        each_option(out, *c, bash_choices);
    lw_str_add(out, "  esac\n  if [[ $words ]]; then\n"
                    "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n    return\n  fi\n"
                    "  case \"$command\" in\n");
    for (const lw_command *const *c = lw_commands; *c; c++) {
        lw_str_addf(out, "    '%s') words='", (*c)->name);
        each_option(out, *c, bash_option);
        lw_str_add(out, "' ;;\n");
    }
    lw_str_add(out, "    *) words='--help --version' ;;\n  esac\n");
    each_word(out, bash_next);
    for (const lw_command *const *c = lw_commands; *c; c++) {
        if (!word_choices(*c))
            continue;
        lw_str_addf(out, "  [[ $command == '%s' ]] && next='", (*c)->name);
        add_choices(out, word_choices(*c));
        lw_str_add(out, "'\n");
    }
    lw_str_add(out, "  if [[ $cur == -* ]]; then\n"
                    "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                    "  elif [[ $next ]]; then\n"
                    "    COMPREPLY=($(compgen -W \"$next\" -- \"$cur\"))\n"
                    "  else\n"
                    "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                    "  fi\n"
                    "}\n"
                    "complete -o filenames -F _leeway leeway\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_option(lw_str *out, const lw_command *c, const lw_option *row)
{
    lw_str_addf(out, "complete -c leeway -n '__leeway_in %s' -l %s%s", c->name, negation(row),
                row->name);
    if (row->choices) {
        lw_str_add(out, " -x -a '");
        add_choices(out, row->choices);
        lw_str_add(out, "'");
    } else if (!is_switch(row)) {
        lw_str_add(out, row->path ? " -r -F" : " -x");
    }
    lw_str_add(out, " -d ");
    add_quoted(out, row->help);
    lw_str_add(out, "\n");
}

static void fish_word(lw_str *out, const char *before, const char *word, const char *about)
{
    lw_str_addf(out, "complete -c leeway -f -n '__leeway_at%s%s' -a %s", *before ? " " : "", before,
                word);
    if (*about) {
        lw_str_add(out, " -d ");
        add_quoted(out, about);
    }
    lw_str_add(out, "\n");
}

static void fish(lw_str *out)
{
    lw_str_add(out, "# Completion of leeway for fish, written by `leeway completion fish`.\n"
                    "function __leeway_in\n"
                    "  set -l words (string match -v -- '-*' (commandline -opc)[2..])\n"
                    "  test \"$words[1..\"(count $argv)\"]\" = \"$argv\"\n"
                    "end\n"
                    "function __leeway_at\n"
                    "  set -l words (string match -v -- '-*' (commandline -opc)[2..])\n"
                    "  test \"$words\" = \"$argv\"\n"
                    "end\n");
    each_word(out, fish_word);
    for (const lw_command *const *c = lw_commands; *c; c++) {
        if (word_choices(*c)) {
            lw_str_addf(out, "complete -c leeway -f -n '__leeway_at %s' -a '", (*c)->name);
            add_choices(out, word_choices(*c));
            lw_str_add(out, "'\n");
        }
        each_option(out, *c, fish_option);
    }
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Of _arguments' specifications, brackets and colons are signs. */
static void add_zsh_text(lw_str *out, const char *text)
{
    LW_CLEANUP(lw_str_clear) lw_str plain = {0};
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            lw_str_add(&plain, "\\");
        lw_str_add_n(&plain, text, 1);
    }
    lw_str_add(out, lw_str_c(&plain));
}

static void zsh_option(lw_str *out, const lw_command *c, const lw_option *row)
{
    LW_CLEANUP(lw_str_clear) lw_str spec = {0};
    (void)c;
    lw_str_addf(&spec, "--%s%s[", negation(row), row->name);
    add_zsh_text(&spec, row->help);
    lw_str_add(&spec, "]");
    if (row->choices) {
        lw_str_add(&spec, ":value:(");
        add_choices(&spec, row->choices);
        lw_str_add(&spec, ")");
    } else if (!is_switch(row)) {
        lw_str_add(&spec, row->path ? ":path:_files" : ":value:");
    }
    lw_str_add(out, " \\\n      ");
    add_quoted(out, lw_str_c(&spec));
}

static void zsh_word(lw_str *out, const char *before, const char *word, const char *about)
{
    LW_CLEANUP(lw_str_clear) lw_str row = {0};
    lw_str_addf(&row, "%s:%s", word, about);
    lw_str_addf(out, "    [[ \"$said\" == '%s' ]] && rest+=(", before);
    add_quoted(out, lw_str_c(&row));
    lw_str_add(out, ")\n");
}

static void zsh(lw_str *out)
{
    lw_str_add(out, "#compdef leeway\n"
                    "# Completion of leeway for zsh, written by `leeway completion zsh`.\n"
                    "_leeway() {\n"
                    "  local -a said rest\n"
                    "  said=(${${words[2,CURRENT-1]}:#-*})\n"
                    "  case \"$said \" in\n");
    for (const lw_command *const *c = lw_commands; *c; c++) {
        lw_str_addf(out, "  '%s '*) _arguments -S", (*c)->name);
        each_option(out, *c, zsh_option);
        lw_str_add(out, " \\\n      '*:argument:");
        if (word_choices(*c)) {
            lw_str_add(out, "(");
            add_choices(out, word_choices(*c));
            lw_str_add(out, ")' ;;\n");
        } else {
            lw_str_add(out, "_files' ;;\n");
        }
    }
    lw_str_add(out, "  *)\n");
    each_word(out, zsh_word);
    lw_str_add(out, "    _describe command rest ;;\n"
                    "  esac\n"
                    "}\n"
                    "_leeway \"$@\"\n");
}

/* ---- command --------------------------------------------------------------------------------- */

static int run(const lw_cli *cli, const void *config)
{
    const completion_cli *o = config;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    (void)cli;
    (o->shell == BASH ? bash : o->shell == ZSH ? zsh : fish)(&text);
    if (text.failed)
        return LW_ENOMEM;
    lw_cli_print("%s", lw_str_c(&text));
    return 0;
}

const lw_command lw_cmd_completion = {
    .name = "completion",
    .summary = "what a shell offers behind `leeway`",
    .usage = "bash|zsh|fish",
    .examples = "source <(leeway completion bash)\n"
                "leeway completion zsh >~/.zfunc/_leeway\n"
                "leeway completion fish >~/.config/fish/completions/leeway.fish",
    .options = {options},
    .config_size = sizeof(completion_cli),
    .run = run,
};
