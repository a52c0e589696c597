/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs: broadcasting, the one-instruction builders, and their gradient. */
#include "ir/ops/ops.h"

#include <string.h>

static const struct {
    const char *name;
    int arity;
} ewops[LW_EW_COUNT] = {
    {"none", 0},
#define EW(name, arity, ref, body, slope) [LW_EW_##name] = {#name, arity},
#include "ir/ewops.def"
#undef EW
};

const char *lw_ewop_name(lw_ewop op)
{
    return ewops[op].name;
}
int lw_ewop_arity(lw_ewop op)
{
    return ewops[op].arity;
}

void lw_ew_view(lw_type t, int64_t *b, int64_t *s, int64_t *c)
{
    int64_t n = lw_type_count(t);
    *b = t.rank > 1 ? t.dim[0] : 1;
    *c = lw_type_last(t);
    *s = n ? n / (*b * *c) : 0;
}

/* Drops size-1 dimensions between the first and the last: [B,1,1,C] -> [B,C], [1,1,1] -> []. */
static int squeeze(lw_type t, int32_t dim[LW_MAX_RANK])
{
    int r = 0;
    for (int i = 0; i < t.rank; i++)
        if (t.dim[i] != 1)
            dim[r++] = t.dim[i];
    return r;
}

/* How an operand of type t is read in an output of type o; -1 when it cannot be broadcast. */
static int operand_mode(lw_type t, lw_type o)
{
    int64_t b, s, c, n = lw_type_count(t);
    lw_ew_view(o, &b, &s, &c);
    if (n == lw_type_count(o) && (t.rank != o.rank || lw_type_last(t) == lw_type_last(o)))
        return LW_EW_FULL;
    if (n == 1)
        return LW_EW_SCALAR;
    int32_t d[LW_MAX_RANK];
    int r = squeeze(t, d);
    bool one_last = t.rank > 1 && lw_type_last(t) == 1;
    if (r == 1 && d[0] == c && !one_last && (t.rank == 1 || t.dim[0] == 1))
        return LW_EW_CHANNEL;
    if (r == 1 && d[0] == b && (one_last || t.rank == 1 || c != d[0]))
        return LW_EW_BATCH;
    if (t.dim[0] == b && lw_type_last(t) == c && n == b * c)
        return LW_EW_BC;
    if (t.dim[0] == b && n == b * s && (one_last || t.rank == o.rank - 1))
        return LW_EW_ROW;
    return -1;
}

static int infer_ew(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_ew *a = n->attr;
    for (int i = 0; i < n->n_in; i++) {
        lw_type t = in_type(g, n, i);
        if (t.dtype != LW_F32)
            return lw_op_fail(g, n, "elementwise operands must be f32");
        if (operand_mode(t, a->type) != (int)a->mode[i])
            return lw_op_fail(g, n, "operand does not broadcast to the output");
    }
    if (a->n_step < 1 || a->n_step > LW_EW_MAX_INSTR)
        return lw_op_fail(g, n, "elementwise program is empty or too long");
    return lw_op_one(out, a->type);
}

static void print_ew(lw_str *s, const lw_node *n)
{
    const lw_attr_ew *a = n->attr;
    for (int i = 0; i < a->n_step; i++) {
        const lw_ew_step *e = &a->step[i];
        lw_str_addf(s, "%s%s", i ? "; " : "", lw_ewop_name(e->op));
        if (e->op == LW_EW_konst)
            lw_str_addf(s, " %.9g", (double)e->imm);
        const uint8_t r[3] = {e->a, e->b, e->c};
        for (int k = 0; k < lw_ewop_arity(e->op); k++)
            lw_str_addf(s, " r%d", r[k]);
    }
}

static void cost_ew(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    const lw_attr_ew *a = n->attr;
    lw_cost_bytes(g, n, out);
    out->flops = (double)a->n_step * (double)lw_type_count(a->type);
}

/* ---- builders -------------------------------------------------------------------------------- */

static lw_val add_ew(lw_graph *g, lw_attr_ew *a, const lw_val *in, int n_in)
{
    for (int i = 0; i < n_in; i++) {
        if (!lw_val_ok(in[i]))
            return LW_NOVAL;
        int mode = operand_mode(lw_val_type(g, in[i]), a->type);
        a->mode[i] = mode < 0 ? 255 : (uint8_t)mode;
    }
    return lw_graph_op(g, LW_OP_EW, in, n_in, a, sizeof *a);
}

