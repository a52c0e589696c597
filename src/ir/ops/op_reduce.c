/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and means. */
#include "ir/ops/ops.h"

static int infer_reduce(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_reduce *a = n->attr;
    lw_type x = in_type(g, n, 0);
    if (x.dtype != LW_F32 || x.rank < 1)
        return lw_op_fail(g, n, "reduce needs f32 of rank 1 or more");
    switch ((lw_reduce_over)a->over) {
    case LW_OVER_ALL:
        return lw_op_one(out, lw_type_of(LW_F32, 1, 1));
    case LW_OVER_ROWS:
        return lw_op_one(out, lw_type_of(LW_F32, 1, lw_type_last(x)));
    case LW_OVER_BATCH:
        return lw_op_one(out, lw_type_of(LW_F32, 1, x.dim[0]));
    case LW_OVER_MIDDLE:
        if (x.rank < 2)
            return lw_op_fail(g, n, "needs [B,..,C]");
        return lw_op_one(out, lw_type_of(LW_F32, 2, x.dim[0], lw_type_last(x)));
    case LW_OVER_LAST:
        x.dim[x.rank - 1] = 1;
        return lw_op_one(out, x);
    }
    return lw_op_fail(g, n, "unknown reduction");
}

/* Shape the cotangent so that it broadcasts back over what was summed. */
static void grad_reduce(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                        lw_val *din)
{
    const lw_attr_reduce *a = n->attr;
    if (!need[0])
        return;
    lw_type x = in_type(g, n, 0), t = lw_val_type(g, dout[0]);
    int64_t ratio = lw_type_count(x) / LW_MAX(lw_type_count(t), 1);
    lw_val d = dout[0];
    if (a->over == LW_OVER_BATCH || a->over == LW_OVER_MIDDLE) {
        lw_type keep = x;
        for (int i = 1; i < x.rank; i++)
            keep.dim[i] = a->over == LW_OVER_MIDDLE && i == x.rank - 1 ? x.dim[i] : 1;
        d = lw_reshape(g, d, keep);
    }
    din[0] = lw_broadcast(g, d, x);
    if (a->mean)
        din[0] = lw_scale(g, din[0], 1.0f / (float)ratio);
}

static void cost_reduce(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    lw_cost_bytes(g, n, out);
    out->flops = (double)lw_type_count(in_type(g, n, 0));
}

static void print_reduce(lw_str *s, const lw_node *n)
{
    static const char *const over[] = {"all", "last", "rows", "middle", "batch"};
    const lw_attr_reduce *a = n->attr;
    lw_str_addf(s, "%s over %s", a->mean ? "mean" : "sum", over[a->over]);
}

const lw_op_def lw_op_reduce = {
    .name = "reduce",
    .infer = infer_reduce,
    .grad = grad_reduce,
    .cost = cost_reduce,
    .print = print_reduce,
};

static lw_val reduce(lw_graph *g, lw_val x, lw_reduce_over over, bool mean)
{
    lw_attr_reduce a = {over, mean};
    return lw_val_ok(x) ? lw_graph_op(g, LW_OP_REDUCE, &x, 1, &a, sizeof a) : x;
}

lw_val lw_sum(lw_graph *g, lw_val x, lw_reduce_over over)
{
    return reduce(g, x, over, false);
}
lw_val lw_mean(lw_graph *g, lw_val x, lw_reduce_over over)
{
    return reduce(g, x, over, true);
}
