/* SPDX-License-Identifier: Apache-2.0 */
/* The page's parts on scores by themselves: do they come out again, how do they lie, which of them are
 * the same, what does the covariance look like. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_page.h"

enum { LINES = 6, REFERENCES = 2 };

/* ---- does it come out again? ------------------------------------------------------------------- */

typedef struct measure {
    const char *key, *title;
    bool log;
    double usable, failed; /* bounds of the verdicts; NaN: none */
    const char *usable_name, *failed_name;
} measure;

/* Numbers of one score of one model against T, at the T's of the plot. */
static void numbers_at(const mc_shown *m, const char *score, const char *key, const double *x,
                       size_t n, double *y)
{
    for (size_t t = 0; t < n; t++) {
        int32_t at = 0;
        while (at < m->n_passes && m->passes[at] != (int32_t)x[t])
            at++;
        y[t] = at < m->n_passes ? MC_NUMBER(lw_mc_reliability_at(m, at, score), key) : (double)NAN;
    }
}

/* One line per model of trace_pre; of a single model one per score. */
static size_t add_lines(const mc_page *p, const char *key, const double *x, size_t n,
                        double y[LINES][LW_MC_PASSES], lw_series *s)
{
    static const char *const scores[] = {"trace_pre", "trace_post", "angular_var"};
    size_t lines = p->n == 1 ? LW_COUNT(scores) : LW_MIN(p->n, (size_t)LINES);
    for (size_t k = 0; k < lines; k++) {
        const mc_shown *m = &p->model[p->n == 1 ? 0 : k];
        const char *score = scores[p->n == 1 ? k : 0];
        numbers_at(m, score, key, x, n, y[k]);
        s[k] = (lw_series){
            .name = p->n == 1 ? score : m->label, .x = x, .y = y[k], .n = n, .dots = true};
    }
    return lines;
}

/* The T's of the first model. */
static size_t passes_of(const mc_page *p, double x[LW_MC_PASSES])
{
    for (int32_t t = 0; t < p->model[0].n_passes; t++)
        x[t] = p->model[0].passes[t];
    return (size_t)p->model[0].n_passes;
}

static void plot_measure(const mc_page *p, const measure *w, lw_str *svg)
{
    double x[LW_MC_PASSES], y[LINES][LW_MC_PASSES], bound[REFERENCES][2];
    size_t t = passes_of(p, x);
    const double ends[2] = {x[0], x[t - 1]};
    lw_series s[LINES + REFERENCES];
    size_t lines = add_lines(p, w->key, x, t, y, s);
    for (int r = 0; r < REFERENCES; r++) {
        bound[r][0] = bound[r][1] = r ? w->failed : w->usable;
        if (isfinite(bound[r][0]))
            s[lines++] = (lw_series){.name = r ? w->failed_name : w->usable_name,
                                     .x = ends,
                                     .y = bound[r],
                                     .n = 2,
                                     .dashed = true,
                                     .color = r ? 5 : 7};
    }
    lw_plot_lines(&(lw_plot){.title = w->title,
                             .x_label = "passes T",
                             .log_x = true,
                             .log_y = w->log,
                             .from_zero = !w->log,
                             .no_ends = true,
                             .x_ticks = x,
                             .n_x_ticks = t},
                  s, lines, svg);
}

/* Means over that of the most passes: the divisor T makes those of few passes smaller. */
static void plot_means(const mc_page *p, lw_str *svg)
{
    double x[LW_MC_PASSES], y[LINES + 1][LW_MC_PASSES];
    lw_series s[LINES + 1];
    size_t t = passes_of(p, x), n = add_lines(p, "mean", x, t, y, s);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < t; i++)
            y[k][i] /= y[k][t - 1];
    for (size_t i = 0; i < t; i++)
        y[n][i] = (x[i] - 1) / x[i] / ((x[t - 1] - 1) / x[t - 1]);
    s[n] =
        (lw_series){.name = "(T - 1) / T", .x = x, .y = y[n], .n = t, .dashed = true, .color = 7};
    lw_plot_lines(&(lw_plot){.title = "Mean score, over that of the most passes",
                             .x_label = "passes T",
                             .log_x = true,
                             .from_zero = true,
                             .no_ends = true,
                             .x_ticks = x,
                             .n_x_ticks = t},
                  s, n + 1, svg);
}

