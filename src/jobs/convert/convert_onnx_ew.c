/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs and activations in ONNX's operators. */
#include "jobs/convert/convert_onnx.h"

/* x * k, x + k */
static lw_onnx_val times(lw_onnx *m, lw_onnx_val x, float k)
{
    return lw_onnx_2(m, "Mul", x, lw_onnx_f32(m, k));
}
static lw_onnx_val plus(lw_onnx *m, lw_onnx_val x, float k)
{
    return lw_onnx_2(m, "Add", x, lw_onnx_f32(m, k));
}

/* x sigmoid(k x) */
static lw_onnx_val gated(lw_onnx *m, lw_onnx_val x, float k)
{
    return lw_onnx_2(m, "Mul", x, lw_onnx_1(m, "Sigmoid", times(m, x, k)));
}

/* x (1 + f) / 2 */
static lw_onnx_val half_one_plus(lw_onnx *m, lw_onnx_val x, lw_onnx_val f)
{
    return lw_onnx_2(m, "Mul", times(m, x, 0.5f), plus(m, f, 1.0f));
}

static lw_onnx_val gelu(lw_onnx *m, lw_onnx_val x)
{
    return half_one_plus(m, x, lw_onnx_1(m, "Erf", times(m, x, 0.70710678118654752f)));
}

static lw_onnx_val gelu_tanh(lw_onnx *m, lw_onnx_val x)
{
    lw_onnx_val cube = lw_onnx_2(m, "Mul", lw_onnx_2(m, "Mul", x, x), x);
    lw_onnx_val in = lw_onnx_2(m, "Add", x, times(m, cube, 0.044715f));
    return half_one_plus(m, x, lw_onnx_1(m, "Tanh", times(m, in, 0.79788456080286536f)));
}

static lw_onnx_val relu6(lw_onnx *m, lw_onnx_val x)
{
    const float most = 6.0f;
    return lw_onnx_2(m, "Min", lw_onnx_1(m, "Relu", x), lw_onnx_f32s(m, &most, 1));
}

lw_onnx_val lw_onnx_act(lw_onnx *m, lw_onnx_val x, int32_t act)
{
    switch ((lw_act)act) {
    case LW_ACT_RELU:
        return lw_onnx_1(m, "Relu", x);
    case LW_ACT_SILU:
        return lw_onnx_2(m, "Mul", x, lw_onnx_1(m, "Sigmoid", x));
    case LW_ACT_GELU:
        return gelu(m, x);
    case LW_ACT_GELU_TANH:
        return gelu_tanh(m, x);
    case LW_ACT_QUICK_GELU:
        return gated(m, x, 1.702f);
    case LW_ACT_RELU6:
        return relu6(m, x);
    case LW_ACT_NONE:
    case LW_ACT_COUNT:
        break;
    }
    return x;
}

/* Those that ONNX has under a name; the others are put together below. */
static const char *const word[LW_EW_COUNT] = {
    [LW_EW_copy] = "Identity",   [LW_EW_add] = "Add",           [LW_EW_sub] = "Sub",
    [LW_EW_mul] = "Mul",         [LW_EW_div] = "Div",           [LW_EW_max] = "Max",
    [LW_EW_min] = "Min",         [LW_EW_neg] = "Neg",           [LW_EW_abs] = "Abs",
    [LW_EW_sqrt] = "Sqrt",       [LW_EW_recip] = "Reciprocal",  [LW_EW_exp] = "Exp",
    [LW_EW_log] = "Log",         [LW_EW_sin] = "Sin",           [LW_EW_cos] = "Cos",
    [LW_EW_tanh] = "Tanh",       [LW_EW_erf] = "Erf",           [LW_EW_relu] = "Relu",
    [LW_EW_sigmoid] = "Sigmoid", [LW_EW_softplus] = "Softplus",
};

static lw_onnx_val positive(lw_onnx *m, lw_onnx_val a, lw_onnx_val b, lw_onnx_val c)
{
    return lw_onnx_3(m, "Where", lw_onnx_2(m, "Greater", a, lw_onnx_f32(m, 0.0f)), b, c);
}

