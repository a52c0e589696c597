/* SPDX-License-Identifier: Apache-2.0 */
/* The page's section on training: times and curves from the run directories. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "recipes/recipe_compare_parts.h"

enum { CURVES_MAX = 8 };

/* Columns of a run's metrics.jsonl. */
typedef struct columns {
    json_t *rows;
    size_t n;
    double *v[CURVES_MAX], *step;
    char name[CURVES_MAX][32];
    int n_v;
} columns;

static int columns_load(const char *run, columns *c)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    *c = (columns){0};
    lw_path_join(&path, run, "metrics.jsonl");
    if (!lw_path_exists(lw_str_c(&path)))
        return 0;
    LW_TRY(lw_jsonl_load(lw_str_c(&path), &c->rows));
    c->n = json_array_size(c->rows);
    c->step = lw_calloc(c->n + 1, sizeof *c->step);
    for (size_t i = 0; c->step && i < c->n; i++)
        c->step[i] = json_number_value(json_object_get(json_array_get(c->rows, i), "step"));
    return c->step ? 0 : LW_ENOMEM;
}

static void columns_clear(columns *c)
{
    for (int k = 0; k < c->n_v; k++)
        lw_free(&c->v[k]);
    lw_free(&c->step);
    lw_json_drop(&c->rows);
}

/* Adds column `key` (gaps where a row lacks it); false when no row has it. */
static bool columns_add(columns *c, const char *key, const char *name)
{
    bool any = false;
    double *v = c->n_v < CURVES_MAX ? lw_calloc(c->n + 1, sizeof *v) : NULL;
    for (size_t i = 0; v && i < c->n; i++) {
        const json_t *x = json_object_get(json_array_get(c->rows, i), key);
        v[i] = json_is_number(x) ? json_number_value(x) : (double)NAN;
        any = any || json_is_number(x);
    }
    if (!any) {
        lw_free(&v);
        return false;
    }
    c->v[c->n_v] = v;
    snprintf(c->name[c->n_v], sizeof c->name[0], "%s", name);
    c->n_v++;
    return true;
}

/* Draws columns from `first` on; dots where values are sparse. */
static void draw(const columns *c, int first, const lw_plot *p, double smooth, bool dots,
                 lw_str *svg)
{
    lw_series s[CURVES_MAX];
    double x[CURVES_MAX][512];
    double y[CURVES_MAX][512];
    int n = 0;
    for (int k = first; k < c->n_v; k++, n++) {
        s[n] = (lw_series){.name = c->name[k],
                           .x = c->step,
                           .y = c->v[k],
                           .n = c->n,
                           .smooth = smooth,
                           .dots = dots};
        size_t m = 0;
        for (size_t i = 0; dots && i < c->n && m < 512;
             i++) /* sparse columns: only the rows that have them */
            if (isfinite(c->v[k][i])) {
                x[n][m] = c->step[i];
                y[n][m++] = c->v[k][i];
            }
        if (dots) {
            s[n].x = x[n];
            s[n].y = y[n];
            s[n].n = m;
        }
    }
    lw_plot_lines(p, s, (size_t)n, svg);
}

/* ---- the plots -------------------------------------------------------------------------- */

static int plot_loss(const char *run, const char *title, lw_str *svg)
{
    columns c;
    const lw_plot p = {.title = title, .x_label = "step", .y_label = "loss", .log_y = true};
    int rc = columns_load(run, &c);
    if (rc == 0 && columns_add(&c, "loss", "loss"))
        draw(&c, 0, &p, c.n > 80 ? 0.8 : 0.0, false, svg);
    columns_clear(&c);
    return rc;
}

static int plot_drift(const char *run, lw_str *raw, lw_str *fd)
{
    columns c;
    int rc = columns_load(run, &c);
    const json_t *last = rc == 0 && c.n ? json_array_get(c.rows, c.n - 1) : NULL;
    const char *key;
    json_t *value;
    const lw_plot p = {.title = "drift: length of the raw drift",
                       .x_label = "step",
                       .y_label = "in units of the mean distance",
                       .log_y = true};
    const lw_plot q = {.title = "drift: Frechet distance while training",
                       .x_label = "step",
                       .y_label = "in the drift encoder's features",
                       .log_y = true};
    if (last)
        json_object_foreach((json_t *)(uintptr_t)last, key, value)
        {
            char name[32];
            if (!lw_str_starts(key, "raw_drift_") || c.n_v >= 4)
                continue;
            snprintf(name, sizeof name, "tau %.16s", key + strlen("raw_drift_"));
            columns_add(&c, key, name);
        }
    if (c.n_v)
        draw(&c, 0, &p, 0.8, false, raw);
    int first = c.n_v;
    if (rc == 0 && columns_add(&c, "fd", "drift") && columns_add(&c, "fd_floor", "real"))
        draw(&c, first, &q, 0.0, true, fd);
    columns_clear(&c);
    return rc;
}

