/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, words, atoms and queries. Rules are in logic_parse_rule.c. */
#include "logic/kb/logic_parse.h"

#include <string.h>

#include "logic/kb/logic_parse_parts.h"
#include "logic/kb/logic_problems.h"

lw_span lw_parse_trim(const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t' || *from == '\r'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    return (lw_span){from, (size_t)(to - from)};
}

lw_lines lw_lines_of(lw_span text)
{
    static const char mark[] = "\xef\xbb\xbf"; /* some editors begin a file with it */
    if (!text.s)
        text = (lw_span){"", 0};
    if (text.n >= 3 && memcmp(text.s, mark, 3) == 0)
        text = (lw_span){text.s + 3, text.n - 3};
    return (lw_lines){text.s, text.s + text.n, 0};
}

bool lw_lines_next(lw_lines *l, lw_span *out)
{
    while (l->at < l->end) {
        const char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
        const char *stop = newline ? newline : l->end;
        lw_span line = lw_parse_trim(l->at, stop);
        l->line++;
        l->at = newline ? newline + 1 : l->end;
        if (line.n > 0 && line.s[0] != '%') {
            *out = line;
            return true;
        }
    }
    return false;
}

lw_span lw_parse_word(lw_span *rest)
{
    lw_span all = lw_parse_trim(rest->s, rest->s + rest->n);
    size_t n = 0;
    while (n < all.n && all.s[n] != ' ' && all.s[n] != '\t')
        n++;
    *rest = (lw_span){all.s + n, all.n - n};
    return (lw_span){all.s, n};
}

const char *lw_parse_clean(lw_span s)
{
    const unsigned char *c = (const unsigned char *)s.s;
    for (size_t i = 0, size; i < s.n; i += size) {
        size = lw_utf8_size(c + i, s.n - i);
        if (size == 0)
            return "it is not UTF-8";
        if (c[i] < ' ' && c[i] != '\t')
            return "it holds a control character";
    }
    return NULL;
}

lw_span lw_parse_unquote(lw_span s, bool *quoted)
{
    *quoted = s.n >= 2 && s.s[0] == '\'' && s.s[s.n - 1] == '\'';
    return *quoted ? (lw_span){s.s + 1, s.n - 2} : s;
}

const char *lw_parse_arg(const char **at, const char *end, char stop, lw_span *out, bool *quoted)
{
    const char *s = *at;
    while (s < end && (*s == ' ' || *s == '\t'))
        s++;
    if (s < end && *s == '\'') { /* a quote counts when one stands before the next separator too */
        for (const char *q = s + 1; q < end; q++) {
            const char *behind = q + 1;
            while (behind < end && (*behind == ' ' || *behind == '\t'))
                behind++;
            if (*q == '\'' && behind < end && *behind == stop) {
                *out = lw_parse_unquote((lw_span){s, (size_t)(q + 1 - s)}, quoted);
                *at = behind + 1;
                return out->n ? NULL : "an argument is empty";
            }
        }
    }
    const char *q = memchr(s, stop, (size_t)(end - s));
    if (!q)
        return stop == ',' ? "it has one argument, two are needed"
                           : "the closing parenthesis is missing";
    *out = lw_parse_trim(s, q);
    *quoted = false;
    *at = q + 1;
    if (out->n == 0)
        return "an argument is empty";
    for (size_t i = 0; i < out->n; i++) {
        if (out->s[i] == ',')
            return "it has more than two arguments";
        if (out->s[i] == '(' || out->s[i] == ')')
            return "an argument has a parenthesis (quote it)";
    }
    return NULL;
}

static const char *parse_tabs(lw_span line, lw_atom_text *out, lw_span *rest)
{
    const char *end = line.s + line.n, *a = memchr(line.s, '\t', line.n),
               *b = memchr(a + 1, '\t', (size_t)(end - a - 1));
    out->arg[0] = lw_parse_trim(line.s, a);
    out->pred = lw_parse_trim(a + 1, b);
    out->arg[1] = lw_parse_trim(b + 1, end);
    out->quoted[0] = out->quoted[1] = false;
    *rest = (lw_span){end, 0};
    if (out->arg[0].n == 0 || out->arg[1].n == 0 || out->pred.n == 0)
        return "a column is empty";
    return NULL;
}

