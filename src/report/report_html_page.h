/* SPDX-License-Identifier: Apache-2.0 */
/* The page's style sheet, apart from the code that fills the page. */
#ifndef LW_REPORT_HTML_PAGE_H
#define LW_REPORT_HTML_PAGE_H

/* Pieces in order, then NULL (a compiler need not take a literal of more than 4095 characters). */
extern const char *const lw_html_style[];

#endif
