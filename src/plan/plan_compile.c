/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the passes in order and owns the finished plan. */
#include "plan/plan_pass.h"

#include <string.h>

uint32_t lw_plan_new_work(lw_plan *p, size_t bytes, int step);

/* Asks the device for every step's tasks and workspace. */
int lw_pass_lower(lw_plan *p)
{
    for (int k = 0; k < p->n_steps; k++) {
        lw_plan_step *s = &p->step[k];
        int rc = p->dev->lower(p->dev->self, p->arena, p->graph, s->node, &s->low);
        if (rc < 0)
            return lw_fail_in(rc, "%s (%s)", lw_op_get(s->node->op)->name, s->node->scope);
        LW_ASSERT(s->low.n_phases >= 1 && s->low.n_phases <= LW_MAX_PHASES, "%s: %d phases",
                  lw_op_get(s->node->op)->name, s->low.n_phases);
        if (s->low.work_bytes) {
            s->work = lw_plan_new_work(p, s->low.work_bytes, k);
            if (!s->work)
                return LW_ENOMEM;
        }
        p->scratch_bytes = LW_MAX(p->scratch_bytes, LW_ROUND_UP(s->low.scratch_bytes, 64));
    }
    return 0;
}

typedef struct pass_row {
    const char *name;
    int (*run)(lw_graph **g, lw_device *dev);
    bool always; /* also at opt 0 */
} pass_row;

static const pass_row passes[] = {
    {"simplify", lw_pass_simplify, false}, {"upconv", lw_pass_upconv, false},
    {"fuse", lw_pass_fuse, false},         {"pack", lw_pass_pack, true},
    {"outputs", lw_pass_outputs, true},
};

static void dump(const lw_compile_opts *o, const char *pass, const lw_graph *g)
{
    if (!o->dump || (o->dump_pass && strcmp(o->dump_pass, pass) != 0))
        return;
    lw_str_addf(o->dump, "-- %s\n", pass);
    lw_graph_print(o->dump, g);
}

/* Element types are chosen on the fused graph, before weights are packed for them. */
static int run_precision(lw_plan *p, const lw_compile_opts *o)
{
    if (o->precision == LW_NUM_F32)
        return 0;
    LW_TRY(lw_pass_precision(&p->graph, p->dev, o->precision, o->calibration));
    LW_TRY(lw_pass_verify(p->graph));
    dump(o, "precision", p->graph);
    return 0;
}

static int run_passes(lw_plan *p, const lw_graph *g, const lw_compile_opts *o)
{
    LW_TRY(lw_pass_verify(g));
    LW_TRY(lw_rewrite_from(g, p->dev, lw_rewrite_copy, NULL, &p->graph));
    dump(o, "graph", p->graph);
    for (size_t i = 0; i < LW_COUNT(passes); i++) {
        if (!p->opt && !passes[i].always)
            continue;
        if (passes[i].run == lw_pass_pack)
            LW_TRY(run_precision(p, o));
        LW_TRY(passes[i].run == lw_pass_upconv ? lw_pass_upconv_for(&p->graph, p->dev, o->precision)
                                               : passes[i].run(&p->graph, p->dev));
        LW_TRY(lw_pass_verify(p->graph));
        dump(o, passes[i].name, p->graph);
    }
    if (o->recompute) {
        LW_TRY(lw_pass_recompute(&p->graph, p->dev));
        LW_TRY(lw_pass_verify(p->graph));
        dump(o, "recompute", p->graph);
    }
    LW_TRY(lw_pass_schedule(p));
    if (p->opt)
        lw_pass_place(p);
    LW_TRY(lw_pass_lower(p));
    return lw_pass_memory(p);
}

int lw_compile(const lw_graph *g, lw_device *dev, const lw_compile_opts *opts, lw_plan **out)
{
    static const lw_compile_opts fast = {.opt = 1};
    const lw_compile_opts *o = opts ? opts : &fast;
    LW_CLEANUP(lw_plan_free) lw_plan *p = lw_calloc(1, sizeof *p);
    if (!p)
        return LW_ENOMEM;
    LW_TRY(lw_graph_error(g));
    LW_TRY(lw_arena_new(&p->arena));
    p->dev = dev;
    p->opt = o->opt;
    LW_TRY(run_passes(p, g, o));
    *out = lw_steal(&p);
    return 0;
}

void lw_plan_free(lw_plan **pp)
{
    lw_plan *p = *pp;
    if (!p)
        return;
    lw_free(&p->slot);
    lw_graph_free(&p->graph);
    lw_arena_free(&p->arena);
    lw_free(pp);
}

lw_plan_info lw_plan_get_info(const lw_plan *p)
{
    lw_plan_info i = {.n_steps = p->n_steps - p->n_prepare,
                      .n_prepare = p->n_prepare,
                      .derived_bytes = p->derived_bytes};
    i.frame_bytes = p->frame_bytes + p->scratch_bytes * (size_t)p->dev->workers(p->dev->self);
    for (int k = p->n_prepare; k < p->n_steps; k++) {
        i.flops += p->step[k].cost.flops;
        i.bytes += p->step[k].cost.bytes;
    }
    return i;
}
