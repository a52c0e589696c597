/* SPDX-License-Identifier: Apache-2.0 */
/* How long does a batch of pictures take, from noise to pixels? All cells of a batch size take
 * turns, so that ratios hold on a machine that changes its pace. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "jobs/compare/compare_parts.h"
#include "session/session_sampler_turns.h"

static const int32_t batches[] = {1, 8, 64};
enum {
    TURNS_MAX = 100,
    TURNS_MIN = 3,
    ONE_STEPS_MIN = 5, /* of drift in a turn */
    ONE_STEPS_MAX = 50,
    ATTEMPTS = 2
};

/* One cell of the table while it is timed. */
typedef struct cell {
    const lw_source *from;
    lw_sampler *sampler;
    double scale; /* evaluations asked for over those that are timed */
    double wall[TURNS_MAX * ONE_STEPS_MAX], cpu[TURNS_MAX * ONE_STEPS_MAX];
    double turn[TURNS_MAX];    /* mean of a turn's runs */
    int32_t n, in_turn, times; /* runs in all, in this turn so far, in each turn */
} cell;

typedef struct timing {
    comparing *w;
    int32_t batch;
    float *pictures;
    cell cell[COMPARE_CELLS]; /* the first is drift's */
    lw_latency *out;          /* theirs, in the same order */
    int n;
} timing;

static int make_sampler(const comparing *w, const lw_source *from, lw_compare_setting how,
                        int32_t batch, lw_sampler **out)
{
    const lw_sampler_opts o = lw_compare_sampler(w, from, how, batch);
    return lw_sampler_new(w->dev, from->net, &o, out);
}

/* Seconds of one evaluation, from two short runs. */
static int probe(const timing *t, const lw_source *from, lw_compare_setting how, double *out)
{
    LW_CLEANUP(lw_sampler_free) lw_sampler *s = NULL;
    how.evaluations = 2;
    LW_TRY(make_sampler(t->w, from, how, t->batch, &s));
    LW_TRY(lw_sampler_run(s, 0, t->batch, NULL, NULL, t->pictures));
    double began = lw_now();
    LW_TRY(lw_sampler_run(s, 0, t->batch, NULL, NULL, t->pictures));
    *out = (lw_now() - began) / lw_sampler_evaluations(s);
    return 0;
}

/* DPM-Solver's times need not differ where a cell is extrapolated: the schedule may have fewer. */
static bool runs_whole(const lw_source *from, lw_compare_setting how)
{
    bool runs = how.sampler != LW_SAMPLER_DPM_SOLVER ||
                lw_solver_check_steps(from->diffusion, how.evaluations, "evaluations") == 0;
    lw_errclear();
    return runs;
}

/* A cell that would take too long, or does not run whole, is extrapolated from fewer evaluations. */
static int open_cell(timing *t, const lw_source *from, lw_compare_setting how)
{
    cell *c = &t->cell[t->n];
    lw_latency *l = &t->out[t->n++];
    lw_compare_setting timed = how;
    *l = (lw_latency){.method = lw_method_name(from->method), .how = how, .batch = t->batch};
    if (how.evaluations > COMPARE_PROBE_STEPS) {
        double one;
        LW_TRY(probe(t, from, how, &one));
        if (one * how.evaluations * (2 + TURNS_MIN) > 5.0 * t->w->c->latency_seconds ||
            !runs_whole(from, how))
            timed.evaluations = COMPARE_PROBE_STEPS;
    }
    c->from = from;
    c->times = 1;
    c->scale = (double)how.evaluations / timed.evaluations;
    l->extrapolated = timed.evaluations != how.evaluations;
    LW_TRY(make_sampler(t->w, from, timed, t->batch, &c->sampler));
    l->bytes = lw_sampler_bytes(c->sampler) + lw_store_bytes(from->net->store);
    return 0;
}

static int keep(void *self, int which, int32_t turn, const lw_sampler_time *time)
{
    cell *c = &((timing *)self)->cell[which];
    c->wall[c->n] = c->scale * time->wall;
    c->cpu[c->n++] = c->scale * time->cpu;
    c->in_turn = turn == 0 || c->turn[turn] == 0.0 ? 1 : c->in_turn + 1;
    c->turn[turn] += (c->scale * time->wall - c->turn[turn]) / c->in_turn;
    return 0;
}

/* Numbers of a cell; times drift's are of pairs taken in the same turn. */
static void conclude_cell(const cell *c, const cell *drift, int32_t turns, lw_latency *l)
{
    double ratio[TURNS_MAX];
    lw_summary wall = lw_summarize(c->wall, c->n);
    for (int32_t i = 0; i < turns; i++)
        ratio[i] = c->turn[i] / drift->turn[i];
    l->runs = c->n;
    l->median = wall.p50;
    l->p95 = wall.p95;
    l->p99 = wall.p99;
    l->cpu = lw_summarize(c->cpu, c->n).p50;
    l->times_drift = lw_summarize(ratio, turns).p50;
}

static int time_cells(timing *t)
{
    lw_timed_sampler timed[COMPARE_CELLS];
    for (int i = 0; i < t->n; i++) {
        cell *c = &t->cell[i];
        c->n = 0;
        memset(c->turn, 0, sizeof c->turn);
        timed[i] = (lw_timed_sampler){
            .sampler = c->sampler, .pictures = t->pictures, .batch = t->batch, .times = c->times};
    }
    const lw_turn_limits limits = {TURNS_MIN, TURNS_MAX, t->w->c->latency_seconds * t->n};
    LW_TRY(lw_sampler_take_turns(timed, t->n, &limits, t->w->obs, keep, t));
    for (int i = 0; i < t->n; i++)
        conclude_cell(&t->cell[i], &t->cell[0], t->cell[0].n / t->cell[0].times, &t->out[i]);
    return 0;
}

