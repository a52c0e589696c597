/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack: puts a `pack` node between a weight and each consumer whose kernel wants another layout, as
 * the device says. Packing depends on parameters only, so schedule moves it into the prepare
 * segment.
 */
#include "plan/plan_pass.h"

#include <string.h>

static lw_val find_pack(const lw_graph *g, lw_val v, const lw_attr_pack *a)
{
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *n = lw_graph_node(g, i);
        if (n->op == LW_OP_PACK && n->in[0].id == v.id && memcmp(n->attr, a, sizeof *a) == 0)
            return n->out[0];
    }
    return LW_NOVAL;
}

typedef union any_attr {
    lw_attr_matmul matmul;
    lw_attr_conv conv;
} any_attr;

/* arg: which nodes of r->from depend on parameters only (a weight, perhaps with a BatchNorm folded
 * in). */
static int pack_node(lw_rewrite *r, const lw_node *n, void *arg)
{
    const bool *params_only = arg;
    any_attr attr;
    if (!r->dev->pack || n->attr_size > sizeof attr || !n->attr_size)
        return lw_rewrite_copy(r, n, NULL);
    lw_val in[LW_MAX_IN];
    memcpy(&attr, n->attr, n->attr_size);
    for (int i = 0; i < n->n_in; i++) {
        in[i] = lw_rewrite_map(r, n->in[i]);
        lw_attr_pack p = {0};
        if (!lw_val_ok(in[i]) || !params_only[lw_val_node(r->from, n->in[i])->index] ||
            !r->dev->pack(r->dev->self, r->from, n, i, &p, &attr))
            continue;
        lw_val packed = find_pack(r->to, in[i], &p);
        in[i] = lw_val_ok(packed) ? packed
                                  : lw_graph_op(r->to, LW_OP_PACK, &in[i], 1, &p, sizeof p);
    }
    if (lw_op_get(n->op)->flags & LW_OPF_LEAF)
        return lw_rewrite_copy(r, n, NULL);
    return lw_rewrite_emit(r, n, n->op, in, n->n_in, &attr, n->attr_size);
}

int lw_pass_pack(lw_graph **g, lw_device *dev, const lw_compile_opts *o)
{
    (void)o;
    LW_CLEANUP(lw_free)
    bool *params_only = lw_calloc(lw_graph_node_count(*g) + 1u, sizeof *params_only);
    if (!params_only)
        return LW_ENOMEM;
    lw_plan_mark_params_only(*g, params_only);
    return lw_rewrite_graph(g, dev, pack_node, params_only);
}
