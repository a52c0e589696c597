/* SPDX-License-Identifier: Apache-2.0 */
/* Distances between all rows of two matrices. */
#include "ir/ops/ops.h"

static const char *const distances[] = {"l1", "l2", "modulus"};

static bool is_rows(lw_type t)
{
    return t.rank == 2 && t.dtype == LW_F32;
}

static int infer_pairs(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_pairs *a = n->attr;
    lw_type x = in_type(g, n, 0), y = in_type(g, n, 1);
    if (!is_rows(x) || !is_rows(y) || x.dim[1] != y.dim[1])
        return lw_op_fail(g, n, "pair_distance needs f32 [M,C] and [N,C]");
    if (a->distance == LW_DISTANCE_MODULUS && x.dim[1] % 2)
        return lw_op_fail(g, n, "complex rows have an even number of columns");
    return lw_op_one(out, lw_type_of(LW_F32, 2, x.dim[0], y.dim[0]));
}

static void grad_pairs(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                       lw_val *din)
{
    const lw_val in[] = {dout[0], n->out[0], n->in[0], n->in[1]};
    lw_node *d = lw_graph_add(g, LW_OP_PAIR_DISTANCE_GRAD, in, 4, n->attr, n->attr_size);
    for (int i = 0; d && i < 2; i++)
        if (need[i])
            din[i] = d->out[i];
}

static void cost_pairs(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    lw_type d = lw_val_type(g, n->in[n->n_in - 2]);
    int64_t rows = lw_val_type(g, n->in[n->n_in - 1]).dim[0];
    lw_cost_bytes(g, n, out);
    out->flops = (n->op == LW_OP_PAIR_DISTANCE ? 3.0 : 8.0) * (double)lw_type_count(d) *
                 (double)rows;
}

static void print_pairs(lw_str *s, const lw_node *n)
{
    lw_str_add(s, distances[((const lw_attr_pairs *)n->attr)->distance]);
}

/* inputs: dd [M,N], d [M,N], x [M,C], y [N,C] */
static int infer_pairs_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type dd = in_type(g, n, 0), d = in_type(g, n, 1), x = in_type(g, n, 2), y = in_type(g, n, 3);
    if (!lw_type_eq(dd, d) || !is_rows(d) || d.dim[0] != x.dim[0] || d.dim[1] != y.dim[0])
        return lw_op_fail(g, n, "gradient and distances differ");
    *out = (lw_infer){2, {x, y}};
    return 0;
}

const lw_op_def lw_op_pair_distance = {
    .name = "pair_distance",
    .infer = infer_pairs,
    .grad = grad_pairs,
    .cost = cost_pairs,
    .print = print_pairs,
};
const lw_op_def lw_op_pair_distance_grad = {
    .name = "pair_distance_grad",
    .infer = infer_pairs_grad,
    .grad = lw_grad_none,
    .cost = cost_pairs,
    .print = print_pairs,
    .flags = LW_OPF_ANY_OUT,
};

lw_val lw_pair_distance(lw_graph *g, lw_val x, lw_val y, lw_distance distance)
{
    lw_attr_pairs a = {.distance = distance};
    if (!lw_val_ok(x) || !lw_val_ok(y))
        return LW_NOVAL;
    return lw_graph_op(g, LW_OP_PAIR_DISTANCE, (lw_val[]){x, y}, 2, &a, sizeof a);
}
