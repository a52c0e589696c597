/* SPDX-License-Identifier: Apache-2.0 */
/* Queries over workers: blocks of them, one search for each worker. */
#include "logic/search/logic_depths.h"

#include <string.h>

typedef struct depth_job {
    const lw_queries *q;
    lw_search **search;     /* [threads] */
    lw_least_asker **asker; /* [threads], NULL: there is no model */
    lw_search_result *of;
    int *error;    /* [threads], of the first query that failed there */
    int32_t first; /* query of task 0 */
    const lw_depths_options *o;
} depth_job;

static int decide(depth_job *j, int worker, lw_atom query, lw_search_result *out)
{
    lw_least_asker *model = j->asker[worker];
    int32_t depth = 0;
    if (model)
        LW_TRY(lw_least_ask(model, query, &depth));
    if (depth < 0 || depth > j->o->search.max_depth) {
        *out = (lw_search_result){
            .end = depth < 0 ? LW_SEARCH_NONE : LW_SEARCH_DEPTH, .depth = -1, .by_model = true};
        return 0;
    }
    LW_TRY(lw_search_run(j->search[worker], query, out));
    if (!model || (out->end == LW_SEARCH_PROVED && out->depth <= depth))
        return 0; /* a search that cut long states may have missed a shorter proof */
    out->end = LW_SEARCH_PROVED;
    out->depth = depth;
    out->by_model = true;
    return 0;
}

static void run_query(void *arg, int64_t task, int worker)
{
    depth_job *j = arg;
    int32_t i = j->first + (int32_t)task;
    if (j->error[worker] == 0)
        j->error[worker] = decide(j, worker, j->q->atom[i], &j->of[i]);
}

static bool stops(void *self)
{
    const depth_job *j = self;
    return j->o->tick && !j->o->tick(j->o->self, j->first, j->q->n);
}

static int run_blocks(depth_job *j, lw_pool *pool, const lw_depths_options *o)
{
    enum { BLOCK = 64 }; /* queries between two reports of progress */
    int threads = lw_pool_size(pool);
    const lw_observer watch = {.self = j, .should_stop = stops};
    lw_pool_watch(pool, &watch); /* a block may take seconds */
    for (j->first = 0; j->first < j->q->n; j->first += BLOCK) {
        if (lw_pool_run_asking(pool, LW_MIN(BLOCK, j->q->n - j->first), run_query, j) < 0)
            return lw_fail(LW_ESTOPPED, "interrupted after %d of %d queries", j->first, j->q->n);
        for (int t = 0; t < threads; t++)
            if (j->error[t] != 0) /* the message stayed in the worker's thread */
                return lw_fail(j->error[t], "no memory for the states of a search");
    }
    if (o->tick)
        o->tick(o->self, j->q->n, j->q->n);
    return 0;
}

static void add_up(lw_search_result *sum, const lw_search_result *r)
{
    sum->expanded += r->expanded;
    sum->successors += r->successors;
    sum->states = LW_MAX(sum->states, r->states);
    sum->atoms_cut += r->atoms_cut;
    sum->facts_cut += r->facts_cut;
}

static int summarise(const lw_queries *q, int32_t max_depth, lw_depths *d)
{
    for (int32_t i = 0; i < d->n; i++) {
        d->most_depth = LW_MAX(d->most_depth, d->of[i].depth);
        d->ends[d->of[i].end]++;
        d->by_model += d->of[i].by_model;
        d->deep += d->of[i].by_model && d->of[i].end == LW_SEARCH_DEPTH;
        add_up(&d->sum, &d->of[i]);
        if (q->published[i] == LW_DEPTH_UNKNOWN)
            continue;
        if (q->published[i] > max_depth && d->of[i].depth < 0) {
            d->deeper++;
            continue;
        }
        d->compared++;
        d->equal += q->published[i] == d->of[i].depth;
    }
    d->undecided = d->n - d->ends[LW_SEARCH_PROVED] - d->ends[LW_SEARCH_NONE] - d->deep;
    d->histogram = lw_calloc((size_t)d->most_depth + 1, sizeof *d->histogram);
    if (!d->histogram)
        return LW_ENOMEM;
    for (int32_t i = 0; i < d->n; i++)
        d->histogram[LW_MAX(d->of[i].depth, 0)]++;
    return 0;
}

static int search_all(const lw_kb *kb, const lw_queries *q, const lw_depths_options *o,
                      lw_depths *d, depth_job *j)
{
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    lw_search_options so = o->search;
    so.memory = d->query_memory;
    for (int32_t t = 0; t < d->threads; t++) {
        LW_TRY(lw_search_new(kb, &so, &j->search[t]));
        if (o->model && so.max_fact_pairs == 0)
            LW_TRY(lw_least_asker_new(o->model, &j->asker[t]));
    }
    LW_TRY(lw_pool_new(d->threads, &pool));
    double began = lw_now();
    LW_TRY(run_blocks(j, pool, o));
    d->seconds = lw_now() - began;
    return summarise(q, so.max_depth, d);
}

int lw_depths_run(const lw_kb *kb, const lw_queries *q, const lw_depths_options *o, lw_depths *out)
{
    LW_CLEANUP(lw_depths_clear) lw_depths d = {.n = q->n};
    d.query_memory = LW_MIN(o->search.memory, o->memory_limit);
    d.threads = (int32_t)LW_MAX((size_t)1, LW_MIN((size_t)LW_MAX(o->threads, 1),
                                                  o->memory_limit / LW_MAX(d.query_memory, 1u)));
    LW_CLEANUP(lw_free) lw_search **search = lw_calloc((size_t)d.threads, sizeof(lw_search *));
    LW_CLEANUP(lw_free)
    lw_least_asker **asker = lw_calloc((size_t)d.threads, sizeof(lw_least_asker *));
    LW_CLEANUP(lw_free) int *error = lw_calloc((size_t)d.threads, sizeof(int));
    d.of = lw_calloc((size_t)q->n + 1, sizeof *d.of);
    if (!search || !asker || !error || !d.of)
        return LW_ENOMEM;
    depth_job j = {.q = q, .search = search, .asker = asker, .of = d.of, .error = error, .o = o};
    int rc = search_all(kb, q, o, &d, &j);
    for (int32_t t = 0; t < d.threads; t++) {
        lw_search_free(&search[t]);
        lw_least_asker_free(&asker[t]);
    }
    LW_TRY(rc);
    *out = d;
    d = (lw_depths){0};
    return 0;
}

void lw_depths_clear(lw_depths *d)
{
    lw_free(&d->of);
    lw_free(&d->histogram);
    *d = (lw_depths){0};
}
