/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms: shares of samples in equal bins, as steps drawn by lw_plot_lines. */
#include <float.h>
#include <math.h>

#include "base/base.h"
#include "report/report_plot.h"

enum { BINS = 32, CORNERS = 2 * BINS + 2 };

/* Equal on the axis: of the values or of their logarithms. */
typedef struct bins {
    bool log;
    double lo, hi;
} bins;

static bool usable(const lw_plot *p, double v)
{
    return fabs(v) < 1e150 && (!p->log_x || v > 0); /* differences stay finite */
}

static bins find_bins(const lw_plot *p, const lw_samples *samples, size_t n)
{
    bins b = {p->log_x, DBL_MAX, -DBL_MAX};
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < samples[k].n; i++) {
            double v = samples[k].v[i];
            if (!usable(p, v))
                continue;
            v = b.log ? log(v) : v;
            b.lo = fmin(b.lo, v);
            b.hi = fmax(b.hi, v);
        }
    if (!(b.lo < b.hi)) { /* one value, or none: a bin around it */
        double room = b.lo != b.hi ? 0 : b.log || b.lo == 0 ? 0.05 : fabs(b.lo) * 0.05;
        b.lo -= room;
        b.hi += room;
    }
    return b;
}

static double edge(const bins *b, int i)
{
    double v = b->lo + (b->hi - b->lo) * i / BINS;
    return b->log ? exp(v) : v;
}

/* Up at each bin's left edge, down at the right one of the last. */
static void steps(const lw_plot *p, const bins *b, const lw_samples *s, double *x, double *y)
{
    double count[BINS] = {0}, all = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!usable(p, s->v[i]))
            continue;
        double v = b->log ? log(s->v[i]) : s->v[i];
        int at = (int)((v - b->lo) / (b->hi - b->lo) * BINS);
        count[LW_MAX(0, LW_MIN(at, BINS - 1))]++;
        all++;
    }
    for (int i = 0; i <= BINS; i++) {
        x[2 * i] = x[2 * i + 1] = edge(b, i);
        y[2 * i] = i > 0 ? 100 * count[i - 1] / fmax(all, 1) : 0;
        y[2 * i + 1] = i < BINS ? 100 * count[i] / fmax(all, 1) : 0;
    }
}

void lw_plot_histogram(const lw_plot *p, const lw_samples *samples, size_t n, lw_str *out)
{
    LW_CLEANUP(lw_free) lw_series *series = lw_calloc(n + 1, sizeof *series);
    LW_CLEANUP(lw_free) double *data = lw_calloc(2 * n * CORNERS + 1, sizeof *data);
    if (!series || !data) {
        out->failed = true;
        return;
    }
    const bins b = find_bins(p, samples, n);
    bool any = b.lo < b.hi;
    for (size_t k = 0; k < n; k++) {
        double *x = data + 2 * k * CORNERS, *y = x + CORNERS;
        if (any)
            steps(p, &b, &samples[k], x, y);
        series[k] = (lw_series){.name = samples[k].name,
                                .x = x,
                                .y = y,
                                .n = any ? CORNERS : 0,
                                .color = samples[k].color};
    }
    lw_plot with = *p;
    with.from_zero = true;
    with.no_ends = true; /* all end at 0 */
    if (!with.y_label)
        with.y_label = "% of samples";
    lw_plot_lines(&with, series, n, out);
}
