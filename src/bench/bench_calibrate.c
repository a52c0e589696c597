/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges for int8 from one run in f32 on the lab's own inputs: as `leeway quantize` does it, with
 * one batch. */
#include "bench/bench_lab.h"
#include "recipes/recipe_ranges.h"

#include <string.h>

static int choose_ranges(const lw_lab *l, lw_lab_ranges *r)
{
    int n = lw_graph_output_count(l->graph);
    LW_CLEANUP(lw_free) lw_ranges *seen = lw_calloc(1, sizeof *seen);
    r->edge = lw_arena_alloc(r->arena, (size_t)(n + 1) * sizeof *r->edge);
    if (!seen || !r->edge)
        return LW_ENOMEM;
    for (int i = 0; i < n; i++) {
        const char *name = lw_graph_output_at(l->graph, i)->name;
        lw_edge_seen e = {0};
        if (!lw_str_starts(name, LW_EDGE_OUTPUT))
            continue;
        *seen = (lw_ranges){0};
        lw_ranges_add(seen, lw_exec_data(l->exec, name),
                      lw_type_count(lw_exec_type(l->exec, name)));
        lw_ranges_choose(seen, LW_RANGE_MSE, 0, &e);
        r->edge[r->table.n++] = (lw_edge_range){
            lw_arena_strdup(r->arena, name + strlen(LW_EDGE_OUTPUT)), e.scale, e.zero};
    }
    r->table.edge = r->edge;
    return 0;
}

int lw_lab_calibrate(lw_device *dev, const lw_lab_spec *spec, lw_lab_ranges *out, lw_store **own)
{
    lw_lab l;
    lw_lab_ranges r = {0};
    lw_lab_spec f32 = *spec;
    f32.opts = (lw_compile_opts){.opt = 1};
    f32.edges = true;
    LW_TRY(lw_lab_open(dev, &f32, &l));
    int rc = lw_lab_run(&l);
    if (rc == 0)
        rc = lw_arena_new(&r.arena);
    if (rc == 0)
        rc = choose_ranges(&l, &r);
    if (rc == 0)
        *own = lw_steal(&l.own);
    lw_lab_close(&l);
    if (rc < 0)
        lw_arena_free(&r.arena);
    else
        *out = r;
    return rc;
}
