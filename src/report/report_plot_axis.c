/* SPDX-License-Identifier: Apache-2.0 */
/* Axes: pleasant ends, ticks at 1, 2 and 5 times powers of ten, labels. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "report/report_plot_frame.h"

static void add_tick(lw_axis *a, double v)
{
    if (a->n_ticks < LW_AXIS_MAX_TICKS)
        a->ticks[a->n_ticks++] = v;
}

/* The 1-2-5 step that gives about `want` ticks over the range. */
static double nice_step(double range, int want)
{
    double raw = range / want, power = pow(10, floor(log10(raw))), m = raw / power;
    return power * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10);
}

static void linear(lw_axis *a, int want)
{
    if (a->hi - a->lo < 1e-12 * LW_MAX(fabs(a->hi), fabs(a->lo)) || a->hi == a->lo) {
        double pad = fabs(a->hi) * 0.1;
        a->lo -= pad;
        a->hi += a->hi == 0 ? 1 : pad; /* nothing but zeros: up from there */
    }
    a->step = nice_step(a->hi - a->lo, want);
    a->lo = floor(a->lo / a->step + 1e-9) * a->step;
    a->hi = ceil(a->hi / a->step - 1e-9) * a->step;
    int n = (int)lrint((a->hi - a->lo) / a->step);
    for (int i = 0; i <= n; i++)
        add_tick(a, (lrint(a->lo / a->step) + i) * a->step);
}

/* Equal steps, where less than a decade holds too few of 1, 2 and 5. */
static void equal_steps(lw_axis *a, int want)
{
    a->n_ticks = 0;
    a->step = nice_step(a->hi - a->lo, want);
    for (long k = lrint(ceil(a->lo / a->step)); (double)k * a->step <= a->hi; k++)
        add_tick(a, (double)k * a->step);
}

/* Decades when there are enough of them, else also 2 and 5. */
static void logarithmic(lw_axis *a, int want)
{
    double decades = log10(a->hi / a->lo);
    if (decades < 0.05) { /* nearly one value: give it room */
        a->lo /= 1.1;
        a->hi *= 1.1;
        decades = log10(a->hi / a->lo);
    } else { /* a little air */
        a->lo *= pow(10, -0.02 * decades);
        a->hi *= pow(10, 0.02 * decades);
    }
    int first = (int)floor(log10(a->lo)), last = (int)ceil(log10(a->hi));
    int stride = LW_MAX(1, (int)ceil(decades / want));
    static const double fine[] = {1, 2, 5};
    for (int d = first; d <= last; d++)
        for (size_t k = 0; k < LW_COUNT(fine); k++) {
            double v = fine[k] * pow(10, d);
            if ((k > 0 && decades > 2.5) || (k == 0 && d % stride != 0))
                continue;
            if (v >= a->lo * (1 - 1e-9) && v <= a->hi * (1 + 1e-9))
                add_tick(a, v);
        }
    if (a->n_ticks < 3)
        equal_steps(a, want);
}

/* A damaged log may reach the ends of what a double holds, where ratios and air overflow. */
#define FAR 1e150

void lw_axis_init(lw_axis *a, double lo, double hi, bool log, int want)
{
    double least = log ? 1 / FAR : -FAR;
    *a = (lw_axis){.lo = fmin(fmax(lo, least), FAR), .hi = fmin(fmax(hi, least), FAR), .log = log};
    if (!(lo <= hi)) {
        a->lo = log ? 1 : 0;
        a->hi = log ? 10 : 1;
    }
    if (log)
        logarithmic(a, want);
    else
        linear(a, want);
}

bool lw_axis_has(const lw_axis *a, double v)
{
    return isfinite(v) && (!a->log || v > 0);
}

double lw_axis_at(const lw_axis *a, double v)
{
    return a->log ? log(v / a->lo) / log(a->hi / a->lo) : (v - a->lo) / (a->hi - a->lo);
}

const char *lw_axis_label(const lw_axis *a, char buf[32], double v)
{
    double size = fabs(v), step = a->log && a->step == 0 ? size : a->step;
    if (size < step * 1e-6)
        return memcpy(buf, "0", 2);
    const char *unit = "";
    /* one unit for all ticks of a linear axis, each tick its own on a logarithmic one */
    double most = a->log ? size * 10 : LW_MAX(fabs(a->lo), LW_MAX(fabs(a->hi), size));
    if (most >= 1e4 && most < 1e12) {
        double scale = most >= 1e10 ? 1e9 : most >= 1e7 ? 1e6 : 1e3;
        unit = most >= 1e10 ? "G" : most >= 1e7 ? "M" : "k";
        v /= scale;
        step /= scale;
    } else if (most >= 1e12 || (a->log ? size : most) < 0.9e-4) {
        snprintf(buf, 32, "%.2g", v);
        char *e = strchr(buf, 'e'); /* 1e-05 -> 1e-5 */
        if (e && e[2] == '0')
            memmove(e + 2, e + 3, strlen(e + 3) + 1);
        return buf;
    }
    int digits = LW_MAX(0, (int)ceil(-log10(step) - 1e-9));
    snprintf(buf, 32, "%.*f%s", digits, v, unit);
    return buf;
}
