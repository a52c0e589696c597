/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack: puts a `pack` node between a weight and each consumer whose kernel wants another layout, as
 * the device says. Packing depends on parameters only, so schedule moves it into the prepare
 * segment.
 */
#include "plan/plan_pass.h"

#include <string.h>

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
        in[i] = lw_rewrite_shared(r, LW_OP_PACK, in[i], &p, sizeof p);
    }
    if (lw_node_is(n, LW_OPF_LEAF))
        return lw_rewrite_copy(r, n, NULL);
    return lw_rewrite_emit(r, n, n->op, in, n->n_in, &attr, n->attr_size);
}

int lw_pass_pack(lw_graph **g, lw_device *dev, const lw_compile_opts *o)
{
    (void)o;
    return lw_rewrite_params_only(g, dev, pack_node);
}