/* The larger operand's type: the one every other operand broadcasts to. */
static lw_type wider(lw_graph *g, const lw_val *in, int n)
{
    lw_type best = lw_val_type(g, in[0]);
    for (int i = 1; i < n; i++) {
        lw_type t = lw_val_type(g, in[i]);
        if (lw_type_count(t) > lw_type_count(best) ||
            (lw_type_count(t) == lw_type_count(best) && t.rank > best.rank))
            best = t;
    }
    return best;
}

static lw_val one_step(lw_graph *g, lw_ewop op, const lw_val *in, int n)
{
    LW_ASSERT(lw_ewop_arity(op) == n, "%s takes %d operands", lw_ewop_name(op), lw_ewop_arity(op));
    for (int i = 0; i < n; i++)
        if (!lw_val_ok(in[i]))
            return LW_NOVAL;
    lw_attr_ew a = {.type = wider(g, in, n), .n_step = 1};
    a.step[0] = (lw_ew_step){.op = (uint8_t)op, .a = 0, .b = n > 1 ? 1 : 0, .c = n > 2 ? 2 : 0};
    return add_ew(g, &a, in, n);
}

lw_val lw_ew1(lw_graph *g, lw_ewop op, lw_val a)
{
    return one_step(g, op, &a, 1);
}
lw_val lw_ew2(lw_graph *g, lw_ewop op, lw_val a, lw_val b)
{
    return one_step(g, op, (lw_val[]){a, b}, 2);
}
lw_val lw_ew3(lw_graph *g, lw_ewop op, lw_val a, lw_val b, lw_val c)
{
    return one_step(g, op, (lw_val[]){a, b, c}, 3);
}
lw_val lw_add(lw_graph *g, lw_val a, lw_val b)
{
    return lw_ew2(g, LW_EW_add, a, b);
}
lw_val lw_sub(lw_graph *g, lw_val a, lw_val b)
{
    return lw_ew2(g, LW_EW_sub, a, b);
}
lw_val lw_mul(lw_graph *g, lw_val a, lw_val b)
{
    return lw_ew2(g, LW_EW_mul, a, b);
}
lw_val lw_div(lw_graph *g, lw_val a, lw_val b)
{
    return lw_ew2(g, LW_EW_div, a, b);
}
lw_val lw_relu(lw_graph *g, lw_val a)
{
    return lw_ew1(g, LW_EW_relu, a);
}
lw_val lw_relu6(lw_graph *g, lw_val a)
{
    return lw_ew1(g, LW_EW_relu6, a);
}
lw_val lw_silu(lw_graph *g, lw_val a)
{
    return lw_ew1(g, LW_EW_silu, a);
}
lw_val lw_sqr(lw_graph *g, lw_val a)
{
    return lw_ew1(g, LW_EW_sqr, a);
}

/* op(a, constant k): the constant is an instruction, not an operand. */
static lw_val with_konst(lw_graph *g, lw_ewop op, lw_val x, float k)
{
    if (!lw_val_ok(x))
        return LW_NOVAL;
    lw_attr_ew a = {.type = lw_val_type(g, x), .n_step = 2};
    a.step[0] = (lw_ew_step){.op = LW_EW_konst, .imm = k};
    a.step[1] = (lw_ew_step){.op = (uint8_t)op, .a = 0, .b = 1};
    return add_ew(g, &a, &x, 1);
}

lw_val lw_scale(lw_graph *g, lw_val a, float k)
{
    return with_konst(g, LW_EW_mul, a, k);
}
lw_val lw_add_f32(lw_graph *g, lw_val a, float k)
{
    return with_konst(g, LW_EW_add, a, k);
}

lw_val lw_broadcast(lw_graph *g, lw_val x, lw_type type)
{
    if (!lw_val_ok(x) || lw_type_eq(lw_val_type(g, x), type))
        return x;
    lw_attr_ew a = {.type = type, .n_step = 1};
    a.step[0] = (lw_ew_step){.op = LW_EW_copy};
    return add_ew(g, &a, &x, 1);
}

