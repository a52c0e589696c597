/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a dataset as pieces of text. Nothing is copied: spans point into the file's bytes.
 *
 *   facts and queries   pred(a,b).          head<TAB>pred<TAB>tail
 *   with a depth        pred(a,b) 3         pred(a,b) -1
 *   rules               r0:0.7:b(x,h), c(h,y) -> head(x,y)      every argument is a variable
 *                       head(X,Y) :- b(X,H), c(H,Y).            Prolog's: capitals and _ are
 *                       0.72<TAB>head(X,Y) :- b(X,Y).           variables, all else constants
 *                       as AnyBURL and AMIE write them (logic_parse_mined.c)
 *   domains             people ann bob        livesIn:people:places
 *
 * Lines that are blank or begin with % say nothing. Names may be quoted: 'new york'.
 */
#ifndef LW_LOGIC_PARSE_H
#define LW_LOGIC_PARSE_H

#include <stdbool.h>

#include "logic/kb/logic_atom.h"
#include "logic/kb/logic_symbols.h"

typedef struct lw_lines {
    const char *at, *end;
    int64_t line; /* number of the one given last, from 1 */
} lw_lines;

/* Lines of a text, which may be {NULL, 0}. */
lw_lines lw_lines_of(lw_span text);
/* The next line that says something, without blanks at its ends; false at the end of the text. */
bool lw_lines_next(lw_lines *l, lw_span *out);

typedef struct lw_atom_text {
    lw_span pred, arg[2];
    bool quoted[2]; /* a quoted argument is never a variable */
} lw_atom_text;

/* Who wrote a file of rules: what is a variable in it. */
typedef enum lw_rule_style {
    LW_RULE_ARROW, /* ours: -> (every argument) or, line by line, Prolog's :- (capitals and _) */
    LW_RULE_PROLOG,
    LW_RULE_ANYBURL, /* single capitals */
    LW_RULE_AMIE     /* what begins with ? */
} lw_rule_style;

typedef struct lw_rule_text {
    lw_atom_text head, body[LW_PROOF_MOST_BODY];
    int32_t n_body;
    lw_rule_style style;
    const char *skipped; /* no rule, and why that is none */
    double weight;       /* 1 when none is given */
} lw_rule_text;

/* A fact, query or annotated query. *rest: what stands behind it ("", or the depth). NULL, or the
 * reason why not. The predicate ends at the last opening parenthesis, as names may contain any. */
const char *lw_parse_triple(lw_span line, lw_atom_text *out, lw_span *rest);
const char *lw_parse_depth(lw_span rest, int32_t *out);
const char *lw_parse_rule(lw_span line, lw_rule_text *out);
/* By the first line that looks like a rule. */
lw_rule_style lw_parse_rule_style(lw_lines lines);
const char *lw_parse_mined(lw_span line, lw_rule_style style, lw_rule_text *out);
/* Cuts the next word off *rest; n = 0: none left. */
lw_span lw_parse_word(lw_span *rest);

#endif
