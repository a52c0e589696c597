/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages out of the command list and the option tables, in the man macros of roff. */
#include "cli/cli_help.h"

#include <ctype.h>
#include <string.h>

/* Text as roff reads it: no escape begins in it, hyphens stay hyphens, `words` are bold. */
static void add_text(lw_str *out, const char *text)
{
    bool code = false, fresh = out->len == 0 || lw_str_c(out)[out->len - 1] == '\n';
    for (; *text; text++) {
        if (fresh && (*text == '.' || *text == '\''))
            lw_str_add(out, "\\&");
        fresh = *text == '\n';
        if (*text == '`') {
            code = !code;
            lw_str_add(out, code ? "\\fB" : "\\fR");
        } else if (*text == '\\') {
            lw_str_add(out, "\\e");
        } else if (*text == '-') {
            lw_str_add(out, "\\-");
        } else if (*text == '|' || *text == '/') { /* lists and paths may be broken behind it */
            lw_str_addf(out, "%c\\:", *text);
        } else {
            lw_str_add_n(out, text, 1);
        }
    }
    lw_str_add(out, code ? "\\fR" : "");
}

static void add_upper(lw_str *out, const char *text)
{
    for (; *text; text++) {
        const char c = (char)toupper((unsigned char)*text);
        lw_str_add_n(out, &c, 1);
    }
}

static void section(lw_str *out, const char *title)
{
    lw_str_add(out, ".SH ");
    add_upper(out, title);
    lw_str_add(out, "\n");
}

static void paragraph(lw_str *out, const char *text)
{
    lw_str_add(out, ".PP\n");
    add_text(out, text);
    lw_str_add(out, "\n");
}

static void row(lw_str *out, const char *name, const char *value, const char *help)
{
    lw_str_add(out, ".TP\n\\fB");
    add_text(out, name);
    lw_str_add(out, "\\fR");
    if (*value) {
        lw_str_add(out, " \\fI");
        add_text(out, value);
        lw_str_add(out, "\\fR");
    }
    lw_str_add(out, "\n");
    add_text(out, help);
    lw_str_add(out, "\n");
}

static const lw_help_form form = {.group = section, .row = row, .paragraph = paragraph};

/* "leeway train ddpm" -> "leeway-train-ddpm". */
static void add_page_name(lw_str *out, const char *command)
{
    lw_str_add(out, *command ? "leeway-" : "leeway");
    for (; *command; command++)
        lw_str_add_n(out, *command == ' ' ? "-" : command, 1);
}

static void begin(lw_str *out, const char *command, const char *summary)
{
    LW_CLEANUP(lw_str_clear) lw_str name = {0}, upper = {0};
    add_page_name(&name, command);
    add_upper(&upper, lw_str_c(&name));
    lw_str_add(out, ".\\\" Written by `leeway help --man`; do not edit.\n.TH ");
    add_text(out, lw_str_c(&upper));
    /* ragged and not hyphenated: names of options stay whole */
    lw_str_addf(out, " 1 \"\" \"leeway %s\" \"Leeway\"\n.ad l\n.nh\n", lw_build_version());
    section(out, "Name");
    add_text(out, lw_str_c(&name));
    lw_str_add(out, " \\- ");
    add_text(out, summary);
    lw_str_add(out, "\n");
    section(out, "Synopsis");
}

static void synopsis(lw_str *out, const char *command, const char *usage)
{
    lw_str_add(out, "\\fBleeway ");
    add_text(out, command);
    lw_str_add(out, "\\fR ");
    add_text(out, usage);
    lw_str_add(out, "\n");
}

static void literal(lw_str *out, const char *text)
{
    lw_str_add(out, ".PP\n.nf\n.RS 4\n");
    add_text(out, text);
    lw_str_add(out, "\n.RE\n.fi\n");
}

static void see_also(lw_str *out, const char *but)
{
    const char *before = "";
    section(out, "See also");
    if (*but) {
        lw_str_add(out, "\\fBleeway\\fR(1)");
        before = ",\n";
    }
    size_t group_of = strcspn(but, " "); /* the others of `prove`, of `train` */
    for (const lw_command *const *c = lw_commands; *c; c++) {
        const char *name = (*c)->name;
        if (lw_str_eq(name, but) ||
            (*but && (!but[group_of] || strncmp(name, but, group_of + 1) != 0)))
            continue;
        LW_CLEANUP(lw_str_clear) lw_str page = {0};
        add_page_name(&page, name);
        lw_str_addf(out, "%s\\fB", before);
        add_text(out, lw_str_c(&page));
        lw_str_add(out, "\\fR(1)");
        before = ",\n";
    }
    lw_str_add(out, "\n");
}

static void add_command(lw_str *out, const lw_command *c)
{
    const lw_option *tables[LW_OPT_MAX_SETS + 1] = {0};
    int n = 0;
    for (size_t i = 0; i < LW_COUNT(c->options) && c->options[i]; i++)
        tables[n++] = c->options[i];
    tables[n] = lw_global_options;
    begin(out, c->name, c->summary);
    synopsis(out, c->name, c->usage ? c->usage : "[options]");
    if (c->notes) {
        section(out, "Description");
        paragraph(out, c->notes);
    }
    lw_help_tables(out, tables, &form);
    lw_help_resume(out, tables, &form);
    if (c->examples) {
        section(out, "Examples");
        literal(out, c->examples);
    }
    section(out, "Exit status");
    paragraph(out, "As of `leeway`(1).");
    see_also(out, c->name);
}

static void add_program(lw_str *out)
{
    const lw_option *tables[] = {lw_global_options, NULL};
    begin(out, "", LW_HELP_SUMMARY);
    synopsis(out, "COMMAND", "[options]");
    section(out, "Commands");
    for (const lw_command *const *c = lw_commands; *c; c++)
        row(out, (*c)->name, "", (*c)->summary);
    lw_help_tables(out, tables, &form);
    section(out, "Environment");
    for (const lw_help_line *l = lw_help_environment; l->name; l++)
        row(out, l->name, "", l->text);
    section(out, "Exit status");
    for (const lw_help_line *l = lw_help_exit_codes; l->name; l++)
        row(out, l->name, "", l->text);
    see_also(out, "");
}

static int write_page(const char *dir, const lw_command *c)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0}, name = {0}, path = {0};
    add_page_name(&name, c ? c->name : "");
    lw_str_add(&name, ".1");
    if (c)
        add_command(&text, c);
    else
        add_program(&text);
    if (text.failed || name.failed)
        return LW_ENOMEM;
    return lw_file_write(lw_path_join(&path, dir, lw_str_c(&name)), lw_str_c(&text), text.len);
}

int lw_help_man(const char *dir)
{
    LW_TRY(lw_mkdirs(dir));
    LW_TRY(write_page(dir, NULL));
    for (const lw_command *const *c = lw_commands; *c; c++)
        LW_TRY(write_page(dir, *c));
    return 0;
}
