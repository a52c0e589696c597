/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drift field with its gradient. First the shapes that training meets; then four tables about
 * one of them (16 slots of 64 generated, 128 positive and 96 unconditional samples, 192 channels):
 * against the plain loops, all slots at once against one call per slot, and all temperatures at
 * once against one call per temperature, the plan against the graph as built; each with and without
 * normalisation over the generated samples.
 */
#include <math.h>

#include "bench/suites/bench_op.h"
#include "bench/bench_reference.h"

static const lw_bench_op shapes[] = {
    {"field_16x64x128x192", lw_bench_build_field, {16, 64, 128, 0, 1, 192}},
    {"field_slots16_64x128x32x192", lw_bench_build_field, {1, 64, 128, 32, 16, 192}},
    {"field_slots16_64x128x96x192", lw_bench_build_field, {1, 64, 128, 96, 16, 192}},
    {"field_2_slots1024_16x128x16x16", lw_bench_build_field, {2, 16, 128, 16, 1024, 16}},
    {"field_1x1024x1024x128", lw_bench_build_field, {1, 1024, 1024, 0, 1, 128}},
    {"field_1x1024x1024x768", lw_bench_build_field, {1, 1024, 1024, 0, 1, 768}},
    {"field_512x16x64x64", lw_bench_build_field, {512, 16, 64, 0, 1, 64}},
    {"field_1x4096x4096x128", lw_bench_build_field, {1, 4096, 4096, 0, 1, 128}},
    {"field_1x4096x4096x768", lw_bench_build_field, {1, 4096, 4096, 0, 1, 768}},
    {"field_slots16_64x128x96x192_bf16", lw_bench_build_field_bf16, {1, 64, 128, 96, 16, 192}},
    {"field_1x1024x1024x768_bf16", lw_bench_build_field_bf16, {1, 1024, 1024, 0, 1, 768}},
};

enum { G = 1, N = 64, NP = 128, NU = 96, T = 16, C = 192, K = 3 };
static const double temperatures[K] = {0.02, 0.05, 0.2};

/* One way to compute that field: a slice of its slots and temperatures. */
typedef struct field_way {
    int slots, first_tau, n_tau;
    bool over_x, plain;
} field_way;

static int build(lw_builder *b, const void *what)
{
    const field_way *w = what;
    lw_graph *g = b->g;
    lw_attr_drift a = {.groups = G,
                       .n = N,
                       .np = NP,
                       .nu = NU,
                       .slots = w->slots,
                       .c = C,
                       .n_tau = w->n_tau,
                       .normalize_over_x = w->over_x,
                       .variant = w->plain ? LW_DRIFT_PLAIN : LW_DRIFT_OFFICIAL};
    for (int i = 0; i < w->n_tau; i++)
        a.tau[i] = temperatures[w->first_tau + i];
    float one = 1.0f;
    lw_drift_out o = lw_drift_field(g, lw_input(g, "x", lw_type_of(LW_F32, 3, G * N, w->slots, C)),
                                    lw_input(g, "p", lw_type_of(LW_F32, 3, G * NP, w->slots, C)),
                                    lw_input(g, "u", lw_type_of(LW_F32, 3, G * NU, w->slots, C)),
                                    lw_const(g, lw_type_of(LW_F32, 1, G), &one), &a);
    lw_graph_output_add(g, "dx", o.dx, LW_NOVAL);
    return 0;
}

static int open_way(lw_device *dev, const field_way *w, lw_workload *out)
{
    return lw_workload_open(dev, &(lw_workload_spec){.build = build, .what = w, .opts = {.opt = 1}},
                            out);
}

/* Raw distances of the PLAIN variant should be of order one, as normalised ones are. */
static void scale_inputs(lw_workload *l, float by)
{
    for (const char *const *name = (const char *const[]){"x", "p", "u", NULL}; *name; name++) {
        float *v = lw_exec_write(l->exec, *name);
        int64_t n = lw_type_count(lw_exec_type(l->exec, *name));
        for (int64_t i = 0; i < n; i++)
            v[i] *= by;
    }
}

