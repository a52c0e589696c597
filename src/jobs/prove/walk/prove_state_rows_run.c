/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two plans of kept states: queued states to features, current states to queries. The network's
 * is small enough for a core's caches, and each worker runs whole parts of a batch alone, so there
 * is no barrier between its layers.
 */
#include <string.h>

#include "jobs/prove/walk/prove_state_rows_parts.h"

/* ---- plans ----------------------------------------------------------------------------------- */

static lw_val build_network(const lw_state_rows *r, lw_builder *b)
{
    const lw_policy_in in = {
        lw_input(b->g, "predicates", lw_type_of(LW_I32, 2, r->part, r->most_atoms)),
        lw_input(b->g, "arguments", lw_type_of(LW_I32, 2, r->part, 2 * r->most_atoms)),
        lw_input(b->g, "scale", lw_type_of(LW_F32, 1, r->part)),
    };
    return lw_policy_key(b, &r->config, in);
}

static lw_val build_product(const lw_state_rows *r, lw_builder *b)
{
    lw_val key = lw_input(b->g, "keys", lw_type_of(LW_F32, 2, (int32_t)LW_STATE_QUERIES, r->width));
    return lw_policy_query(b, &r->config, key);
}

static int compile(lw_state_rows *r, lw_store *store,
                   lw_val (*build)(const lw_state_rows *r, lw_builder *b), lw_num precision,
                   lw_plan **out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(store)};
    lw_graph_output_add(g, "out", build(r, &b), (lw_val){0});
    const lw_compile_opts o = {.opt = 1, .precision = precision};
    LW_TRY(lw_compile(g, r->dev, &o, out));
    r->bytes += lw_plan_get_info(*out).derived_bytes;
    return 0;
}

/* The first worker's exec owns the prepared data. */
static int new_exec(const lw_plan *p, const lw_exec *first, lw_exec **out)
{
    return first ? lw_exec_new_beside(first, out) : lw_exec_new(p, LW_SLAB_PARAM, out);
}

static int new_worker(lw_state_rows *r, int i)
{
    lw_state_worker *w = &r->worker[i];
    const lw_state_worker *first = &r->worker[0];
    LW_TRY(new_exec(r->network, i > 0 ? first->exec : NULL, &w->exec));
    LW_TRY(new_exec(r->product, i > 0 ? first->query : NULL, &w->query));
    w->predicates = lw_exec_data(w->exec, "predicates");
    w->arguments = lw_exec_data(w->exec, "arguments");
    w->scale = lw_exec_data(w->exec, "scale");
    w->keys = lw_exec_data(w->exec, "out");
    w->current = lw_exec_data(w->query, "keys");
    w->queries = lw_exec_data(w->query, "out");
    r->bytes += lw_plan_get_info(r->network).frame_bytes + lw_plan_get_info(r->product).frame_bytes;
    return 0;
}

int lw_state_rows_compile(lw_state_rows *r, lw_store *store, lw_num precision)
{
    int workers = lw_pool_size(r->dev->pool);
    if (workers > LW_STATE_MOST_WORKERS)
        return lw_fail(LW_EUSAGE, "features of states on %d threads: %d at most", workers,
                       (int)LW_STATE_MOST_WORKERS);
    r->workers = workers;
    LW_TRY(compile(r, store, build_network, precision, &r->network));
    LW_TRY(compile(r, store, build_product, LW_NUM_F32, &r->product)); /* rare rows */
    for (int i = 0; i < r->workers; i++)
        LW_TRY(new_worker(r, i));
    return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static bool stands_before(lw_atom a, lw_atom b)
{
    if (a.p != b.p)
        return a.p < b.p;
    return a.arg[0] != b.arg[0] ? a.arg[0] < b.arg[0] : a.arg[1] < b.arg[1];
}

/* Goals in one order of their numbers, so that states of the same goals in another order get equal
 * bits where their order does not matter: they tie exactly, and the first of them is chosen on any
 * machine, rather than whichever rounding favours. */
static const lw_atom *in_order(const lw_state_rows *r, const lw_atom *a, int32_t n, lw_atom *out)
{
    if (r->config.state > LW_POLICY_STATE_SUM) /* order matters to the others */
        return a;
    for (int32_t i = 0, k; i < n; i++) {
        for (k = i; k > 0 && stands_before(a[i], out[k - 1]); k--)
            out[k] = out[k - 1];
        out[k] = a[i];
    }
    return out;
}

/* Row i of a worker's exec from a state. */
static void fill_row(const lw_state_rows *r, const lw_state_worker *w, int64_t i, int32_t slot)
{
    lw_atom sorted[LW_PROOF_MOST_ATOMS];
    int32_t n = r->slot[slot].n, *p = w->predicates + i * r->most_atoms,
            *args = w->arguments + 2 * i * r->most_atoms;
    const lw_atom *a = in_order(r, r->atoms + (ptrdiff_t)slot * r->most_atoms, n, sorted);
    for (int32_t k = 0; k < r->most_atoms; k++) {
        bool real = k < n;
        p[k] = real ? a[k].p : 0;
        args[2 * k] = real ? a[k].arg[0] : 0;
        args[2 * k + 1] = real ? a[k].arg[1] : 0;
    }
    if (w->scale)
        w->scale[i] = lw_policy_scale(&r->config, n);
}

int64_t lw_state_rows_begin(lw_state_rows *r)
{
    r->running = LW_MIN((int64_t)r->rows, r->queued - r->done);
    if (r->running > 0)
        lw_exec_prepare(r->worker[0].exec);
    return LW_CEIL_DIV(r->running, (int64_t)r->part);
}

/* In the worker's own exec. Rows behind the last state hold what was there. */
void lw_state_rows_part(lw_state_rows *r, int64_t part, int worker)
{
    lw_state_worker *w = &r->worker[worker];
    const size_t width = (size_t)r->width;
    int64_t first = r->done + part * r->part,
            n = LW_MIN((int64_t)r->part, r->done + r->running - first);
    double began = lw_now();
    for (int64_t i = 0; i < n; i++)
        fill_row(r, w, i, r->queue[(first + i) % r->n_slots]);
    lw_exec_run_alone(w->exec, NULL);
    for (int64_t i = 0; i < n; i++)
        memcpy(r->features + (size_t)r->queue[(first + i) % r->n_slots] * width,
               w->keys + (size_t)i * width, width * sizeof(float));
    w->seconds += lw_now() - began;
}

void lw_state_rows_end(lw_state_rows *r)
{
    double seconds = 0;
    for (int i = 0; i < r->workers; i++)
        seconds += r->worker[i].seconds;
    r->counts.network_seconds = seconds / r->workers;
    r->counts.scored += r->running;
    r->counts.runs += r->running > 0;
    r->done += r->running;
    r->running = 0;
}

void lw_state_rows_prepare(lw_state_rows *r)
{
    lw_exec_prepare(r->worker[0].query);
}

const float *lw_state_rows_query(lw_state_rows *r, int worker, const int32_t *slot, int32_t n)
{
    const lw_state_worker *w = &r->worker[worker];
    const size_t width = (size_t)r->width;
    LW_ASSERT(n <= LW_STATE_QUERIES, "%d queries, %d at most", n, (int)LW_STATE_QUERIES);
    for (int32_t i = 0; i < n; i++)
        memcpy(w->current + (size_t)i * width, r->features + (size_t)slot[i] * width,
               width * sizeof(float));
    lw_exec_run_alone(w->query, NULL);
    return w->queries;
}
