/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts out of the command list and the option tables. */
#include <stdio.h>
#include <string.h>

#include "cli/cli_help.h"

const lw_help_line lw_help_environment[] = {{"LW_ISA=" LW_ISA_NAMES, "chooses kernels"},
                                            {"LW_LOG=info,profile=debug", "what is logged"},
                                            {"LW_CACHE=DIR", "the folder of decoded data"},
                                            {NULL, NULL}};
const lw_help_line lw_help_exit_codes[] = {
    {"0", "ok"},        {"1", "a check failed"},    {"2", "usage"},
    {"3", "bad input"}, {"4", "input/output"},      {"5", "memory"},
    {"6", "device"},    {"7", "numerical failure"}, {"130", "interrupted after saving"},
    {NULL, NULL}};

enum { NAME_COLUMN = 2, HELP_COLUMN = 34, WIDTH = 100 };

/* Appends text from column `at`, broken at blanks and its own line ends, continued at `at`. */
static void add_wrapped(lw_str *out, const char *text, int left)
{
    int at = left;
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (at > left && at + 1 + (int)n > WIDTH) {
            lw_str_addf(out, "\n%*s", left, "");
            at = left;
        } else if (at > left) {
            lw_str_add(out, " ");
            at++;
        }
        lw_str_add_n(out, text, n);
        at += (int)n;
        text += n;
        if (*text == '\n') {
            lw_str_addf(out, "\n%*s", left, "");
            at = left;
        }
        text += strspn(text, " \n");
    }
    lw_str_add(out, "\n");
}

static const char *value_word(const lw_option *row)
{
    switch (row->type) {
    case LW_OPT_BOOL:
        return "";
    case LW_OPT_I32:
    case LW_OPT_I64:
        return row->choices ? row->choices : "N";
    case LW_OPT_F32:
    case LW_OPT_F64:
        return "X";
    case LW_OPT_TEXT:
        return row->choices ? row->choices : "TEXT";
    default:
        return "LIST";
    }
}

/* True by default: it is shown as what turns it off. */
static bool is_negated(const lw_option *row)
{
    return row->type == LW_OPT_BOOL && row->fallback && lw_str_eq(row->fallback, "true");
}

/* "(steps; 1 to 1000; default 100; also --n)" or nothing. */
static void add_facts(lw_str *help, const lw_option *row)
{
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    bool is_bool = row->type == LW_OPT_BOOL;
    if (row->unit)
        lw_str_addf(&facts, "; %s", row->unit);
    if (!is_bool && row->choices && strlen(row->choices) > 24)
        lw_str_addf(&facts, "; one of %s", row->choices);
    if (row->min != 0.0 || row->max != 0.0) {
        lw_str_add(&facts, "; ");
        lw_opt_range(row, &facts);
    }
    if (row->required)
        lw_str_add(&facts, "; required");
    if (row->fallback && *row->fallback && !is_bool)
        lw_str_addf(&facts, "; default %s", row->fallback);
    size_t n;
    for (const char *rest = row->aliases, *alias; (alias = lw_str_word(&rest, '|', &n));)
        lw_str_addf(&facts, "; also --%s%.*s", is_negated(row) ? "no-" : "", (int)n, alias);
    if (facts.len > 0)
        lw_str_addf(help, " (%s)", lw_str_c(&facts) + 2);
}

static void text_row(lw_str *out, const char *name, const char *value, const char *help)
{
    int at = NAME_COLUMN + (int)(strlen(name) + (*value ? 1 + strlen(value) : 0));
    lw_str_addf(out, "%*s%s%s%s", NAME_COLUMN, "", name, *value ? " " : "", value);
    if (at + 2 > HELP_COLUMN)
        lw_str_addf(out, "\n%*s", HELP_COLUMN, "");
    else
        lw_str_addf(out, "%*s", HELP_COLUMN - at, "");
    add_wrapped(out, help, HELP_COLUMN);
}

static void text_group(lw_str *out, const char *title)
{
    lw_str_addf(out, "\n%s:\n", title);
}

static void text_paragraph(lw_str *out, const char *text)
{
    add_wrapped(out, text, 0);
}

static const lw_help_form text_form = {
    .group = text_group, .row = text_row, .paragraph = text_paragraph};

static void add_row(lw_str *out, const lw_option *row, const lw_help_form *form)
{
    LW_CLEANUP(lw_str_clear) lw_str name = {0}, help = {0};
    bool on = is_negated(row);
    const char *value = row->positional ? "" : value_word(row);
    lw_str_addf(&name, "%s%s", row->positional ? "" : on ? "--no-" : "--", row->name);
    lw_str_add(&help, on ? "do not " : "");
    lw_str_add(&help, row->help);
    add_facts(&help, row);
    form->row(out, lw_str_c(&name), strlen(value) > 24 ? "NAME" : value, lw_str_c(&help));
}

static const char *group_of(const lw_option *row)
{
    return row->positional ? "Arguments" : row->group ? row->group : "Options";
}

static void add_group(lw_str *out, const lw_option *const *tables, const char *group,
                      const lw_help_form *form)
{
    form->group(out, group);
    for (; *tables; tables++)
        for (const lw_option *row = *tables; row->name; row++)
            if (!row->hidden && lw_str_eq(group_of(row), group))
                add_row(out, row, form);
}

