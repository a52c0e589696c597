/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the passes in order and owns the finished plan. */
#include "plan/plan_pass.h"

#include <string.h>

/* When a row runs. */
typedef enum pass_when { ALWAYS, OPTIMISED, NARROW, RECOMPUTED, PROJECTED } pass_when;

/* One or the other: rewriting passes come first, then those that fill the plan. */
typedef struct pass_row {
    const char *name; /* of its dump, `leeway inspect --pass NAME` */
    pass_when when;
    lw_rewrite_pass *rewrite;
    lw_plan_pass *fill;
} pass_row;

static const pass_row passes[] = {
    {"simplify", OPTIMISED, lw_pass_simplify, NULL},
    {"upconv", OPTIMISED, lw_pass_upconv, NULL},
    {"fuse", OPTIMISED, lw_pass_fuse, NULL},
    {"join", OPTIMISED, lw_pass_join, NULL},
    {"precision", NARROW, lw_pass_precision, NULL}, /* on what is fused, before weights are packed for it */
    {"project", PROJECTED, lw_pass_project, NULL},
    {"pack", ALWAYS, lw_pass_pack, NULL},
    {"chain", OPTIMISED, lw_pass_chain, NULL},
    {"slices", OPTIMISED, lw_pass_slices, NULL},
    {"outputs", ALWAYS, lw_pass_outputs, NULL},
    {"recompute", RECOMPUTED, lw_pass_recompute, NULL},
    {"schedule", ALWAYS, NULL, lw_pass_schedule},
    {"place", OPTIMISED, NULL, lw_pass_place},
    {"lower", ALWAYS, NULL, lw_pass_lower},
    {"memory", ALWAYS, NULL, lw_pass_memory},
};

static bool runs(const pass_row *row, const lw_device *dev, const lw_compile_opts *o)
{
    const bool when[] = {[ALWAYS] = true,
                         [OPTIMISED] = o->opt > 0,
                         [NARROW] = o->precision != LW_NUM_F32,
                         [RECOMPUTED] = o->recompute,
                         [PROJECTED] = o->opt > 0 && dev->project};
    return when[row->when];
}

static void dump(const lw_compile_opts *o, const char *pass, const lw_graph *g)
{
    if (!o->dump || (o->dump_pass && strcmp(o->dump_pass, pass) != 0))
        return;
    lw_str_addf(o->dump, "-- %s\n", pass);
    lw_graph_print(o->dump, g);
}

static const char *input_name(const lw_graph *g, uint32_t node)
{
    const lw_node *n = lw_graph_node(g, node);
    return n->op == LW_OP_INPUT ? ((const lw_attr_input *)n->attr)->name : NULL;
}

static int two_of_a_name(const char *what, const char *name)
{
    return lw_fail(LW_EUSAGE, "the graph has two %s named '%s': give each a name of its own", what,
                   name);
}

/* Ports are found by name: of two inputs that share one, nobody could write the second. */
static int check_input_names(const lw_graph *g)
{
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const char *name = input_name(g, i);
        for (uint32_t k = 0; name && k < i; k++)
            if (input_name(g, k) && strcmp(input_name(g, k), name) == 0)
                return two_of_a_name("inputs", name);
    }
    return 0;
}

/* NULL: the gradient of a parameter, which goes to the slab and is asked for by nobody. */
static const char *output_name(const lw_graph *g, int i)
{
    const lw_graph_output *o = lw_graph_output_at(g, i);
    return lw_val_ok(o->into) && lw_node_param(lw_val_node(g, o->into)) ? NULL : o->name;
}

/* Nor could anybody read the second of two outputs. */
static int check_output_names(const lw_graph *g)
{
    for (int i = 0; i < lw_graph_output_count(g); i++) {
        const char *name = output_name(g, i);
        for (int k = 0; name && k < i; k++)
            if (output_name(g, k) && strcmp(output_name(g, k), name) == 0)
                return two_of_a_name("outputs", name);
    }
    return 0;
}

static int run_passes(lw_plan *p, const lw_graph *g, const lw_compile_opts *o)
{
    LW_TRY(lw_plan_verify(g));
    LW_TRY(lw_rewrite_from(g, p->dev, lw_rewrite_copy, NULL, &p->graph));
    LW_TRY(check_input_names(p->graph));
    LW_TRY(check_output_names(p->graph));
    dump(o, "graph", p->graph);
    for (size_t i = 0; i < LW_COUNT(passes); i++) {
        const pass_row *row = &passes[i];
        if (!runs(row, p->dev, o))
            continue;
        if (row->fill) {
            LW_TRY(row->fill(p));
            continue;
        }
        LW_TRY(row->rewrite(&p->graph, p->dev, o));
        LW_TRY(lw_plan_verify(p->graph));
        dump(o, row->name, p->graph);
    }
    return 0;
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
    i.frame_bytes = p->frame_bytes + p->scratch_bytes * (size_t)lw_pool_size(p->dev->pool);
    for (int k = p->n_prepare; k < p->n_steps; k++) {
        i.flops += p->step[k].cost.flops;
        i.forward_flops += p->step[k].node->backward ? 0.0 : p->step[k].cost.flops;
        i.bytes += p->step[k].cost.bytes;
    }
    return i;
}
