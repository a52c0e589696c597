/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for the battery, and what it says of them. */
#include "jobs/compare/compare_verdict.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "session/session.h"

enum { NEAR = 500, REPLICATES = 60, DIRECTIONS = 256 };

static lw_verdict_opts verdict_opts(const comparing *w)
{
    return (lw_verdict_opts){
        .replicates = REPLICATES, .directions = DIRECTIONS, .seed = (uint64_t)w->c->seed};
}

/* ---- opening --------------------------------------------------------------------------------- */

/* What --battery says; else the folder `battery` beside the drift run. "": there is none. */
static void find_battery(const comparing *w, lw_str *out)
{
    LW_CLEANUP(lw_str_clear) lw_str up = {0};
    if (w->c->battery) {
        lw_str_add(out, w->c->battery);
        return;
    }
    lw_path_parent(w->c->drift, &up);
    lw_path_join(out, up.len ? lw_str_c(&up) : ".", "battery");
    if (!lw_path_is_dir(lw_str_c(out)))
        out->len = 0;
}

/* Of each of n pictures: how near what was learnt, how near what nobody saw. New heap array. */
static int find_nearness(const comparing *w, const compare_verdict *v, const float *x, int64_t n,
                         lw_nearness **out)
{
    const lw_dataset *train = lw_scorer_training(w->scorer);
    LW_CLEANUP(lw_free) lw_nearness *near = lw_calloc((size_t)n, sizeof *near);
    LW_CLEANUP(lw_free) double *learnt = lw_calloc((size_t)n, sizeof *learnt);
    LW_CLEANUP(lw_free) double *fresh = lw_calloc((size_t)n, sizeof *fresh);
    LW_CLEANUP(lw_free) int64_t *row = lw_calloc((size_t)n, sizeof *row);
    if (!near || !learnt || !fresh || !row)
        return LW_ENOMEM;
    LW_TRY(lw_scorer_nearest_of(w->scorer, train->pixels, train->n, x, n, learnt, row));
    LW_TRY(lw_scorer_nearest_of(w->scorer, v->real.pixels, v->real.reference, x, n, fresh, NULL));
    for (int64_t i = 0; i < n; i++)
        near[i] = (lw_nearness){learnt[i], fresh[i], row[i]};
    *out = lw_steal(&near);
    return 0;
}

static int measure_unseen(comparing *w, compare_verdict *v)
{
    int64_t floats = (int64_t)w->side * w->side * 3, n = LW_MIN(v->real.unseen, NEAR);
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(n * floats), sizeof *x);
    if (!x)
        return LW_ENOMEM;
    v->n_unseen = n;
    lw_data_from_u8(v->real.pixels + v->real.reference * floats, n * floats, x);
    double start = lw_now();
    LW_TRY(find_nearness(w, v, x, n, &v->unseen));
    v->near_seconds = lw_now() - start;
    return 0;
}

static int open_verdict(comparing *w, const char *specs, compare_verdict *v)
{
    double start = lw_now();
    LW_TRY(lw_battery_open(w->dev, w->c->conv, specs, w->side, &v->battery));
    LW_TRY(lw_battery_leave_out_run(v->battery, w->c->drift, "drift"));
    for (int i = 0; i < w->n_others; i++)
        LW_TRY(lw_battery_leave_out_run(v->battery, w->other[i].run, w->other[i].name));
    LW_TRY(lw_verdict_split(lw_scorer_heldout(w->scorer), w->c->n_fid, &v->real));
    LW_TRY(measure_unseen(w, v));
    v->spent = v->open_seconds = lw_now() - start;
    return 0;
}

int lw_compare_verdict_open(comparing *w)
{
    LW_CLEANUP(lw_str_clear) lw_str specs = {0};
    find_battery(w, &specs);
    if (specs.len == 0)
        return 0;
    w->verdict = lw_calloc(1, sizeof *w->verdict);
    return w->verdict ? open_verdict(w, lw_str_c(&specs), w->verdict) : LW_ENOMEM;
}

