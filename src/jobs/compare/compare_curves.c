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
    stage_row(&t, "DDPM", w->c->ddpm);
    if (lw_table_rows(&t))
        lw_html_table(page, &t, NULL, NULL);
}

/* ---- the section ------------------------------------------------------------------------ */

void lw_compare_curves(const comparing *w, lw_html *page)
{
    lw_str svg[4] = {0};
    char title[LW_COMPARE_MAX_STAGES][64];
    lw_str stage[LW_COMPARE_MAX_STAGES] = {0};
    const char *plots[4 + LW_COMPARE_MAX_STAGES];
    size_t n = 0;
    int rc = lw_curves_drift(w->c->drift, &svg[0], &svg[1]);
    if (rc == 0)
        rc = lw_curves_wall(w->c->drift, w->c->ddpm, &svg[3]);
    if (rc == 0)
        rc = lw_curves_loss(w->c->ddpm, "DDPM: loss (error of the predicted noise)", &svg[2]);
    for (int i = 0; i < w->c->n_stages && rc == 0; i++) {
        snprintf(title[i], sizeof title[i], "%.40s: loss", w->c->stages[i].name);
        rc = lw_curves_loss(w->c->stages[i].run, title[i], &stage[i]);
    }
    if (svg[3].len) /* first what compares the two */
        plots[n++] = lw_str_c(&svg[3]);
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
        if (svg[3].len)
            lw_html_text(page, "**Held-out distances** while training are of as many samples as "
                               "real training pictures go into their floor (**real pictures**), "
                               "against up to 2,000 held-out ones, in the pooled features of "
                               "`--eval-encoder`, which neither loss sees.");
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
