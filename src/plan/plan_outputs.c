/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outputs: every output of the graph gets a value of its own, so that it can be a port of the plan:
 * a copy where it is a leaf, lives in the derived block, or is named twice.
 */
#include "plan/plan_pass.h"

static lw_val root_val(const lw_graph *g, lw_val v)
{
    for (const lw_node *n = lw_val_node(g, v); lw_node_is(n, LW_OPF_ALIAS); n = lw_val_node(g, v))
        v = n->in[0];
    return v;
}

int lw_pass_outputs(lw_graph **g, lw_device *dev, const lw_compile_opts *opts)
{
    (void)opts;
    LW_TRY(lw_rewrite_graph(g, dev, lw_rewrite_copy, NULL));
    LW_CLEANUP(lw_free)
    bool *params_only = lw_plan_params_only(*g);
    if (!params_only)
        return LW_ENOMEM;
    int n = lw_graph_output_count(*g);
    for (int i = 0; i < n; i++) {
        lw_graph_output *o = lw_graph_output_at(*g, i);
        lw_val root = root_val(*g, o->val);
        bool copy = lw_node_is(lw_val_node(*g, root), LW_OPF_LEAF);
        for (int k = 0; k < i && !copy; k++)
            copy = root_val(*g, lw_graph_output_at(*g, k)->val).id == root.id;
        if (!copy) /* it would live in the derived block */
            copy = params_only[lw_val_node(*g, o->val)->index];
        if (!copy)
            continue;
        lw_type t = lw_val_type(*g, o->val);
        if (t.dtype != LW_F32)
            return lw_fail(LW_EUNSUPPORTED, "output '%s' would be a copy of a non-f32 value",
                           o->name);
        lw_attr_ew a = {.type = t, .n_step = 1};
        a.step[0] = (lw_ew_step){.op = LW_EW_copy};
        lw_val c = lw_graph_op(*g, LW_OP_EW, &o->val, 1, &a, sizeof a);
        lw_graph_output_at(*g, i)->val = c;
    }
    return lw_graph_error(*g);
}
