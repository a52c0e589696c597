/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as text, CSV and HTML. */
#include "report/report_table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "report/report_html_parts.h"

void lw_table_clear(lw_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        lw_free(&t->cells[i].text);
    lw_free(&t->cells);
    lw_free(&t->align);
    *t = (lw_table){0};
}

static void add(lw_table *t, const char *text)
{
    char *copy = lw_strdup(text);
    if (!copy || lw_grow(&t->cells, &t->cap, t->n + 1, sizeof *t->cells) < 0) {
        lw_free(&copy);
        t->failed = true;
        return;
    }
    t->cells[t->n++] = (lw_table_cell_text){copy, LW_MARK_NONE};
}

void lw_table_column(lw_table *t, const char *name, lw_align align)
{
    LW_ASSERT(t->n == t->columns || t->failed, "column '%s' after the first cell", name);
    if (lw_grow(&t->align, &t->align_cap, t->columns + 1, sizeof *t->align) < 0) {
        t->failed = true;
        return;
    }
    t->align[t->columns++] = align;
    add(t, name);
}

void lw_table_columns(lw_table *t, const char *const *names, int left)
{
    for (int i = 0; names[i]; i++)
        lw_table_column(t, names[i], i < left ? LW_LEFT : LW_RIGHT);
}

void lw_table_cell(lw_table *t, const char *fmt, ...)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    va_list args;
    va_start(args, fmt);
    lw_str_addv(&text, fmt, args);
    va_end(args);
    t->failed |= text.failed;
    add(t, lw_str_c(&text));
}

void lw_table_number(lw_table *t, double v, int digits)
{
    double a = fabs(v);
    if (isnan(v)) {
        add(t, "-");
    } else if (isinf(v)) {
        lw_table_cell(t, "%s", lw_not_finite_text(v));
    } else if (a != 0 && (a >= 1e6 || a < 1e-4)) {
        lw_table_cell(t, "%.*e", digits - 1, v);
    } else {
        int before = a >= 1 ? (int)floor(log10(a)) + 1 : a > 0 ? (int)floor(log10(a)) + 1 : 1;
        lw_table_cell(t, "%.*f", LW_MAX(0, digits - before), v);
    }
}

void lw_table_plain(lw_table *t, double v, int digits)
{
    if (isfinite(v))
        lw_table_cell(t, "%.*g", digits, v);
    else
        lw_table_cell(t, "%s", "");
}

void lw_table_percent(lw_table *t, double share, int decimals)
{
    if (isfinite(share))
        lw_table_cell(t, "%.*f %%", decimals, 100 * share);
    else
        lw_table_cell(t, "-");
}

void lw_table_mark(lw_table *t, lw_mark mark)
{
    if (t->n > t->columns)
        t->cells[t->n - 1].mark = mark;
}

size_t lw_table_rows(const lw_table *t)
{
    return t->columns ? LW_CEIL_DIV(t->n, t->columns) - 1 : 0;
}

int lw_table_ok(const lw_table *t)
{
    return t->failed ? lw_fail(LW_ENOMEM, "no memory for a table") : 0;
}

/* For a terminal: the texts of cells come from files too. */
static void clean_cells(const lw_table *t, lw_table *out)
{
    for (size_t i = 0; i < t->n; i++) {
        LW_CLEANUP(lw_str_clear) lw_str cell = {0};
        lw_str_add_clean(&cell, t->cells[i].text, "");
        add(out, lw_str_c(&cell));
    }
    out->columns = t->columns;
}

static const char *cell_at(const lw_table *t, size_t row, size_t column)
{
    size_t i = row * t->columns + column;
    return i < t->n ? t->cells[i].text : "";
}

static int column_width(const lw_table *t, size_t column)
{
    int w = 0;
    for (size_t r = 0; r <= lw_table_rows(t); r++)
        w = LW_MAX(w, lw_utf8_length(cell_at(t, r, column)));
    return w;
}

