/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by logic_parse.c and logic_parse_rule.c. */
#ifndef LW_LOGIC_PARSE_PARTS_H
#define LW_LOGIC_PARSE_PARTS_H

#include "logic/kb/logic_parse.h"

/* The text from..to without blanks at its ends. */
lw_span lw_parse_trim(const char *from, const char *to);
/* NULL, or why not: UTF-8 without control characters but tabs. */
const char *lw_parse_clean(lw_span s);
lw_span lw_parse_unquote(lw_span s, bool *quoted);
/* The argument at *at up to `stop` (, or a closing parenthesis), which is passed over. NULL or a
 * reason. */
const char *lw_parse_arg(const char **at, const char *end, char stop, lw_span *out, bool *quoted);

bool lw_parse_number(lw_span s, double *out);
/* `pred(x,y), ..` into out->body, `pred(x,y)` into out->head. */
const char *lw_parse_body(const char *at, const char *end, lw_rule_text *out);
const char *lw_parse_head(const char *at, const char *end, lw_rule_text *out);

#endif
