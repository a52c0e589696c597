/* SPDX-License-Identifier: Apache-2.0 */
/* How long does a batch of pictures take, from noise to pixels? */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "recipes/recipe_compare_parts.h"

static const int32_t batches[] = {1, 8, 64};
enum { RUNS_MAX = 200, RUNS_MIN = 3, PROBE_STEPS = 10 };

static int make_sampler(const comparing *w, const lw_source *from, int32_t steps, int32_t batch,
                        lw_sampler **out)
{
    const lw_sampler_opts o = lw_compare_sampler(w, from, steps, batch);
    return lw_sampler_new(w->dev, &from->net, from->store, &o, out);
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Two runs to warm up (packing weights, touching memory), then runs until the budget is used. */
static int time_runs(const comparing *w, lw_sampler *s, int32_t batch, float *pictures,
                     lw_latency *out)
{
    double seconds[RUNS_MAX];
    int n = 0;
    for (int i = 0; i < 2; i++)
        LW_TRY(lw_sampler_run(s, 0, batch, NULL, NULL, pictures));
    double end = lw_now() + w->c->latency_seconds;
    while (n < RUNS_MIN || (n < RUNS_MAX && lw_now() < end)) {
        double t = lw_now();
        LW_TRY(lw_sampler_run(s, (int64_t)n * batch, batch, NULL, NULL, pictures));
        seconds[n++] = lw_now() - t;
        if (lw_observe_stop(w->obs))
            return lw_fail(LW_ESTOPPED, "stopped while timing");
    }
    qsort(seconds, (size_t)n, sizeof *seconds, compare_double);
    out->runs = n;
    out->median = lw_quantile(seconds, (size_t)n, 0.5);
    out->p95 = lw_quantile(seconds, (size_t)n, 0.95);
    out->p99 = lw_quantile(seconds, (size_t)n, 0.99);
    return 0;
}

/* Seconds of one evaluation, from two short runs. */
static int probe(const comparing *w, const lw_source *from, int32_t batch, float *pictures,
                 double *out)
{
    LW_CLEANUP(lw_sampler_free) lw_sampler *s = NULL;
    LW_TRY(make_sampler(w, from, 2, batch, &s));
    LW_TRY(lw_sampler_run(s, 0, batch, NULL, NULL, pictures));
    double t = lw_now();
    LW_TRY(lw_sampler_run(s, 0, batch, NULL, NULL, pictures));
    *out = (lw_now() - t) / lw_sampler_evaluations(s);
    return 0;
}

static int time_cell(comparing *w, const lw_source *from, int32_t steps, int32_t batch,
                     float *pictures)
{
    LW_CLEANUP(lw_sampler_free) lw_sampler *s = NULL;
    lw_latency *l = &w->latency[w->n_latencies];
    *l = (lw_latency){.method = lw_method_name(from->method), .evaluations = steps, .batch = batch};
    int32_t timed = steps;
    if (steps > PROBE_STEPS) {
        double one;
        LW_TRY(probe(w, from, batch, pictures, &one));
        if (one * steps * (2 + RUNS_MIN) > 5.0 * w->c->latency_seconds)
            timed = PROBE_STEPS;
    }
    LW_TRY(make_sampler(w, from, timed, batch, &s));
    LW_TRY(time_runs(w, s, batch, pictures, l));
    double scale = (double)steps / timed;
    l->extrapolated = timed != steps;
    l->median *= scale;
    l->p95 *= scale;
    l->p99 *= scale;
    l->bytes = lw_sampler_bytes(s) + lw_store_bytes(from->store);
    w->n_latencies++;
    return 0;
}

const lw_latency *lw_compare_latency_of(const comparing *w, const char *method, int32_t evaluations,
                                        int32_t batch)
{
    for (int i = 0; i < w->n_latencies; i++) {
        const lw_latency *l = &w->latency[i];
        if (lw_str_eq(l->method, method) && l->evaluations == evaluations && l->batch == batch)
            return l;
    }
    return NULL;
}

/* A timed cell takes its budget, and as long again to warm up; some 2,000 evaluations a second. */
static int64_t cell_units(const comparing *w)
{
    return (int64_t)(4000.0 * w->c->latency_seconds) + 1;
}

int64_t lw_compare_latency_units(const comparing *w)
{
    return cell_units(w) * (int64_t)LW_COUNT(batches) * (1 + w->c->n_ddim_steps);
}

static void cell_done(comparing *w)
{
    w->done += cell_units(w);
    lw_compare_progress(w, 0, "timing");
}

int lw_compare_latency(comparing *w)
{
    const lw_compare_config *c = w->c;
    LW_CLEANUP(lw_free)
    float *pictures = lw_calloc((size_t)64 * (size_t)(w->side * w->side * 3), sizeof *pictures);
    if (!pictures)
        return LW_ENOMEM;
    for (size_t b = 0; b < LW_COUNT(batches); b++) {
        LW_TRY(time_cell(w, w->drift, 1, batches[b], pictures));
        cell_done(w);
        for (int i = 0; i < c->n_ddim_steps; i++) {
            LW_TRY(time_cell(w, w->ddpm, c->ddim_steps[i], batches[b], pictures));
            cell_done(w);
        }
        const lw_latency *fast = lw_compare_latency_of(w, "drift", 1, batches[b]);
        const lw_latency *slow = lw_compare_latency_of(w, "ddpm", c->ddim_steps[0], batches[b]);
        w->out->speedup[b] = slow->median / fast->median;
    }
    return 0;
}