/* Parentheses that close within the column, so that none is of an atom around the tabs. comma: none
 * may be between them. */
static bool closed(const char *from, const char *to, bool comma)
{
    int open = 0;
    for (const char *s = from; s < to && open >= 0; s++) {
        open += (*s == '(') - (*s == ')');
        if (comma && open > 0 && *s == ',')
            return false;
    }
    return open == 0;
}

/* Three columns whose names may hold parentheses (Paris_(Texas)). What may be an atom with tabs in or
 * behind it is none: p(a,b)<TAB>.. and p<TAB>(a,b)<TAB>.. */
static bool is_columns(lw_span line)
{
    const char *end = line.s + line.n, *a = memchr(line.s, '\t', line.n),
               *b = a ? memchr(a + 1, '\t', (size_t)(end - a - 1)) : NULL;
    if (!b || memchr(b + 1, '\t', (size_t)(end - b - 1)))
        return false;
    const lw_span middle = lw_parse_trim(a + 1, b);
    return closed(line.s, a, true) && closed(a + 1, b, false) && closed(b + 1, end, false) &&
           !(middle.n > 0 && middle.s[0] == '(');
}

/* The end of the quoted name at s: behind its quote, which a blank or , ( ) . follows. NULL: not
 * quoted after all. */
static const char *quoted_end(const char *s, const char *end)
{
    for (const char *q = s + 1; q < end; q++)
        if (*q == '\'' && (q + 1 == end || strchr(" \t,().", q[1])))
            return q + 1;
    return NULL;
}

/* The last opening parenthesis that is not in a quoted name, or NULL. */
static const char *last_open(lw_span line)
{
    const char *found = NULL, *end = line.s + line.n, *after;
    bool fresh = true; /* a name may begin here */
    for (const char *s = line.s; s < end; s++) {
        if (fresh && *s == '\'' && (after = quoted_end(s, end)) != NULL) {
            s = after - 1;
            fresh = false;
            continue;
        }
        if (*s == '(')
            found = s;
        fresh = *s == '(' || *s == ',' || (fresh && (*s == ' ' || *s == '\t'));
    }
    return found;
}

/* A predicate's name without quotes may hold parentheses that close, but no comma and no blank:
 * such a line is more than one atom. */
static const char *check_predicate(lw_span s)
{
    int open = 0;
    for (size_t i = 0; i < s.n && open >= 0; i++) {
        open += (s.s[i] == '(') - (s.s[i] == ')');
        if (s.s[i] == ',' || s.s[i] == ' ' || s.s[i] == '\t')
            return "one atom pred(a,b). is expected (quote names with blanks or commas)";
    }
    return open == 0 ? NULL : "its parentheses do not match (quote names that hold them)";
}

const char *lw_parse_triple(lw_span line, lw_atom_text *out, lw_span *rest)
{
    const char *why = lw_parse_clean(line);
    if (why)
        return why;
    if (is_columns(line))
        return parse_tabs(line, out, rest);
    const char *open = last_open(line), *end = line.s + line.n;
    if (!open)
        return "pred(a,b). or head<TAB>pred<TAB>tail is expected";
    bool quoted;
    out->pred = lw_parse_unquote(lw_parse_trim(line.s, open), &quoted);
    if (out->pred.n == 0)
        return "the predicate is missing";
    const char *at = open + 1;
    why = quoted ? NULL : check_predicate(out->pred);
    if (!why)
        why = lw_parse_arg(&at, end, ',', &out->arg[0], &out->quoted[0]);
    if (!why)
        why = lw_parse_arg(&at, end, ')', &out->arg[1], &out->quoted[1]);
    if (why)
        return why;
    if (at < end && *at == '.')
        at++;
    *rest = lw_parse_trim(at, end);
    return NULL;
}

const char *lw_parse_depth(lw_span rest, int32_t *out)
{
    char text[16];
    int64_t depth;
    if (rest.n == 0)
        return "the depth is missing";
    if (rest.n >= sizeof text)
        return "the depth is no number";
    memcpy(text, rest.s, rest.n);
    text[rest.n] = '\0';
    if (lw_parse_i64(text, &depth) < 0 || depth < -1 || depth > 1000000) {
        lw_errclear();
        return "the depth is not -1 or a count of steps";
    }
    *out = (int32_t)depth;
    return NULL;
}
