/* SPDX-License-Identifier: Apache-2.0 */
/* The page's tables and the plots beside them: scores, the bar, latency, quality against
 * evaluations. */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "recipes/recipe_compare_parts.h"

/* ---- scores ----------------------------------------------------------------------------- */

static void share_cell(lw_table *t, double v, bool failed)
{
    lw_table_percent(t, v, 1);
    if (failed)
        lw_table_mark(t, LW_MARK_BAD);
}

static void plain_cell(lw_table *t, double v, bool failed)
{
    lw_table_cell(t, v < 10 ? "%.3f" : "%.1f", v);
    if (failed)
        lw_table_mark(t, LW_MARK_BAD);
}

/* Without a judge there is no bar: two lines of it prove nothing. */
static bool fails(const compare_entry *e, lw_criterion c)
{
    return e->score.judged && e->bar[c].applies && !e->bar[c].pass;
}

static void name_cells(const comparing *w, lw_table *t, const compare_entry *e)
{
    lw_table_cell(t, "%s", e->score.name);
    if (e->kind == COMPARE_DRIFT ||
        (e->kind == COMPARE_DDPM && e->evaluations == w->c->ddim_steps[0]))
        lw_table_mark(t, LW_MARK_STRONG);
    lw_table_cell(t, "%lld", (long long)e->score.n);
}

static void judge_cells(lw_table *t, const compare_entry *e)
{
    const lw_score *s = &e->score;
    share_cell(t, s->strict.accepted, fails(e, LW_BAR_ACCEPTED));
    share_cell(t, s->plain.accepted_any, fails(e, LW_BAR_LEGIBLE));
    share_cell(t, s->plain.agreement, fails(e, LW_BAR_AGREEMENT));
    share_cell(t, s->strict.junk, false);
    lw_table_cell(t, "%.1f .. %.1f", 100 * s->plain.class_min, 100 * s->plain.class_max);
    if (fails(e, LW_BAR_CLASSES))
        lw_table_mark(t, LW_MARK_BAD);
}

static void quality_row(const comparing *w, lw_table *t, const compare_entry *e)
{
    const lw_score *s = &e->score;
    name_cells(w, t, e);
    if (lw_scorer_has_judge(w->scorer))
        judge_cells(t, e);
    lw_table_cell(t, s->fd.value < 10 ? "%.2f" : "%.1f", s->fd.value);
    lw_table_cell(t, s->fd.value < 10 ? "%.2f .. %.2f" : "%.1f .. %.1f", s->fd.low, s->fd.high);
    lw_table_mark(t, LW_MARK_MUTED);
}

static void variety_row(const comparing *w, lw_table *t, const compare_entry *e)
{
    const lw_score *s = &e->score;
    name_cells(w, t, e);
    plain_cell(t, s->diversity, fails(e, LW_BAR_DIVERSITY));
    plain_cell(t, s->colour, fails(e, LW_BAR_COLOUR));
    lw_table_cell(t, "%.3f", s->near_median);
    lw_table_cell(t, "%.3f", s->near_min);
    lw_table_cell(t, "%lld", (long long)s->copies);
    lw_table_cell(t, "%lld", (long long)s->duplicates);
    if (!lw_scorer_has_judge(w->scorer))
        return;
    lw_table_cell(t, e->failed ? "fails %d" : "passes", e->failed);
    lw_table_mark(t, !e->failed                   ? LW_MARK_GOOD
                     : e->kind == COMPARE_CONTROL ? LW_MARK_MUTED
                                                  : LW_MARK_BAD);
}

