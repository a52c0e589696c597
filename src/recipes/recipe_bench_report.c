/* SPDX-License-Identifier: Apache-2.0 */
/* A bench as JSON, and against an earlier one. */
#include <math.h>

#include "base/base.h"
#include "recipes/recipe_bench.h"

static json_t *machine_json(const lw_bench *b)
{
    json_t *m = json_object();
    json_object_set_new(m, "cpu", json_string(lw_cpu_name()));
    json_object_set_new(m, "cpus", json_integer(lw_cpu_count()));
    json_object_set_new(m, "threads", json_integer(b->threads));
    json_object_set_new(m, "isa", json_string(b->isa));
    json_object_set_new(m, "version", json_string(lw_build_version()));
    json_object_set_new(m, "commit", json_string(lw_build_commit()));
    json_object_set_new(m, "compiler", json_string(lw_build_compiler()));
    json_object_set_new(m, "memory_bytes", json_integer((json_int_t)lw_memory_total()));
    json_object_set_new(m, "peak_rss_bytes", json_integer((json_int_t)lw_peak_rss()));
    return m;
}

static json_t *profile_json(const lw_bench_case *c)
{
    json_t *a = json_array();
    for (int32_t i = 0; i < c->n_part; i++) {
        const lw_bench_part *p = &c->part[i];
        json_t *o = json_object();
        json_object_set_new(o, "op", json_string(p->what));
        json_object_set_new(o, "steps", json_integer(p->steps));
        json_object_set_new(o, "ms", lw_json_real(p->ms));
        json_object_set_new(o, "gflop", lw_json_real(1e-9 * p->flops));
        json_object_set_new(o, "gbyte", lw_json_real(1e-9 * p->bytes));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *case_json(const lw_bench_case *c)
{
    json_t *o = json_object(), *samples = json_array();
    double median = lw_bench_quantile(c, 0.5);
    json_object_set_new(o, "name", json_string(c->name));
    json_object_set_new(o, "median_ms", lw_json_real(median));
    json_object_set_new(o, "min_ms", lw_json_real(lw_bench_quantile(c, 0)));
    json_object_set_new(o, "p10_ms", lw_json_real(lw_bench_quantile(c, 0.1)));
    json_object_set_new(o, "p90_ms", lw_json_real(lw_bench_quantile(c, 0.9)));
    json_object_set_new(o, "mad_ms", lw_json_real(lw_bench_mad(c)));
    json_object_set_new(o, "cpu_ms", lw_json_real(c->cpu_ms));
    json_object_set_new(o, "gflop", lw_json_real(1e-9 * c->flops));
    json_object_set_new(o, "gflops", lw_json_real(1e-6 * c->flops / median));
    json_object_set_new(o, "memory_bytes", json_integer((json_int_t)c->memory));
    for (int32_t i = 0; i < c->n; i++)
        json_array_append_new(samples, lw_json_real(c->ms[i]));
    json_object_set_new(o, "samples_ms", samples);
    if (c->n_part > 0)
        json_object_set_new(o, "profile", profile_json(c));
    return o;
}

json_t *lw_bench_to_json(const lw_bench *b)
{
    json_t *tree = json_object(), *results = json_array();
    json_object_set_new(tree, "machine", machine_json(b));
    for (int32_t i = 0; i < b->n; i++)
        json_array_append_new(results, case_json(&b->cases[i]));
    json_object_set_new(tree, "results", results);
    return tree;
}

/* ---- comparison ------------------------------------------------------------------------------ */

static lw_bench_verdict judge(const lw_bench_case *c, double median, double min, double mad)
{
    double margin = fmax(0.03 * median, 3 * fmax(mad, lw_bench_mad(c)));
    double d = lw_bench_quantile(c, 0.5) - median, d_min = lw_bench_quantile(c, 0) - min;
    if (d > margin && d_min > margin)
        return LW_BENCH_WORSE;
    return d < -margin && d_min < -margin ? LW_BENCH_BETTER : LW_BENCH_NOISE;
}

int lw_bench_compare(const lw_bench *b, const char *path, lw_bench_change *change)
{
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    const json_t *results = NULL;
    LW_TRY(lw_json_load(path, &tree));
    LW_TRY(lw_json_get_array(tree, path, "results", &results));
    for (int32_t i = 0; i < b->n; i++) {
        change[i] = (lw_bench_change){.base_ms = (double)NAN,
                                      .new_ms = lw_bench_quantile(&b->cases[i], 0.5),
                                      .verdict = LW_BENCH_NEW};
        for (size_t k = 0; k < json_array_size(results); k++) {
            const json_t *row = json_array_get(results, k);
            const char *name = "";
            double median, min, mad;
            LW_TRY(lw_json_get_str(row, path, "name", &name));
            if (!lw_str_eq(name, b->cases[i].name))
                continue;
            LW_TRY(lw_json_get_f64(row, path, "median_ms", &median));
            LW_TRY(lw_json_get_f64(row, path, "min_ms", &min));
            LW_TRY(lw_json_get_f64(row, path, "mad_ms", &mad));
            change[i].base_ms = median;
            change[i].verdict = judge(&b->cases[i], median, min, mad);
        }
    }
    return 0;
}
