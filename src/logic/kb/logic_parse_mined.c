/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules as rule miners write them.
 *
 *   AnyBURL  1200<TAB>900<TAB>0.75<TAB>aunt(X,Y) <= mother(A,Y), sister(X,A)
 *            predicted, right, confidence, rule; variables are single capitals
 *   AMIE     ?h  mother  ?b  ?a  sister  ?h   => ?a  aunt  ?b<TAB>0.2<TAB>0.7<TAB>0.75<TAB>..
 *            head coverage, standard confidence, PCA confidence (taken) and more; variables begin with ?; also
 *            `mother(?h,?b), sister(?a,?h) => aunt(?a,?b)`. Lines of its log stand around the rules.
 */
#include <string.h>

#include "logic/kb/logic_parse_parts.h"

static const char *find(lw_span in, const char *what)
{
    return memmem(in.s, in.n, what, strlen(what));
}

/* The next column, cut off *rest. */
static lw_span column(lw_span *rest)
{
    const char *tab = memchr(rest->s, '\t', rest->n), *end = rest->s + rest->n;
    const lw_span c = lw_parse_trim(rest->s, tab ? tab : end);
    *rest = tab ? (lw_span){tab + 1, (size_t)(end - tab - 1)} : (lw_span){end, 0};
    return c;
}

/* ---- AnyBURL ----------------------------------------------------------------------------------- */

static const char *parse_anyburl(lw_span line, lw_rule_text *out)
{
    lw_span rest = line, word[3];
    double n;
    if (memchr(line.s, '\t', line.n)) {
        for (int i = 0; i < 3; i++)
            word[i] = column(&rest);
        if (!lw_parse_number(word[0], &n) || !lw_parse_number(word[1], &n) ||
            !lw_parse_number(word[2], &out->weight))
            return "predicted, right and confidence are expected before an AnyBURL rule";
    }
    const char *arrow = find(rest, "<="), *end = rest.s + rest.n;
    if (!arrow)
        return "head(X,Y) <= body is expected behind an AnyBURL rule's numbers";
    out->style = LW_RULE_ANYBURL;
    if (lw_parse_trim(arrow + 2, end).n == 0) {
        out->skipped = "an AnyBURL rule without a body, left out";
        return NULL;
    }
    const char *why = lw_parse_head(rest.s, arrow, out);
    return why ? why : lw_parse_body(arrow + 2, end, out);
}

/* ---- AMIE -------------------------------------------------------------------------------------- */

/* The next of the pieces between runs of blanks, where `wide` of two or more; a name may hold single ones. */
static lw_span piece(lw_span *rest)
{
    const lw_span all = lw_parse_trim(rest->s, rest->s + rest->n);
    size_t n = 0;
    while (n < all.n && !(all.s[n] == ' ' && (n + 1 == all.n || all.s[n + 1] == ' ')))
        n++;
    *rest = (lw_span){all.s + n, all.n - n};
    return (lw_span){all.s, n};
}

static const char *parse_triple(lw_span *rest, lw_atom_text *out)
{
    *out = (lw_atom_text){{NULL, 0}, {{NULL, 0}, {NULL, 0}}, {false, false}};
    out->arg[0] = piece(rest);
    out->pred = piece(rest);
    out->arg[1] = piece(rest);
    if (out->arg[0].n == 0 || out->pred.n == 0 || out->arg[1].n == 0)
        return "an AMIE atom is subject, relation and object with two blanks between them";
    return NULL;
}

static const char *parse_triples(lw_span body, lw_span head, lw_rule_text *out)
{
    const char *why = NULL;
    while (!why && lw_parse_trim(body.s, body.s + body.n).n > 0) {
        if (out->n_body == LW_PROOF_MOST_BODY)
            return "the body has more than 32 atoms";
        why = parse_triple(&body, &out->body[out->n_body++]);
    }
    if (!why && out->n_body == 0)
        why = "the rule has no body";
    if (!why)
        why = parse_triple(&head, &out->head);
    return !why && lw_parse_trim(head.s, head.s + head.n).n > 0
               ? "there is something behind the head"
               : why;
}

/* PCA confidence is the third number; of fewer the last. A comma may stand for the point. */
static const char *amie_weight(lw_span numbers, lw_rule_text *out)
{
    char text[64];
    for (int i = 0; i < 3 && numbers.n > 0; i++) {
        const lw_span c = column(&numbers);
        if (c.n == 0 || c.n >= sizeof text)
            return "a confidence is expected behind an AMIE rule";
        for (size_t k = 0; k < c.n; k++)
            text[k] = c.s[k] == ',' ? '.' : c.s[k];
        if (!lw_parse_number((lw_span){text, c.n}, &out->weight))
            return "a confidence is expected behind an AMIE rule";
    }
    return NULL;
}

static const char *parse_amie(lw_span line, lw_rule_text *out)
{
    lw_span rest = line;
    const lw_span rule = column(&rest);
    const char *arrow = find(rule, "=>"), *end = rule.s + rule.n;
    if (!arrow) {
        out->skipped = "no rule but a line of AMIE's log, left out";
        return NULL;
    }
    out->style = LW_RULE_AMIE;
    const char *why = amie_weight(rest, out);
    if (why)
        return why;
    const lw_span body = {rule.s, (size_t)(arrow - rule.s)};
    if (!find(body, "(?") && !find(body, ",?"))
        return parse_triples(body, (lw_span){arrow + 2, (size_t)(end - arrow - 2)}, out);
    why = lw_parse_head(arrow + 2, end, out);
    return why ? why : lw_parse_body(body.s, arrow, out);
}

/* ---- which ------------------------------------------------------------------------------------- */

static bool is_amie(lw_span line)
{
    lw_span rest = line;
    const lw_span rule = column(&rest);
    return find(rule, "=>") != NULL && memchr(rule.s, '?', rule.n) != NULL;
}

static bool is_anyburl(lw_span line)
{
    return find(line, " <= ") != NULL || (line.n > 3 && memcmp(line.s + line.n - 3, " <=", 3) == 0);
}

lw_rule_style lw_parse_rule_style(lw_lines lines)
{
    lw_span line;
    while (lw_lines_next(&lines, &line)) {
        const bool ours = find(line, "->") != NULL || find(line, ":-") != NULL;
        if (!ours && is_amie(line))
            return LW_RULE_AMIE;
        if (!ours && is_anyburl(line))
            return LW_RULE_ANYBURL;
        if (ours)
            return LW_RULE_ARROW;
    }
    return LW_RULE_ARROW;
}

const char *lw_parse_mined(lw_span line, lw_rule_style style, lw_rule_text *out)
{
    *out = (lw_rule_text){.weight = 1};
    const char *why = lw_parse_clean(line);
    if (why)
        return why;
    return style == LW_RULE_AMIE ? parse_amie(line, out) : parse_anyburl(line, out);
}
