/* SPDX-License-Identifier: Apache-2.0 */
/* Horizontal bars, in groups. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "report/report_plot_frame.h"

#define BAR 20
#define STEP 27
#define HEADING 25
#define NAMES 0.55 /* of the width at most: what is left are bars that can be told apart */

static bool heads_group(const lw_bar *bars, size_t i)
{
    if (!bars[i].group)
        return false;
    return i == 0 || !bars[i - 1].group || !lw_str_eq(bars[i].group, bars[i - 1].group);
}

static const char *bar_text(const lw_bar *b, char buf[32])
{
    if (b->text)
        return b->text;
    lw_axis exact = {.log = false, .step = fabs(b->value) / 100}; /* about three digits */
    return isfinite(b->value) ? lw_axis_label(&exact, buf, b->value) : "n/a";
}

static bool has_range(const lw_bar *b)
{
    return b->low < b->high;
}

static void choose_axis(lw_plot_frame *f, const lw_bar *bars, size_t n)
{
    static const double decades = 100;
    const bool log = f->plot->log_x;
    double lo = DBL_MAX, hi = -DBL_MAX, low = DBL_MAX;
    for (size_t i = 0; i < n; i++) {
        const lw_bar *b = &bars[i];
        if (!isfinite(b->value) || (log && b->value <= 0))
            continue;
        lo = fmin(lo, b->value);
        hi = fmax(hi, has_range(b) && isfinite(b->high) ? fmax(b->value, b->high) : b->value);
        if (has_range(b) && isfinite(b->low) && (!log || b->low > 0))
            low = fmin(low, b->low);
    }
    if (lo <= hi && log) /* the smallest bar keeps a visible length */
        lo = fmin(lo / 2, fmax(low, lo / decades));
    else if (lo <= hi) {
        lo = fmin(fmin(lo, low), 0);
        hi = fmax(hi, 0);
    }
    lw_axis_init(&f->x, lo, hi, log, 5);
}

static const char *color_of(const lw_bar *b)
{
    return b->muted ? "muted" : lw_svg_color(b->color, 0);
}

/* The bar from x0 to x1, or the dot at x1. */
static void draw_value(lw_plot_frame *f, const lw_bar *b, double x0, double x1, double y)
{
    lw_str *out = f->out;
    bool dots = f->plot->dots;
    if (dots) {
        lw_str_addf(out, "<path d=\"M%.1f %.1fH%.1f\" stroke-width=\"1\"", f->left, y + BAR / 2.0,
                    f->right);
        lw_svg_paint(out, "stroke", "line");
        lw_str_addf(out, "/><circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\"", x1, y + BAR / 2.0);
    } else {
        lw_str_addf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\"",
                    fmin(x0, x1), y, fmax(fabs(x1 - x0), 1), BAR);
    }
    lw_svg_paint(out, "fill", color_of(b));
    lw_str_addf(out, "><title>%.9g</title></%s>", b->value, dots ? "circle" : "rect");
}

/* An end of a range: a tick, or the tip of an arrow where the axis does not reach it. side: -1, 1. */
static double draw_end(lw_plot_frame *f, double v, int side, double y)
{
    bool cut = !lw_axis_has(&f->x, v) || (side < 0 ? v < f->x.lo : v > f->x.hi);
    double x = !cut ? lw_plot_frame_at_x(f, v) : side < 0 ? f->left : f->right;
    if (cut)
        lw_str_addf(f->out, "M%.1f %.1fL%.1f %.1fL%.1f %.1f", x - 6 * side, y - 4, x, y,
                    x - 6 * side, y + 4);
    else
        lw_str_addf(f->out, "M%.1f %.1fv8", x, y - 4);
    return x;
}

