/* SPDX-License-Identifier: Apache-2.0 */
/* Moving elements without arithmetic: reshape, concat, slice, pad. */
#include "ir/ops/ops.h"

/* ---- reshape --------------------------------------------------------------------------------- */

static int infer_reshape(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type t = ((const lw_attr_type *)n->attr)->type, x = in_type(g, n, 0);
    if (t.dtype != x.dtype || lw_type_count(t) != lw_type_count(x))
        return lw_op_fail(g, n, "reshape must keep the number of elements");
    return lw_op_one(out, t);
}

static void grad_reshape(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                         lw_val *din)
{
    if (need[0])
        din[0] = lw_reshape(g, dout[0], in_type(g, n, 0));
}

static void cost_none(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    (void)g, (void)n, (void)out;
}

const lw_op_def lw_op_reshape = {
    .name = "reshape",
    .infer = infer_reshape,
    .grad = grad_reshape,
    .cost = cost_none,
    .flags = LW_OPF_ALIAS,
};

lw_val lw_reshape(lw_graph *g, lw_val x, lw_type type)
{
    if (!lw_val_ok(x) || lw_type_eq(lw_val_type(g, x), type))
        return x;
    lw_attr_type a = {type};
    return lw_graph_op(g, LW_OP_RESHAPE, &x, 1, &a, sizeof a);
}

/* ---- concat and slice ------------------------------------------------------------------------ */

static void print_axis(lw_str *s, const lw_node *n)
{
    const lw_attr_axis *a = n->attr;
    lw_str_addf(s, "axis %d", a->axis);
    if (n->op == LW_OP_SLICE)
        lw_str_addf(s, " [%d:%d]", a->begin, a->end);
}

static int infer_concat(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    int axis = ((const lw_attr_axis *)n->attr)->axis;
    lw_type a = in_type(g, n, 0), b = in_type(g, n, 1), same = b;
    if (a.rank != b.rank || axis < 0 || axis >= a.rank || a.dtype != b.dtype)
        return lw_op_fail(g, n, "concat needs two tensors of one rank");
    same.dim[axis] = a.dim[axis];
    if (!lw_type_eq(a, same))
        return lw_op_fail(g, n, "concat operands differ outside the axis");
    a.dim[axis] += b.dim[axis];
    return lw_op_one(out, a);
}

static void grad_concat(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                        lw_val *din)
{
    int axis = ((const lw_attr_axis *)n->attr)->axis;
    int na = in_type(g, n, 0).dim[axis], nb = in_type(g, n, 1).dim[axis];
    if (need[0])
        din[0] = lw_slice(g, dout[0], axis, 0, na);
    if (need[1])
        din[1] = lw_slice(g, dout[0], axis, na, na + nb);
}

const lw_op_def lw_op_concat = {
    .name = "concat",
    .infer = infer_concat,
    .grad = grad_concat,
    .cost = lw_cost_bytes,
    .print = print_axis,
    .flags = LW_OPF_CHEAP,
};

lw_val lw_concat(lw_graph *g, lw_val a, lw_val b, int axis)
{
    if (!lw_val_ok(a) || !lw_val_ok(b))
        return LW_NOVAL;
    lw_attr_axis at = {.axis = axis < 0 ? axis + lw_val_type(g, a).rank : axis};
    return lw_graph_op(g, LW_OP_CONCAT, (lw_val[]){a, b}, 2, &at, sizeof at);
}

static int infer_slice(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_axis *a = n->attr;
    lw_type t = in_type(g, n, 0);
    if (a->axis < 0 || a->axis >= t.rank || a->begin < 0 || a->end > t.dim[a->axis] ||
        a->begin >= a->end)
        return lw_op_fail(g, n, "slice outside its dimension");
    t.dim[a->axis] = a->end - a->begin;
    return lw_op_one(out, t);
}

/* Zeros on both sides; the gradients of a q|k|v split or of a concat meet in one add. */
static void grad_slice(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                       lw_val *din)
{
    const lw_attr_axis *a = n->attr;
    if (!need[0])
        return;
    lw_type t = in_type(g, n, 0), lo = t, hi = t;
    lo.dim[a->axis] = a->begin;
    hi.dim[a->axis] = t.dim[a->axis] - a->end;
    lw_val d = dout[0];
    if (lo.dim[a->axis])
        d = lw_concat(g, lw_zeros(g, lo), d, a->axis);
    if (hi.dim[a->axis])
        d = lw_concat(g, d, lw_zeros(g, hi), a->axis);
    din[0] = d;
}

/* What it leaves out is not read. */
static void cost_slice(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    out->bytes = 2.0 * (double)lw_type_bytes(lw_val_type(g, n->out[0]));
}

const lw_op_def lw_op_slice = {
    .name = "slice",
    .infer = infer_slice,
    .grad = grad_slice,
    .cost = cost_slice,
    .print = print_axis,
    .flags = LW_OPF_CHEAP,
};

lw_val lw_slice(lw_graph *g, lw_val x, int axis, int begin, int end)
{
    if (!lw_val_ok(x))
        return x;
    lw_attr_axis a = {axis < 0 ? axis + lw_val_type(g, x).rank : axis, begin, end};
    return lw_graph_op(g, LW_OP_SLICE, &x, 1, &a, sizeof a);
}

/* ---- pad ------------------------------------------------------------------------------------- */

static int infer_pad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_pad *a = n->attr;
    lw_type t = in_type(g, n, 0);
    if (t.rank != 4 || t.dtype != LW_F32)
        return lw_op_fail(g, n, "pad needs f32 [B,H,W,C]");
    for (int i = 0; i < 3; i++) {
        int64_t now = (int64_t)t.dim[i + 1] + a->lo[i] + a->hi[i];
        if (now < 1)
            return lw_op_fail(g, n, "nothing left after cropping");
        if (now > LW_MAX_DIM || a->lo[i] > LW_MAX_DIM || a->hi[i] > LW_MAX_DIM)
            return lw_op_fail(g, n, "padding is too large");
        t.dim[i + 1] = (int32_t)now;
    }
    return lw_op_one(out, t);
}

static void grad_pad(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                     lw_val *din)
{
    const lw_attr_pad *a = n->attr;
    int lo[3], hi[3];
    for (int i = 0; i < 3; i++) {
        lo[i] = -a->lo[i];
        hi[i] = -a->hi[i];
    }
    if (need[0])
        din[0] = lw_pad(g, dout[0], lo, hi);
}

static void print_pad(lw_str *s, const lw_node *n)
{
    const lw_attr_pad *a = n->attr;
    lw_str_addf(s, "h %d,%d w %d,%d c %d,%d", a->lo[0], a->hi[0], a->lo[1], a->hi[1], a->lo[2],
                a->hi[2]);
}

const lw_op_def lw_op_pad = {
    .name = "pad",
    .infer = infer_pad,
    .grad = grad_pad,
    .cost = lw_cost_bytes,
    .print = print_pad,
    .flags = LW_OPF_CHEAP,
};

lw_val lw_pad(lw_graph *g, lw_val x, const int lo[3], const int hi[3])
{
    if (!lw_val_ok(x))
        return x;
    lw_attr_pad a = {{lo[0], lo[1], lo[2]}, {hi[0], hi[1], hi[2]}};
    return lw_graph_op(g, LW_OP_PAD, &x, 1, &a, sizeof a);
}