/* Samples of slot t of [rows,T,C] as [rows,1,C]. */
static void copy_slot(lw_workload *to, const lw_workload *from, int t)
{
    for (const char *const *name = (const char *const[]){"x", "p", "u", NULL}; *name; name++) {
        float *d = lw_exec_write(to->exec, *name);
        const float *s = lw_exec_read(from->exec, *name);
        int64_t rows = lw_type_count(lw_exec_type(to->exec, *name)) / C;
        for (int64_t i = 0; i < rows; i++)
            for (int c = 0; c < C; c++)
                d[i * C + c] = s[(i * T + t) * C + c];
    }
}

/* ---- the plainer ways ------------------------------------------------------------------------ */

/* Several calls whose gradients make up the one call's. */
typedef struct field_parts {
    const lw_workload *whole;
    lw_workload part[T];
    int n;
} field_parts;

static int run_parts(void *self)
{
    field_parts *p = self;
    for (int i = 0; i < p->n; i++)
        LW_TRY(lw_workload_run(&p->part[i]));
    return 0;
}

static void close_parts(field_parts *p)
{
    for (int i = 0; i < p->n; i++)
        lw_workload_close(&p->part[i]);
}

/* dX is linear in F, F a sum over temperatures: gradients of single temperatures add up. */
static double difference_of_sum(const field_parts *p)
{
    const float *dx = lw_exec_read(p->whole->exec, "dx");
    double worst = 0;
    for (int64_t i = 0; i < (int64_t)G * N * T * C; i++) {
        double sum = 0;
        for (int k = 0; k < p->n; k++)
            sum += (double)((const float *)lw_exec_read(p->part[k].exec, "dx"))[i];
        worst = fmax(worst, fabs(sum - (double)dx[i]));
    }
    return worst;
}

/* dX holds 1 / T, so a slot alone has T times its part. */
static double difference_of_slots(const field_parts *p)
{
    const float *dx = lw_exec_read(p->whole->exec, "dx");
    double worst = 0;
    for (int t = 0; t < p->n; t++) {
        const float *one = lw_exec_read(p->part[t].exec, "dx");
        for (int64_t i = 0; i < (int64_t)G * N; i++)
            for (int c = 0; c < C; c++)
                worst = fmax(worst,
                             fabs((double)one[i * C + c] / T - (double)dx[(i * T + t) * C + c]));
    }
    return worst;
}

/* ---- the tables ------------------------------------------------------------------------------ */

typedef enum field_table {
    PLAIN_LOOP,
    BY_SLOT,
    BY_TEMPERATURE,
    AS_BUILT,
    FIELD_TABLES
} field_table;
static const struct {
    const char *name, *base;
} tables[FIELD_TABLES] = {
    {"vectorised", "plain loops"},
    {"slots_at_once", "one call per slot"},
    {"shared_distances", "one call per temperature"},
    {"planned", "opt 0"},
};

static int open_part(lw_bench_run *r, field_table table, const field_way *whole, int i,
                     lw_workload *out)
{
    field_way w = *whole;
    if (table == PLAIN_LOOP)
        return open_way(r->ref, &w, out);
    if (table == AS_BUILT)
        return lw_workload_open(r->dev, &(lw_workload_spec){.build = build, .what = whole}, out);
    if (table == BY_SLOT) {
        w.slots = 1;
    } else {
        w.first_tau = i;
        w.n_tau = 1;
    }
    return open_way(r->dev, &w, out);
}

static int open_parts(lw_bench_run *r, field_table table, const field_way *whole, field_parts *p)
{
    static const int parts[FIELD_TABLES] = {1, T, K, 1};
    for (int i = 0; i < parts[table]; i++) {
        LW_TRY(open_part(r, table, whole, i, &p->part[i]));
        p->n = i + 1;
        if (table == BY_SLOT)
            copy_slot(&p->part[i], p->whole, i);
    }
    return 0;
}

