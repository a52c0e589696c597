/* SPDX-License-Identifier: Apache-2.0 */
/* The two plans of kept states: queued states to features, current states to queries. */
#include <string.h>

#include "recipes/recipe_state_rows_parts.h"

enum { CHUNK = 64 }; /* rows of a task */

/* ---- plans ----------------------------------------------------------------------------------- */

static lw_val build_network(const lw_state_rows *r, lw_builder *b)
{
    const lw_policy_in in = {
        lw_input(b->g, "predicates", lw_type_of(LW_I32, 2, r->rows, r->most_atoms)),
        lw_input(b->g, "arguments", lw_type_of(LW_I32, 2, r->rows, 2 * r->most_atoms)),
        lw_input(b->g, "scale", lw_type_of(LW_F32, 1, r->rows)),
    };
    return lw_policy_key(b, &r->config, in);
}

static lw_val build_query(const lw_state_rows *r, lw_builder *b)
{
    lw_val key = lw_input(b->g, "keys", lw_type_of(LW_F32, 2, r->query_rows, r->width));
    return lw_policy_query(b, &r->config, key);
}

static int compile(lw_state_rows *r, lw_store *store, int which, lw_num precision)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(store)};
    lw_val out = which == LW_STATE_NETWORK ? build_network(r, &b) : build_query(r, &b);
    lw_graph_output_add(g, "out", out, (lw_val){0});
    const lw_compile_opts o = {.opt = 1, .precision = precision};
    LW_TRY(lw_compile(g, r->dev, &o, &r->plan[which]));
    LW_TRY(lw_exec_new(r->plan[which], LW_SLAB_PARAM, &r->exec[which]));
    lw_plan_info info = lw_plan_get_info(r->plan[which]);
    r->bytes += info.frame_bytes + info.derived_bytes;
    return 0;
}

int lw_state_rows_compile(lw_state_rows *r, lw_store *store, lw_num precision)
{
    LW_TRY(compile(r, store, LW_STATE_NETWORK, precision));
    LW_TRY(compile(r, store, LW_STATE_QUERY, LW_NUM_F32)); /* rare rows */
    lw_exec *net = r->exec[LW_STATE_NETWORK], *query = r->exec[LW_STATE_QUERY];
    r->predicates = lw_exec_data(net, "predicates");
    r->arguments = lw_exec_data(net, "arguments");
    r->scale = lw_exec_data(net, "scale"); /* NULL when the network has no use for it */
    r->keys = lw_exec_data(net, "out");
    r->current = lw_exec_data(query, "keys");
    r->queries = lw_exec_data(query, "out");
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

/* Rows of this run from the states at the head of the queue. */
static void fill(void *arg, int64_t task, int worker)
{
    lw_state_rows *r = arg;
    lw_atom sorted[LW_PROOF_MOST_ATOMS];
    (void)worker;
    for (int64_t i = task * CHUNK; i < LW_MIN((task + 1) * CHUNK, r->running); i++) {
        int32_t slot = r->queue[(r->done + i) % r->n_slots], n = r->slot[slot].n;
        const lw_atom *a = in_order(r, r->atoms + (ptrdiff_t)slot * r->most_atoms, n, sorted);
        int32_t *p = r->predicates + i * r->most_atoms,
                *args = r->arguments + 2 * i * r->most_atoms;
        for (int32_t k = 0; k < r->most_atoms; k++) {
            bool real = k < n;
            p[k] = real ? a[k].p : 0;
            args[2 * k] = real ? a[k].arg[0] : 0;
            args[2 * k + 1] = real ? a[k].arg[1] : 0;
        }
        if (r->scale)
            r->scale[i] = lw_policy_scale(&r->config, n);
    }
}

static void empty(void *arg, int64_t task, int worker)
{
    lw_state_rows *r = arg;
    size_t width = (size_t)r->width;
    (void)worker;
    for (int64_t i = task * CHUNK; i < LW_MIN((task + 1) * CHUNK, r->running); i++)
        memcpy(r->features + (size_t)r->queue[(r->done + i) % r->n_slots] * width,
               r->keys + (size_t)i * width, width * sizeof(float));
}

int lw_state_rows_run(lw_state_rows *r)
{
    r->running = LW_MIN((int64_t)r->rows, r->queued - r->done);
    if (r->running == 0)
        return 0;
    int64_t tasks = LW_CEIL_DIV(r->running, (int64_t)CHUNK);
    double t0 = lw_now();
    r->dev->parallel(r->dev->self, tasks, fill, r);
    double t1 = lw_now();
    LW_TRY(lw_exec_run(r->exec[LW_STATE_NETWORK], NULL));
    double t2 = lw_now();
    r->dev->parallel(r->dev->self, tasks, empty, r);
    r->counts.network_seconds += t2 - t1;
    r->counts.copy_seconds += t1 - t0 + lw_now() - t2;
    r->counts.scored += r->running;
    r->counts.runs++;
    r->done += r->running;
    return 0;
}

int lw_state_rows_query(lw_state_rows *r, const int32_t *slot, int32_t n, const float **query)
{
    size_t width = (size_t)r->width;
    LW_ASSERT(n <= r->query_rows, "%d queries, %d at most", n, r->query_rows);
    for (int32_t i = 0; i < n; i++)
        memcpy(r->current + (size_t)i * width, r->features + (size_t)slot[i] * width,
               width * sizeof(float));
    double began = lw_now();
    LW_TRY(lw_exec_run(r->exec[LW_STATE_QUERY], NULL));
    r->counts.network_seconds += lw_now() - began;
    r->counts.query_rows += n;
    r->counts.query_runs++;
    *query = r->queries;
    return 0;
}
