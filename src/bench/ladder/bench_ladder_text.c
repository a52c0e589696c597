/* SPDX-License-Identifier: Apache-2.0 */
/* The ladder as tables and as JSON. */
#include "bench/ladder/bench_ladder.h"

#include <string.h>

static void add_parts(const lw_ladder_rung *r, lw_str *s)
{
    for (int k = 0; k < LW_LADDER_PARTS; k++)
        lw_str_addf(s, " %10.1f", 1e3 * r->part[k]);
    lw_str_addf(s, "\n  %-18s %9s %9s", "", "", "%");
    for (int k = 0; k < LW_LADDER_PARTS; k++)
        lw_str_addf(s, " %10.1f", 100 * r->part[k] / r->seconds);
    lw_str_add(s, "\n");
}

/* Where the milliseconds of each rung went. */
static void parts_table(const lw_ladder_model *m, lw_str *s)
{
    lw_str_addf(s, "  %-18s %9s %9s", "milliseconds", "rows", "decodes");
    for (int k = 0; k < LW_LADDER_PARTS; k++)
        lw_str_addf(s, " %10s", lw_ladder_part_name[k]);
    lw_str_add(s, "\n");
    for (int i = 0; i < LW_LADDER_RUNGS; i++) {
        const lw_ladder_rung *r = &m->rung[i];
        if (r->skipped[0]) {
            lw_str_addf(s, "  %-18s did not run: %s\n", r->name, r->skipped);
            continue;
        }
        lw_str_addf(s, "  %-18s %9lld %9lld", r->name, (long long)r->passes, (long long)r->decodes);
        add_parts(r, s);
    }
}

static void jobs_table(const lw_ladder_model *m, lw_str *s)
{
    lw_str_addf(s, "  %-18s %6s %9s %9s %11s", "PREDICTED", "batch", "compile", "ms a row",
                "trace");
    for (int j = 0; j < LW_LADDER_JOBS; j++)
        lw_str_addf(s, " %10s", lw_ladder_jobs[j].name);
    lw_str_add(s, "\n");
    for (int i = 0; i < LW_LADDER_RUNGS; i++) {
        const lw_ladder_rung *r = &m->rung[i];
        if (r->skipped[0])
            continue;
        lw_str_addf(s, "  %-18s %6d %7.2f s %9.2f %11.5g", r->name, (int)r->rows, r->compile,
                    1e3 * r->every, r->mean);
        for (int j = 0; j < LW_LADDER_JOBS; j++) {
            char t[32];
            lw_str_addf(s, " %10s", lw_fmt_time(t, r->job[j]));
        }
        lw_str_add(s, "\n");
    }
}

void lw_ladder_text(const lw_ladder *l, lw_str *s)
{
    if (l->random || l->drawn)
        lw_str_addf(s, "%s%s%s: times are real, scores are not.\n",
                    l->random ? "Random weights" : "", l->random && l->drawn ? ", " : "",
                    !l->drawn   ? ""
                    : l->random ? "drawn pictures"
                                : "Drawn pictures");
    for (int32_t k = 0; k < l->n; k++) {
        const lw_ladder_model *m = &l->model[k];
        lw_str_addf(s, "%s: sites %s, %d, %d live; %d pictures of %dx%d, %d passes of each\n",
                    m->name, m->sites, (int)m->n_sites, (int)m->live, (int)l->pictures,
                    (int)m->width, (int)m->height, (int)l->passes);
        parts_table(m, s);
        jobs_table(m, s);
        if (m->check_passes > 0)
            lw_str_addf(s,
                        "  a prediction checked: %lld rows, predicted %.2f s, took %.2f s (%+.1f "
                        "%%)\n",
                        (long long)m->check_passes, m->check_predicted, m->check_seconds,
                        100 * (m->check_predicted / m->check_seconds - 1));
    }
    lw_str_add(s, "Jobs, of one model, worked out from the rows above and not run:\n");
    for (int j = 0; j < LW_LADDER_JOBS; j++)
        lw_str_addf(s, "  %-10s %s: %lld pictures, %lld rows\n", lw_ladder_jobs[j].name,
                    lw_ladder_jobs[j].what, (long long)lw_ladder_jobs[j].pictures,
                    (long long)lw_ladder_jobs[j].rows);
}

static json_t *rung_json(const lw_ladder_rung *r)
{
    json_t *parts = json_object(), *jobs = json_object();
    for (int k = 0; k < LW_LADDER_PARTS; k++)
        json_object_set_new(parts, lw_ladder_part_name[k], lw_json_real(r->part[k]));
    for (int j = 0; j < LW_LADDER_JOBS; j++)
        json_object_set_new(jobs, lw_ladder_jobs[j].name, lw_json_real(r->job[j]));
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     r->name, "skipped", r->skipped, "batch_size", (int)r->rows, "rows",
                     (json_int_t)r->passes, "decodes", (json_int_t)r->decodes, "compile_seconds",
                     lw_json_real(r->compile), "seconds", lw_json_real(r->seconds), "part_seconds",
                     parts, "picture_seconds", lw_json_real(r->once), "row_seconds",
                     lw_json_real(r->every), "mean_trace_pre", lw_json_real(r->mean),
                     "predicted_seconds", jobs);
}

json_t *lw_ladder_json(const lw_ladder *l)
{
    json_t *models = json_array();
    for (int32_t k = 0; k < l->n; k++) {
        const lw_ladder_model *m = &l->model[k];
        json_t *all = json_array();
        for (int i = 0; i < LW_LADDER_RUNGS; i++)
            json_array_append_new(all, rung_json(&m->rung[i]));
        json_array_append_new(
            models,
            json_pack("{s:s, s:s, s:i, s:i, s:[i,i], s:o, s:{s:I, s:o, s:o}}", "name", m->name,
                      "sites", m->sites, "n_sites", (int)m->n_sites, "live_sites", (int)m->live,
                      "picture", (int)m->height, (int)m->width, "rungs", all, "check", "rows",
                      (json_int_t)m->check_passes, "predicted_seconds",
                      lw_json_real(m->check_predicted), "seconds", lw_json_real(m->check_seconds)));
    }
    return json_pack("{s:b, s:b, s:i, s:i, s:o}", "random_weights", l->random, "drawn_pictures",
                     l->drawn, "pictures", (int)l->pictures, "passes", (int)l->passes, "models",
                     models);
}
