/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One self-contained HTML page: style, pictures and plots inside, light and dark, fit for printing,
 * no script, no network. Parts appear in the order they are added; texts are escaped, and in them
 * **bold** and `code` work. Out of memory is reported by save.
 */
#ifndef LW_REPORT_HTML_H
#define LW_REPORT_HTML_H

#include "formats/formats.h"
#include "report/report_table.h"

typedef struct lw_html lw_html;

/* Both as they are, for they are names; subtitle may be NULL. */
int lw_html_new(const char *title, const char *subtitle, lw_html **out);
void lw_html_free(lw_html **pp);

/* A line of small key: value pairs under the title: key, value, key, value... */
void lw_html_facts(lw_html *h, const char *const *pairs, size_t n_pairs);

/* The cards at the top: what was found, in one number each. */
typedef struct lw_card {
    const char *label; /* "Speed-up at batch 1" */
    const char *value; /* "41x" */
    const char *note;  /* "1 evaluation against 50"; may be NULL */
    lw_mark mark;      /* GOOD and BAD colour the card and say so in words to screen readers */
} lw_card;
void lw_html_cards(lw_html *h, const lw_card *cards, size_t n);

void lw_html_section(lw_html *h, const char *title); /* a heading that the contents line links to */
void lw_html_text(lw_html *h, const char *text);     /* a paragraph */
void lw_html_note(lw_html *h, lw_mark mark, const char *text); /* a boxed remark */
void lw_html_list(lw_html *h, const char *const *items, size_t n);

/* Pictures beside each other, each with its caption and an optional badge; wrap on
 * small screens. */
typedef struct lw_figure {
    const lw_image *picture; /* shown with hard pixels, as wide as fits, at most 4x its size */
    const char *title;       /* above, may be NULL */
    const char *caption;     /* below, may be NULL */
    const char *const *rows; /* names of the picture's rows, written left of them, or NULL */
    int n_rows;
} lw_figure;
void lw_html_pictures(lw_html *h, const lw_figure *figures, size_t n);
/* Plots (SVG text of report_plot.h) beside each other, with captions (or NULL). */
void lw_html_plots(lw_html *h, const char *const *svgs, const char *const *captions, size_t n);
/* title: of the table, as its caption; note: a remark below. Either may be NULL. The first column
 * heads the rows and stays in sight when the table scrolls. */
void lw_html_table(lw_html *h, const lw_table *t, const char *title, const char *note);
/* Preformatted text (a command, a config) that can be folded away under its title. */
void lw_html_fold(lw_html *h, const char *title, const char *text);
/* The same of a file in dir; where it cannot be read the reason is its text, where there is none
 * nothing is added. */
void lw_html_fold_file(lw_html *h, const char *title, const char *dir, const char *name);
/* The same around any parts, between begin and end; paper shows them all. */
void lw_html_fold_begin(lw_html *h, const char *title);
void lw_html_fold_end(lw_html *h);
/* A line of links: text, address, text, address...; addresses are relative paths or "#s1". */
void lw_html_links(lw_html *h, const char *const *pairs, size_t n_pairs);

/* Appends the whole page. LW_ENOMEM when any part ran out of memory. */
int lw_html_render(const lw_html *h, lw_str *out);
int lw_html_save(const lw_html *h, const char *path); /* atomic */

void lw_html_escape(lw_str *out, const char *text);
void lw_base64(lw_str *out, const void *bytes, size_t n);

#endif
