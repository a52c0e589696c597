/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plots as SVG text, for lw_html_plots or a file of their own. Colours follow the page's light or
 * dark theme. Values that are not finite (or not positive on a logarithmic axis) leave gaps. Each
 * call appends one <svg> element to *out; a plot without any usable value says "no data".
 */
#ifndef LW_REPORT_PLOT_H
#define LW_REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

typedef struct lw_plot {
    const char *title, *x_label, *y_label; /* each may be NULL */
    int32_t width, height;                 /* 0: 540 x 320, or as high as bars and boxes need */
    bool log_x, log_y;
    bool from_zero; /* the value axis includes 0 (linear axes) */
    bool dots;      /* of lw_plot_bars: dots on a line, where a length would say nothing (log_x) */
    bool no_ends;   /* of lw_plot_lines: no values where lines end */
    const double
        *x_ticks; /* of lw_plot_lines: the x axis is labelled there; NULL: where it suits */
    size_t n_x_ticks;
} lw_plot;

typedef struct lw_series {
    const char *name;
    const double *x; /* NULL: 0, 1, 2, ... */
    const double *y;
    size_t n;
    bool dashed; /* a reference rather than a measurement */
    bool dots;   /* mark the points */
    int color;   /* 1..8; 0: by position */
    double
        smooth; /* > 0, < 1: weight of a moving average, drawn over the curve, which turns faint */
} lw_series;
/* Long series are thinned to the lowest and highest value of every pixel column. Where a line ends
 * stands its last value; a series of one point is a dot with its name. */
void lw_plot_lines(const lw_plot *p, const lw_series *series, size_t n, lw_str *out);

typedef struct lw_bar {
    const char *group; /* heading above the first bar of a run with the same group, or NULL */
    const char *name;
    double value;
    double low, high; /* an error range when low < high */
    const char *text; /* what to write at the bar; NULL: the value */
    int color;        /* 1..8; 0: 1 */
    bool muted;       /* in grey: it is there, and does not count */
} lw_bar;
/* Horizontal bars, top to bottom; log_x for values over several decades. An error range is drawn in
 * the axis or cut at its end, with an arrow: a logarithmic one reaches two decades below the values. */
void lw_plot_bars(const lw_plot *p, const lw_bar *bars, size_t n, lw_str *out);

typedef struct lw_samples {
    const char *name;
    const double *v; /* any order */
    size_t n;
    int color;
} lw_samples;
/* Share of samples in equal bins (log_x: of equal ratio) over all of them, one outline each. */
void lw_plot_histogram(const lw_plot *p, const lw_samples *samples, size_t n, lw_str *out);

#endif
