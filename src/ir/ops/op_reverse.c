/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a sampler's loop a plan: numbers that change with the run, and the reverse step of a
 * diffusion process. */
#include "ir/ops/ops.h"

enum { NUMBERS = 8 }; /* doubles of a step, as i64 (kernels/reverse/reverse.h) */

/* ---- a row for each run ---------------------------------------------------------------------- */

static int infer_at_step(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type t = in_type(g, n, 0),
            row = {.dtype = t.dtype, .rank = LW_MAX(t.rank - 1, 1), .dim = {1}};
    if (t.rank < 1 || t.dim[0] < 1)
        return lw_op_fail(g, n, "at_step needs a table [N, ..] of a row at least");
    for (int i = 1; i < t.rank; i++)
        row.dim[i - 1] = t.dim[i];
    return lw_op_one(out, row);
}

const lw_op_def lw_op_at_step = {
    .name = "at_step",
    .infer = infer_at_step,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
    .flags = LW_OPF_VARIES,
};

lw_val lw_at_step(lw_graph *g, lw_val table)
{
    return lw_val_ok(table) ? lw_graph_op(g, LW_OP_AT_STEP, &table, 1, NULL, 0) : table;
}

/* ---- one reverse step ------------------------------------------------------------------------ */

static int infer_reverse(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type x = in_type(g, n, 0);
    if (x.dtype != LW_F32 || !lw_type_eq(in_type(g, n, 1), x) ||
        (has_in(n, 3) && !lw_type_eq(in_type(g, n, 3), x)))
        return lw_op_fail(g, n, "reverse_step needs x, y and noise of one type");
    if (!lw_type_eq(in_type(g, n, 2), lw_type_of(LW_I64, 1, NUMBERS)))
        return lw_op_fail(g, n, "the numbers of a reverse step are i64[8]");
    return lw_op_like_first(g, n, out);
}

static void cost_reverse(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    lw_cost_bytes(g, n, out);
    out->flops = 12.0 * (double)lw_type_count(in_type(g, n, 0));
}

static void print_reverse(lw_str *s, const lw_node *n)
{
    static const char *const given[] = {"epsilon", "sample", "velocity", "flow"};
    const lw_attr_reverse *a = n->attr;
    lw_str_addf(s, "%s%s", given[a->prediction], a->keep_eps ? " keep_eps" : "");
}

const lw_op_def lw_op_reverse_step = {
    .name = "reverse_step",
    .infer = infer_reverse,
    .grad = lw_grad_none,
    .cost = cost_reverse,
    .print = print_reverse,
    .flags = LW_OPF_INPLACE,
};

lw_val lw_reverse_step_op(lw_graph *g, lw_val x, lw_val y, lw_val numbers, lw_val noise,
                          lw_prediction prediction, bool keep_eps)
{
    if (!lw_val_ok(x) || !lw_val_ok(y) || !lw_val_ok(numbers))
        return LW_NOVAL;
    lw_attr_reverse a = {prediction, keep_eps};
    return lw_graph_op(g, LW_OP_REVERSE_STEP, (lw_val[]){x, y, numbers, noise}, 4, &a, sizeof a);
}
