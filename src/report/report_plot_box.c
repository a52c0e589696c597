/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions of samples: box plots, and cumulative curves drawn by lw_plot_lines. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "report/report_plot_frame.h"

#define BOX 20
#define STEP 34

double *lw_sorted(const double *v, size_t n, size_t *n_out)
{
    double *s = lw_calloc(n + 1, sizeof *s);
    if (!s)
        return NULL;
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i]))
            s[m++] = v[i];
    lw_sort(s, m);
    *n_out = m;
    return s;
}

enum { P5, Q1, MEDIAN, Q3, P95, P99, N_MARKS };

typedef struct box {
    double q[N_MARKS];
} box;

static void draw_box(lw_frame *f, const lw_samples *s, const box *b, size_t row, double y)
{
    double x[N_MARKS], m = y + BOX / 2.0;
    lw_str *out = f->out;
    lw_svg_text(out, f->left - 10, m + 4, "end", "fg", 12, false, s->name);
    for (int i = 0; i < N_MARKS; i++) {
        if (!lw_axis_has(&f->x, b->q[i])) {
            lw_svg_text(out, f->left + 8, m + 4, "start", "muted", 12, false, "no data");
            return;
        }
        x[i] = lw_frame_at_x(f, b->q[i]);
    }
    lw_str_addf(out, "<g stroke-width=\"1.6\" fill=\"none\"");
    lw_svg_paint(out, "stroke", lw_svg_color(s->color, row));
    lw_str_addf(out, "><title>median %.4g, 95%% %.4g, 99%% %.4g, n %zu</title>", b->q[MEDIAN],
                b->q[P95], b->q[P99], s->n);
    lw_str_addf(out, "<path d=\"M%.1f %.1fH%.1fM%.1f %.1fH%.1fM%.1f %.1fv10M%.1f %.1fv10\"/>",
                x[P5], m, x[Q1], x[Q3], m, x[P95], x[P5], m - 5, x[P95], m - 5);
    lw_str_addf(
        out,
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\" fill-opacity=\".18\"",
        x[Q1], y, fmax(x[Q3] - x[Q1], 1), BOX);
    lw_svg_paint(out, "fill", lw_svg_color(s->color, row));
    lw_str_addf(
        out,
        "/><path stroke-width=\"3\" d=\"M%.1f %.1fv%d\"/><circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>",
        x[MEDIAN], y, BOX, x[P99], m);
    lw_str_add(out, "</g>\n");
}

/* The five marks of every sample and the range they span. False when out of memory. */
static bool summarise(const lw_plot *p, const lw_samples *samples, size_t n, box *boxes, double *lo,
                      double *hi)
{
    static const double q[N_MARKS] = {0.05, 0.25, 0.5, 0.75, 0.95, 0.99};
    for (size_t k = 0; k < n; k++) {
        size_t m;
        double *s = lw_sorted(samples[k].v, samples[k].n, &m);
        if (!s)
            return false;
        for (int i = 0; i < N_MARKS; i++) {
            double v = boxes[k].q[i] = lw_quantile(s, m, q[i]);
            if (isfinite(v) && (!p->log_x || v > 0)) {
                *lo = fmin(*lo, v);
                *hi = fmax(*hi, v);
            }
        }
        lw_free(&s);
    }
    return true;
}

void lw_plot_box(const lw_plot *p, const lw_samples *samples, size_t n, lw_str *out)
{
    lw_frame f = {.out = out, .plot = p};
    double names = 0, lo = DBL_MAX, hi = -DBL_MAX;
    LW_CLEANUP(lw_free) box *boxes = lw_calloc(n + 1, sizeof *boxes);
    if (!boxes || !summarise(p, samples, n, boxes, &lo, &hi)) {
        out->failed = true;
        return;
    }
    for (size_t k = 0; k < n; k++)
        names = fmax(names, lw_svg_width(samples[k].name, 12));
    if (p->from_zero && !p->log_x && lo <= hi)
        lo = fmin(lo, 0);
    double top = p->title ? 32 : 6, bottom = p->x_label ? 44 : 26;
    f.width = p->width ? p->width : 540;
    f.height = p->height ? p->height : top + (double)n * STEP + bottom + 8;
    f.left = names + 14;
    f.right = f.width - 14;
    f.top = top;
    f.bottom = f.height - bottom;
    lw_axis_init(&f.x, lo, hi, p->log_x, 6);
    lw_frame_open(&f);
    lw_frame_x_axis(&f);
    for (size_t k = 0; k < n; k++)
        draw_box(&f, &samples[k], &boxes[k], k, f.top + 10 + (double)k * STEP);
    lw_frame_close(&f);
}

void lw_plot_cdf(const lw_plot *p, const lw_samples *samples, size_t n, lw_str *out)
{
    LW_CLEANUP(lw_free) lw_series *series = lw_calloc(n + 1, sizeof *series);
    LW_CLEANUP(lw_free) double **data = lw_calloc(2 * n + 1, sizeof *data);
    bool ok = series && data;
    for (size_t k = 0; ok && k < n; k++) {
        size_t m = 0;
        double *x = data[2 * k] = lw_sorted(samples[k].v, samples[k].n, &m);
        double *y = data[2 * k + 1] = lw_calloc(m + 1, sizeof *y);
        ok = x && y;
        for (size_t i = 0; ok && i < m; i++)
            y[i] = 100.0 * (double)(i + 1) / (double)m;
        series[k] =
            (lw_series){.name = samples[k].name, .x = x, .y = y, .n = m, .color = samples[k].color};
    }
    lw_plot with = *p;
    with.from_zero = true;
    with.no_ends = true; /* all end at 100 */
    if (!with.y_label)
        with.y_label = "% of samples at or below";
    if (ok)
        lw_plot_lines(&with, series, n, out);
    out->failed = out->failed || !ok;
    for (size_t k = 0; data && k < 2 * n; k++)
        lw_free(&data[k]);
}
