/* SPDX-License-Identifier: Apache-2.0 */
/* The drift field with its gradient at the shapes that training meets, three temperatures. */
#include <math.h>

#include "recipes/recipe_bench_case.h"

static const struct {
    const char *name;
    int32_t g, n, np, c;
} shapes[] = {
    {"field_16x64x128x192", 16, 64, 128, 192},     {"field_1x1024x1024x128", 1, 1024, 1024, 128},
    {"field_1x1024x1024x768", 1, 1024, 1024, 768}, {"field_512x16x64x64", 512, 16, 64, 64},
    {"field_1x4096x4096x128", 1, 4096, 4096, 128},
};

static int call(void *self)
{
    return lw_exec_run(self, NULL);
}

/* Standard normal numbers, as training's features are after normalisation. */
static void fill(lw_exec *e, const char *name)
{
    float *v = lw_exec_data(e, name);
    int64_t n = lw_type_count(lw_exec_type(e, name));
    lw_rng_key key = lw_rng_key_of(1, lw_hash_name(name));
    for (int64_t i = 0; i < n; i++) {
        double u = 1 - lw_rng_uniform(key, 0, 0, (uint64_t)i),
               a = lw_rng_uniform(key, 1, 0, (uint64_t)i);
        v[i] = (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * a));
    }
}

static int open_plan(lw_device *dev, size_t i, lw_plan **plan)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_attr_drift a = {.groups = shapes[i].g,
                       .n = shapes[i].n,
                       .np = shapes[i].np,
                       .slots = 1,
                       .c = shapes[i].c,
                       .n_tau = 3,
                       .tau = {0.02f, 0.05f, 0.2f},
                       .normalize_over_x = 1};
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 3, a.groups * a.n, 1, a.c));
    lw_val p = lw_input(g, "p", lw_type_of(LW_F32, 3, a.groups * a.np, 1, a.c));
    lw_drift_out o = lw_drift_field(g, x, p, LW_NOVAL, LW_NOVAL, &a);
    lw_graph_output_add(g, "dx", o.dx, LW_NOVAL);
    lw_graph_output_add(g, "stats", o.stats, LW_NOVAL);
    return lw_compile(g, dev, &(lw_compile_opts){.opt = 1}, plan);
}

static int measure(lw_bench_run *r, size_t i)
{
    LW_CLEANUP(lw_plan_free) lw_plan *plan = NULL;
    LW_CLEANUP(lw_exec_free) lw_exec *e = NULL;
    LW_TRY(open_plan(r->dev, i, &plan));
    LW_TRY(lw_exec_new(plan, LW_SLAB_PARAM, &e));
    fill(e, "x");
    fill(e, "p");
    lw_plan_info info = lw_plan_get_info(plan);
    return lw_bench_measure(r, &(lw_bench_work){.name = shapes[i].name,
                                                .call = call,
                                                .self = e,
                                                .flops = info.flops,
                                                .memory = info.frame_bytes,
                                                .exec = e});
}

int lw_bench_suite_field(lw_bench_run *r)
{
    for (size_t i = 0; i < LW_COUNT(shapes); i++)
        if (lw_bench_wants(r, shapes[i].name))
            LW_TRY(measure(r, i));
    return 0;
}
