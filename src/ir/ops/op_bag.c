/* SPDX-License-Identifier: Apache-2.0 */
/* Signed sums of rows of a table, and the table's gradient. */
#include "ir/ops/ops.h"

#include <string.h>

static int check_bag(const lw_graph *g, const lw_node *n, lw_type table, int64_t ids, int64_t rows)
{
    const lw_attr_bag *a = n->attr;
    if (table.rank != 2 || table.dtype != LW_F32 || in_type(g, n, 1).dtype != LW_I32)
        return lw_op_fail(g, n, "needs an f32 table [V,C] and i32 ids");
    if (a->k < 1 || ids != rows * a->k)
        return lw_op_fail(g, n, "the ids must be k a row");
    if (a->period < 1 || a->period > 32)
        return lw_op_fail(g, n, "the pattern of signs has 1 to 32 places");
    return 0;
}

static int infer_bag(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_bag *a = n->attr;
    lw_type table = in_type(g, n, 0);
    int64_t ids = lw_type_count(in_type(g, n, 1)), rows = ids / LW_MAX(a->k, 1);
    LW_TRY(check_bag(g, n, table, ids, rows));
    lw_type y = lw_type_of(LW_F32, 2, (int32_t)rows, table.dim[1]);
    if (has_in(n, 2) && !lw_type_eq(in_type(g, n, 2), y))
        return lw_op_fail(g, n, "base must be f32 [R,C]");
    return lw_op_one(out, y);
}

/* inputs: dy [R,C], ids */
static int infer_bag_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_bag *a = n->attr;
    lw_type dy = in_type(g, n, 0);
    LW_TRY(check_bag(g, n, a->table, lw_type_count(in_type(g, n, 1)), dy.dim[0]));
    if (dy.rank != 2 || dy.dtype != LW_F32 || dy.dim[1] != a->table.dim[1])
        return lw_op_fail(g, n, "dy must be f32 [R,C]");
    return lw_op_one(out, a->table);
}

static void grad_bag(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                     lw_val *din)
{
    lw_attr_bag a = *(const lw_attr_bag *)n->attr;
    a.table = in_type(g, n, 0);
    if (need[0])
        din[0] = lw_graph_op(g, LW_OP_EMBEDDING_BAG_GRAD, (lw_val[]){dout[0], n->in[1]}, 2, &a,
                             sizeof a);
    if (n->n_in > 2 && need[2])
        din[2] = dout[0];
}

/* The rows that are read or added to, not the whole table. */
static void cost_bag(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    const lw_attr_bag *a = n->attr;
    double rows = (double)lw_type_count(in_type(g, n, 1));
    bool back = n->op == LW_OP_EMBEDDING_BAG_GRAD;
    lw_type table = back ? a->table : in_type(g, n, 0);
    out->flops += rows * table.dim[1];
    out->bytes += rows * (4.0 * table.dim[1] * (back ? 2 : 1) + 4.0);
    out->bytes += (double)lw_type_bytes(back ? table : lw_val_type(g, n->out[0]));
    if (!back && has_in(n, 2))
        out->bytes += (double)lw_type_bytes(in_type(g, n, 2));
}

static void print_bag(lw_str *s, const lw_node *n)
{
    const lw_attr_bag *a = n->attr;
    lw_str_addf(s, "%d ids a row, signs ", a->k);
    for (int32_t j = 0; j < a->period; j++)
        lw_str_add(s, a->minus >> j & 1 ? "-" : "+");
}

const lw_op_def lw_op_embedding_bag = {
    .name = "embedding_bag",
    .infer = infer_bag,
    .grad = grad_bag,
    .cost = cost_bag,
    .print = print_bag,
};
const lw_op_def lw_op_embedding_bag_grad = {
    .name = "embedding_bag_grad",
    .infer = infer_bag_grad,
    .grad = lw_grad_none,
    .cost = cost_bag,
    .print = print_bag,
};

lw_val lw_embedding_bag(lw_graph *g, lw_val table, lw_val ids, lw_val base, int32_t k,
                        int32_t period, uint32_t minus)
{
    lw_attr_bag a;
    memset(&a, 0, sizeof a); /* attributes are compared bytewise */
    a.k = k;
    a.period = period;
    a.minus = minus;
    if (!lw_val_ok(table) || !lw_val_ok(ids))
        return LW_NOVAL;
    return lw_graph_op(g, LW_OP_EMBEDDING_BAG, (lw_val[]){table, ids, base},
                       lw_val_ok(base) ? 3 : 2, &a, sizeof a);
}