static lw_onnx_val put_together(lw_onnx *m, const lw_ew_step *e, lw_onnx_val a, lw_onnx_val b,
                                lw_onnx_val c)
{
    switch ((lw_ewop)e->op) {
    case LW_EW_konst:
        return lw_onnx_f32(m, e->imm);
    case LW_EW_fma:
        return lw_onnx_2(m, "Add", lw_onnx_2(m, "Mul", a, b), c);
    case LW_EW_sqr:
        return lw_onnx_2(m, "Mul", a, a);
    case LW_EW_rsqrt:
        return lw_onnx_1(m, "Reciprocal", lw_onnx_1(m, "Sqrt", a));
    case LW_EW_relu6:
        return relu6(m, a);
    case LW_EW_silu:
        return lw_onnx_act(m, a, LW_ACT_SILU);
    case LW_EW_gelu:
        return gelu(m, a);
    case LW_EW_gelu_tanh:
        return gelu_tanh(m, a);
    case LW_EW_quick_gelu:
        return lw_onnx_act(m, a, LW_ACT_QUICK_GELU);
    case LW_EW_step:
        return positive(m, a, lw_onnx_f32(m, 1.0f), lw_onnx_f32(m, 0.0f));
    case LW_EW_select:
        return positive(m, a, b, c);
    default:
        return 0; /* parts of gradients */
    }
}

/* An operand as ONNX broadcasts it to the type of the output. */
static lw_onnx_val operand(lw_onnx *m, const lw_node *n, int i)
{
    const lw_attr_ew *a = n->attr;
    const lw_type from = lw_onnx_type(m, n, i), to = a->type;
    int64_t dim[LW_MAX_RANK];
    int rank = LW_MAX(to.rank, 1);
    for (int k = 0; k < rank; k++) {
        bool first = k == 0 && to.rank > 1, last = k == rank - 1, keep = true;
        switch ((lw_ew_mode)a->mode[i]) {
        case LW_EW_FULL:
            break;
        case LW_EW_SCALAR:
            keep = false;
            break;
        case LW_EW_CHANNEL:
            keep = last;
            break;
        case LW_EW_BATCH:
            keep = first;
            break;
        case LW_EW_BC:
            keep = first || last;
            break;
        case LW_EW_ROW:
            keep = !last;
            break;
        }
        dim[k] = keep && to.rank ? to.dim[k] : 1;
    }
    bool same = from.rank == rank;
    for (int k = 0; same && k < rank; k++)
        same = from.dim[k] == dim[k];
    return same ? lw_onnx_in(n, i) : lw_onnx_shape(m, lw_onnx_in(n, i), dim, rank);
}

lw_onnx_val lw_onnx_ew(lw_onnx *m, const lw_node *n)
{
    const lw_attr_ew *a = n->attr;
    lw_onnx_val reg[LW_MAX_IN + LW_EW_MAX_INSTR];
    bool full[LW_MAX_IN + LW_EW_MAX_INSTR] = {false};
    int at = n->n_in;
    for (int i = 0; i < n->n_in; i++) {
        reg[i] = operand(m, n, i);
        full[i] = a->mode[i] == LW_EW_FULL;
    }
    for (int i = 0; i < a->n_step; i++, at++) {
        const lw_ew_step *e = &a->step[i];
        const uint8_t r[3] = {e->a, e->b, e->c};
        int arity = lw_ewop_arity((lw_ewop)e->op);
        lw_onnx_val v[3] = {0};
        for (int k = 0; k < arity; k++) {
            v[k] = reg[r[k]];
            full[at] |= full[r[k]];
        }
        reg[at] = put_together(m, e, v[0], v[1], v[2]);
        if (!reg[at] && word[e->op]) {
            lw_onnx_node(m, word[e->op], v, arity, ++m->last);
            reg[at] = m->last;
        }
        if (!reg[at])
            return 0;
    }
    if (full[at - 1])
        return reg[at - 1];
    int64_t dim[LW_MAX_RANK];
    for (int k = 0; k < a->type.rank; k++)
        dim[k] = a->type.dim[k];
    return lw_onnx_2(m, "Expand", reg[at - 1], lw_onnx_i64(m, dim, a->type.rank));
}
