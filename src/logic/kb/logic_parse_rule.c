/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: `name:weight:body -> head`, `head :- body.` and `weight head :- body.` */
#include <string.h>

#include "logic/kb/logic_parse_parts.h"

static const char *find(const char *from, const char *to, const char *what)
{
    return memmem(from, (size_t)(to - from), what, strlen(what));
}

/* An atom at *at, which is moved behind its closing parenthesis. NULL or a reason. */
static const char *parse_atom(const char **at, const char *end, lw_atom_text *out)
{
    const char *s = *at;
    while (s < end && (*s == ' ' || *s == '\t'))
        s++;
    const char *open = memchr(s, '(', (size_t)(end - s));
    if (!open)
        return "an atom pred(X,Y) is expected";
    bool quoted;
    out->pred = lw_parse_unquote(lw_parse_trim(s, open), &quoted);
    if (out->pred.n == 0)
        return "a predicate is missing";
    for (size_t i = 0; i < out->pred.n && !quoted; i++)
        if (out->pred.s[i] == ',' || out->pred.s[i] == ' ' || out->pred.s[i] == ')')
            return "a predicate has a blank, a comma or a parenthesis (quote it)";
    s = open + 1;
    const char *why = lw_parse_arg(&s, end, ',', &out->arg[0], &out->quoted[0]);
    if (!why)
        why = lw_parse_arg(&s, end, ')', &out->arg[1], &out->quoted[1]);
    *at = s;
    return why;
}

const char *lw_parse_body(const char *at, const char *end, lw_rule_text *out)
{
    if (lw_parse_trim(at, end).n == 0)
        return "the rule has no body";
    for (;;) {
        if (out->n_body == LW_PROOF_MOST_BODY)
            return "the body has more than 32 atoms";
        const char *why = parse_atom(&at, end, &out->body[out->n_body]);
        if (why)
            return why;
        out->n_body++;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        if (at == end)
            return NULL;
        if (*at++ != ',')
            return "a comma is expected between the atoms of the body";
    }
}

bool lw_parse_number(lw_span s, double *out)
{
    char text[64];
    if (s.n == 0 || s.n >= sizeof text)
        return false;
    memcpy(text, s.s, s.n);
    text[s.n] = '\0';
    if (lw_parse_f64(text, out) == 0)
        return true;
    lw_errclear();
    return false;
}

/* The text behind `name:weight:` or `weight `, whichever the rule begins with. */
static const char *skip_prefix(const char *at, const char *end, lw_rule_text *out)
{
    const char *open = memchr(at, '(', (size_t)(end - at));
    const char *stop = open ? open : end;
    if (out->style == LW_RULE_ARROW) {
        const char *a = memchr(at, ':', (size_t)(stop - at));
        const char *b = a ? memchr(a + 1, ':', (size_t)(stop - a - 1)) : NULL;
        return b && lw_parse_number(lw_parse_trim(a + 1, b), &out->weight) ? b + 1 : at;
    }
    lw_span rest = {at, (size_t)(stop - at)}, word = lw_parse_word(&rest);
    if (word.s + word.n < stop && lw_parse_number(word, &out->weight))
        return word.s + word.n;
    return at;
}

const char *lw_parse_head(const char *at, const char *end, lw_rule_text *out)
{
    const char *why = parse_atom(&at, end, &out->head);
    if (why)
        return why;
    return lw_parse_trim(at, end).n ? "there is something behind the head" : NULL;
}

const char *lw_parse_rule(lw_span line, lw_rule_text *out)
{
    *out = (lw_rule_text){.weight = 1};
    const char *at = line.s, *end = line.s + line.n;
    const char *why = lw_parse_clean(line);
    if (why)
        return why;
    if (line.n >= 2 && at[0] == '(' && at[1] == '(') {
        out->skipped = "a template before learned rules, left out";
        return NULL;
    }
    const char *arrow = find(at, end, "->"), *neck = find(at, end, ":-");
    if (!arrow && !neck)
        return "`name:weight:body -> head` or `head :- body.` is expected";
    if (end[-1] == '>' && (!arrow || arrow + 2 != end))
        return "it is a template of rules (<count>), not a rule";
    if (end > at && end[-1] == '.')
        end--;
    out->style = arrow ? LW_RULE_ARROW : LW_RULE_PROLOG;
    at = skip_prefix(at, end, out);
    if (out->style == LW_RULE_ARROW) {
        why = lw_parse_body(at, LW_MAX(arrow, at), out);
        return why ? why : lw_parse_head(arrow + 2, LW_MAX(end, arrow + 2), out);
    }
    why = lw_parse_head(at, LW_MAX(neck, at), out);
    return why ? why : lw_parse_body(neck + 2, LW_MAX(end, neck + 2), out);
}