lw_val lw_sum_to(lw_graph *g, lw_val v, lw_type type)
{
    if (!lw_val_ok(v))
        return v;
    lw_type from = lw_val_type(g, v);
    static const lw_reduce_over over[] = {
        [LW_EW_SCALAR] = LW_OVER_ALL, [LW_EW_CHANNEL] = LW_OVER_ROWS, [LW_EW_BATCH] = LW_OVER_BATCH,
        [LW_EW_BC] = LW_OVER_MIDDLE,  [LW_EW_ROW] = LW_OVER_LAST,
    };
    int mode = operand_mode(type, from);
    if (mode < 0)
        return lw_graph_fail(g, LW_ESHAPE, "cannot sum a gradient down to its operand");
    if (mode != LW_EW_FULL)
        v = lw_sum(g, v, over[mode]);
    return lw_reshape(g, v, type);
}

/* ---- gradient: the slope of a scalar operation, for one-step programs ------------------------ */

typedef struct ew_ctx {
    lw_graph *g;
    lw_val a, b, y, dy;
    int i; /* which operand's derivative */
} ew_ctx;

static lw_val minus_from(lw_graph *g, float k, lw_val x)
{
    return lw_add_f32(g, lw_ew1(g, LW_EW_neg, x), k);
}

/* The words of slopes. */
#define OF(name, x) lw_ew1(g, LW_EW_##name, x)
#define NEG(x) OF(neg, x)
#define STEP(x) OF(step, x)
#define FROM(k, x) minus_from(g, k, x)
#define ONE_MINUS(x) FROM(1.0f, x)
#define SUB(x, z) lw_sub(g, x, z)
#define MUL(x, z) lw_mul(g, x, z)
#define DIV(x, z) lw_div(g, x, z)
#define SCALE(x, k) lw_scale(g, x, k)
#define NONE LW_NOVAL

#define EW(name, arity, ref, body, slope)                      \
    static lw_val slope_##name(const ew_ctx *e)                \
    {                                                          \
        lw_graph *g = e->g;                                    \
        lw_val a = e->a, b = e->b, y = e->y, dy = e->dy;       \
        int i = e->i;                                          \
        (void)g, (void)a, (void)b, (void)y, (void)dy, (void)i; \
        return slope;                                          \
    }
#include "ir/ewops.def"
#undef EW

static lw_val (*const slopes[LW_EW_COUNT])(const ew_ctx *) = {
#define EW(name, arity, ref, body, slope) [LW_EW_##name] = slope_##name,
#include "ir/ewops.def"
#undef EW
};

static void grad_ew(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                    lw_val *din)
{
    const lw_attr_ew *a = n->attr;
    const lw_ew_step *last = &a->step[a->n_step - 1];
    ew_ctx e = {.g = g, .a = n->in[0], .y = n->out[0], .dy = dout[0]};
    if (a->n_step == 2 && a->step[0].op == LW_EW_konst) { /* op(x, constant) */
        if (last->op == LW_EW_mul)
            din[0] = lw_scale(g, e.dy, a->step[0].imm);
        else if (last->op == LW_EW_add)
            din[0] = e.dy;
        else
            lw_graph_fail(g, LW_EUNSUPPORTED, "no gradient of %s with a constant",
                          lw_ewop_name(last->op));
        return;
    }
    if (a->n_step != 1) {
        lw_graph_fail(g, LW_EUNSUPPORTED, "gradient of a fused elementwise program");
        return;
    }
    if (n->n_in > 1)
        e.b = n->in[1];
    for (int i = 0; i < n->n_in; i++) {
        if (!need[i] || last->op == LW_EW_step)
            continue;
        e.i = i;
        lw_val d = slopes[last->op](&e);
        if (!lw_val_ok(d)) {
            lw_graph_fail(g, LW_EUNSUPPORTED, "no gradient of '%s'", lw_ewop_name(last->op));
            return;
        }
        if (a->mode[i] == LW_EW_FULL)
            din[i] = lw_reshape(g, lw_broadcast(g, d, a->type), in_type(g, n, i));
        else
            din[i] = lw_sum_to(g, lw_broadcast(g, d, a->type), in_type(g, n, i));
    }
}

const lw_op_def lw_op_ew = {
    .name = "ew",
    .infer = infer_ew,
    .grad = grad_ew,
    .cost = cost_ew,
    .print = print_ew,
    .flags = LW_OPF_INPLACE | LW_OPF_CHEAP,
};
