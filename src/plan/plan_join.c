/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join: linear layers that read the same rows become one product, whose weights are put one below the
 * other in the prepare segment; what each of them made is a range of its columns.
 *
 *   y1 = act(x w1' + b1)                                              [ w1 ]
 *   y2 = act(x w2' + b2)     ->     [ y1 | y2 | .. ] = act( x [k] [ w2 ]' + [ b1 | b2 | .. ] )
 *   ..                                                                [ .. ]
 *
 * Every residual block of a U-Net reads the embedding of its time in this way, every block of a
 * transformer for pictures its conditions: a row per sample, far too little for a step of its own.
 * A slice of a slice becomes one, so that a block cuts its scale and shift out of the whole at once.
 *
 * Input: a fused graph without gradients, since those want each weight by itself. Only a row per sample
 * (rank 2): tokens and pixels are enough work alone, and their parts would be copied. Results keep
 * their bits: an element is a sum over k in the same order, however many columns there are. A pure
 * function of the graph's layers, never of the batch, so that all batches share what is prepared.
 */
#include "plan/plan_pass.h"

#include <string.h>

enum {
    MOST = 256, /* products that become one */
    PIECE = 4   /* columns: parts begin at whole pieces of 16 bytes, as kernels copy them; a
                   product of so few has sums of another order (kernels/gemm) */
};

static bool is_output(const lw_graph *g, lw_val v)
{
    for (int i = 0; i < lw_graph_output_count(g); i++)
        if (lw_graph_output_at(g, i)->val.id == v.id)
            return true;
    return false;
}

static bool operand(const lw_node *n, int i)
{
    return i < n->n_in && lw_val_ok(n->in[i]);
}

static bool is_param(const lw_graph *g, lw_val v, int rank)
{
    return lw_node_param(lw_val_node(g, v)) != NULL && lw_val_type(g, v).rank == rank;
}

/* A linear layer on a row per sample: a stored weight [n][k], perhaps a bias, perhaps an activation. */
static bool is_linear(const lw_graph *g, const lw_node *n, const bool *params_only)
{
    if (n->op != LW_OP_MATMUL)
        return false;
    const lw_attr_matmul *a = n->attr;
    const lw_type x = lw_val_type(g, n->in[0]), y = lw_val_type(g, n->out[0]);
    for (int i = 3; i < n->n_in; i++)
        if (lw_val_ok(n->in[i]))
            return false;
    return a->trans_b && !a->trans_a && x.rank == 2 && x.dtype == LW_F32 && y.dtype == LW_F32 &&
           y.dim[1] > PIECE && y.dim[1] % PIECE == 0 &&
           !params_only[lw_val_node(g, n->in[0])->index] && is_param(g, n->in[1], 2) &&
           (!operand(n, 2) || is_param(g, n->in[2], 1)) && !is_output(g, n->out[0]);
}

/* Of two linear layers. */
static bool go_together(const lw_node *n, const lw_node *m)
{
    return n->in[0].id == m->in[0].id && operand(n, 2) == operand(m, 2) &&
           memcmp(n->attr, m->attr, n->attr_size) == 0;
}

/* n and those behind it that it can be joined with; their number. */
static int find_parts(const lw_rewrite *r, const lw_node *n, const bool *params_only,
                      const lw_node **part)
{
    int count = 0;
    if (!is_linear(r->from, n, params_only))
        return 0;
    for (uint32_t k = n->index; k < lw_graph_node_count(r->from) && count < MOST; k++) {
        const lw_node *m = lw_graph_node(r->from, k);
        if (r->live[k] && is_linear(r->from, m, params_only) && go_together(n, m) &&
            !lw_val_ok(r->map[m->out[0].id]))
            part[count++] = m;
    }
    return count;
}

/* Operand i of all parts side by side: parameters, which move up to where the first is read. */
static lw_val join_params(lw_rewrite *r, const lw_node *const *part, int n, int i)
{
    lw_val all[MOST];
    for (int k = 0; k < n; k++) {
        const lw_val old = part[k]->in[i];
        lw_val *v = &r->map[old.id];
        if (!lw_val_ok(*v))
            *v = lw_graph_copy_leaf(r->to, lw_val_node(r->from, old));
        all[k] = *v;
    }
    return lw_rewrite_join(r->to, all, n);
}

/* Enters the scope of a product for all: what n is called in its block, but in none. */
static const char *enter_scope(lw_rewrite *r, const lw_node *n)
{
    const char *up = lw_rewrite_scope(r, n), *dot = strrchr(n->scope, '.');
    if (dot) {
        lw_scope_top(r->to);
        lw_scope_push(r->to, dot + 1);
    }
    return up;
}

/* One product for all, and slices of it for what each made. */
static int emit_joined(lw_rewrite *r, const lw_node *const *part, int n)
{
    const lw_node *first = part[0];
    const bool bias = operand(first, 2);
    const char *up = enter_scope(r, first);
    const lw_val in[3] = {lw_rewrite_map(r, first->in[0]), join_params(r, part, n, 1),
                          bias ? join_params(r, part, n, 2) : LW_NOVAL};
    lw_val y = lw_graph_op(r->to, LW_OP_MATMUL, in, bias ? 3 : 2, first->attr, first->attr_size);
    for (int k = 0, at = 0; k < n; k++) {
        const lw_val old = part[k]->out[0];
        const int columns = lw_val_type(r->from, old).dim[1];
        lw_rewrite_scope(r, part[k]);
        r->map[old.id] = lw_slice(r->to, y, 1, at, at + columns);
        at += columns;
    }
    lw_scope_set(r->to, up);
    return lw_graph_error(r->to);
}

/* n: a slice; of what a slice along the same axis was cut from, where that is what it cuts. */
static int emit_slice(lw_rewrite *r, const lw_node *n)
{
    lw_attr_axis a = *(const lw_attr_axis *)n->attr;
    lw_val x = lw_rewrite_map(r, n->in[0]);
    const lw_node *outer = lw_val_node(r->to, x);
    const lw_attr_axis *o = outer->attr;
    if (outer->op == LW_OP_SLICE && o->axis == a.axis) {
        x = outer->in[0];
        a.begin += o->begin;
        a.end += o->begin;
    }
    return lw_rewrite_emit(r, n, LW_OP_SLICE, &x, 1, &a, sizeof a);
}

/* arg: which nodes of r->from depend on parameters only. */
static int join_node(lw_rewrite *r, const lw_node *n, void *arg)
{
    const lw_node *part[MOST];
    if (lw_val_ok(r->map[n->out[0].id]))
        return 0; /* stands further up, with the first of its kind */
    if (n->op == LW_OP_SLICE)
        return emit_slice(r, n);
    const int parts = find_parts(r, n, arg, part);
    return parts > 1 ? emit_joined(r, part, parts) : lw_rewrite_copy(r, n, NULL);
}

int lw_pass_join(lw_graph **g, lw_device *dev, const lw_compile_opts *o)
{
    (void)o;
    return lw_plan_has_gradients(*g) ? 0 : lw_rewrite_params_only(g, dev, join_node);
}
