/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax attention on packed q|k|v, row softmax, and cross-entropy. */
#include "ir/ops/ops.h"

/* ---- attention ------------------------------------------------------------------------------- */

static int check_qkv(const lw_graph *g, const lw_node *n, int at, lw_type *o)
{
    const lw_attr_attention *a = n->attr;
    lw_type t = in_type(g, n, at);
    if (t.rank != 3 || t.dtype != LW_F32 || t.dim[2] % 3 || a->heads < 1 || t.dim[2] / 3 % a->heads)
        return lw_op_fail(g, n, "attention needs f32 [B,T,3C] with C a multiple of the heads");
    *o = t;
    o->dim[2] /= 3;
    return 0;
}

static int infer_attention(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type o;
    LW_TRY(check_qkv(g, n, 0, &o));
    *out = (lw_infer){2,
                      {o, lw_type_of(LW_F32, 3, o.dim[0],
                                     ((const lw_attr_attention *)n->attr)->heads, o.dim[1])}};
    return 0;
}

/* inputs: do, qkv, o, lse */
static int infer_attention_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type o;
    LW_TRY(check_qkv(g, n, 1, &o));
    if (!lw_type_eq(in_type(g, n, 0), o) || !lw_type_eq(in_type(g, n, 2), o))
        return lw_op_fail(g, n, "do and o must be [B,T,C]");
    return lw_op_one(out, in_type(g, n, 1));
}

static void grad_attention(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                           lw_val *din)
{
    if (!need[0] || !lw_val_ok(dout[0]))
        return;
    din[0] = lw_graph_op(g, LW_OP_ATTENTION_GRAD,
                         (lw_val[]){dout[0], n->in[0], n->out[0], n->out[1]}, 4, n->attr,
                         n->attr_size);
}

static void cost_attention(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    lw_type o = lw_val_type(g, n->out[0]);
    double c = n->op == LW_OP_ATTENTION ? o.dim[2] : o.dim[2] / 3.0;
    double products = n->op == LW_OP_ATTENTION ? 2 : 5;
    lw_cost_bytes(g, n, out);
    out->flops = products * 2.0 * o.dim[0] * (double)o.dim[1] * o.dim[1] * c;
}

static void print_attention(lw_str *s, const lw_node *n)
{
    lw_str_addf(s, "heads %d", ((const lw_attr_attention *)n->attr)->heads);
}

const lw_op_def lw_op_attention = {
    .name = "attention",
    .infer = infer_attention,
    .grad = grad_attention,
    .cost = cost_attention,
    .print = print_attention,
};
const lw_op_def lw_op_attention_grad = {
    .name = "attention_grad",
    .infer = infer_attention_grad,
    .grad = lw_grad_none,
    .cost = cost_attention,
    .print = print_attention,
};

lw_val lw_attention(lw_graph *g, lw_val qkv, int heads)
{
    if (!lw_val_ok(qkv))
        return LW_NOVAL;
    lw_attr_attention a = {heads};
    return lw_graph_op(g, LW_OP_ATTENTION, &qkv, 1, &a, sizeof a);
}

/* ---- softmax --------------------------------------------------------------------------------- */

static void grad_softmax(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                         lw_val *din)
{
    if (need[0])
        din[0] = lw_graph_op(g, LW_OP_SOFTMAX_GRAD, (lw_val[]){dout[0], n->out[0]}, 2, NULL, 0);
}

static int infer_softmax(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    if (in_type(g, n, 0).dtype != LW_F32 || in_type(g, n, 0).rank < 1)
        return lw_op_fail(g, n, "softmax needs f32 rows");
    if (n->n_in == 2 && !lw_type_eq(in_type(g, n, 0), in_type(g, n, 1)))
        return lw_op_fail(g, n, "dy and y differ");
    return lw_op_like_first(g, n, out);
}

static void cost_rows(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    lw_cost_bytes(g, n, out);
    out->flops = 12.0 * (double)lw_type_count(in_type(g, n, 0));
}

const lw_op_def lw_op_softmax = {
    .name = "softmax",
    .infer = infer_softmax,
    .grad = grad_softmax,
    .cost = cost_rows,
    .flags = LW_OPF_INPLACE,
};
const lw_op_def lw_op_softmax_grad = {
    .name = "softmax_grad",
    .infer = infer_softmax,
    .grad = lw_grad_none,
    .cost = cost_rows,
    .flags = LW_OPF_INPLACE,
};

lw_val lw_softmax(lw_graph *g, lw_val x)
{
    return lw_val_ok(x) ? lw_graph_op(g, LW_OP_SOFTMAX, &x, 1, NULL, 0) : x;
}

/* ---- cross-entropy --------------------------------------------------------------------------- */

static int infer_ce(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type x = in_type(g, n, 0), l = in_type(g, n, 1);
    if (x.rank != 2 || x.dtype != LW_F32 || l.dtype != LW_I32 || lw_type_count(l) != x.dim[0])
        return lw_op_fail(g, n, "cross_entropy needs f32 [M,K] and i32 [M]");
    lw_type m = lw_type_of(LW_F32, 1, x.dim[0]);
    *out = (lw_infer){2, {m, m}};
    return 0;
}

/* inputs: dloss [M], logits, labels, lse */
static int infer_ce_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type x = in_type(g, n, 1);
    if (lw_type_count(in_type(g, n, 0)) != x.dim[0])
        return lw_op_fail(g, n, "one cotangent per row");
    return lw_op_one(out, x);
}

static void grad_ce(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                    lw_val *din)
{
    if (need[0] && lw_val_ok(dout[0]))
        din[0] = lw_graph_op(g, LW_OP_CROSS_ENTROPY_GRAD,
                             (lw_val[]){dout[0], n->in[0], n->in[1], n->out[1]}, 4, NULL, 0);
}

const lw_op_def lw_op_cross_entropy = {
    .name = "cross_entropy",
    .infer = infer_ce,
    .grad = grad_ce,
    .cost = cost_rows,
    .flags = LW_OPF_ANY_OUT,
};
const lw_op_def lw_op_cross_entropy_grad = {
    .name = "cross_entropy_grad",
    .infer = infer_ce_grad,
    .grad = lw_grad_none,
    .cost = cost_rows,
};

lw_val lw_cross_entropy(lw_graph *g, lw_val logits, lw_val labels)
{
    if (!lw_val_ok(logits) || !lw_val_ok(labels))
        return LW_NOVAL;
    return lw_graph_op(g, LW_OP_CROSS_ENTROPY, (lw_val[]){logits, labels}, 2, NULL, 0);
}