/* The same in the keys of the published benches. */
static json_t *published(const lw_bench_run *r, field_table table, bool over_x,
                         const lw_bench_case *c, double first_ms)
{
    double ms = lw_summarize(c->ms, c->n).p50, base = c->base_ms;
    json_t *j = json_pack("{s:s, s:i, s:{s:[i,i,i], s:[i,i,i], s:[i,i,i]}, s:b, s:i, s:i, s:f}",
                          "device", r->dev->name, "seed", 0, "shape", "generated", N, T, C,
                          "positive", NP, T, C, "negative", NU, T, C, "normalize_over_x",
                          (int)over_x, "iterations", (int)c->n, "warmup", (int)r->config->warm_up,
                          "max_abs_diff", c->difference);
    json_t *more = NULL;
    if (table == BY_SLOT)
        more = json_pack("{s:f, s:f, s:f}", "legacy_ms", base, "vectorized_ms", ms, "speedup_x",
                         base / ms);
    else if (table == BY_TEMPERATURE)
        more = json_pack("{s:[f,f,f], s:b, s:f, s:f, s:f}", "temperatures", 0.02, 0.05, 0.2,
                         "scale_temperature_by_sqrt_channels", 1, "legacy_loop_ms", base,
                         "distance_reuse_ms", ms, "speedup_x", base / ms);
    else if (table == AS_BUILT)
        more = json_pack("{s:s, s:s, s:b, s:b, s:f, s:f, s:f, s:f}", "compile_backend", "plan",
                         "compile_mode", "opt 1", "compile_dynamic", 0, "compile_fullgraph", 1,
                         "eager_ms", base, "compiled_first_call_ms", first_ms, "compiled_steady_ms",
                         ms, "speedup", base / ms);
    json_object_update(j, more);
    json_decref(more);
    return j;
}

static int compare_ways(lw_bench_run *r, field_table table, lw_workload *whole, field_parts *p,
                        const char *name, bool over_x, double first_ms)
{
    lw_bench_case *c;
    lw_bench_work w = lw_bench_lab_work(whole, NULL);
    w.name = name;
    LW_TRY(lw_bench_measure(r, &w, &c));
    LW_TRY(lw_bench_measure_base(r, c, tables[table].base, run_parts, p));
    if (table == PLAIN_LOOP) {
        c->error = lw_workload_error(whole, &p->part[0], &c->difference);
        snprintf(c->against, sizeof c->against, "ref");
    } else {
        c->difference = table == BY_SLOT ? difference_of_slots(p) : difference_of_sum(p);
    }
    if (table != PLAIN_LOOP)
        c->published = published(r, table, over_x, c, first_ms);
    return 0;
}

static int measure_table(lw_bench_run *r, field_table table, bool over_x)
{
    char name[64];
    lw_workload whole;
    field_way w = {.slots = T, .n_tau = K, .over_x = over_x, .plain = table == BY_SLOT};
    snprintf(name, sizeof name, "field_%s_%s", tables[table].name, over_x ? "xnorm" : "no_xnorm");
    if (!lw_bench_wants(r, name))
        return 0;
    double first = lw_now();
    LW_TRY(open_way(r->dev, &w, &whole));
    if (table == AS_BUILT) /* the first call: compiled, and run once */
        LW_TRY(lw_workload_run(&whole));
    first = 1e3 * (lw_now() - first);
    if (table == BY_SLOT)
        scale_inputs(&whole, 1 / sqrtf(2 * C));
    field_parts p = {.whole = &whole};
    int rc = open_parts(r, table, &w, &p);
    if (rc == 0)
        rc = compare_ways(r, table, &whole, &p, name, over_x, first);
    close_parts(&p);
    lw_workload_close(&whole);
    return rc;
}

int lw_bench_suite_field(lw_bench_run *r)
{
    LW_TRY(lw_bench_run_ops(r, shapes, LW_COUNT(shapes)));
    for (int i = 0; i < FIELD_TABLES; i++) {
        LW_TRY(measure_table(r, (field_table)i, true));
        LW_TRY(measure_table(r, (field_table)i, false));
    }
    return 0;
}