void lw_compare_verdict_close(comparing *w)
{
    compare_verdict *v = w->verdict;
    if (!v)
        return;
    for (int32_t i = 0; i < v->rows; i++) {
        uint8_t *rgb = (uint8_t *)(uintptr_t)v->row[i].rgb;
        int32_t *labels = (int32_t *)(uintptr_t)v->row[i].labels;
        lw_free(&rgb);
        lw_free(&labels);
    }
    lw_compare_planted_clear(v);
    lw_free(&v->unseen);
    lw_free(&v->result);
    lw_verdict_real_clear(&v->real);
    lw_battery_free(&v->battery);
    lw_free(&w->verdict);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int find_copies(const comparing *w, const compare_verdict *v, const float *x, int64_t n,
                       lw_copying *out)
{
    int64_t m = LW_MIN(n, NEAR);
    LW_CLEANUP(lw_free) lw_nearness *near = NULL;
    LW_TRY(find_nearness(w, v, x, m, &near));
    return lw_copying_of(near, m, v->unseen, v->n_unseen, out);
}

int lw_compare_verdict_add(comparing *w, const char *name, lw_verdict_part part, const float *x,
                           const int32_t *classes, int64_t n)
{
    compare_verdict *v = w->verdict;
    int64_t floats = (int64_t)w->side * w->side * 3;
    if (!v)
        return 0;
    LW_ASSERT(v->rows < LW_VERDICT_ROWS, "%d rows of a verdict", v->rows);
    double start = lw_now();
    int rc = lw_pictures_check(x, n, floats, 0);
    if (rc < 0)
        return lw_fail_in(rc, "%s: ", name);
    LW_TRY(find_copies(w, v, x, n, &v->copies[v->rows]));
    LW_CLEANUP(lw_free) uint8_t *rgb = lw_calloc((size_t)(n * floats), 1);
    LW_CLEANUP(lw_free)
    int32_t *labels = classes ? lw_calloc((size_t)n, sizeof *labels) : NULL;
    if (!rgb || (classes && !labels))
        return LW_ENOMEM;
    lw_data_to_u8(x, n * floats, rgb);
    if (classes)
        memcpy(labels, classes, (size_t)n * sizeof *labels);
    snprintf(v->name[v->rows], sizeof v->name[0], "%s", name);
    v->row[v->rows] = (lw_verdict_set){.name = v->name[v->rows],
                                       .part = part,
                                       .rgb = lw_steal(&rgb),
                                       .n = n,
                                       .labels = lw_steal(&labels),
                                       .classes = w->classes};
    v->rows++;
    v->spent += lw_now() - start;
    return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static void on_progress(void *self, const char *what, int64_t done, int64_t total, const char *note)
{
    const comparing *w = self;
    char text[96];
    (void)what;
    snprintf(text, sizeof text, "verdict of %s, %lld %%", note ? note : "the battery",
             (long long)(total > 0 ? 100 * done / total : 0));
    lw_compare_progress(w, 0, text);
}

static bool on_stop(void *self)
{
    return lw_observe_stop(((const comparing *)self)->obs);
}

int lw_compare_verdict_run(comparing *w)
{
    compare_verdict *v = w->verdict;
    const lw_verdict_opts o = verdict_opts(w);
    const lw_observer obs = {.self = w, .progress = on_progress, .should_stop = on_stop};
    if (!v)
        return 0;
    LW_TRY(lw_verdict_run(w->dev, v->battery, &v->real, v->row, v->rows, &o, &obs, &v->result));
    v->result->seconds += v->spent;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_verdict_print(v->battery, v->row, v->copies, v->result, &text);
    snprintf(w->out->verdict, sizeof w->out->verdict, "%s", lw_str_c(&text));
    return 0;
}

int lw_compare_verdict_forecast(comparing *w, const lw_verdict_set *rows, int32_t n,
                                double *seconds)
{
    const compare_verdict *v = w->verdict;
    const lw_verdict_opts o = verdict_opts(w);
    *seconds = 0;
    if (!v)
        return 0;
    LW_TRY(lw_verdict_forecast(w->dev, v->battery, &v->real, rows, n, &o, seconds));
    *seconds += v->open_seconds;
    for (int32_t i = 0; i < n; i++)
        *seconds += v->near_seconds * (double)LW_MIN(rows[i].n, NEAR) / (double)v->n_unseen;
    return 0;
}

json_t *lw_compare_verdict_json(const comparing *w)
{
    const compare_verdict *v = w->verdict;
    return v && v->result ? lw_verdict_json(v->battery, v->row, v->copies, v->result) : NULL;
}
