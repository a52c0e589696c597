/* SPDX-License-Identifier: Apache-2.0 */
/* What all plots share: axes with ticks, the frame, texts, colours. */
#ifndef LW_REPORT_PLOT_FRAME_H
#define LW_REPORT_PLOT_FRAME_H

#include "report/report_plot.h"

#define LW_AXIS_MAX_TICKS 24

typedef struct lw_axis {
    double lo, hi; /* lo < hi, both positive when log */
    bool log;
    double ticks[LW_AXIS_MAX_TICKS];
    int n_ticks;
    double step; /* between ticks; 0: logarithmic ones */
} lw_axis;

/* Widens to pleasant ends. lo > hi (no data) gives 0..1 or 1..10. About `want` ticks. */
void lw_axis_init(lw_axis *a, double lo, double hi, bool log, int want);
/* 0 at lo, 1 at hi. */
double lw_axis_at(const lw_axis *a, double v);
/* Is v drawable on this axis? */
bool lw_axis_has(const lw_axis *a, double v);
/* "0.05", "20k", "1.5M", "1e-5" */
const char *lw_axis_label(const lw_axis *a, char buf[32], double v);

/* The drawing area inside a picture of width x height; y grows downwards. */
typedef struct lw_plot_frame {
    lw_str *out;
    const lw_plot *plot;
    double width, height;
    double left, top, right, bottom; /* edges of the drawing area */
    lw_axis x, y;
} lw_plot_frame;

/* Opens <svg>, draws background and title. width and height already set. */
void lw_plot_frame_open(lw_plot_frame *f);
void lw_plot_frame_close(lw_plot_frame *f);
void lw_plot_frame_x_axis(
    lw_plot_frame *f); /* ticks, grid lines, label; left..bottom must be set */
void lw_plot_frame_y_axis(lw_plot_frame *f);
double lw_plot_frame_at_x(const lw_plot_frame *f, double v);
double lw_plot_frame_at_y(const lw_plot_frame *f, double v);

/* fill or stroke in a theme colour: name "fg", "muted", "line", "grid", "panel" or "1".."8" of the
 * palette. */
void lw_svg_paint(lw_str *out, const char *property, const char *name);
const char *lw_svg_color(int color, size_t position); /* palette name for a series */
/* anchor: "start", "middle", "end". */
void lw_svg_text(lw_str *out, double x, double y, const char *anchor, const char *color, int size,
                 bool bold, const char *text);
double lw_svg_width(const char *text, int size); /* estimate, generous */

#endif
