/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as text tables and as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/profile/bench_profile_tables.h"

/* time, share, speed, share of the peak, traffic */
static void cost_cells(lw_table *t, const lw_profile *p, double ms, double flops, double bytes)
{
    lw_table_number(t, ms, 4);
    lw_table_percent(t, p->ms > 0 ? ms / p->ms : 0, 1);
    lw_table_cell(t, "%.1f", ms > 0 ? 1e-6 * flops / ms : 0.0);
    lw_table_percent(t, ms > 0 ? 1e-6 * flops / ms / p->gflops : 0, 0);
    lw_table_cell(t, "%.1f", ms > 0 ? 1e-6 * bytes / ms : 0.0);
}

int lw_profile_group_table(const lw_profile *p, int depth, lw_table *t)
{
    const char *const names[] = {
        depth ? "layer" : "op", "steps", "ms", "share", "GFLOP/s", "of peak", "GB/s", "MB", NULL};
    LW_CLEANUP(lw_free) lw_profile_group *g = NULL;
    int32_t n = 0;
    LW_TRY(lw_profile_groups(p, depth, &g, &n));
    lw_table_columns(t, names, 1);
    for (int32_t i = 0; i < n; i++) {
        lw_table_cell(t, "%s", g[i].name);
        lw_table_cell(t, "%d", (int)g[i].steps);
        cost_cells(t, p, g[i].ms, g[i].flops, g[i].bytes);
        lw_table_cell(t, "%.1f", 1e-6 * g[i].bytes);
    }
    return lw_table_ok(t);
}

static const lw_profile_step *slowest_steps; /* of the sort below: qsort has no argument */

static int slower_first(const void *a, const void *b)
{
    int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    double x = slowest_steps[i].ms, y = slowest_steps[k].ms;
    return x != y ? (x < y) - (x > y) : (i > k) - (i < k);
}

/* How much faster the model has s than one thread. */
static double gain_of(const lw_profile *p, const lw_profile_step *s, int threads)
{
    double ms = lw_profile_model_ms(p, s, threads);
    return ms > 0 ? lw_profile_model_ms(p, s, 1) / ms : 1.0;
}

static double model_sum(const lw_profile *p, int threads)
{
    double ms = 0.0;
    for (int32_t i = 0; i < p->n_step; i++)
        ms += lw_profile_model_ms(p, &p->step[i], threads);
    return ms;
}

/* NAN where so many threads were not measured. */
static double expected_sum(const lw_profile *p, int32_t model)
{
    double ms = 0.0;
    for (int32_t i = 0; i < p->n_step; i++)
        ms += lw_profile_expected_ms(p, &p->step[i], model);
    return ms;
}

int lw_profile_threads_table(const lw_profile *p, lw_table *t)
{
    static const char *const names[] = {"threads",     "ms",       "speed-up", "of threads",
                                        "expected ms", "speed-up", NULL};
    double alone = model_sum(p, 1);
    lw_table_columns(t, names, 0);
    for (int32_t i = 0; i < p->n_model; i++) {
        double ms = model_sum(p, p->model[i]);
        lw_table_cell(t, "%d", (int)p->model[i]);
        lw_table_number(t, ms, 4);
        lw_table_cell(t, "%.2fx", alone / ms);
        lw_table_percent(t, alone / ms / (double)p->model[i], 0);
        double expected = expected_sum(p, i);
        lw_table_number(t, expected, 4);
        lw_table_cell(t, isnan(expected) ? "-" : "%.2fx", alone / expected);
    }
    return lw_table_ok(t);
}

int lw_profile_step_table(const lw_profile *p, int32_t top, lw_table *t)
{
    const char *names[11 + LW_PROFILE_MODELS + 1] = {"step", "op",    "layer",   "result",
                                                     "ms",   "share", "GFLOP/s", "of peak",
                                                     "GB/s", "MB",    "tasks"};
    char gain[LW_PROFILE_MODELS][16];
    for (int32_t i = 0; i < p->n_model; i++) {
        snprintf(gain[i], sizeof gain[i], "at %d", (int)p->model[i]);
        names[11 + i] = gain[i];
    }
    LW_CLEANUP(lw_free) int32_t *order = lw_calloc((size_t)p->n_step + 1, sizeof *order);
    if (!order)
        return LW_ENOMEM;
    for (int32_t i = 0; i < p->n_step; i++)
        order[i] = i;
    slowest_steps = p->step;
    if (top > 0)
        qsort(order, (size_t)p->n_step, sizeof *order, slower_first);
    lw_table_columns(t, names, 4);
    for (int32_t i = 0; i < (top > 0 ? LW_MIN(top, p->n_step) : p->n_step); i++) {
        const lw_profile_step *s = &p->step[order[i]];
        lw_table_cell(t, "%d", (int)order[i]);
        lw_table_cell(t, "%s", s->op);
        lw_table_cell(t, "%s", s->scope);
        lw_table_cell(t, "%s", s->type);
        cost_cells(t, p, s->ms, s->flops, s->bytes);
        lw_table_cell(t, "%.1f", 1e-6 * s->bytes);
        lw_table_cell(t, "%lld", (long long)s->tasks);
        for (int32_t k = 0; k < p->n_model; k++)
            lw_table_cell(t, "%.1fx", gain_of(p, s, p->model[k]));
    }
    return lw_table_ok(t);
}

