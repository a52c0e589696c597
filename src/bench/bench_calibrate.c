/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges for int8 from one run in f32 on the workload's own inputs: as `leeway quantize` does it, with
 * one batch. */
#include "bench/bench_workload.h"
#include "jobs/quantize/quantize_ranges.h"

#include <string.h>

typedef struct choosing {
    const lw_workload *workload;
    lw_ranges *seen;
    lw_edge_range *edge; /* by output; name NULL: not an edge */
} choosing;

static void choose_task(void *arg, int64_t i, int worker)
{
    const choosing *c = arg;
    const char *name = lw_graph_output_at(c->workload->graph, (int)i)->name;
    lw_edge_seen e = {0};
    (void)worker;
    if (!lw_str_starts(name, LW_EDGE_OUTPUT))
        return;
    lw_ranges_add(&c->seen[i], lw_exec_read(c->workload->exec, name),
                  lw_type_count(lw_exec_type(c->workload->exec, name)));
    lw_ranges_choose(&c->seen[i], LW_RANGE_MSE, 0, &e);
    c->edge[i] = (lw_edge_range){name + strlen(LW_EDGE_OUTPUT), e.scale, e.zero};
}

static int choose_ranges(const lw_workload *l, lw_workload_ranges *r)
{
    int n = lw_graph_output_count(l->graph);
    LW_CLEANUP(lw_free) lw_ranges *seen = lw_calloc((size_t)n, sizeof *seen);
    r->edge = lw_arena_alloc(r->arena, (size_t)n * sizeof *r->edge);
    if (!seen || !r->edge)
        return LW_ENOMEM;
    memset(r->edge, 0, (size_t)n * sizeof *r->edge);
    lw_pool_run(l->dev->pool, n, choose_task, &(choosing){l, seen, r->edge});
    for (int i = 0; i < n; i++) {
        if (!r->edge[i].name)
            continue;
        lw_edge_range *e = &r->edge[r->table.n++];
        *e = r->edge[i];
        e->name = lw_arena_strdup(r->arena, e->name);
        if (!e->name)
            return LW_ENOMEM;
    }
    r->table.edge = r->edge;
    return 0;
}

int lw_workload_calibrate(lw_device *dev, const lw_workload_spec *spec, lw_workload_ranges *out,
                          lw_store **own, size_t *bytes)
{
    lw_workload l;
    lw_workload_ranges r = {0};
    lw_workload_spec f32 = *spec;
    f32.opts = (lw_compile_opts){.opt = 1};
    f32.edges = true;
    int rc = lw_workload_open(dev, &f32, &l);
    *bytes = l.bytes;
    if (rc < 0)
        return lw_fail_in(rc, "calibration in f32: ");
    rc = lw_workload_run(&l);
    if (rc == 0)
        rc = lw_arena_new(&r.arena);
    if (rc == 0)
        rc = choose_ranges(&l, &r);
    if (rc == 0)
        *own = lw_steal(&l.own);
    lw_workload_close(&l);
    if (rc < 0)
        lw_arena_free(&r.arena);
    else
        *out = r;
    return rc;
}
