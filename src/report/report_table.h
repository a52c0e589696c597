/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table, filled row by row, shown three ways: aligned text for a terminal, CSV, HTML.
 *
 *   LW_CLEANUP(lw_table_clear) lw_table t = {0};
 *   lw_table_column(&t, "method", LW_LEFT); lw_table_column(&t, "ms", LW_RIGHT);
 *   lw_table_cell(&t, "drift"); lw_table_cell(&t, "%.2f", ms); lw_table_mark(&t, LW_MARK_GOOD);
 *
 * A cell after the last column begins the next row. Out of memory shows in lw_table_ok.
 */
#ifndef LW_REPORT_TABLE_H
#define LW_REPORT_TABLE_H

#include <stdbool.h>

#include "formats/formats.h"

typedef enum lw_align { LW_LEFT, LW_RIGHT, LW_CENTER } lw_align;
typedef enum lw_mark {
    LW_MARK_NONE,
    LW_MARK_GOOD,  /* passes, better */
    LW_MARK_BAD,   /* fails, worse */
    LW_MARK_WARN,  /* look here */
    LW_MARK_MUTED, /* for comparison only */
    LW_MARK_STRONG
} lw_mark;

typedef struct lw_table_cell_text {
    char *text;
    lw_mark mark;
} lw_table_cell_text;

typedef struct lw_table {
    lw_table_cell_text *cells; /* headers first, then rows */
    size_t n, cap;
    lw_align *align;
    size_t columns, align_cap;
    bool failed;
} lw_table;

void lw_table_clear(lw_table *t);
/* All columns before the first cell. */
void lw_table_column(lw_table *t, const char *name, lw_align align);
/* `names` ends with NULL; the first `left` columns are texts, the others numbers. */
void lw_table_columns(lw_table *t, const char *const *names, int left);
void lw_table_cell(lw_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A number with `digits` significant digits ("1.23e+05" only beyond 1e6 or below 1e-4), "-" for
 * NaN. */
void lw_table_number(lw_table *t, double v, int digits);
/* For other programs: "%.*g", nothing where it is not finite. */
void lw_table_plain(lw_table *t, double v, int digits);
/* 0.125 with one decimal is "12.5 %"; "-" where it is not finite. */
void lw_table_percent(lw_table *t, double share, int decimals);
void lw_table_mark(lw_table *t, lw_mark mark); /* of the last cell */
size_t lw_table_rows(const lw_table *t);       /* whole and begun */
int lw_table_ok(const lw_table *t);            /* 0 or LW_ENOMEM */

/* Appends; columns two blanks apart, headers over a rule, no trailing blanks. */
void lw_table_text(const lw_table *t, lw_str *out);
void lw_table_csv(const lw_table *t, lw_str *out);
/* A <table> element for lw_html pages; caption: HTML, or NULL. Good and bad cells carry a sign
 * beside their colour. */
void lw_table_html(const lw_table *t, const char *caption, lw_str *out);

#endif
