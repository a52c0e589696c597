/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions one behind the other as one op, so that a device may compute them strip by strip. Made
 * by a pass from a fused forward graph; there is no builder and no gradient. */
#include "ir/ops/ops.h"

/* Stage i reads pictures of type x. */
static int check_stage(const lw_graph *g, const lw_node *n, int i, lw_type x)
{
    const lw_attr_conv_chain *at = n->attr;
    const lw_attr_conv *a = &at->stage[i];
    if (!lw_type_eq(x, lw_op_conv_in(a, x.dim[0])))
        return lw_op_fail(g, n, "each convolution must read what the one before makes");
    if (a->stride < 1 || a->pad_t >= a->kh || a->pad_b >= a->kh || a->kw < 1 ||
        a->h + a->pad_t + a->pad_b < a->kh || a->w + a->pad_l + a->pad_r < a->kw ||
        (at->depthwise[i] && a->c != a->o))
        return lw_op_fail(g, n, "a convolution does not fit its picture");
    if (!has_in(n, 2 + 2 * i) || !lw_op_packed(g, n->in[2 + 2 * i]))
        return lw_op_fail(g, n, "weights must be packed");
    if (has_in(n, 3 + 2 * i) && lw_type_count(in_type(g, n, 3 + 2 * i)) != a->o)
        return lw_op_fail(g, n, "bias must have one element per output channel");
    return 0;
}

static int infer_chain(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_conv_chain *at = n->attr;
    lw_type x = in_type(g, n, 0);
    if (at->n < 2 || at->n > LW_CHAIN_MAX || x.rank != 4)
        return lw_op_fail(g, n, "two or three convolutions of [B,H,W,C]");
    for (int i = 0; i < at->n; i++) {
        LW_TRY(check_stage(g, n, i, x));
        x = lw_op_conv_out(&at->stage[i], x.dim[0]);
    }
    if (has_in(n, 1) && !lw_type_eq(in_type(g, n, 1), x))
        return lw_op_fail(g, n, "residual must have the result's shape");
    return lw_op_one(out, x);
}

static void cost_chain(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    const lw_attr_conv_chain *at = n->attr;
    lw_cost_bytes(g, n, out);
    for (int i = 0; i < at->n; i++) {
        const lw_attr_conv *a = &at->stage[i];
        out->flops += 2.0 * in_type(g, n, 0).dim[0] * a->o * (at->depthwise[i] ? 1 : a->c) *
                      lw_op_conv_taps(a);
    }
}

static void print_chain(lw_str *s, const lw_node *n)
{
    const lw_attr_conv_chain *at = n->attr;
    for (int i = 0; i < at->n; i++) {
        if (i > 0)
            lw_str_add(s, ", ");
        if (at->depthwise[i])
            lw_str_add(s, "depthwise ");
        lw_op_conv_print_one(s, &at->stage[i]);
    }
}

const lw_op_def lw_op_conv_chain = {
    .name = "conv_chain",
    .infer = infer_chain,
    .grad = lw_grad_none,
    .cost = cost_chain,
    .print = print_chain,
};
