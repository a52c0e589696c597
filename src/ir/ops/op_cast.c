/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: the cast op, and which types products take. */
#include "ir/ops/ops.h"

static bool can_cast(lw_dtype from, lw_dtype to)
{
    if (from == LW_BF16)
        return to == LW_F32 || to == LW_U8;
    return from == LW_F32 && (to == LW_BF16 || to == LW_U8);
}

bool lw_op_is_quant(const lw_graph *g, const lw_node *n, int i)
{
    if (!has_in(n, i))
        return false;
    lw_type q = in_type(g, n, i);
    return q.dtype == LW_F32 && lw_type_count(q) == 2;
}

int lw_op_check_operand(const lw_graph *g, const lw_node *n, int i, int quant)
{
    lw_dtype t = in_type(g, n, i).dtype;
    if (t != LW_F32 && t != LW_BF16 && (t != LW_U8 || quant < 0))
        return lw_op_fail(g, n, "element type is not one that products take");
    if ((t == LW_U8) != (quant >= 0 && lw_op_is_quant(g, n, quant)))
        return lw_op_fail(g, n, "u8 and f32[2] of scale and zero point belong together");
    return 0;
}

bool lw_op_is_f32(const lw_graph *g, const lw_node *n, int i)
{
    return !has_in(n, i) || in_type(g, n, i).dtype == LW_F32;
}

lw_dtype lw_op_stored(int32_t store)
{
    return store == LW_BF16 || store == LW_U8 ? (lw_dtype)store : LW_F32;
}

int lw_op_check_stored(const lw_graph *g, const lw_node *n, int32_t store)
{
    if ((store == LW_U8) != lw_op_is_quant(g, n, LW_STORE_QUANT) ||
        (store == LW_U8 && in_type(g, n, 0).dtype == LW_F32))
        return lw_op_fail(
            g, n,
            "a result of u8 needs f32[2] of scale and zero point, and operands that are not f32");
    return 0;
}

const char *lw_op_stored_text(int32_t store)
{
    return store == LW_BF16 ? " to bf16" : store == LW_U8 ? " to u8" : "";
}

int lw_op_check_residual(const lw_graph *g, const lw_node *n, int i, lw_type y)
{
    if (!has_in(n, i))
        return 0;
    const lw_type r = in_type(g, n, i);
    if (lw_type_count(r) != lw_type_count(y))
        return lw_op_fail(g, n, "residual must have the result's shape");
    if (r.dtype != LW_F32 && (r.dtype != LW_BF16 || in_type(g, n, 0).dtype == LW_F32))
        return lw_op_fail(g, n, "residual must be f32, or bf16 where operands are not f32");
    return 0;
}

bool lw_op_same_shape(lw_type a, lw_type b)
{
    a.dtype = b.dtype;
    return lw_type_eq(a, b);
}

static int infer_cast(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type t = in_type(g, n, 0);
    lw_dtype to = (lw_dtype)((const lw_attr_cast *)n->attr)->to;
    if (!can_cast(t.dtype, to))
        return lw_op_fail(g, n, "casts are f32 to bf16, bf16 to f32, and both to u8");
    if ((to == LW_U8) != lw_op_is_quant(g, n, 1))
        return lw_op_fail(g, n, "u8 and f32[2] of scale and zero point belong together");
    t.dtype = to;
    return lw_op_one(out, t);
}

static void print_cast(lw_str *s, const lw_node *n)
{
    lw_str_add(s, lw_dtype_name((lw_dtype)((const lw_attr_cast *)n->attr)->to));
}

const lw_op_def lw_op_cast = {
    .name = "cast",
    .infer = infer_cast,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
    .print = print_cast,
    .flags = LW_OPF_CHEAP,
};

lw_val lw_cast(lw_graph *g, lw_val x, lw_dtype to, lw_val quant)
{
    if (!lw_val_ok(x) || lw_val_type(g, x).dtype == to)
        return x;
    lw_attr_cast a = {.to = (int32_t)to};
    return lw_graph_op(g, LW_OP_CAST, (lw_val[]){x, quant}, lw_val_ok(quant) ? 2 : 1, &a, sizeof a);
}
