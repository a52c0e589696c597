/* SPDX-License-Identifier: Apache-2.0 */
/* argv over option tables. Long names only but -h and -V, no abbreviations. */
#include <stdio.h>
#include <string.h>

#include "cli/cli_options.h"

/* One `--name` or `--name=value` taken apart. */
typedef struct argument {
    const char *name;
    size_t n;
    const char *value; /* after '=', or NULL */
    char shown[96];    /* "--name", for messages */
} argument;

static argument take_apart(const char *text)
{
    argument a = {.name = text + 2};
    a.n = strcspn(a.name, "=");
    a.value = a.name[a.n] == '=' ? a.name + a.n + 1 : NULL;
    snprintf(a.shown, sizeof a.shown, "--%.*s", (int)LW_MIN(a.n, sizeof a.shown - 3), a.name);
    return a;
}

static int fail_unknown(const lw_opts *o, const argument *a)
{
    const char *name = a->shown + 2, *prefix = "", *near = "";
    LW_CLEANUP(lw_str_clear) lw_str known = {0};
    lw_opts_familiar(o, name, &known);
    if (known.len)
        return lw_fail(LW_EUSAGE, "unknown option %s: %s", a->shown, lw_str_c(&known));
    if (lw_str_starts(name, "no-") || lw_str_starts(name, "disable-")) {
        prefix = "no-";
        near = lw_opts_nearest(o, strchr(name, '-') + 1);
    }
    if (*near && lw_str_eq(near, strchr(name, '-') ? strchr(name, '-') + 1 : ""))
        return lw_fail(LW_EUSAGE, "unknown option %s: --%s takes a value, it cannot be negated",
                       a->shown, near);
    if (!*near) {
        prefix = "";
        near = lw_opts_nearest(o, name);
    }
    if (!*near)
        return lw_fail(LW_EUSAGE, "unknown option %s: see --help", a->shown);
    return lw_fail(LW_EUSAGE, "unknown option %s: did you mean --%s%s?", a->shown, prefix, near);
}

/* auto|yes|no: --x alone means yes, --no-x means no, and a value may be given. */
static bool three_way(const lw_option *row)
{
    return row->choices && lw_str_eq(row->choices, "auto|yes|no");
}

static bool is_choice(const char *text)
{
    return lw_str_eq(text, "auto") || lw_str_eq(text, "yes") || lw_str_eq(text, "no");
}

/* The row for a name, also for a boolean behind no- or disable-; *negated says which. */
static lw_opt_ref find_row(const lw_opts *o, const argument *a, bool *negated)
{
    static const char *const negations[] = {"no-", "disable-"};
    lw_opt_ref ref = lw_opts_find(o, a->name, a->n);
    *negated = false;
    for (size_t i = 0; i < LW_COUNT(negations) && !ref.row; i++) {
        size_t k = strlen(negations[i]);
        if (a->n <= k || strncmp(a->name, negations[i], k) != 0)
            continue;
        lw_opt_ref positive = lw_opts_find(o, a->name + k, a->n - k);
        if (positive.row && (positive.row->type == LW_OPT_BOOL || three_way(positive.row))) {
            *negated = true;
            return positive;
        }
    }
    return ref;
}

/* Uses argv[*i] and, for a value that stands apart, argv[*i + 1]. */
static int parse_option(const lw_opts *o, int argc, char **argv, int *i)
{
    argument a = take_apart(argv[*i]);
    bool negated;
    lw_opt_ref ref = find_row(o, &a, &negated);
    if (!ref.row)
        return fail_unknown(o, &a);
    ++*i;
    if (negated && a.value)
        return lw_fail(LW_EUSAGE, "%s takes no value", a.shown);
    if (ref.row->type == LW_OPT_BOOL)
        return lw_opt_set_text(o, ref, a.shown, a.value ? a.value : negated ? "false" : "true");
    if (!a.value && three_way(ref.row) && (negated || *i >= argc || !is_choice(argv[*i])))
        a.value = negated ? "no" : "yes";
    if (!a.value && ref.row->alone && (*i >= argc || strncmp(argv[*i], "--", 2) == 0))
        a.value = ref.row->alone;
    if (!a.value) {
        if (*i >= argc || strncmp(argv[*i], "--", 2) == 0)
            return lw_fail(LW_EUSAGE, "%s needs a value: %s", a.shown, ref.row->help);
        a.value = argv[(*i)++];
    }
    return lw_opt_set_text(o, ref, a.shown, a.value);
}

/* The two short options that everybody knows. */
static lw_opt_ref short_for(const lw_opts *o, const char *text)
{
    const char *name = lw_str_eq(text, "-h") ? "help" : lw_str_eq(text, "-V") ? "version" : "";
    return lw_opts_find(o, name, strlen(name));
}

/* The next positional row that no word has filled; `filled` counts them. */
static int parse_word(const lw_opts *o, const char *word, int filled)
{
    for (int s = 0; s < o->n; s++) {
        for (const lw_option *row = o->set[s].rows; row->name; row++) {
            if (row->positional && filled-- == 0)
                return lw_opt_set_text(o, (lw_opt_ref){&o->set[s], row}, row->name, word);
        }
    }
    return lw_fail(LW_EUSAGE, "unexpected word '%s': see --help", word);
}

int lw_opts_parse(const lw_opts *o, int argc, char **argv, int from, bool words)
{
    int i = from, filled = 0;
    bool options = true;
    while (i < argc) {
        const char *text = argv[i];
        if (options && lw_str_eq(text, "--")) {
            options = false;
            i++;
        } else if (options && lw_str_starts(text, "--")) {
            LW_TRY(parse_option(o, argc, argv, &i));
        } else if (options && short_for(o, text).row) {
            LW_TRY(lw_opt_set_text(o, short_for(o, text), text, "true"));
            i++;
        } else if (options && text[0] == '-' && text[1] != '\0' &&
                   strchr("0123456789.", text[1]) == NULL) {
            return lw_fail(LW_EUSAGE, "unknown option %s: options are long, see --help", text);
        } else if (!words) {
            break;
        } else {
            LW_TRY(parse_word(o, text, filled++));
            i++;
        }
    }
    return i;
}
