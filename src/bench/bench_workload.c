/* SPDX-License-Identifier: Apache-2.0 */
/* A graph made ready to run. */
#include "bench/bench_workload.h"

#include <math.h>

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Standard normal numbers in pairs (Box-Muller). */
static void fill_normal(lw_rng_key key, float *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double u = 1 - lw_rng_uniform(key, 0, 0, (uint64_t)i),
               a = lw_rng_uniform(key, 1, 0, (uint64_t)i);
        v[i] = (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * a));
    }
}

static void fill_input(lw_exec *e, const char *name)
{
    lw_type type = lw_exec_type(e, name);
    void *data = lw_exec_write(e, name);
    int64_t n = type.dtype == LW_DT_NONE ? 0 : lw_type_count(type);
    lw_rng_key key = lw_rng_key_of(1, lw_hash_name(name));
    if (type.dtype == LW_F32 && !lw_str_eq(name, "t"))
        fill_normal(key, data, n);
    for (int64_t i = 0; i < n; i++) {
        if (type.dtype == LW_I64)
            ((int64_t *)data)[i] = i;
        else if (type.dtype == LW_I32)
            ((int32_t *)data)[i] = (int32_t)(i % 10);
        else if (lw_str_eq(name, "t"))
            ((float *)data)[i] = (float)lw_rng_below(key, 0, 0, (uint64_t)i, 1000);
    }
}

static void fill_inputs(const lw_workload *l)
{
    for (uint32_t i = 0; i < lw_graph_node_count(l->graph); i++) {
        const lw_node *n = lw_graph_node(l->graph, i);
        if (n->op == LW_OP_INPUT)
            fill_input(l->exec, ((const lw_attr_input *)n->attr)->name);
    }
}

/* ---- making ---------------------------------------------------------------------------------- */

static int build(lw_workload *l, const lw_workload_spec *spec)
{
    LW_TRY(lw_graph_new(&l->graph));
    lw_builder b = {.g = l->graph, .params = lw_store_params(l->store), .training = spec->train};
    lw_compile_opts opts = spec->opts;
    LW_TRY(spec->build(&b, spec->what));
    LW_TRY(lw_graph_error(l->graph));
    if (spec->edges)
        LW_TRY(lw_calibration_outputs(l->graph));
    opts.calibration = opts.precision == LW_NUM_S8 ? &l->ranges.table : NULL;
    LW_TRY(lw_compile(l->graph, l->dev, &opts, &l->plan));
    l->info = lw_plan_get_info(l->plan);
    l->bytes = lw_store_bytes(l->store) + l->info.frame_bytes + l->info.derived_bytes;
    return 0;
}

int lw_workload_fits(size_t bytes, size_t limit)
{
    char need[32], have[32];
    return limit == 0 || bytes <= limit
               ? 0
               : lw_fail(LW_ENOMEM, "out of memory: needs %s, there are %s",
                         lw_fmt_bytes(need, bytes), lw_fmt_bytes(have, limit));
}

/* Large ones take seconds to fill. */
static int check_stop(const lw_workload *l)
{
    return lw_pool_should_stop(l->dev->pool) ? lw_fail(LW_ESTOPPED, "interrupted") : 0;
}

static int open_workload(lw_workload *l, const lw_workload_spec *spec)
{
    bool calibrate = spec->opts.precision == LW_NUM_S8;
    if (calibrate)
        LW_TRY(lw_workload_calibrate(l->dev, spec, &l->ranges, &l->own, &l->bytes));
    else if (!l->store)
        LW_TRY(lw_store_new(!spec->train, &l->own));
    if (l->own)
        l->store = l->own;
    LW_TRY(build(l, spec));
    LW_TRY(lw_workload_fits(l->bytes, spec->limit));
    if (l->own && !calibrate) {
        LW_TRY(lw_store_fix(l->own));
        LW_TRY(check_stop(l));
        lw_store_init(l->own, 1);
        if (spec->fill)
            spec->fill(l->own);
    }
    LW_TRY(check_stop(l));
    LW_TRY(lw_exec_new(l->plan, LW_SLAB_PARAM, &l->exec));
    LW_TRY(check_stop(l));
    fill_inputs(l);
    return check_stop(l);
}

int lw_workload_open(lw_device *dev, const lw_workload_spec *spec, lw_workload *out)
{
    *out = (lw_workload){.dev = dev, .store = spec->store};
    int rc = open_workload(out, spec);
    if (rc < 0) {
        size_t bytes = out->bytes;
        lw_workload_close(out);
        out->bytes = bytes;
    }
    return rc;
}

void lw_workload_close(lw_workload *l)
{
    lw_exec_free(&l->exec);
    lw_plan_free(&l->plan);
    lw_graph_free(&l->graph);
    lw_store_free(&l->own);
    lw_arena_free(&l->ranges.arena);
    *l = (lw_workload){0};
}

int lw_workload_run(void *self)
{
    lw_workload *l = self;
    LW_TRY(lw_exec_run(l->exec, &l->tick));
    l->tick.step++;
    return 0;
}

/* ---- errors ---------------------------------------------------------------------------------- */

double lw_workload_error_of(const float *a, const float *b, int64_t n, double *difference)
{
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        worst = d > worst || isnan(d) ? d : worst;
        largest = fmax(largest, fabs((double)b[i]));
        if (isnan(d))
            break;
    }
    if (difference)
        *difference = worst;
    return n == 0 ? (double)NAN : largest > 0 ? worst / largest : worst;
}

double lw_workload_error(const lw_workload *a, const lw_workload *b, double *difference)
{
    double worst = (double)NAN, far = (double)NAN;
    for (int i = 0; i < lw_graph_output_count(b->graph); i++) {
        const char *name = lw_graph_output_at(b->graph, i)->name;
        lw_type ta = lw_exec_type(a->exec, name), tb = lw_exec_type(b->exec, name);
        double d;
        if (ta.dtype != LW_F32 || tb.dtype != LW_F32)
            continue;
        double e = lw_workload_error_of(lw_exec_read(a->exec, name), lw_exec_read(b->exec, name),
                                        LW_MIN(lw_type_count(ta), lw_type_count(tb)), &d);
        worst = fmax(worst, e); /* fmax: a number wins over NAN */
        far = fmax(far, d);
        if (isnan(e))
            return e;
    }
    if (difference)
        *difference = far;
    return worst;
}