static void plot_reliability(mc_page *p)
{
    static const measure measures[] = {
        {"pairwise_spearman_median", "Rank correlation of two trials (rho)", false, 0.8, 0.6,
         "usable from .8", "failed below .6"},
        {"snr", "Signal to noise (snr)", true, 2, 1, "usable from 2", "failed below 1"},
        {"icc", "Share of variance between pictures (icc)", false, 0.75, (double)NAN,
         "usable from .75", NULL}};
    enum { MEASURES = LW_COUNT(measures) };
    lw_str svg[MEASURES + 1] = {{0}};
    const char *svgs[MEASURES + 1];
    for (size_t i = 0; i <= MEASURES; i++) {
        if (i < MEASURES)
            plot_measure(p, &measures[i], &svg[i]);
        else
            plot_means(p, &svg[i]);
        svgs[i] = lw_str_c(&svg[i]);
    }
    lw_html_plots(p->html, svgs, NULL, MEASURES + 1);
    for (size_t i = 0; i <= MEASURES; i++)
        lw_str_clear(&svg[i]);
}

static lw_mark mark_of(const char *status)
{
    return lw_str_eq(status, "usable")   ? LW_MARK_GOOD
           : lw_str_eq(status, "failed") ? LW_MARK_BAD
                                         : LW_MARK_WARN;
}

void lw_mc_page_reliability_cells(const json_t *r, double mean, lw_table *t)
{
    char status[32];
    lw_clean(status, sizeof status, lw_mc_text(r, "status", "unknown"));
    lw_table_number(t, mean, 4);
    lw_table_number(t, MC_NUMBER(r, "pairwise_spearman_median"), 3);
    double q25 = MC_NUMBER(r, "pairwise_spearman_q25");
    double q75 = MC_NUMBER(r, "pairwise_spearman_q75");
    if (isfinite(q25) && isfinite(q75))
        lw_table_cell(t, "%.2f .. %.2f", q25, q75);
    else
        lw_table_cell(t, "-");
    lw_table_mark(t, LW_MARK_MUTED);
    lw_table_number(t, MC_NUMBER(r, "snr"), 3);
    lw_table_number(t, MC_NUMBER(r, "icc"), 3);
    lw_table_cell(t, "%s", status);
    lw_table_mark(t, mark_of(status));
}

static void table_of_passes(mc_page *p)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    static const char *const names[] = {"model",     "score", "T",   "mean",   "rho",
                                        "quartiles", "snr",   "icc", "status", NULL};
    static const char *const scores[] = {"trace_pre", "trace_post"};
    lw_table_columns(&t, names, 2);
    for (size_t i = 0; i < p->n; i++)
        for (size_t s = 0; s < LW_COUNT(scores); s++)
            for (int32_t k = 0; k < p->model[i].n_passes; k++) {
                const json_t *r = lw_mc_reliability_at(&p->model[i], k, scores[s]);
                if (!r)
                    continue;
                lw_table_cell(&t, "%s", p->model[i].label);
                lw_table_cell(&t, "%s", scores[s]);
                lw_table_cell(&t, "%d", (int)p->model[i].passes[k]);
                lw_mc_page_reliability_cells(r, MC_NUMBER(r, "mean"), &t);
            }
    lw_html_table(p->html, &t, NULL,
                  "rho: median rank correlation of every pair of trials, and its quartiles; snr: "
                  "variance between pictures over that between trials; icc: share of one trial's "
                  "variance that is between pictures. usable: rho at least .8, snr 2, icc .75; "
                  "failed: rho below .6 or snr below 1; else marginal.");
}

