/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a page: cards, texts, pictures, plots, tables. */
#include <string.h>

#include "base/base.h"
#include "report/report_html_parts.h"

static void escape_n(lw_str *out, const char *s, size_t n)
{
    LW_CLEANUP(lw_str_clear) lw_str part = {0};
    lw_str_add_n(&part, s, n);
    lw_html_escape(out, lw_str_c(&part));
    out->failed = out->failed || part.failed;
}

void lw_html_inline(lw_str *out, const char *text)
{
    static const struct {
        const char *mark, *tag;
    } marks[] = {{"**", "strong"}, {"`", "code"}};
    while (*text) {
        const char *end = NULL;
        for (size_t i = 0; i < LW_COUNT(marks) && !end; i++) {
            size_t m = strlen(marks[i].mark);
            if (!lw_str_starts(text, marks[i].mark) || !(end = strstr(text + m, marks[i].mark)))
                continue;
            lw_str_addf(out, "<%s>", marks[i].tag);
            escape_n(out, text + m, (size_t)(end - text) - m);
            lw_str_addf(out, "</%s>", marks[i].tag);
            text = end + m;
        }
        if (!end) {
            size_t plain = strcspn(text + 1, "*`") + 1;
            escape_n(out, text, plain);
            text += plain;
        }
    }
}

const char *lw_html_mark(lw_mark mark)
{
    static const char *const names[] = {"", " good", " bad", " warn", " muted", " strong"};
    return names[mark];
}

void lw_html_facts(lw_html *h, const char *const *pairs, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        lw_str_add(&h->facts, "<div><dt>");
        lw_html_escape(&h->facts, pairs[2 * i]);
        lw_str_add(&h->facts, "</dt><dd>");
        lw_html_escape(&h->facts, pairs[2 * i + 1]);
        lw_str_add(&h->facts, "</dd></div>");
    }
}

void lw_html_cards(lw_html *h, const lw_card *cards, size_t n)
{
    lw_str *b = &h->body;
    lw_str_add(b, "<div class=\"cards\">\n");
    for (size_t i = 0; i < n; i++) {
        lw_str_addf(b, "<div class=\"card%s\"><div class=\"k\">", lw_html_mark(cards[i].mark));
        lw_html_inline(b, cards[i].label);
        lw_str_add(b, "</div><div class=\"v\">");
        lw_html_inline(b, cards[i].value);
        if (cards[i].mark == LW_MARK_GOOD || cards[i].mark == LW_MARK_BAD)
            lw_str_addf(b, "<span class=\"sr\"> (%s)</span>",
                        cards[i].mark == LW_MARK_GOOD ? "passes" : "fails");
        lw_str_add(b, "</div>");
        if (cards[i].note) {
            lw_str_add(b, "<div class=\"n\">");
            lw_html_inline(b, cards[i].note);
            lw_str_add(b, "</div>");
        }
        lw_str_add(b, "</div>\n");
    }
    lw_str_add(b, "</div>\n");
}

void lw_html_section(lw_html *h, const char *title)
{
    int id = ++h->sections;
    lw_str_addf(&h->body, "<h2 id=\"s%d\">", id);
    lw_html_inline(&h->body, title);
    lw_str_add(&h->body, "</h2>\n");
    lw_str_addf(&h->contents, "<a href=\"#s%d\">", id);
    lw_html_inline(&h->contents, title);
    lw_str_add(&h->contents, "</a>");
}

void lw_html_text(lw_html *h, const char *text)
{
    lw_str_add(&h->body, "<p>");
    lw_html_inline(&h->body, text);
    lw_str_add(&h->body, "</p>\n");
}

void lw_html_note(lw_html *h, lw_mark mark, const char *text)
{
    lw_str_addf(&h->body, "<div class=\"note%s\">", lw_html_mark(mark));
    lw_html_inline(&h->body, text);
    lw_str_add(&h->body, "</div>\n");
}

void lw_html_list(lw_html *h, const char *const *items, size_t n)
{
    lw_str_add(&h->body, "<ul>\n");
    for (size_t i = 0; i < n; i++) {
        lw_str_add(&h->body, "<li>");
        lw_html_inline(&h->body, items[i]);
        lw_str_add(&h->body, "</li>\n");
    }
    lw_str_add(&h->body, "</ul>\n");
}

static void caption(lw_str *b, const char *text)
{
    if (!text)
        return;
    lw_str_add(b, "<figcaption>");
    lw_html_inline(b, text);
    lw_str_add(b, "</figcaption>");
}

