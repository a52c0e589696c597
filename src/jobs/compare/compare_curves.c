/* SPDX-License-Identifier: Apache-2.0 */
/* The page's section on training: times and curves from the run directories. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "jobs/compare/compare_parts.h"
#include "train/train_curves.h"

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
    for (int i = 0; i < w->n_others; i++)
        stage_row(&t, w->other[i].name, w->other[i].run);
    if (lw_table_rows(&t))
        lw_html_table(page, &t, NULL, NULL);
}

/* ---- the section ------------------------------------------------------------------------ */

enum {
    WALL, /* first what compares them */
    RAW,
    FD,
    LOSSES,
    STAGES = LOSSES + LW_COMPARE_OTHERS,
    PLOTS = STAGES + LW_COMPARE_MAX_STAGES
};

/* Held-out distances of all over time. */
static int wall_plot(const comparing *w, lw_str *svg)
{
    const char *run[1 + LW_COMPARE_OTHERS] = {w->c->drift},
                        *name[1 + LW_COMPARE_OTHERS] = {"drift"};
    for (int i = 0; i < w->n_others; i++) {
        run[1 + i] = w->other[i].run;
        name[1 + i] = w->other[i].name;
    }
    return lw_curves_wall(run, name, 1 + w->n_others, svg);
}

/* What the network of another was trained to say. */
static const char *predicted(const compare_other *o)
{
    static const char *const words[] = {[LW_PREDICT_EPSILON] = "noise",
                                        [LW_PREDICT_SAMPLE] = "picture",
                                        [LW_PREDICT_VELOCITY] = "velocity",
                                        [LW_PREDICT_FLOW] = "velocity"};
    return words[o->source->diffusion->prediction];
}

static int draw_plots(const comparing *w, lw_str svg[PLOTS])
{
    char title[64];
    LW_TRY(lw_curves_drift(w->c->drift, &svg[RAW], &svg[FD]));
    LW_TRY(wall_plot(w, &svg[WALL]));
    for (int i = 0; i < w->n_others; i++) {
        snprintf(title, sizeof title, "%s: loss (error of the predicted %s)", w->other[i].title,
                 predicted(&w->other[i]));
        LW_TRY(lw_curves_loss(w->other[i].run, title, &svg[LOSSES + i]));
    }
    for (int i = 0; i < w->c->n_stages; i++) {
        snprintf(title, sizeof title, "%.40s: loss", w->c->stages[i].name);
        LW_TRY(lw_curves_loss(w->c->stages[i].run, title, &svg[STAGES + i]));
    }
    return 0;
}

static void explain_losses(const comparing *w, bool wall, lw_html *page)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_str_add(&text, "The **drift loss** is flat by construction: every temperature's field "
                      "is scaled to unit "
                      "size. What falls is the raw drift, the distance by which the field "
                      "would move the pictures "
                      "before that scaling.");
    for (int i = 0; i < w->n_others; i++)
        lw_str_addf(&text, " %s's loss is an error and falls by itself.", w->other[i].title);
    lw_html_text(page, lw_str_c(&text));
    if (wall)
        lw_html_text(page, "**Held-out distances** while training are of as many samples as "
                           "real training pictures go into their floor (**real pictures**), "
                           "against up to 2,000 held-out ones, in the pooled features of "
                           "`--eval-encoder`, which no loss sees.");
}

void lw_compare_curves(const comparing *w, lw_html *page)
{
    lw_str svg[PLOTS] = {0};
    const char *plots[PLOTS];
    size_t n = 0;
    int rc = draw_plots(w, svg);
    for (int i = 0; i < PLOTS; i++)
        if (svg[i].len)
            plots[n++] = lw_str_c(&svg[i]);
    if (rc < 0) /* damaged logs spoil the curves, not the page */
        lw_log(LW_LOG_WARN, "compare", "no training curves: %s", lw_errmsg());
    if (n) {
        lw_html_section(page, "Training");
        stage_table(w, page);
        explain_losses(w, svg[WALL].len > 0, page);
        lw_html_plots(page, plots, NULL, n);
        rc = lw_compare_films(w, page);
        if (rc < 0)
            lw_log(LW_LOG_WARN, "compare", "no sample grids: %s", lw_errmsg());
    }
    for (int i = 0; i < PLOTS; i++)
        lw_str_clear(&svg[i]);
}