static void table_of_scores(mc_page *p)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    static const char *const names[] = {"model", "score", "mean",   "rho", "quartiles",
                                        "snr",   "icc",   "status", NULL};
    lw_table_columns(&t, names, 2);
    for (size_t i = 0; i < p->n; i++)
        for (int s = 0; s < LW_PASS_SCORES; s++) {
            const mc_shown *m = &p->model[i];
            const json_t *r = lw_mc_reliability_at(m, m->n_passes - 1, lw_pass_score_name[s]);
            if (!r)
                continue;
            lw_table_cell(&t, "%s", m->label);
            lw_table_cell(&t, "%s", lw_pass_score_name[s]);
            lw_mc_page_reliability_cells(r, MC_NUMBER(r, "mean"), &t);
        }
    if (lw_table_rows(&t) == 0)
        return;
    lw_html_fold_begin(p->html, "Every score, at the most passes");
    lw_html_table(p->html, &t, NULL, NULL);
    lw_html_fold_end(p->html);
}

void lw_mc_page_reliability(mc_page *p)
{
    bool several = p->model[0].n_passes > 1;
    lw_html_section(p->html, "Does it come out again?");
    lw_html_text(p->html,
                 "Every trial draws all masks anew. If a score is of the picture and not of the "
                 "masks, trials agree on which pictures are uncertain.");
    if (several)
        plot_reliability(p);
    if (several && p->n > LINES)
        lw_html_text(p->html, "The plots show the first six models; the table has all of them.");
    table_of_passes(p);
    table_of_scores(p);
}

/* ---- how scores lie ---------------------------------------------------------------------------- */

/* Of one model: trace_pre at every T. */
static size_t samples_of_model(const mc_shown *m, char names[LW_MC_PASSES][24], lw_samples *out)
{
    size_t found = 0;
    for (int32_t t = 0; t < m->n_passes; t++) {
        const double *v = t + 1 < m->n_passes ? m->trace[t] : m->mean[LW_PASS_TRACE_PRE];
        if (!v)
            continue;
        snprintf(names[t], 24, "T = %d", (int)m->passes[t]);
        out[found++] = (lw_samples){.name = names[t], .v = v, .n = (size_t)m->n};
    }
    return found;
}

/* Whether values are over more than a decade, so that their logarithms are drawn. */
static bool wide(const lw_samples *s, size_t n)
{
    double lo = (double)INFINITY, hi = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < s[k].n; i++) {
            lo = fmin(lo, s[k].v[i]);
            hi = fmax(hi, s[k].v[i]);
        }
    return lo > 0 && hi > 10 * lo;
}

static void plot_histograms(mc_page *p)
{
    enum { MOST = 6 };
    lw_str svg[MOST] = {{0}};
    const char *svgs[MOST];
    size_t n = 0;
    for (size_t i = 0; i < p->n && n < MOST; i++) {
        const mc_shown *m = &p->model[i];
        char names[LW_MC_PASSES][24], title[128];
        lw_samples samples[LW_MC_PASSES];
        size_t k = samples_of_model(m, names, samples);
        if (k == 0)
            continue;
        snprintf(title, sizeof title, "%s: trace_pre of %lld pictures", m->label, (long long)m->n);
        const lw_plot plot = {.title = title,
                              .x_label = "score, mean over trials",
                              .y_label = "% of pictures",
                              .log_x = wide(samples, k)};
        lw_plot_histogram(&plot, samples, k, &svg[n]);
        svgs[n] = lw_str_c(&svg[n]);
        n++;
    }
    if (n)
        lw_html_plots(p->html, svgs, NULL, n);
    for (size_t i = 0; i < n; i++)
        lw_str_clear(&svg[i]);
}

/* ---- which scores are the same ----------------------------------------------------------------- */

void lw_mc_page_correlation_cell(double rho, lw_table *t)
{
    if (isfinite(rho))
        lw_table_cell(t, "%.2f", rho);
    else
        lw_table_cell(t, "-");
    lw_table_mark(t, fabs(rho) >= 0.8 ? LW_MARK_STRONG : LW_MARK_NONE);
}