/* One beside every row of the picture, which are equally high. */
static void row_names(lw_str *b, const lw_figure *f)
{
    lw_str_add(b, "<div class=\"named\"><div class=\"names\">");
    for (int i = 0; i < f->n_rows; i++) {
        lw_str_add(b, "<span title=\"");
        lw_html_escape(b, f->rows[i]);
        lw_str_add(b, "\">");
        lw_html_escape(b, f->rows[i]);
        lw_str_add(b, "</span>");
    }
    lw_str_add(b, "</div>");
}

static void picture(lw_html *h, const lw_figure *f, bool shrinks)
{
    LW_CLEANUP(lw_str_clear) lw_str png = {0};
    lw_str *b = &h->body;
    if (lw_png_encode(f->picture, NULL, &png) < 0) {
        h->failed = true;
        return;
    }
    lw_str_add(b, "<figure>");
    if (f->title) {
        lw_str_add(b, "<h3>");
        lw_html_inline(b, f->title);
        lw_str_add(b, "</h3>");
    }
    if (f->rows)
        row_names(b, f);
    lw_str_addf(b, "<img width=\"%d\" height=\"%d\" style=\"max-width:%dpx%s\" alt=\"",
                f->picture->width, f->picture->height, 4 * f->picture->width,
                shrinks ? ";image-rendering:auto" : "");
    lw_html_escape(b, f->title ? f->title : f->caption ? f->caption : "picture");
    lw_str_add(b, "\" src=\"data:image/png;base64,");
    lw_base64(b, png.s, png.len);
    lw_str_add(b, f->rows ? "\"></div>" : "\">");
    caption(b, f->caption);
    lw_str_add(b, "</figure>\n");
}

void lw_html_pictures(lw_html *h, const lw_figure *figures, size_t n)
{
    lw_str_add(&h->body, "<div class=\"row\">\n");
    for (size_t i = 0; i < n; i++)
        picture(h, &figures[i], n > 1 && figures[i].picture->width > 500);
    lw_str_add(&h->body, "</div>\n");
}

void lw_html_plots(lw_html *h, const char *const *svgs, const char *const *captions, size_t n)
{
    lw_str_add(&h->body, "<div class=\"row plots\">\n");
    for (size_t i = 0; i < n; i++) {
        lw_str_addf(&h->body, "<figure>%s", svgs[i]);
        caption(&h->body, captions ? captions[i] : NULL);
        lw_str_add(&h->body, "</figure>\n");
    }
    lw_str_add(&h->body, "</div>\n");
}

void lw_html_table(lw_html *h, const lw_table *t, const char *title, const char *note)
{
    LW_CLEANUP(lw_str_clear) lw_str caption = {0};
    if (title)
        lw_html_inline(&caption, title);
    h->failed = h->failed || t->failed || caption.failed;
    lw_table_html(t, title ? lw_str_c(&caption) : NULL, &h->body);
    if (note) {
        lw_str_add(&h->body, "<p class=\"cap\">");
        lw_html_inline(&h->body, note);
        lw_str_add(&h->body, "</p>\n");
    }
}

void lw_html_fold_begin(lw_html *h, const char *title)
{
    lw_str_add(&h->body, "<details><summary>");
    lw_html_inline(&h->body, title);
    lw_str_add(&h->body, "</summary>");
}

void lw_html_fold_end(lw_html *h)
{
    lw_str_add(&h->body, "</details>\n");
}

void lw_html_fold(lw_html *h, const char *title, const char *text)
{
    lw_html_fold_begin(h, title);
    lw_str_add(&h->body, "<pre tabindex=\"0\">"); /* it scrolls: for keyboards, too */
    lw_html_escape(&h->body, text);
    lw_str_add(&h->body, "</pre>");
    lw_html_fold_end(h);
}

void lw_html_fold_file(lw_html *h, const char *title, const char *dir, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_free) char *text = NULL;
    size_t n;
    lw_path_join(&path, dir, name);
    if (!lw_path_exists(lw_str_c(&path)))
        return;
    bool failed = lw_file_read(lw_str_c(&path), 0, &text, &n) < 0;
    lw_html_fold(h, title, failed ? lw_errmsg() : text);
    if (failed)
        lw_errclear();
}

void lw_html_links(lw_html *h, const char *const *pairs, size_t n_pairs)
{
    lw_str_add(&h->body, "<p class=\"links\">");
    for (size_t i = 0; i < n_pairs; i++) {
        lw_str_add(&h->body, "<a href=\"");
        lw_html_escape(&h->body, pairs[2 * i + 1]);
        lw_str_add(&h->body, "\">");
        lw_html_inline(&h->body, pairs[2 * i]);
        lw_str_add(&h->body, "</a> ");
    }
    lw_str_add(&h->body, "</p>\n");
}