/* Times drift by the clock and in processor time: of one machine they are much the same. */
static bool clock_is_off(const lw_latency *l, int n, const lw_latency *slow)
{
    for (int i = 0; i < n; i++) {
        double cpu = l[i].cpu > 0 ? slow->cpu / l[i].cpu : 0;
        if (lw_str_eq(l[i].method, "drift") && l[i].batch == slow->batch && slow != &l[i])
            return cpu > 0 && (slow->times_drift > 1.5 * cpu || 1.5 * slow->times_drift < cpu);
    }
    return false;
}

int lw_latency_contradictions(lw_latency *l, int n)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        l[i].refused = false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            /* guided, two evaluations are a little less than two */
            bool alike = (l[i].how.guidance_scale > 0.0) == (l[k].how.guidance_scale > 0.0);
            bool less = lw_str_eq(l[i].method, l[k].method) && l[i].batch == l[k].batch && alike &&
                        l[i].how.evaluations < l[k].how.evaluations;
            if (!less || l[i].median < l[k].median)
                continue;
            lw_latency *bad = l[i].extrapolated && !l[k].extrapolated ? &l[i] : &l[k];
            found += !bad->refused;
            bad->refused = true;
        }
    for (int i = 0; i < n; i++)
        if (!l[i].refused && clock_is_off(l, n, &l[i])) {
            found++;
            l[i].refused = true;
        }
    return found;
}

const char *lw_compare_times(char buf[32], double times)
{
    snprintf(buf, 32, isnan(times) ? "(not measured)" : "%.1fx", times);
    return buf;
}

bool lw_latency_busy(const lw_latency *l, int threads)
{
    return l->cpu > 0 && l->median > 1.5 * l->cpu / threads && l->p95 > 1.15 * l->median;
}

/* Contradictions are measured again; what stays is no number. */
static int time_batch(timing *t)
{
    int bad = 0;
    LW_TRY(open_cell(t, t->w->drift, (lw_compare_setting){.evaluations = 1}));
    for (int k = 0; k < t->w->n_others; k++)
        for (int i = 0; i < t->w->other[k].n_timed; i++)
            LW_TRY(open_cell(t, t->w->other[k].source, t->w->other[k].timed[i]));
    /* Drift runs about as long in a turn as the other does: a run too short to be interrupted would look
     * better on a busy machine than it is. */
    t->cell[0].times = LW_MIN(LW_MAX(lw_sampler_evaluations(t->cell[1].sampler), ONE_STEPS_MIN),
                              ONE_STEPS_MAX);
    for (int attempt = 0; attempt < ATTEMPTS && (attempt == 0 || bad > 0); attempt++) {
        LW_TRY(time_cells(t));
        bad = lw_latency_contradictions(t->out, t->n);
    }
    for (int i = 0; i < t->n; i++) {
        lw_latency *l = &t->out[i];
        /* many pictures keep all threads at work: there the clock shows who else was */
        if (l->batch == batches[LW_COUNT(batches) - 1])
            t->w->out->busy |= lw_latency_busy(l, lw_pool_size(t->w->dev->pool));
        t->w->out->busy |= l->refused;
        if (l->refused)
            l->median = l->p95 = l->p99 = l->cpu = l->times_drift = (double)NAN;
    }
    return 0;
}

const lw_latency *lw_compare_latency_of(const comparing *w, const char *method,
                                        lw_compare_setting how, int32_t batch)
{
    for (int i = 0; i < w->n_latencies; i++) {
        const lw_latency *l = &w->latency[i];
        if (lw_str_eq(l->method, method) && lw_compare_same(l->how, how) && l->batch == batch)
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
    int cells = 1 + (w->c->ddpm ? w->c->n_ddim_steps : 0) + (w->c->flow ? w->c->n_flow_steps : 0) +
                2 * w->n_others; /* and what their headlines may name */
    return cell_units(w) * (int64_t)LW_COUNT(batches) * cells;
}

/* Drift's speed beside the usual setting of each, which is the first of its cells. */
static void conclude_batch(comparing *w, const timing *t, size_t b)
{
    for (int k = 0, first = 1; k < w->n_others; first += w->other[k++].n_timed)
        w->out->other[k].speedup[b] = t->out[first].times_drift;
}

int lw_compare_latency(comparing *w)
{
    LW_CLEANUP(lw_free) timing *t = lw_calloc(1, sizeof *t);
    LW_CLEANUP(lw_free)
    float *pictures = lw_calloc((size_t)64 * (size_t)(w->side * w->side * 3), sizeof *pictures);
    int rc = 0;
    if (!t || !pictures)
        return LW_ENOMEM;
    for (size_t b = 0; rc == 0 && b < LW_COUNT(batches); b++) {
        *t = (timing){
            .w = w, .batch = batches[b], .pictures = pictures, .out = &w->latency[w->n_latencies]};
        rc = time_batch(t);
        for (int i = 0; i < t->n; i++)
            lw_sampler_free(&t->cell[i].sampler);
        if (rc < 0)
            break;
        w->n_latencies += t->n;
        conclude_batch(w, t, b);
        w->done += cell_units(w) * t->n;
        lw_compare_progress(w, 0, "timing");
    }
    return rc;
}