/* ---- the table of stages ---------------------------------------------------------------- */

static void stage_row(lw_table *t, const char *name, const char *run)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *s = NULL;
    char time[32];
    lw_path_join(&path, run, "summary.json");
    if (!lw_path_exists(lw_str_c(&path)) || lw_json_load(lw_str_c(&path), &s) < 0)
        return;
    lw_table_cell(t, "%s", name);
    lw_table_cell(t, "%lld", (long long)json_integer_value(json_object_get(s, "steps")));
    lw_table_cell(t, "%s", lw_fmt_time(time, json_number_value(json_object_get(s, "seconds"))));
    lw_table_cell(t, "%.0f",
                  json_number_value(json_object_get(json_object_get(s, "perf"), "images_per_sec")));
    lw_table_cell(t, "%lld", (long long)json_integer_value(json_object_get(s, "parameters")));
    lw_table_cell(t, "%.4g", json_number_value(json_object_get(s, "final_loss")));
}

static void stage_table(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    static const char *const heads[] = {"trained",    "steps",      "time",
                                        "pictures/s", "parameters", "last loss"};
    for (size_t i = 0; i < LW_COUNT(heads); i++)
        lw_table_column(&t, heads[i], i ? LW_RIGHT : LW_LEFT);
    for (int i = 0; i < w->c->n_stages; i++)
        stage_row(&t, w->c->stages[i].name, w->c->stages[i].run);
    stage_row(&t, "drift", w->c->drift);
    stage_row(&t, "DDPM", w->c->ddpm);
    if (lw_table_rows(&t))
        lw_html_table(page, &t, NULL);
}

/* ---- the section ------------------------------------------------------------------------ */

void lw_compare_curves(const comparing *w, lw_html *page)
{
    lw_str svg[4] = {0};
    char title[LW_COMPARE_MAX_STAGES][64];
    lw_str stage[LW_COMPARE_MAX_STAGES] = {0};
    const char *plots[4 + LW_COMPARE_MAX_STAGES];
    size_t n = 0;
    int rc = plot_drift(w->c->drift, &svg[0], &svg[1]);
    if (rc == 0)
        rc = plot_loss(w->c->ddpm, "DDPM: loss (error of the predicted noise)", &svg[2]);
    for (int i = 0; i < w->c->n_stages && rc == 0; i++) {
        snprintf(title[i], sizeof title[i], "%.40s: loss", w->c->stages[i].name);
        rc = plot_loss(w->c->stages[i].run, title[i], &stage[i]);
    }
    for (int i = 0; i < 3; i++)
        if (svg[i].len)
            plots[n++] = lw_str_c(&svg[i]);
    for (int i = 0; i < w->c->n_stages; i++)
        if (stage[i].len)
            plots[n++] = lw_str_c(&stage[i]);
    if (rc < 0) /* damaged logs spoil the curves, not the page */
        lw_log(LW_LOG_WARN, "compare", "no training curves: %s", lw_errmsg());
    if (n) {
        lw_html_section(page, "Training");
        stage_table(w, page);
        lw_html_text(page, "The **drift loss** is flat by construction: every temperature's field "
                           "is scaled to unit "
                           "size. What falls is the raw drift, the distance by which the field "
                           "would move the pictures "
                           "before that scaling. DDPM's loss is an error and falls by itself.");
        lw_html_plots(page, plots, NULL, n);
        rc = lw_compare_films(w, page);
        if (rc < 0)
            lw_log(LW_LOG_WARN, "compare", "no sample grids: %s", lw_errmsg());
    }
    for (int i = 0; i < 4; i++)
        lw_str_clear(&svg[i]);
    for (int i = 0; i < LW_COMPARE_MAX_STAGES; i++)
        lw_str_clear(&stage[i]);
}
