/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two plans of kept states: queued states to features, current states to queries, of which
 * choices are made. The network's is small enough for a core's caches, and each worker runs whole
 * parts of a batch alone, so there is no barrier between its layers.
 */
#include <math.h>
#include <string.h>

#include "jobs/prove/walk/prove_state_rows_parts.h"

/* ---- plans ----------------------------------------------------------------------------------- */

static void build_network(const lw_state_rows *r, lw_builder *b)
{
    const lw_policy_config *c = &r->config;
    lw_val predicates = lw_input(b->g, "predicates", lw_type_of(LW_I32, 2, r->part, r->most_atoms));
    lw_val arguments = lw_input(b->g, "arguments",
                                lw_type_of(LW_I32, 2, r->part, 2 * r->most_atoms));
    lw_val scale = lw_input(b->g, "scale", lw_type_of(LW_F32, 1, r->part));
    const lw_policy_in in = {predicates, arguments, scale};
    b->training = r->training && c->dropout > 0.0f;
    if (b->training)
        b->rows = lw_input(b->g, "rows", lw_type_of(LW_I64, 1, r->part));
    lw_val body = b->training ? lw_policy_body(b, c, in) : lw_policy_body_infer(b, c, in);
    lw_graph_output_add(b->g, "keys", lw_policy_key(b, c, body), LW_NOVAL);
    if (r->training)
        lw_graph_output_add(b->g, "values", lw_policy_value(b, c, body), LW_NOVAL);
}

static void build_product(const lw_state_rows *r, lw_builder *b)
{
    lw_val key = lw_input(b->g, "keys", lw_type_of(LW_F32, 2, (int32_t)LW_STATE_QUERIES, r->width));
    lw_graph_output_add(b->g, "queries", lw_policy_query(b, &r->config, key), LW_NOVAL);
}

static int compile(lw_state_rows *r, lw_store *store,
                   void (*build)(const lw_state_rows *r, lw_builder *b), lw_num precision,
                   lw_plan **out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(store)};
    build(r, &b);
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

static int new_worker(lw_state_rows *r, int i, int32_t successors)
{
    lw_state_worker *w = &r->worker[i];
    const lw_state_worker *first = &r->worker[0];
    LW_TRY(new_exec(r->network, i > 0 ? first->exec : NULL, &w->exec));
    LW_TRY(new_exec(r->product, i > 0 ? first->query : NULL, &w->query));
    w->logit = lw_calloc((size_t)successors, sizeof *w->logit);
    r->bytes += lw_plan_get_info(r->network).frame_bytes + lw_plan_get_info(r->product).frame_bytes;
    return w->logit ? 0 : LW_ENOMEM;
}

int lw_state_rows_compile(lw_state_rows *r, lw_store *store, const lw_state_rows_options *o)
{
    int workers = lw_pool_size(r->dev->pool);
    if (workers > LW_STATE_MOST_WORKERS)
        return lw_fail(LW_EUSAGE, "features of states on %d threads: %d at most", workers,
                       (int)LW_STATE_MOST_WORKERS);
    r->workers = workers;
    LW_TRY(compile(r, store, build_network, (lw_num)o->precision, &r->network));
    LW_TRY(compile(r, store, build_product, LW_NUM_F32, &r->product)); /* rare rows */
    for (int i = 0; i < r->workers; i++)
        LW_TRY(new_worker(r, i, o->successors));
    return 0;
}

