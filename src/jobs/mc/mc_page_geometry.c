/* SPDX-License-Identifier: Apache-2.0 */
/* The page's parts of experiments that may have models, pictures and passes of their own: the
 * covariance's shape (exp0b), trace beside angle (exp4). */
#include <math.h>
#include <stdio.h>

#include "jobs/mc/mc_page.h"

enum { LINES = 6 };               /* of a plot; tables have all models */
static const double RANK = 1e-12; /* T passes have T - 1 eigenvalues: others are rounding */

/* ---- the covariance's shape -------------------------------------------------------------------- */

static void plot_spectrum(const mc_page *p, lw_str *svg)
{
    static const char *const parts[] = {"pre_norm", "post_norm"};
    double y[2 * LINES][LW_PASS_EIGS], x[LW_PASS_EIGS];
    char names[2 * LINES][80];
    lw_series s[2 * LINES];
    size_t n = 0;
    for (int e = 0; e < LW_PASS_EIGS; e++)
        x[e] = e + 1;
    for (size_t i = 0; i < p->all && i < LINES; i++)
        for (int post = 0; post < (p->all == 1 ? 2 : 1); post++) {
            const json_t *eigs = json_object_get(json_object_get(p->model[i].exp0b, parts[post]),
                                                 "eigs_top10_mean");
            double first = json_number_value(json_array_get(eigs, 0));
            if (!(first > 0))
                continue;
            for (size_t e = 0; e < LW_PASS_EIGS; e++) {
                const json_t *v = json_array_get(eigs, e);
                double share = json_number_value(v) / first;
                y[n][e] = share > RANK ? share : (double)NAN;
            }
            snprintf(names[n], sizeof names[n], "%s%s", p->model[i].label,
                     p->all > 1 ? ""
                     : post     ? ", length 1"
                                : ", as it is");
            s[n] =
                (lw_series){.name = names[n], .x = x, .y = y[n], .n = LW_PASS_EIGS, .dots = true};
            n++;
        }
    lw_plot_lines(&(lw_plot){.title = "Spectrum: eigenvalues over the largest",
                             .x_label = "number of the eigenvalue",
                             .log_y = true,
                             .no_ends = true},
                  s, n, svg);
}

static void geometry_cells(const mc_shown *m, lw_table *t)
{
    const json_t *g = m->exp0b;
    double rank = (double)NAN;
    if (m->exp0)
        rank = MC_NUMBER(lw_mc_reliability_at(m, m->n_passes - 1, "effective_rank"), "mean");
    lw_table_cell(t, "%s", m->label);
    lw_table_number(t, MC_NUMBER(g, "pre_norm", "trace_per_dim", "mean"), 3);
    lw_table_number(t, MC_NUMBER(g, "post_norm", "trace_per_dim", "mean"), 3);
    lw_table_number(t, MC_NUMBER(g, "angular", "angular_var", "mean"), 3);
    lw_table_number(t, MC_NUMBER(g, "pre_norm", "offdiag_mass_ratio", "mean"), 3);
    if (isfinite(rank))
        lw_table_cell(t, "%.1f of %d", rank, (int)m->passes[m->n_passes - 1] - 1);
    else
        lw_table_cell(t, "-");
    lw_mc_page_correlation_cell(MC_NUMBER(g, "spearman", "pre_post"), t);
    lw_mc_page_correlation_cell(MC_NUMBER(g, "spearman", "pre_angular"), t);
    lw_mc_page_correlation_cell(MC_NUMBER(g, "spearman", "post_angular"), t);
}

void lw_mc_page_geometry(mc_page *p)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    LW_CLEANUP(lw_str_clear) lw_str svg = {0};
    static const char *const names[] = {"model",
                                        "trace / D",
                                        "trace / D, length 1",
                                        "angular variance",
                                        "off the diagonal",
                                        "effective rank",
                                        "pre, post",
                                        "pre, angular",
                                        "post, angular",
                                        NULL};
    lw_table_columns(&t, names, 1);
    for (size_t i = 0; i < p->all; i++)
        if (p->model[i].exp0b)
            geometry_cells(&p->model[i], &t);
    if (lw_table_rows(&t) == 0)
        return;
    plot_spectrum(p, &svg);
    const char *const svgs[] = {lw_str_c(&svg)};
    lw_html_section(p->html, "Shape of the covariance");
    lw_html_plots(p->html, svgs, NULL, 1);
    lw_html_table(p->html, &t, NULL,
                  "Of the covariance of a picture's passes (divisor T - 1), mean over pictures and "
                  "trials: variance per dimension before and behind normalisation; share of its "
                  "Frobenius norm beside the diagonal; (sum l)^2 / sum l^2 of its eigenvalues, of "
                  "at most T - 1; rank correlations between the scores.");
}

/* ---- trace and angle --------------------------------------------------------------------------- */

static void count_cell(double v, lw_table *t)
{
    if (isfinite(v))
        lw_table_cell(t, "%.0f", v);
    else
        lw_table_cell(t, "-");
}

void lw_mc_page_angle(mc_page *p)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    static const char *const names[] = {"model", "pictures",  "T",   "trials", "score",  "mean",
                                        "rho",   "quartiles", "snr", "icc",    "status", NULL};
    static const char *const of[][2] = {{"trace_pre", "trace_mean"},
                                        {"angular_var", "angular_mean"}};
    lw_table_columns(&t, names, 1);
    for (size_t i = 0; i < p->all; i++)
        for (size_t s = 0; s < LW_COUNT(of); s++) {
            const mc_shown *m = &p->model[i];
            const json_t *r = json_object_get(m->exp4, of[s][0]);
            const json_t *passes = json_object_get(m->exp4, "passes");
            if (!json_is_object(r))
                continue;
            lw_table_cell(&t, "%s", m->label);
            count_cell(MC_NUMBER(m->exp4, "num_images"), &t);
            count_cell(lw_mc_entry(passes, json_array_size(passes) - 1), &t);
            count_cell(MC_NUMBER(m->exp4, "trials"), &t);
            lw_table_cell(&t, "%s", of[s][0]);
            lw_mc_page_reliability_cells(r, MC_NUMBER(m->exp4, of[s][1]), &t);
        }
    if (lw_table_rows(&t) == 0)
        return;
    lw_html_section(p->html, "Trace and angle");
    lw_html_table(p->html, &t, NULL,
                  "Is the variance of the features' direction as steady as the variance of the "
                  "features, on the same pictures and passes?");
}
