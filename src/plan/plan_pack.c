/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack: puts a `pack` node between a weight and each consumer whose kernel wants another layout, as
 * the device says. Packing depends on parameters only, so schedule moves it into the prepare
 * segment. Also here: outputs get values of their own, and verify, the check between passes.
 */
#include "plan/plan_pass.h"

#include <string.h>

void lw_plan_mark_params_only(const lw_graph *g, bool *mark)
{
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++) {
        const lw_node *n = lw_graph_node(g, k);
        bool yes = n->op != LW_OP_INPUT && !(lw_op_get(n->op)->flags & LW_OPF_RANDOM);
        for (int i = 0; i < n->n_in && yes; i++)
            yes = !lw_val_ok(n->in[i]) || mark[lw_val_node(g, n->in[i])->index];
        mark[k] = yes;
    }
}

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

int lw_pass_pack(lw_graph **g, lw_device *dev)
{
    LW_CLEANUP(lw_free)
    bool *params_only = lw_calloc(lw_graph_node_count(*g) + 1u, sizeof *params_only);
    if (!params_only)
        return LW_ENOMEM;
    lw_plan_mark_params_only(*g, params_only);
    return lw_rewrite_graph(g, dev, pack_node, params_only);
}

/* ---- outputs --------------------------------------------------------------------------------- */

static const lw_node *root_node(const lw_graph *g, lw_val v)
{
    const lw_node *n = lw_val_node(g, v);
    while (lw_op_get(n->op)->flags & LW_OPF_ALIAS) {
        v = n->in[0];
        n = lw_val_node(g, v);
    }
    return n;
}

static lw_val root_val(const lw_graph *g, lw_val v)
{
    for (const lw_node *n = lw_val_node(g, v); lw_op_get(n->op)->flags & LW_OPF_ALIAS;
         n = lw_val_node(g, v))
        v = n->in[0];
    return v;
}

int lw_pass_outputs(lw_graph **g, lw_device *dev)
{
    LW_TRY(lw_rewrite_graph(g, dev, lw_rewrite_copy, NULL));
    LW_CLEANUP(lw_free)
    bool *params_only = lw_calloc(lw_graph_node_count(*g) + 1u, sizeof *params_only);
    if (!params_only)
        return LW_ENOMEM;
    lw_plan_mark_params_only(*g, params_only);
    int n = lw_graph_output_count(*g);
    for (int i = 0; i < n; i++) {
        lw_graph_output *o = lw_graph_output_at(*g, i);
        lw_val root = root_val(*g, o->val);
        bool leaf = lw_op_get(root_node(*g, o->val)->op)->flags & LW_OPF_LEAF;
        bool copy = leaf;
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

/* ---- verify ---------------------------------------------------------------------------------- */

int lw_pass_verify(const lw_graph *g)
{
    LW_TRY(lw_graph_error(g));
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++) {
        const lw_node *n = lw_graph_node(g, k);
        lw_infer inf = {0};
        for (int i = 0; i < n->n_in; i++)
            LW_ASSERT(!lw_val_ok(n->in[i]) || lw_val_node(g, n->in[i])->index < n->index,
                      "node %u reads a later value", n->index);
        LW_TRY(lw_op_get(n->op)->infer(g, n, &inf));
        LW_ASSERT(inf.n_out == n->n_out, "node %u (%s): %d outputs, record says %d", n->index,
                  lw_op_get(n->op)->name, n->n_out, inf.n_out);
        for (int i = 0; i < n->n_out; i++)
            LW_ASSERT(lw_type_eq(inf.out[i], lw_val_type(g, n->out[i])),
                      "node %u (%s): type changed", n->index, lw_op_get(n->op)->name);
    }
    return 0;
}