void lw_compare_score_tables(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_table_clear) lw_table quality = {0};
    LW_CLEANUP(lw_table_clear) lw_table variety = {0};
    static const char *const judged[] = {"accepted", "legible", "agrees", "junk", "classes, %"};
    static const char *const more[] = {"diversity", "colour",  "nearest", "least",
                                       "copies",    "doubles", "the bar"};
    lw_table_column(&quality, "pictures", LW_LEFT);
    lw_table_column(&quality, "n", LW_RIGHT);
    for (size_t i = 0; lw_scorer_has_judge(w->scorer) && i < LW_COUNT(judged); i++)
        lw_table_column(&quality, judged[i], LW_RIGHT);
    lw_table_column(&quality, "Frechet", LW_RIGHT);
    lw_table_column(&quality, "95 %", LW_RIGHT);
    lw_table_column(&variety, "pictures", LW_LEFT);
    lw_table_column(&variety, "n", LW_RIGHT);
    for (size_t i = 0; i < LW_COUNT(more) - !lw_scorer_has_judge(w->scorer); i++)
        lw_table_column(&variety, more[i], LW_RIGHT);
    for (int i = 0; i < w->n_entries; i++) {
        quality_row(w, &quality, &w->entry[i]);
        variety_row(w, &variety, &w->entry[i]);
    }
    lw_html_table(
        page, &quality, NULL,
        lw_scorer_has_judge(w->scorer)
            ? "**accepted**: the judge gives the class asked for 0.9 or more, although it "
              "may answer “no picture” (**junk**: that is its answer). **legible**: the "
              "reader, who may not, gives some class 0.9 or more; **agrees**: its "
              "likeliest class is the one asked for. Red: below the bar."
            : NULL);
    lw_html_table(page, &variety, NULL,
                  "**diversity**: distance between pictures of a class, against that of real ones. "
                  "**colour**: distance of the colour statistics, 0 when right, near 1 for gray "
                  "averages. **nearest**, **least**: median and smallest distance to a training "
                  "picture (root mean square; pictures lie in -1..1). **copies**, **doubles**: "
                  "pictures nearer than half of what one held-out picture in a hundred keeps, to a "
                  "training picture or to each other.");
}

/* ---- quality against evaluations -------------------------------------------------------- */

typedef double pick_fn(const lw_score *s);
static double pick_fd(const lw_score *s)
{
    return s->fd.value;
}
static double pick_accepted(const lw_score *s)
{
    return 100.0 * s->strict.accepted;
}

/* DDPM's curve over its evaluations, ascending, and drift's one point. */
static void steps_plot(const comparing *w, const char *title, const char *label, pick_fn *pick,
                       double floor, bool log_y, lw_str *svg)
{
    double x[COMPARE_ENTRIES], y[COMPARE_ENTRIES], one = 1.0, drift = pick(&w->out->drift_few),
                                                   edge[2] = {1.0, 1.0};
    double level[2] = {floor, floor};
    size_t n = 0;
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == COMPARE_DDPM) {
            size_t k = n++;
            for (; k > 0 && x[k - 1] > w->entry[i].evaluations; k--) {
                x[k] = x[k - 1];
                y[k] = y[k - 1];
            }
            x[k] = w->entry[i].evaluations;
            y[k] = pick(&w->entry[i].score);
        }
    edge[1] = x[n - 1];
    const lw_series s[] = {
        {.name = "DDPM", .x = x, .y = y, .n = n, .dots = true, .color = 2},
        {.name = "drift", .x = &one, .y = &drift, .n = 1, .dots = true, .color = 1},
        {.name = "real", .x = edge, .y = level, .n = 2, .dashed = true, .color = 7}};
    const lw_plot p = {.title = title,
                       .x_label = "network evaluations per picture",
                       .y_label = label,
                       .log_x = true,
                       .log_y = log_y,
                       .from_zero = !log_y};
    lw_plot_lines(&p, s, 3, svg);
}

void lw_compare_steps_part(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_str_clear) lw_str fd = {0}, accepted = {0};
    int n = 0;
    for (int i = 0; i < w->n_entries; i++)
        n += w->entry[i].kind == COMPARE_DDPM;
    if (n < 2)
        return;
    lw_html_section(page, "Quality against evaluations");
    lw_html_text(
        page, "A DDPM may be asked for its picture in fewer evaluations. This is the same trained "
              "network, "
              "sampled by DDIM with each number of them, and the drifting generator at its one.");
    steps_plot(w, "Frechet distance, lower is better", "distance", pick_fd, w->out->floor_ddpm,
               true, &fd);
    const char *plots[2] = {lw_str_c(&fd), NULL};
    size_t n_plots = 1;
    if (w->out->judged) {
        steps_plot(w, "Accepted by the judge, higher is better", "% of pictures", pick_accepted,
                   100.0 * w->out->real.strict.accepted, false, &accepted);
        plots[n_plots++] = lw_str_c(&accepted);
    }
    lw_html_plots(page, plots, NULL, n_plots);
}

/* ---- latency ---------------------------------------------------------------------------- */

