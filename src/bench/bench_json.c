/* SPDX-License-Identifier: Apache-2.0 */
/* A bench as JSON, and back. */
#include <math.h>

#include "base/base.h"
#include "bench/bench_targets.h"

/* ---- writing --------------------------------------------------------------------------------- */

static json_t *profile_json(const lw_bench_case *c)
{
    json_t *a = json_array();
    for (int32_t i = 0; i < c->n_part; i++) {
        const lw_bench_part *p = &c->part[i];
        json_array_append_new(a, json_pack("{s:s, s:i, s:o, s:o, s:o}", "op", p->what, "steps",
                                           (int)p->steps, "ms", lw_json_real(p->ms), "gflop",
                                           lw_json_real(1e-9 * p->flops), "gbyte",
                                           lw_json_real(1e-9 * p->bytes)));
    }
    return a;
}

static void set(json_t *o, const char *key, double value)
{
    json_object_set_new(o, key, lw_json_real(value));
}

static void add_times(json_t *o, const lw_bench_case *c, const lw_summary *s)
{
    set(o, "mean_ms", s->mean);
    set(o, "p50_ms", s->p50);
    set(o, "p95_ms", s->p95);
    set(o, "p99_ms", s->p99);
    set(o, "std_ms", s->std);
    if (c->batch > 0) {
        set(o, "per_image_ms", s->mean / c->batch);
        set(o, "throughput_imgs", 1e3 * c->batch / s->mean);
    }
    set(o, "median_ms", s->p50);
    set(o, "min_ms", s->min);
    set(o, "p10_ms", s->p10);
    set(o, "p90_ms", s->p90);
    set(o, "mad_ms", s->mad);
    set(o, "cpu_ms", c->cpu_ms);
}

static void add_merit(json_t *o, const lw_bench_case *c, const lw_summary *s)
{
    set(o, "gflop", 1e-9 * c->flops);
    set(o, "gflops", 1e-6 * c->flops / s->p50);
    set(o, "gbyte", 1e-9 * c->bytes);
    set(o, "gbytes_per_second", 1e-6 * c->bytes / s->p50);
    set(o, "peak_share", c->peak_share);
    json_object_set_new(o, "bound", json_string(c->memory_bound ? "memory" : "arithmetic"));
    set(o, "error", c->error);
    json_object_set_new(o, "against", json_string(c->against));
    if (c->evaluations > 0) {
        json_object_set_new(o, "evaluations", json_integer(c->evaluations));
        set(o, "outside_ms", c->outside_ms);
    }
    if (isnan(c->base_ms))
        return;
    json_object_set_new(o, "base", json_string(c->base));
    set(o, "base_ms", c->base_ms);
    if (c->evaluations > 0) { /* the base is a part of this, not another way to do it */
        set(o, "ratio", s->p50 / c->base_ms);
        set(o, "cpu_ratio", c->cpu_ms / c->base_cpu_ms);
        return;
    }
    set(o, "speed_up", c->base_ms / s->p50);
    set(o, "max_abs_difference", c->difference);
}

static json_t *case_json(const lw_bench_case *c)
{
    json_t *o = json_object(), *samples = json_array();
    lw_summary s = lw_summarize(c->ms, c->n);
    json_object_set_new(o, "suite", json_string(c->suite));
    json_object_set_new(o, "name", json_string(c->name));
    json_object_set_new(o, "method", json_string(c->method));
    json_object_set_new(o, "batch_size", json_integer(c->batch));
    if (c->skipped[0])
        json_object_set_new(o, "skipped", json_string(c->skipped));
    if (c->n > 0) {
        add_times(o, c, &s);
        add_merit(o, c, &s);
        lw_bench_targets_json(c, o);
    }
    json_object_set_new(o, "memory_bytes", json_integer((json_int_t)c->memory));
    if (c->published)
        json_object_update_missing(o, c->published);
    if (c->n_part > 0)
        json_object_set_new(o, "profile", profile_json(c));
    for (int32_t i = 0; i < c->n; i++)
        json_array_append_new(samples, lw_json_real(c->ms[i]));
    json_object_set_new(o, "samples_ms", samples);
    return o;
}

json_t *lw_bench_to_json(const lw_bench *b)
{
    json_t *tree = json_object(), *results = json_array();
    json_object_set(tree, "machine", b->machine);
    json_object_set_new(tree, "n_warmup", json_integer(b->warm_up));
    json_object_set_new(tree, "n_iters", json_integer(b->samples));
    for (int32_t i = 0; i < b->n; i++)
        json_array_append_new(results, case_json(&b->cases[i]));
    json_object_set_new(tree, "results", results);
    return tree;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_samples(const json_t *row, const char *path, lw_bench_case *c)
{
    const json_t *samples, *v;
    size_t i, cap = 0;
    LW_TRY(lw_json_get_array(row, path, "samples_ms", &samples));
    LW_TRY(lw_grow(&c->ms, &cap, json_array_size(samples) + 1, sizeof *c->ms));
    json_array_foreach(samples, i, v)
    {
        double ms = json_number_value(v);
        if (!json_is_number(v) || !(ms >= 0))
            return lw_fail(LW_EFORMAT, "%s: sample %zu of '%s' is not a time", path, i, c->name);
        c->ms[c->n++] = ms;
    }
    return 0;
}

/* What a comparison needs: names and samples. */
static int read_case(const json_t *row, const char *path, lw_bench_case *c)
{
    const char *name, *suite = "";
    LW_TRY(lw_json_get_str(row, path, "name", &name));
    LW_TRY(lw_json_opt_str(row, path, "suite", &suite));
    snprintf(c->name, sizeof c->name, "%s", name);
    snprintf(c->suite, sizeof c->suite, "%s", suite);
    return read_samples(row, path, c);
}

/* What lw_bench_same_machine asks. */
static int check_machine(const json_t *machine, const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str where = {0};
    const char *text;
    int64_t n;
    lw_str_addf(&where, "%s: machine", path);
    LW_TRY(lw_json_get_str(machine, lw_str_c(&where), "cpu", &text));
    LW_TRY(lw_json_get_i64(machine, lw_str_c(&where), "cpus", &n));
    LW_TRY(lw_json_get_i64(machine, lw_str_c(&where), "threads", &n));
    return lw_json_get_str(machine, lw_str_c(&where), "isa", &text);
}

static int read_bench(const json_t *tree, const char *path, lw_bench *b)
{
    const json_t *results, *machine;
    LW_TRY(lw_json_get_object(tree, path, "machine", &machine));
    LW_TRY(check_machine(machine, path));
    LW_TRY(lw_json_get_array(tree, path, "results", &results));
    b->machine = json_deep_copy(machine);
    b->cases = lw_calloc(json_array_size(results) + 1, sizeof *b->cases);
    if (!b->machine || !b->cases)
        return LW_ENOMEM;
    for (size_t i = 0; i < json_array_size(results); i++)
        LW_TRY(read_case(json_array_get(results, i), path, &b->cases[b->n++]));
    return 0;
}

int lw_bench_load(const char *path, lw_bench *out)
{
    LW_CLEANUP(lw_json_drop) json_t *tree = NULL;
    lw_bench b = {0};
    LW_TRY(lw_json_load(path, &tree));
    int rc = read_bench(tree, path, &b);
    if (rc < 0)
        lw_bench_clear(&b);
    else
        *out = b;
    return rc;
}
