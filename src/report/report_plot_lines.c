/* SPDX-License-Identifier: Apache-2.0 */
/* Line charts and distribution curves. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "report/report_plot_frame.h"

static double x_of(const lw_series *s, size_t i)
{
    return s->x ? s->x[i] : (double)i;
}

static bool usable(const lw_plot *p, const lw_series *s, size_t i)
{
    double x = x_of(s, i), y = s->y[i];
    return isfinite(x) && isfinite(y) && (!p->log_x || x > 0) && (!p->log_y || y > 0);
}

typedef struct range {
    double x0, x1, y0, y1;
} range;

static range find_range(const lw_plot *p, const lw_series *series, size_t n)
{
    range r = {DBL_MAX, -DBL_MAX, DBL_MAX, -DBL_MAX};
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < series[k].n; i++) {
            if (!usable(p, &series[k], i))
                continue;
            r.x0 = fmin(r.x0, x_of(&series[k], i));
            r.x1 = fmax(r.x1, x_of(&series[k], i));
            r.y0 = fmin(r.y0, series[k].y[i]);
            r.y1 = fmax(r.y1, series[k].y[i]);
        }
    if (p->from_zero && !p->log_y && r.y0 <= r.y1) {
        r.y0 = fmin(r.y0, 0);
        r.y1 = fmax(r.y1, 0);
    }
    return r;
}

/* Entries of the legend in rows between left and right; returns the height used: none for one
 * curve, which the title names. */
static double legend(lw_plot_frame *f, const lw_series *series, size_t n, double top)
{
    double x = f->left, y = top;
    if (n == 1 && f->plot->title)
        return 0;
    for (size_t k = 0; k < n; k++) {
        if (!series[k].name)
            continue;
        double width = 26 + lw_svg_width(series[k].name, 12) + 16;
        if (x > f->left && x + width > f->right + 16) {
            x = f->left;
            y += 18;
        }
        lw_str_addf(f->out, "<path d=\"M%.1f %.1fh18\" stroke-width=\"2.5\"%s", x, y + 8,
                    series[k].dashed ? " stroke-dasharray=\"5 3\"" : "");
        lw_svg_paint(f->out, "stroke", lw_svg_color(series[k].color, k));
        lw_str_add(f->out, "/>");
        lw_svg_text(f->out, x + 24, y + 12, "start", "fg", 12, false, series[k].name);
        x += width;
    }
    return y + 20 - top;
}

static void point(lw_plot_frame *f, const lw_series *s, size_t i, bool *pen)
{
    lw_str_addf(f->out, "%c%.1f %.1f", *pen ? 'L' : 'M', lw_plot_frame_at_x(f, x_of(s, i)),
                lw_plot_frame_at_y(f, s->y[i]));
    *pen = true;
}

/* Emits the run [from, to) of points that share a pixel column: first, extremes in order, last. */
static void column(lw_plot_frame *f, const lw_series *s, size_t from, size_t to, bool *pen)
{
    size_t lo = from, hi = from;
    for (size_t i = from; i < to; i++) {
        lo = s->y[i] < s->y[lo] ? i : lo;
        hi = s->y[i] > s->y[hi] ? i : hi;
    }
    size_t marks[4] = {from, LW_MIN(lo, hi), LW_MAX(lo, hi), to - 1};
    for (int k = 0; k < 4; k++)
        if (k == 0 || marks[k] != marks[k - 1])
            point(f, s, marks[k], pen);
}

/* No line goes to it or from it: it is seen only as a dot. */
static bool alone(const lw_plot_frame *f, const lw_series *s, size_t i)
{
    return (i == 0 || !usable(f->plot, s, i - 1)) && (i + 1 == s->n || !usable(f->plot, s, i + 1));
}

