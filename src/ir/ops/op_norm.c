/* SPDX-License-Identifier: Apache-2.0 */
/* GroupNorm with fused affine modulation and activation (AdaGN), and its gradient op. */
#include "ir/ops/ops.h"

static int check_operands(const lw_graph *g, const lw_node *n, int x_at, int first)
{
    const lw_attr_norm *a = n->attr;
    lw_type x = in_type(g, n, x_at);
    int32_t c = lw_type_last(x);
    const bool rows = lw_type_count(x) == (int64_t)x.dim[0] * c;
    if (x.rank < 2 || (x.dtype != LW_F32 && (x.dtype != LW_BF16 || x_at > 0 || rows)))
        return lw_op_fail(g, n, "input must be f32 [B,..,C], or bf16 of several pixels");
    if (a->groups < 1 || c % a->groups)
        return lw_op_fail(g, n, "channels must be a multiple of the number of groups");
    for (int i = first; i < first + 2; i++)
        if (has_in(n, i) && lw_type_count(in_type(g, n, i)) != c)
            return lw_op_fail(g, n, "gamma and beta must have one element per channel");
    for (int i = first + 2; i < first + 4; i++)
        if (has_in(n, i) && lw_type_count(in_type(g, n, i)) != (int64_t)x.dim[0] * c)
            return lw_op_fail(g, n, "scale and shift must be [B,C]");
    for (int i = first; i < first + 4; i++)
        if (!lw_op_is_f32(g, n, i))
            return lw_op_fail(g, n, "gamma, beta, scale and shift must be f32");
    return 0;
}

bool lw_norm_is_layer_norm(lw_type x, const lw_attr_norm *a, bool has_scale)
{
    return a->groups == 1 && a->act == LW_ACT_NONE && !has_scale &&
           lw_type_count(x) == (int64_t)x.dim[0] * lw_type_last(x);
}

static int infer_norm(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_norm *a = n->attr;
    LW_TRY(check_operands(g, n, 0, 1));
    LW_TRY(lw_op_check_act(g, n, a->act, LW_ACT_SILU));
    lw_type y = in_type(g, n, 0), stat = lw_type_of(LW_F32, 2, y.dim[0], a->groups);
    y.dtype = a->store ? (lw_dtype)a->store : LW_F32;
    if ((y.dtype == LW_U8) != lw_op_is_quant(g, n, 5))
        return lw_op_fail(g, n, "u8 and f32[2] of scale and zero point belong together");
    *out = (lw_infer){3, {y, stat, stat}};
    if (!a->also)
        return 0;
    if (a->also != LW_BF16 || a->store || !lw_norm_is_layer_norm(in_type(g, n, 0), a, has_in(n, 3)))
        return lw_op_fail(g, n, "only LayerNorms make f32 and bf16");
    y.dtype = LW_BF16;
    *out = (lw_infer){4, {out->out[0], stat, stat, y}};
    return 0;
}

/* inputs: dy, x, gamma, beta, scale?, shift?, mean, rstd */
static int infer_norm_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    LW_TRY(check_operands(g, n, 1, 2));
    lw_type x = in_type(g, n, 1);
    if (!lw_type_eq(in_type(g, n, 0), x))
        return lw_op_fail(g, n, "dy must have x's shape");
    lw_type c = lw_type_of(LW_F32, 1, lw_type_last(x));
    lw_type bc = lw_type_of(LW_F32, 2, x.dim[0], lw_type_last(x));
    *out = (lw_infer){5, {x, c, c, bc, bc}};
    return 0;
}

static void grad_norm(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                      lw_val *din)
{
    if (!lw_val_ok(dout[0]))
        return;
    const lw_val in[8] = {dout[0],  n->in[0], n->in[1],  n->in[2],
                          n->in[3], n->in[4], n->out[1], n->out[2]};
    lw_node *d = lw_graph_add(g, LW_OP_GROUP_NORM_GRAD, in, 8, n->attr, n->attr_size);
    if (!d)
        return;
    bool direct = lw_norm_is_layer_norm(in_type(g, n, 0), n->attr, has_in(n, 3));
    for (int i = 0; i < n->n_in; i++)
        if (need[i]) /* the cotangent of a LayerNorm's shift is dy */
            din[i] = lw_reshape(g, direct && i == 4 ? dout[0] : d->out[i], in_type(g, n, i));
}

static void cost_norm(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    lw_cost_bytes(g, n, out);
    out->flops = 10.0 * (double)lw_type_count(lw_val_type(g, n->out[0]));
}

static void print_norm(lw_str *s, const lw_node *n)
{
    const lw_attr_norm *a = n->attr;
    lw_str_addf(s, "groups %d eps %g%s%s", a->groups, (double)a->eps, a->rms ? " rms" : "",
                lw_op_act_text(a->act));
    if (a->store)
        lw_str_addf(s, " %s", lw_dtype_name((lw_dtype)a->store));
    if (a->also)
        lw_str_addf(s, " and %s", lw_dtype_name((lw_dtype)a->also));
}

const lw_op_def lw_op_group_norm = {
    .name = "group_norm",
    .infer = infer_norm,
    .grad = grad_norm,
    .cost = cost_norm,
    .print = print_norm,
    .flags = LW_OPF_CHEAP,
};
const lw_op_def lw_op_group_norm_grad = {
    .name = "group_norm_grad",
    .infer = infer_norm_grad,
    .grad = lw_grad_none,
    .cost = cost_norm,
    .print = print_norm,
    .flags = LW_OPF_ANY_OUT,
};

static lw_val norm_op(lw_graph *g, const lw_val in[5], const lw_attr_norm *a)
{
    return lw_val_ok(in[0]) ? lw_graph_op(g, LW_OP_GROUP_NORM, in, 5, a, sizeof *a) : in[0];
}

lw_val lw_group_norm_op(lw_graph *g, lw_val x, lw_val gamma, lw_val beta, lw_val scale,
                        lw_val shift, int groups, float eps, lw_act act)
{
    lw_attr_norm a = {.groups = groups, .act = act, .eps = eps};
    if (!lw_val_ok(gamma) || !lw_val_ok(beta))
        return LW_NOVAL;
    return norm_op(g, (lw_val[]){x, gamma, beta, scale, shift}, &a);
}

/* The rows of x as samples of one pixel. */
static lw_val as_rows(lw_graph *g, lw_val x)
{
    lw_type t = lw_val_type(g, x), rows = lw_type_of(LW_F32, 2, 0, lw_type_last(t));
    rows.dim[0] = (int32_t)(lw_type_count(t) / rows.dim[1]);
    return t.dim[0] == rows.dim[0] ? x : lw_reshape(g, x, rows);
}

lw_val lw_layer_norm_op(lw_graph *g, lw_val x, lw_val gamma, lw_val beta, lw_val residual,
                        float eps)
{
    if (!lw_val_ok(x))
        return x;
    lw_val y = lw_group_norm_op(g, as_rows(g, x), gamma, beta, LW_NOVAL, residual, 1, eps,
                                LW_ACT_NONE);
    return lw_reshape(g, y, lw_val_type(g, x));
}

lw_val lw_rms_norm_op(lw_graph *g, lw_val x, lw_val gamma, float eps)
{
    const lw_attr_norm a = {.groups = 1, .eps = eps, .rms = 1};
    if (!lw_val_ok(x))
        return x;
    lw_val y = norm_op(g, (lw_val[]){as_rows(g, x), gamma, LW_NOVAL, LW_NOVAL, LW_NOVAL}, &a);
    return lw_reshape(g, y, lw_val_type(g, x));
}