int lw_profile_method_table(const lw_profile *p, lw_table *t)
{
    static const char *const names[] = {"precision", "ms",    "speed-up", "values",
                                        "prepared",  "error", NULL};
    char frame[32], derived[32];
    lw_table_columns(t, names, 1);
    for (int32_t i = 0; i < p->n_method; i++) {
        const lw_profile_method *m = &p->method[i];
        lw_table_cell(t, "%s", m->name);
        lw_table_number(t, m->ms, 4);
        lw_table_cell(t, "%.2fx", p->method[0].ms / m->ms);
        lw_table_cell(t, "%s", lw_fmt_bytes(frame, m->frame));
        lw_table_cell(t, "%s", lw_fmt_bytes(derived, m->derived));
        if (isnan(m->error))
            lw_table_cell(t, "-");
        else
            lw_table_cell(t, "%.1e", m->error);
    }
    return lw_table_ok(t);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Bytes alive over the run as rows of bars: the most within each of COLUMNS stretches of steps. */
static void add_timeline(const lw_profile *p, lw_str *out)
{
    enum { COLUMNS = 72, ROWS = 6 };
    size_t most[COLUMNS] = {0};
    char peak[32], weights[32];
    for (int32_t i = 0; i < p->n_step; i++) {
        size_t c = (size_t)i * COLUMNS / (size_t)p->n_step;
        most[c] = LW_MAX(most[c], p->step[i].live);
    }
    for (int c = 1; c < COLUMNS;
         c++) /* fewer steps than columns: a step is as wide as it is long */
        if (p->n_step < COLUMNS && most[c] == 0)
            most[c] = most[c - 1];
    lw_str_addf(out, "\nvalues alive, step 0 to %d; at most %s beside %s of weights\n",
                (int)p->n_step - 1, lw_fmt_bytes(peak, p->peak_live),
                lw_fmt_bytes(weights, p->weights));
    for (int r = ROWS; r > 0; r--) {
        lw_str_add(out, "  |");
        for (int c = 0; c < COLUMNS; c++) {
            double level = (double)most[c] / (double)LW_MAX(p->peak_live, 1) * ROWS;
            lw_str_add(out, level >= r ? "#" : level >= r - 0.5 ? "." : " ");
        }
        lw_str_add(out, "|\n");
    }
}

static int add_table(const lw_table *t, const char *title, lw_str *out)
{
    lw_str_addf(out, "\n%s\n", title);
    lw_table_text(t, out);
    return lw_table_ok(t);
}

int lw_profile_text(const lw_profile *p, const lw_profile_view *v, lw_str *out)
{
    LW_CLEANUP(lw_table_clear)
    lw_table ops = {0}, layers = {0}, steps = {0}, methods = {0}, threads = {0};
    lw_str_addf(out, "%s\n%d steps, %.4g ms (profiled), %.4g ms as a whole", p->title,
                (int)p->n_step, p->ms, p->method[0].ms);
    if (p->gflops > 0)
        lw_str_addf(out, "; this machine: %.0f GFLOP/s, %.0f GB/s", p->gflops, p->gbytes);
    lw_str_addf(out, "\n");
    const char *tuned = NULL;
    LW_TRY(lw_json_opt_str(p->machine, "machine", "tuned", &tuned));
    lw_str_addf(out, "ways of computing 3x3 convolutions: %s\n", tuned ? tuned : "as shipped");
    LW_TRY(lw_profile_group_table(p, 0, &ops));
    LW_TRY(add_table(&ops, "by op", out));
    if (v->layers) {
        LW_TRY(lw_profile_group_table(p, v->depth, &layers));
        LW_TRY(add_table(&layers, "by layer", out));
    }
    LW_TRY(lw_profile_step_table(p, v->top, &steps));
    LW_TRY(add_table(&steps, v->top > 0 ? "slowest steps" : "steps in order", out));
    if (p->n_model > 0) {
        LW_TRY(lw_profile_threads_table(p, &threads));
        LW_TRY(add_table(&threads, "more threads, as a model", out));
        lw_str_addf(out,
                    "%s\nA barrier of %d threads takes %.2g us here, handing out a task %.2g us.\n",
                    LW_PROFILE_THREADS_NOTE, (int)p->cpus, p->barrier_us, p->task_us);
    }
    add_timeline(p, out);
    LW_TRY(lw_profile_method_table(p, &methods));
    LW_TRY(add_table(&methods, "precisions", out));
    return out->failed ? lw_fail(LW_ENOMEM, "no memory for the profile's text") : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *groups_json(const lw_profile *p, int depth)
{
    LW_CLEANUP(lw_free) lw_profile_group *g = NULL;
    int32_t n = 0;
    json_t *a = json_array();
    if (lw_profile_groups(p, depth, &g, &n) < 0)
        return a;
    for (int32_t i = 0; i < n; i++)
        json_array_append_new(a, json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "name", g[i].name,
                                           "steps", (int)g[i].steps, "ms", g[i].ms, "share",
                                           p->ms > 0 ? g[i].ms / p->ms : 0.0, "flops", g[i].flops,
                                           "bytes", g[i].bytes));
    return a;
}

static json_t *phases_json(const lw_profile_step *s)
{
    json_t *a = json_array();
    for (int32_t k = 0; k < s->n_phase; k++)
        json_array_append_new(a, json_pack("{s:f, s:I}", "ms", s->phase[k].ms, "tasks",
                                           (json_int_t)s->phase[k].tasks));
    return a;
}

static json_t *steps_json(const lw_profile *p)
{
    json_t *a = json_array();
    for (int32_t i = 0; i < p->n_step; i++) {
        const lw_profile_step *s = &p->step[i];
        double sec = 1e-3 * s->ms;
        json_array_append_new(
            a, json_pack("{s:i, s:s, s:s, s:s, s:f, s:f, s:f, s:o, s:o, s:f, s:I, s:I, s:o}",
                         "step", (int)i, "op", s->op, "layer", s->scope, "result", s->type, "ms",
                         s->ms, "flops", s->flops, "bytes", s->bytes, "gflops",
                         lw_json_real(1e-9 * s->flops / sec), "gbytes_per_second",
                         lw_json_real(1e-9 * s->bytes / sec), "share",
                         p->ms > 0 ? s->ms / p->ms : 0.0, "live_bytes", (json_int_t)s->live,
                         "tasks", (json_int_t)s->tasks, "phases", phases_json(s)));
    }
    return a;
}

static json_t *pace_json(double pace)
{
    return pace > 0 ? json_real(pace) : json_null();
}

static json_t *threads_json(const lw_profile *p)
{
    json_t *a = json_array();
    double alone = model_sum(p, 1);
    for (int32_t i = 0; i < p->n_model; i++) {
        double ms = model_sum(p, p->model[i]);
        double expected = expected_sum(p, i);
        json_array_append_new(a, json_pack("{s:i, s:f, s:f, s:o, s:o, s:o, s:o}", "threads",
                                           (int)p->model[i], "ms", ms, "speed_up", alone / ms,
                                           "expected_ms", lw_json_real(expected),
                                           "expected_speed_up", lw_json_real(alone / expected),
                                           "products_pace", pace_json(p->pace[i].products),
                                           "reading_pace", pace_json(p->pace[i].reading)));
    }
    return json_pack("{s:i, s:f, s:f, s:o}", "cpus", (int)p->cpus, "barrier_us", p->barrier_us,
                     "task_us", p->task_us, "bound", a);
}

json_t *lw_profile_to_json(const lw_profile *p, const lw_profile_view *v)
{
    json_t *o = json_object(), *methods = json_array();
    json_object_set(o, "machine", p->machine);
    json_object_set_new(o, "title", json_string(p->title));
    json_object_set_new(o, "ms", lw_json_real(p->ms));
    json_object_set_new(o, "peak_gflops", lw_json_real(p->gflops));
    json_object_set_new(o, "peak_gbytes_per_second", lw_json_real(p->gbytes));
    json_object_set_new(o, "weight_bytes", json_integer((json_int_t)p->weights));
    json_object_set_new(o, "peak_live_bytes", json_integer((json_int_t)p->peak_live));
    for (int32_t i = 0; i < p->n_method; i++) {
        const lw_profile_method *m = &p->method[i];
        json_array_append_new(methods, json_pack("{s:s, s:f, s:I, s:I, s:o}", "precision", m->name,
                                                 "ms", m->ms, "value_bytes", (json_int_t)m->frame,
                                                 "prepared_bytes", (json_int_t)m->derived, "error",
                                                 lw_json_real(m->error)));
    }
    json_object_set_new(o, "precisions", methods);
    json_object_set_new(o, "ops", groups_json(p, 0));
    if (v->layers)
        json_object_set_new(o, "layers", groups_json(p, v->depth));
    json_object_set_new(o, "steps", steps_json(p));
    if (p->n_model > 0)
        json_object_set_new(o, "threads_model", threads_json(p));
    return o;
}