static void curve(lw_plot_frame *f, const lw_series *s, const char *color, bool faint)
{
    bool pen = false, thin = s->n > (size_t)(f->right - f->left) * 2;
    lw_str_addf(f->out, "<path fill=\"none\" stroke-width=\"%s\" stroke-linejoin=\"round\"%s%s",
                thin ? "1.4" : "2", s->dashed ? " stroke-dasharray=\"6 4\"" : "",
                faint ? " stroke-opacity=\".28\"" : "");
    lw_svg_paint(f->out, "stroke", color);
    lw_str_add(f->out, " d=\"");
    for (size_t i = 0; i < s->n;) {
        if (!usable(f->plot, s, i)) {
            pen = false;
            i++;
            continue;
        }
        size_t to = i + 1;
        long pixel = lrint(lw_plot_frame_at_x(f, x_of(s, i)));
        while (thin && to < s->n && usable(f->plot, s, to) &&
               lrint(lw_plot_frame_at_x(f, x_of(s, to))) == pixel)
            to++;
        column(f, s, i, to, &pen);
        i = to;
    }
    lw_str_add(f->out, "\"/>\n");
    for (size_t i = 0; !faint && i < s->n; i++) {
        if (!usable(f->plot, s, i) || !(s->dots || alone(f, s, i)))
            continue;
        lw_str_addf(f->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"",
                    lw_plot_frame_at_x(f, x_of(s, i)), lw_plot_frame_at_y(f, s->y[i]));
        lw_svg_paint(f->out, "fill", color);
        lw_str_addf(f->out, "><title>%.6g: %.6g</title></circle>\n", x_of(s, i), s->y[i]);
    }
}

/* The exponential moving average of y, free of the bias of its start; gaps stay. Freed by the
 * caller; NULL: out of memory. */
static double *smoothed(const lw_series *s)
{
    double *y = lw_calloc(s->n + 1, sizeof *y);
    double sum = 0, weight = 0;
    for (size_t i = 0; y && i < s->n; i++) {
        if (isfinite(s->y[i])) {
            sum = s->smooth * sum + (1 - s->smooth) * s->y[i];
            weight = s->smooth * weight + (1 - s->smooth);
        }
        y[i] = isfinite(s->y[i]) ? sum / weight : s->y[i];
    }
    return y;
}

static bool is_smooth(const lw_series *s)
{
    return s->smooth > 0 && s->smooth < 1;
}

/* The curve; a smoothed one over its raw one, which turns faint. */
static void draw(lw_plot_frame *f, const lw_series *s, const char *color)
{
    if (!is_smooth(s)) {
        curve(f, s, color, false);
        return;
    }
    LW_CLEANUP(lw_free) double *y = smoothed(s);
    lw_series over = *s;
    f->out->failed = f->out->failed || !y;
    if (!y)
        return;
    over.y = y;
    curve(f, s, color, true);
    curve(f, &over, color, false);
}

/* The x axis ends where the data end, so that curves reach the right edge. */
static void tighten_x(lw_axis *a, const range *r)
{
    int kept = 0;
    if (a->log || !(r->x0 < r->x1))
        return;
    a->lo = r->x0;
    a->hi = r->x1;
    for (int i = 0; i < a->n_ticks; i++)
        if (a->ticks[i] >= r->x0 - 1e-9 * a->step && a->ticks[i] <= r->x1 + 1e-9 * a->step)
            a->ticks[kept++] = a->ticks[i];
    a->n_ticks = kept;
}

/* Steps and other whole numbers get whole ticks; one alone stands in the middle. */
static void choose_x(lw_axis *a, const lw_plot *p, const lw_series *series, size_t n, range r)
{
    bool whole = !p->log_x && r.x0 <= r.x1 && fabs(r.x0) < 1e15 && fabs(r.x1) < 1e15;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; whole && i < series[k].n; i++)
            whole = !usable(p, &series[k], i) || x_of(&series[k], i) == rint(x_of(&series[k], i));
    if (whole && r.x0 == r.x1) {
        r.x0 -= 1;
        r.x1 += 1;
    }
    int want = whole && r.x1 - r.x0 < 6 ? (int)(r.x1 - r.x0) : 6;
    lw_axis_init(a, r.x0, r.x1, p->log_x, want);
    tighten_x(a, &r);
    if (!p->x_ticks)
        return;
    a->n_ticks = 0;
    a->step = a->log ? 0 : a->step;
    for (size_t i = 0; i < p->n_x_ticks && a->n_ticks < LW_AXIS_MAX_TICKS; i++)
        if (p->x_ticks[i] >= a->lo && p->x_ticks[i] <= a->hi)
            a->ticks[a->n_ticks++] = p->x_ticks[i];
}

/* ---- what stands where a line ends ------------------------------------------------------ */

enum { ENDS_MAX = 8, END_HEIGHT = 14 };