static int table_of_one(const mc_shown *m, lw_table *t)
{
    lw_table_column(t, "score", LW_LEFT);
    for (int b = 0; b < LW_PASS_SCORES; b++)
        if (m->mean[b])
            lw_table_column(t, lw_pass_score_name[b], LW_RIGHT);
    for (int a = 0; a < LW_PASS_SCORES; a++) {
        if (!m->mean[a])
            continue;
        lw_table_cell(t, "%s", lw_pass_score_name[a]);
        for (int b = 0; b < LW_PASS_SCORES; b++) {
            double rho;
            if (!m->mean[b])
                continue;
            LW_TRY(lw_spearman(m->mean[a], m->mean[b], m->n, &rho));
            lw_mc_page_correlation_cell(rho, t);
        }
    }
    return 0;
}

/* Spearman's correlation of trace_pre over the pictures that two models share. */
static int between(const mc_shown *a, const mc_shown *b, double *rho, int64_t *shared)
{
    LW_CLEANUP(lw_free) double *x = lw_calloc(2 * (size_t)LW_MAX(a->n, b->n) + 1, sizeof *x);
    double *y = x ? x + LW_MAX(a->n, b->n) : NULL;
    *rho = (double)NAN;
    *shared = 0;
    if (!x)
        return LW_ENOMEM;
    if (!a->mean[0] || !b->mean[0])
        return 0;
    for (int64_t i = 0, k = 0; i < a->n && k < b->n;) {
        int order = strcmp(a->sorted[i].name, b->sorted[k].name);
        if (order == 0) {
            x[*shared] = a->mean[0][a->sorted[i].at];
            y[(*shared)++] = b->mean[0][b->sorted[k].at];
        }
        i += order <= 0;
        k += order >= 0;
    }
    return *shared > 2 ? lw_spearman(x, y, *shared, rho) : 0;
}

static int table_of_models(mc_page *p)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    int64_t fewest = INT64_MAX;
    char note[192];
    lw_table_column(&t, "trace_pre of", LW_LEFT);
    for (size_t b = 0; b < p->n; b++)
        lw_table_column(&t, p->model[b].label, LW_RIGHT);
    for (size_t a = 0; a < p->n; a++) {
        lw_table_cell(&t, "%s", p->model[a].label);
        for (size_t b = 0; b < p->n; b++) {
            double rho;
            int64_t shared;
            LW_TRY(between(&p->model[a], &p->model[b], &rho, &shared));
            lw_mc_page_correlation_cell(rho, &t);
            fewest = LW_MIN(fewest, shared);
        }
    }
    snprintf(note, sizeof note,
             "Rank correlation over the pictures that both have seen (at least %lld). Near 1: what "
             "is uncertain to one is to the other, so it is a property of the picture.",
             (long long)fewest);
    lw_html_table(p->html, &t, "Do models agree?", note);
    return 0;
}

int lw_mc_page_scores(mc_page *p)
{
    bool any = false;
    for (size_t i = 0; i < p->n; i++)
        any = any || p->model[i].mean[LW_PASS_TRACE_PRE];
    if (!any)
        return 0;
    lw_html_section(p->html, "How the scores lie");
    plot_histograms(p);
    if (p->n > 1)
        LW_TRY(table_of_models(p));
    for (size_t i = 0; i < p->n; i++) {
        LW_CLEANUP(lw_table_clear) lw_table t = {0};
        char title[128];
        LW_TRY(table_of_one(&p->model[i], &t));
        if (t.columns < 3)
            continue;
        snprintf(title, sizeof title, "%s: which scores are the same", p->model[i].label);
        lw_html_fold_begin(p->html, title);
        lw_html_table(p->html, &t, NULL,
                      "Rank correlation of pictures' means over trials, at the most passes. Scores "
                      "that correlate by .8 or more say the same.");
        lw_html_fold_end(p->html);
    }
    return 0;
}