static void latency_row(const comparing *w, lw_table *t, const lw_latency *l)
{
    char a[32], b[32], c[32], d[32];
    const lw_latency *drift = lw_compare_latency_of(w, "drift", 1, l->batch);
    lw_table_cell(t, "%d", l->batch);
    lw_table_cell(t,
                  l == drift        ? "drift, 1 evaluation"
                  : l->extrapolated ? "DDPM, %d evaluations (extrapolated)"
                                    : "DDPM, %d evaluations",
                  l->evaluations);
    if (l == drift)
        lw_table_mark(t, LW_MARK_STRONG);
    if (l->refused) {
        lw_table_cell(t, LW_LATENCY_REFUSED);
        for (int i = 0; i < 6; i++)
            lw_table_cell(t, "%s", "");
        lw_table_cell(t, "%s", lw_fmt_bytes(a, l->bytes));
        lw_table_cell(t, "%d", l->runs);
        return;
    }
    lw_table_cell(t, "%s%s", l->extrapolated ? "~ " : "", lw_fmt_time(a, l->median));
    lw_table_cell(t, "%s", l->extrapolated ? "" : lw_fmt_time(b, l->p95));
    lw_table_cell(t, "%s", l->extrapolated ? "" : lw_fmt_time(c, l->p99));
    lw_table_cell(t, "%s%s", l->extrapolated ? "~ " : "", lw_fmt_time(d, l->cpu));
    lw_table_cell(t, "%s", lw_fmt_time(d, l->median / l->batch));
    lw_table_cell(t, "%.*f", l->batch / l->median < 10 ? 1 : 0, l->batch / l->median);
    lw_table_cell(t, "%.1fx", l->times_drift);
    lw_table_cell(t, "%s", lw_fmt_bytes(a, l->bytes));
    lw_table_cell(t, "%d", l->runs);
    lw_table_mark(t, LW_MARK_MUTED);
}

static void latency_bars(const comparing *w, lw_str *svg)
{
    lw_bar bars[COMPARE_LATENCIES];
    char group[COMPARE_LATENCIES][48], name[COMPARE_LATENCIES][48], text[COMPARE_LATENCIES][32],
        time[32];
    size_t n = 0;
    for (int i = 0; i < w->n_latencies; i++) {
        const lw_latency *l = &w->latency[i];
        if (l->refused)
            continue;
        bool drift = lw_str_eq(l->method, "drift");
        snprintf(group[n], sizeof group[n], "%d picture%s at a time", l->batch,
                 l->batch == 1 ? "" : "s");
        snprintf(name[n], sizeof name[n], drift ? "drift, 1" : "DDPM, %d", l->evaluations);
        snprintf(text[n], sizeof text[n], "%s%s", l->extrapolated ? "~ " : "",
                 lw_fmt_time(time, l->median / l->batch));
        bars[n++] = (lw_bar){.group = group[n],
                             .name = name[n],
                             .value = 1e3 * l->median / l->batch,
                             .text = text[n],
                             .color = drift ? 1 : 2};
    }
    const lw_plot p = {.title = "Time per picture",
                       .x_label = "milliseconds per picture, logarithmic",
                       .log_x = true,
                       .dots = true,
                       .width = 1080};
    lw_plot_bars(&p, bars, n, svg);
}

void lw_compare_latency_part(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    LW_CLEANUP(lw_str_clear) lw_str svg = {0};
    static const char *const columns[] = {
        "pictures",    "method",     "median",      "95 %",   "99 %", "processor time",
        "per picture", "pictures/s", "times drift", "memory", "runs"};
    for (size_t i = 0; i < LW_COUNT(columns); i++)
        lw_table_column(&t, columns[i], i == 1 ? LW_LEFT : LW_RIGHT);
    for (int i = 0; i < w->n_latencies; i++)
        latency_row(w, &t, &w->latency[i]);
    latency_bars(w, &svg);
    const char *plots[] = {lw_str_c(&svg)};
    lw_html_section(page, "How fast");
    lw_html_text(page,
                 "From noise to pixels on this machine, noise included. The rows of a batch size "
                 "take turns, and times drift is the median of pairs timed in the same turn. "
                 "Processor time is that of all threads together. Memory is what sampling "
                 "needs: weights, activations, repacked weights.");
    if (w->out->busy)
        lw_html_text(page, "The machine was busy: the clock ran well ahead of the processor time "
                           "that the threads got, or a row took no longer than one of fewer "
                           "evaluations. Times by the clock are too long here; trust processor "
                           "time and the ratios.");
    lw_html_plots(page, plots, NULL, 1);
    lw_html_table(
        page, &t, NULL,
        "~: extrapolated from ten evaluations, because all of them would take too long here. The "
        "higher quantiles mean little over few runs.");
}