/* Returns where it ends. */
static double draw_range(lw_plot_frame *f, const lw_bar *b, double y)
{
    lw_str_add(f->out, "<path fill=\"none\" stroke-width=\"1.5\" d=\"");
    double x0 = draw_end(f, b->low, -1, y), x1 = draw_end(f, b->high, 1, y);
    lw_str_addf(f->out, "M%.1f %.1fH%.1f\"", x0, y, x1);
    lw_svg_paint(f->out, "stroke", b->muted ? "muted" : "fg");
    lw_str_addf(f->out, "><title>%.9g to %.9g</title></path>", b->low, b->high);
    return x1;
}

/* The bytes of the first so many characters. */
static size_t bytes_of(const char *s, int32_t characters)
{
    size_t n = 0;
    for (const size_t all = strlen(s); characters > 0 && n < all; characters--)
        n += LW_MAX(lw_utf8_size((const unsigned char *)s + n, all - n), (size_t)1);
    return n;
}

/* A name of at most that width: without its middle, as names of one kind differ at their ends. */
static void add_name(const char *name, double width, lw_str *out)
{
    const int32_t all = lw_utf8_length(name);
    int32_t kept = all;
    if (lw_svg_width(name, 12) <= width + 0.5) { /* which was rounded on its way here */
        lw_str_add(out, name);
        return;
    }
    while (kept > 2 &&
           lw_svg_width(name, 12) * (kept + 3) / all > width) /* a margin for wide letters */
        kept--;
    lw_str_add_n(out, name, bytes_of(name, kept / 2));
    lw_str_add(out, "\xe2\x80\xa6"); /* three dots */
    lw_str_add(out, name + bytes_of(name, all - (kept - kept / 2)));
}

static void draw_bar(lw_plot_frame *f, const lw_bar *b, double y)
{
    char buf[32];
    lw_str *out = f->out;
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    const char *text = b->muted ? "muted" : "fg";
    add_name(b->name, f->left - 14, &name);
    lw_svg_text(out, f->left - 10, y + BAR / 2.0 + 4, "end", text, 12, false, lw_str_c(&name));
    double zero = lw_plot_frame_at_x(f, f->x.log ? f->x.lo : 0), end = zero;
    if (lw_axis_has(&f->x, b->value)) {
        end = lw_plot_frame_at_x(f, b->value);
        draw_value(f, b, zero, end, y);
        if (has_range(b))
            end = fmax(end, draw_range(f, b, y + BAR / 2.0));
    }
    lw_svg_text(out, fmax(zero, end) + (f->plot->dots ? 10 : 6), y + BAR / 2.0 + 4, "start", text,
                12, false, bar_text(b, buf));
}

void lw_plot_bars(const lw_plot *p, const lw_bar *bars, size_t n, lw_str *out)
{
    char buf[32];
    lw_plot_frame f = {.out = out, .plot = p};
    double names = 0, texts = 0, rows = 0;
    for (size_t i = 0; i < n; i++) {
        names = fmax(names, lw_svg_width(bars[i].name, 12));
        texts = fmax(texts, lw_svg_width(bar_text(&bars[i], buf), 12));
        rows += STEP + (heads_group(bars, i) ? HEADING : 0);
    }
    double top = p->title ? 32 : 6, bottom = p->x_label ? 44 : 26;
    f.width = p->width ? p->width : 540;
    f.height = p->height ? p->height : top + rows + bottom + 4;
    f.left = fmin(names, NAMES * f.width) + 14;
    f.right = f.width - texts - 14;
    f.top = top;
    f.bottom = f.height - bottom;
    choose_axis(&f, bars, n);
    lw_plot_frame_open(&f);
    lw_plot_frame_x_axis(&f);
    double y = f.top + 4;
    for (size_t i = 0; i < n; i++) {
        if (heads_group(bars, i)) {
            lw_svg_text(out, 0, y + 15, "start", "muted", 12, true, bars[i].group);
            y += HEADING;
        }
        draw_bar(&f, &bars[i], y);
        y += STEP;
    }
    if (n == 0)
        lw_svg_text(out, (f.left + f.right) / 2, f.top + 20, "middle", "muted", 13, false,
                    "no data");
    lw_plot_frame_close(&f);
}