void lw_table_text(const lw_table *t, lw_str *out)
{
    LW_CLEANUP(lw_table_clear) lw_table clean = {0};
    clean_cells(t, &clean);
    out->failed = out->failed || clean.failed;
    for (size_t r = 0; t->columns && r <= lw_table_rows(&clean); r++) {
        for (size_t c = 0; c < t->columns; c++) {
            const char *s = cell_at(&clean, r, c);
            int room = column_width(&clean, c) - lw_utf8_length(s);
            int left = t->align[c] == LW_RIGHT ? room : t->align[c] == LW_CENTER ? room / 2 : 0;
            bool last = c + 1 == t->columns;
            lw_str_addf(out, "%*s%s%*s", left, "", s, last ? 0 : room - left + 2, "");
        }
        while (out->len && out->s[out->len - 1] == ' ') /* empty last cells */
            out->len--;
        lw_str_add(out, "\n");
        for (size_t c = 0; r == 0 && c < t->columns; c++) {
            for (int i = column_width(&clean, c); i > 0; i--)
                lw_str_add(out, "-");
            lw_str_add(out, c + 1 == t->columns ? "\n" : "  ");
        }
    }
}

void lw_table_csv(const lw_table *t, lw_str *out)
{
    for (size_t r = 0; t->columns && r <= lw_table_rows(t); r++) {
        for (size_t c = 0; c < t->columns; c++) {
            const char *one = cell_at(t, r, c);
            LW_CLEANUP(lw_str_clear) lw_str cell = {0};
            lw_csv_row(&cell, &one, 1);
            lw_str_add_n(out, lw_str_c(&cell), cell.len ? cell.len - 1 : 0);
            out->failed = out->failed || cell.failed;
            lw_str_add(out, c + 1 == t->columns ? "\n" : ",");
        }
    }
}

/* Colour alone says nothing to who cannot see it. */
static const char *sign_of(lw_mark mark)
{
    return mark == LW_MARK_GOOD  ? "<span class=\"sign\">\xe2\x9c\x93</span>" /* check mark */
           : mark == LW_MARK_BAD ? "<span class=\"sign\">\xe2\x9c\x97</span>" /* ballot cross */
                                 : "";
}

static void html_cell(const lw_table *t, size_t row, size_t column, lw_str *out)
{
    static const char *const aligns[] = {"l", "r", "c"};
    size_t i = row * t->columns + column;
    lw_mark mark = i < t->n ? t->cells[i].mark : LW_MARK_NONE;
    const char *scope = row == 0 ? " scope=\"col\"" : column == 0 ? " scope=\"row\"" : "";
    lw_str_addf(out, "<t%c%s class=\"%s%s\">%s", *scope ? 'h' : 'd', scope,
                aligns[t->align[column]], lw_html_mark(mark), sign_of(mark));
    lw_html_escape(out, cell_at(t, row, column));
    lw_str_addf(out, "</t%c>", *scope ? 'h' : 'd');
}

/* The box scrolls where the table is wider; a keyboard reaches it, and a wide one says so on a
 * narrow screen. */
void lw_table_html(const lw_table *t, const char *caption, lw_str *out)
{
    lw_str_addf(out, "<div class=\"scroll%s%s\" tabindex=\"0\"><table>\n",
                t->columns > 5 ? " wide" : "", t->columns > 9 ? " dense" : "");
    if (caption)
        lw_str_addf(out, "<caption>%s</caption>\n", caption);
    for (size_t r = 0; t->columns && r <= lw_table_rows(t); r++) {
        lw_str_add(out, r == 0 ? "<thead><tr>" : r == 1 ? "<tbody>\n<tr>" : "<tr>");
        for (size_t c = 0; c < t->columns; c++)
            html_cell(t, r, c, out);
        lw_str_add(out, r == 0 ? "</tr></thead>\n" : "</tr>\n");
    }
    lw_str_add(out, lw_table_rows(t) ? "</tbody></table></div>\n" : "</table></div>\n");
}
