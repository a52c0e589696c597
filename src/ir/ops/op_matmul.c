/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: one op with transposition flags serves linear layers and both of their
 * gradients. */
#include "ir/ops/ops.h"

/* Rows and last dimension of a type seen as a matrix. */
static void matrix(lw_type t, int64_t *rows, int64_t *cols)
{
    *cols = lw_type_last(t);
    *rows = *cols ? lw_type_count(t) / *cols : 0;
}

static int infer_matmul(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_matmul *a = n->attr;
    lw_type ta = in_type(g, n, 0), tb = in_type(g, n, 1);
    int64_t m, k, n1, k1;
    matrix(ta, &m, &k);
    if (a->packed_n) {
        n1 = a->packed_n;
        k1 = a->packed_k;
    } else {
        matrix(tb, &k1, &n1);
        if (a->trans_b) {
            int64_t swap = k1;
            k1 = n1;
            n1 = swap;
        }
    }
    if (a->trans_a) {
        int64_t swap = m;
        m = k;
        k = swap;
    }
    if (k != k1)
        return lw_op_fail(g, n, "inner dimensions differ");
    LW_TRY(lw_op_check_operand(g, n, 0, a->trans_a ? -1 : 4));
    if (tb.dtype != (a->trans_a ? ta.dtype : LW_F32))
        return lw_op_fail(g, n, "the second operand must be f32, or as the first when transposed");
    if (has_in(n, 2) && (lw_type_count(in_type(g, n, 2)) != n1 || !lw_op_is_f32(g, n, 2)))
        return lw_op_fail(g, n, "bias must be f32 and have one element per column");
    if (has_in(n, 5) && (in_type(g, n, 5).dtype != LW_I64 || n1 % 4 || n1 <= 4 || a->trans_a ||
                         m % LW_MAX(lw_type_count(in_type(g, n, 5)), 1)))
        return lw_op_fail(g, n, "rows that are dropped need ids, and a multiple of 4 columns");
    lw_type t = a->trans_a ? lw_type_of(LW_F32, 2, (int32_t)m, (int32_t)n1) : ta;
    t.dim[t.rank - 1] = (int32_t)n1;
    LW_TRY(lw_op_check_stored(g, n, a->store));
    t.dtype = lw_op_stored(a->store);
    if (t.dtype != LW_F32 && a->trans_a)
        return lw_op_fail(g, n, "a weight gradient is f32");
    LW_TRY(lw_op_check_residual(g, n, 3, t));
    return lw_op_one(out, t);
}

/* C = A B: dA = dC B', dB = A' dC; the flags move around accordingly. */
static void grad_matmul(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                        lw_val *din)
{
    const lw_attr_matmul *a = n->attr;
    if (a->act != LW_ACT_NONE || a->packed_n || has_in(n, 5)) {
        lw_graph_fail(g, LW_EUNSUPPORTED, "gradient of a fused matmul");
        return;
    }
    lw_val A = n->in[0], B = n->in[1], dC = dout[0];
    if (need[0]) {
        lw_val d = a->trans_a ? lw_matmul(g, B, dC, a->trans_b, true)
                              : lw_matmul(g, dC, B, false, !a->trans_b);
        din[0] = lw_reshape(g, d, in_type(g, n, 0));
    }
    if (need[1]) {
        lw_val d = a->trans_b ? lw_matmul(g, dC, A, true, a->trans_a)
                              : lw_matmul(g, A, dC, !a->trans_a, false);
        din[1] = lw_reshape(g, d, in_type(g, n, 1));
    }
    if (n->n_in > 2 && need[2])
        din[2] = lw_reshape(g, lw_sum(g, dC, LW_OVER_ROWS), in_type(g, n, 2));
    if (n->n_in > 3 && need[3])
        din[3] = lw_reshape(g, dC, in_type(g, n, 3));
}

static void cost_matmul(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    int64_t m, k;
    const lw_attr_matmul *a = n->attr;
    matrix(in_type(g, n, 0), &m, &k);
    lw_cost_bytes(g, n, out);
    out->flops = 2.0 * (double)lw_type_count(lw_val_type(g, n->out[0])) *
                 (double)(a->trans_a ? m : k);
}

static void print_matmul(lw_str *s, const lw_node *n)
{
    const lw_attr_matmul *a = n->attr;
    lw_str_addf(s, "%s%s%s%s%s", a->trans_a ? "a' " : "a ", a->trans_b ? "b'" : "b",
                lw_op_act_text(a->act), a->packed_n ? " packed" : "", lw_op_stored_text(a->store));
    if (has_in(n, 5))
        lw_str_addf(s, " drop %g", (double)a->drop);
}

/* With a transposed first operand it is a weight gradient, which has no epilogue. */
static void product_matmul(const lw_graph *g, const lw_node *n, lw_product *out)
{
    const lw_attr_matmul *a = n->attr;
    lw_type x = in_type(g, n, 0);
    out->depth = lw_type_last(x);
    out->results = lw_type_last(lw_val_type(g, n->out[0]));
    out->weight_gradient = a->trans_a;
    out->narrow = x.rank > 2 && !(a->trans_a && a->trans_b);
    out->residual = a->trans_a ? -1 : 3;
    out->act = offsetof(lw_attr_matmul, act);
}

const lw_op_def lw_op_matmul = {
    .name = "matmul",
    .infer = infer_matmul,
    .grad = grad_matmul,
    .cost = cost_matmul,
    .product = product_matmul,
    .print = print_matmul,
};

lw_val lw_matmul(lw_graph *g, lw_val a, lw_val b, bool trans_a, bool trans_b)
{
    if (!lw_val_ok(a) || !lw_val_ok(b))
        return LW_NOVAL;
    lw_attr_matmul at = {.trans_a = trans_a, .trans_b = trans_b};
    return lw_graph_op(g, LW_OP_MATMUL, (lw_val[]){a, b}, 2, &at, sizeof at);
}

lw_val lw_linear_op(lw_graph *g, lw_val x, lw_val w, lw_val bias)
{
    if (!lw_val_ok(x) || !lw_val_ok(w))
        return LW_NOVAL;
    lw_attr_matmul at = {.trans_b = 1};
    return lw_graph_op(g, LW_OP_MATMUL, (lw_val[]){x, w, bias}, 3, &at, sizeof at);
}
