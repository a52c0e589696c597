/* SPDX-License-Identifier: Apache-2.0 */
/* Insides of a page under construction. */
#ifndef LW_REPORT_HTML_PARTS_H
#define LW_REPORT_HTML_PARTS_H

#include "report/report_html.h"

struct lw_html {
    lw_str title;                           /* plain text */
    lw_str subtitle, facts, contents, body; /* HTML */
    int sections;
    bool failed;
};

/* Escapes text and turns **bold** and `code` into elements; an unmatched mark stays as it is. */
void lw_html_inline(lw_str *out, const char *text);
/* The class of a mark behind other classes: " good"; "" for none. */
const char *lw_html_mark(lw_mark mark);

#endif