/* True when no row before this one has its group. */
static bool opens_group(const lw_option *const *tables, const lw_option *row)
{
    for (; *tables; tables++) {
        for (const lw_option *other = *tables; other->name; other++) {
            if (other == row)
                return true;
            if (lw_str_eq(group_of(other), group_of(row)))
                return false;
        }
    }
    return true;
}

void lw_help_tables(lw_str *out, const lw_option *const *tables, const lw_help_form *form)
{
    for (int pass = 0; pass < 2; pass++)
        for (const lw_option *const *t = tables; *t; t++)
            for (const lw_option *row = *t; row->name; row++)
                if (row->positional == (pass == 0) && opens_group(tables, row))
                    add_group(out, tables, group_of(row), form);
}

static void add_indented(lw_str *out, const char *lines)
{
    size_t n;
    for (const char *line; (line = lw_str_word(&lines, '\n', &n));)
        lw_str_addf(out, "  %.*s\n", (int)n, line);
}

/* Names of the options that a training may change when it goes on, wrapped. */
static void add_resume_names(lw_str *out, const lw_option *const *tables, uint8_t resume,
                             const char *before, const lw_help_form *form)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    for (; *tables; tables++)
        for (const lw_option *row = *tables; row->name; row++)
            if (!row->transient && !row->hidden && row->resume == resume)
                lw_str_addf(&text, "%s--%s", text.len ? ", " : before, row->name);
    if (text.len)
        form->paragraph(out, lw_str_c(&text));
}

void lw_help_resume(lw_str *out, const lw_option *const *tables, const lw_help_form *form)
{
    bool trains = false;
    for (const lw_option *const *t = tables; *t; t++)
        for (const lw_option *row = *t; row->name; row++)
            trains |= row->resume == LW_RESUME_GOAL;
    if (!trains)
        return;
    form->group(out, "Going on");
    form->paragraph(out,
                    "A run that goes on (--resume, --resume-from) keeps its options but these.");
    add_resume_names(out, tables, LW_RESUME_FREE, "Free: ", form);
    add_resume_names(out, tables, LW_RESUME_GOAL,
                     "Never below the steps done, and only with --reschedule where the learning "
                     "rate follows them: ",
                     form);
    add_resume_names(out, tables, LW_RESUME_SCHEDULE, "Only with --reschedule: ", form);
}

static void add_command(lw_str *out, const lw_command *c, bool with_globals)
{
    const lw_option *tables[LW_OPT_MAX_SETS + 1] = {0}, *all[LW_OPT_MAX_SETS + 1] = {0};
    int n = 0;
    for (size_t i = 0; i < LW_COUNT(c->options) && c->options[i]; i++)
        tables[n++] = c->options[i];
    memcpy(all, tables, sizeof all);
    all[n] = lw_global_options;
    if (with_globals)
        tables[n] = lw_global_options;
    const char *usage = c->usage ? c->usage : "[options]";
    lw_str_addf(out, "leeway %s: %s\n\nUsage: leeway %s%s%s\n", c->name, c->summary, c->name,
                *usage ? " " : "", usage);
    if (c->examples) {
        lw_str_add(out, "\nExamples:\n");
        add_indented(out, c->examples);
    }
    lw_help_tables(out, tables, &text_form);
    if (c->notes) {
        lw_str_add(out, "\n");
        add_wrapped(out, c->notes, 0);
    }
    lw_help_resume(out, all, &text_form);
}

void lw_help_command(lw_str *out, const lw_command *c)
{
    add_command(out, c, true);
}

void lw_help_markdown(lw_str *out)
{
    lw_str_add(out, "## leeway\n\n```\n");
    lw_help_program(out);
    lw_str_add(out, "```\n");
    for (const lw_command *const *c = lw_commands; *c; c++) {
        lw_str_addf(out, "\n## leeway %s\n\n```\n", (*c)->name);
        add_command(out, *c, false);
        lw_str_add(out, "```\n");
    }
}

void lw_help_prefix(lw_str *out, const char *prefix)
{
    for (const lw_command *const *c = lw_commands; *c; c++)
        if (lw_str_starts((*c)->name, prefix))
            lw_str_addf(out, "  %-18s %s\n", (*c)->name, (*c)->summary);
}

static void add_lines(lw_str *out, const char *title, const lw_help_line *l)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    for (const char *before = title; l->name; l++, before = ", ")
        lw_str_addf(&text, "%s%s %s", before, l->name, l->text);
    lw_str_add(&text, ".");
    add_wrapped(out, lw_str_c(&text), 0);
}

void lw_help_program(lw_str *out)
{
    const lw_option *tables[] = {lw_global_options, NULL};
    lw_str_add(out,
               "leeway: " LW_HELP_SUMMARY "\n\nUsage: leeway COMMAND [options]; leeway COMMAND "
               "--help for its options\n\nCommands:\n");
    lw_help_prefix(out, "");
    lw_help_tables(out, tables, &text_form);
    lw_str_add(out, "\n");
    add_lines(out, "Environment: ", lw_help_environment);
    add_lines(out, "Exit codes: ", lw_help_exit_codes);
}