double lw_state_rows_row_flops(const lw_state_rows *r)
{
    return lw_plan_get_info(r->network).flops / r->part;
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
 * machine, rather than whichever rounding favours. Updates of the weights do not sort them. */
static const lw_atom *in_order(const lw_state_rows *r, const lw_atom *a, int32_t n, lw_atom *out)
{
    if (r->training || r->config.state > LW_POLICY_STATE_SUM) /* order matters to the others */
        return a;
    for (int32_t i = 0, k; i < n; i++) {
        for (k = i; k > 0 && stands_before(a[i], out[k - 1]); k--)
            out[k] = out[k - 1];
        out[k] = a[i];
    }
    return out;
}

void lw_state_rows_fill(const lw_state_rows *r, int32_t slot, int32_t *predicates,
                        int32_t *arguments, float *scale)
{
    lw_atom seen[LW_PROOF_MOST_ATOMS], sorted[LW_PROOF_MOST_ATOMS];
    const lw_state_slot *s = &r->table.slot[slot];
    const lw_atom *goal = r->table.atoms + (ptrdiff_t)slot * r->most_atoms;
    int32_t n = s->n;
    for (int32_t k = 0; k < n; k++)
        seen[k] = (lw_atom){goal[k].p,
                            {lw_policy_argument(&r->config, goal[k].arg[0], s->query),
                             lw_policy_argument(&r->config, goal[k].arg[1], s->query)}};
    const lw_atom *a = in_order(r, seen, n, sorted);
    for (int32_t k = 0; k < r->most_atoms; k++) {
        bool real = k < n;
        predicates[k] = real ? a[k].p : 0;
        arguments[2 * k] = real ? a[k].arg[0] : 0;
        arguments[2 * k + 1] = real ? a[k].arg[1] : 0;
    }
    if (scale)
        *scale = lw_policy_scale(&r->config, n);
}

bool lw_state_rows_alike(const lw_state_rows *r, int32_t a, int32_t b)
{
    int32_t predicates[2][LW_PROOF_MOST_ATOMS], arguments[2][2 * LW_PROOF_MOST_ATOMS];
    const size_t n = (size_t)r->most_atoms * sizeof(int32_t);
    if (r->table.slot[a].n != r->table.slot[b].n) /* the scale follows */
        return false;
    lw_state_rows_fill(r, a, predicates[0], arguments[0], NULL);
    lw_state_rows_fill(r, b, predicates[1], arguments[1], NULL);
    return memcmp(predicates[0], predicates[1], n) == 0 &&
           memcmp(arguments[0], arguments[1], 2 * n) == 0;
}

/* Row i of a worker's exec from a state. */
static void fill_row(const lw_state_rows *r, const lw_state_worker *w, int64_t i, int32_t slot)
{
    lw_state_rows_fill(r, slot, w->predicates + i * r->most_atoms,
                       w->arguments + 2 * i * r->most_atoms, w->scale ? w->scale + i : NULL);
    if (w->rows)
        w->rows[i] = slot;
}

/* What came out for row i. */
static void keep_row(lw_state_rows *r, const lw_state_worker *w, int64_t i, int32_t slot)
{
    const size_t width = (size_t)r->width;
    memcpy(r->table.features + (size_t)slot * width, w->keys + (size_t)i * width,
           width * sizeof(float));
    if (w->values)
        r->table.values[slot] = w->values[i];
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
    const lw_state_table *t = &r->table;
    int64_t first = r->done + part * r->part,
            n = LW_MIN((int64_t)r->part, r->done + r->running - first);
    double began = lw_now();
    w->predicates = lw_exec_write(w->exec, "predicates");
    w->arguments = lw_exec_write(w->exec, "arguments");
    w->scale = lw_exec_write(w->exec, "scale");
    w->rows = lw_exec_write(w->exec, "rows");
    for (int64_t i = 0; i < n; i++)
        fill_row(r, w, i, t->queue[(first + i) % t->n_slots]);
    lw_exec_run_alone(w->exec, r->tick);
    w->keys = lw_exec_read(w->exec, "keys");
    w->values = lw_exec_read(w->exec, "values");
    for (int64_t i = 0; i < n; i++)
        keep_row(r, w, i, t->queue[(first + i) % t->n_slots]);
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

static void part_task(void *arg, int64_t part, int worker)
{
    lw_state_rows_part(arg, part, worker);
}

void lw_state_rows_run(lw_state_rows *r, const lw_tick *tick)
{
    r->tick = tick;
    for (int64_t parts; (parts = lw_state_rows_begin(r)) > 0; lw_state_rows_end(r))
        lw_pool_run(r->dev->pool, parts, part_task, r);
    r->tick = NULL;
}

/* ---- choices --------------------------------------------------------------------------------- */

void lw_state_rows_prepare(lw_state_rows *r)
{
    lw_exec_prepare(r->worker[0].query);
}

void lw_state_rows_query(lw_state_rows *r, int worker, const int32_t *slot, int32_t n)
{
    lw_state_worker *w = &r->worker[worker];
    const size_t width = (size_t)r->width;
    float *current = lw_exec_write(w->query, "keys");
    LW_ASSERT(n <= LW_STATE_QUERIES, "%d queries, %d at most", n, (int)LW_STATE_QUERIES);
    for (int32_t i = 0; i < n; i++)
        memcpy(current + (size_t)i * width, r->table.features + (size_t)slot[i] * width,
               width * sizeof(float));
    lw_exec_run_alone(w->query, NULL);
    w->queries = lw_exec_read(w->query, "queries");
}

/* exp(logit - most) summed in double, in order; NaN when a logit is not finite. */
static double sum_exp(const float *logit, int32_t n, float most)
{
    double sum = 0;
    for (int32_t k = 0; k < n; k++)
        sum += isfinite(logit[k]) ? exp((double)logit[k] - (double)most) : (double)NAN;
    return sum;
}

static int32_t first_of_most(const float *logit, int32_t n)
{
    int32_t best = 0;
    for (int32_t k = 1; k < n; k++)
        if (logit[k] > logit[best])
            best = k;
    return best;
}

double lw_logits_log_prob(const float *logit, int32_t n, int32_t k)
{
    const float most = logit[first_of_most(logit, n)];
    return (double)logit[k] - (double)most - log(sum_exp(logit, n, most));
}

int32_t lw_logits_choose(const float *logit, int32_t n, double u, double *log_prob)
{
    int32_t k = first_of_most(logit, n);
    float most = logit[k];
    double sum = sum_exp(logit, n, most), left = sum * u;
    /* the first whose share of the sum, and those before it, pass u */
    for (k = u < 0 ? k : 0; u >= 0 && k < n - 1; k++) {
        left -= exp((double)logit[k] - (double)most);
        if (left < 0)
            break;
    }
    *log_prob = (double)logit[k] - (double)most - log(sum);
    return k;
}

const float *lw_state_rows_logits(lw_state_rows *r, int worker, int32_t i, const int32_t *slot,
                                  int32_t n)
{
    const lw_state_worker *w = &r->worker[worker];
    r->dots(w->logit, w->queries + (ptrdiff_t)i * r->width, r->table.features, slot, n, r->width);
    return w->logit;
}

int32_t lw_state_rows_choose(lw_state_rows *r, int worker, int32_t i, const int32_t *slot,
                             int32_t n, double u, double *log_prob)
{
    return lw_logits_choose(lw_state_rows_logits(r, worker, i, slot, n), n, u, log_prob);
}