typedef struct line_end {
    char text[64];
    double x, y; /* of the point, then of the text */
    const char *color;
} line_end;

/* Of every series its last value, of one of a single point also its name. Returns how many. Width:
 * room for them at the right; points that are all one above the other stand in the middle. */
static int find_ends(const lw_plot *p, const lw_series *series, size_t n, const range *r,
                     line_end *ends, double *width)
{
    int m = 0;
    *width = 0;
    for (size_t k = 0; !p->no_ends && n <= ENDS_MAX && k < n; k++) {
        const lw_series *s = &series[k];
        LW_CLEANUP(lw_free) double *y = is_smooth(s) ? smoothed(s) : NULL;
        size_t points = 0, last = 0;
        char value[32];
        for (size_t i = 0; i < s->n; i++)
            if (usable(p, s, i)) {
                points++;
                last = i;
            }
        if (!points)
            continue;
        line_end *e = &ends[m++];
        e->x = x_of(s, last);
        e->y = y ? y[last] : s->y[last];
        e->color = lw_svg_color(s->color, k);
        const lw_axis exact = {.step = fabs(e->y) / 30}; /* about two digits */
        lw_axis_label(&exact, value, e->y);
        snprintf(e->text, sizeof e->text, points == 1 && n > 1 && s->name ? "%.30s %s" : "%.0s%s",
                 s->name ? s->name : "", value);
        *width = fmax(*width, r->x0 < r->x1 || n == 1 ? lw_svg_width(e->text, 12) : 0);
    }
    return m;
}

static int by_height(const void *a, const void *b)
{
    double x = ((const line_end *)a)->y, y = ((const line_end *)b)->y;
    return (x > y) - (x < y);
}

/* Beside their points, from top to bottom, none over another near it. */
static void draw_ends(lw_plot_frame *f, line_end *ends, int n)
{
    for (int i = 0; i < n; i++) {
        ends[i].x = lw_plot_frame_at_x(f, ends[i].x) + 8;
        ends[i].y = lw_plot_frame_at_y(f, ends[i].y) + 4;
    }
    qsort(ends, (size_t)n, sizeof *ends, by_height);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            if (fabs(ends[i].x - ends[k].x) < 90)
                ends[i].y = fmax(ends[i].y, ends[k].y + END_HEIGHT);
        lw_svg_text(f->out, ends[i].x, ends[i].y, "start", ends[i].color, 12, true, ends[i].text);
    }
}

/* Above the drawing area: title, legend, name of the y axis. */
static void head(lw_plot_frame *f, const lw_series *series, size_t n)
{
    double top = f->plot->title ? 28 : 4;
    lw_plot_frame_open(f);
    top += legend(f, series, n, top);
    if (f->plot->y_label) {
        lw_svg_text(f->out, 0, top + 12, "start", "muted", 12, false, f->plot->y_label);
        top += 16;
    }
    f->top = top + 8;
    f->bottom = f->height - (f->plot->x_label ? 44 : 26);
}

void lw_plot_lines(const lw_plot *p, const lw_series *series, size_t n, lw_str *out)
{
    lw_plot_frame f = {.out = out, .plot = p};
    line_end ends[ENDS_MAX];
    double labels = 0, values = 0;
    char buf[32];
    f.width = p->width ? p->width : 540;
    f.height = p->height ? p->height : 320;
    range r = find_range(p, series, n);
    int n_ends = find_ends(p, series, n, &r, ends, &values);
    choose_x(&f.x, p, series, n, r);
    lw_axis_init(&f.y, r.y0, r.y1, p->log_y, 5);
    for (int i = 0; i < f.y.n_ticks; i++)
        labels = fmax(labels, lw_svg_width(lw_axis_label(&f.y, buf, f.y.ticks[i]), 12));
    f.left = labels + 14;
    f.right = f.width - 14 - values;
    head(&f, series, n);
    lw_plot_frame_y_axis(&f);
    lw_plot_frame_x_axis(&f);
    if (!(r.x0 <= r.x1))
        lw_svg_text(out, (f.left + f.right) / 2, (f.top + f.bottom) / 2, "middle", "muted", 13,
                    false, "no data");
    for (size_t k = 0; k < n; k++)
        draw(&f, &series[k], lw_svg_color(series[k].color, k));
    draw_ends(&f, ends, n_ends);
    lw_plot_frame_close(&f);
}
