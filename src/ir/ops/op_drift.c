/* SPDX-License-Identifier: Apache-2.0 */
/* Feature statistics and the drift field, whose gradient is closed form. */
#include "ir/ops/ops.h"

/* ---- feature statistics ---------------------------------------------------------------------- */

static void stat_types(lw_type x, lw_type out[LW_STATS])
{
    const int32_t patch[LW_STATS] = {0, 0, 2, 2, 4, 4};
    for (int i = 0; i < LW_STATS; i++) {
        int32_t p = patch[i];
        int32_t t = p ? (x.dim[1] / p) * (x.dim[2] / p) : 1;
        out[i] = lw_type_of(LW_F32, 3, x.dim[0], t, x.dim[3]);
    }
}

static int infer_stats(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type x = in_type(g, n, 0);
    if (x.rank != 4 || x.dtype != LW_F32)
        return lw_op_fail(g, n, "needs f32 [B,H,W,C]");
    out->n_out = LW_STATS;
    stat_types(x, out->out);
    return 0;
}

/* inputs: x, then the cotangents of the six statistics (absent ones contribute nothing) */
static int infer_stats_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type x = in_type(g, n, 0), t[LW_STATS];
    if (x.rank != 4)
        return lw_op_fail(g, n, "needs f32 [B,H,W,C]");
    stat_types(x, t);
    for (int i = 0; i < LW_STATS; i++)
        if (has_in(n, i + 1) && !lw_type_eq(in_type(g, n, i + 1), t[i]))
            return lw_op_fail(g, n, "a cotangent has the wrong shape");
    return lw_op_one(out, x);
}

static void grad_stats(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                       lw_val *din)
{
    if (!need[0])
        return;
    lw_val in[1 + LW_STATS] = {n->in[0]};
    for (int i = 0; i < LW_STATS; i++)
        in[i + 1] = dout[i];
    din[0] = lw_graph_op(g, LW_OP_FEATURE_STATS_GRAD, in, 1 + LW_STATS, NULL, 0);
}

const lw_op_def lw_op_feature_stats = {
    .name = "feature_stats",
    .infer = infer_stats,
    .grad = grad_stats,
    .cost = lw_cost_bytes,
    .flags = LW_OPF_ANY_OUT,
};
const lw_op_def lw_op_feature_stats_grad = {
    .name = "feature_stats_grad",
    .infer = infer_stats_grad,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
};

void lw_feature_stats(lw_graph *g, lw_val x, lw_val out[LW_STATS])
{
    lw_node *n = lw_val_ok(x) ? lw_graph_add(g, LW_OP_FEATURE_STATS, &x, 1, NULL, 0) : NULL;
    for (int i = 0; i < LW_STATS; i++)
        out[i] = n ? n->out[i] : LW_NOVAL;
}

/* ---- drift field ----------------------------------------------------------------------------- */

static bool is_samples(lw_type t, const lw_attr_drift *a, int32_t per_group)
{
    return t.dtype == LW_F32 && (int64_t)a->groups * per_group <= LW_MAX_DIM &&
           lw_type_eq(t, lw_type_of(LW_F32, 3, a->groups * per_group, a->slots, a->c));
}

static int infer_drift(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_drift *a = n->attr;
    if (a->groups < 1 || a->n < 1 || a->np < 1 || a->slots < 1)
        return lw_op_fail(g, n,
                          "needs a group, a generated sample, a real one and a slot at least");
    if (!is_samples(in_type(g, n, 0), a, a->n) || !is_samples(in_type(g, n, 1), a, a->np))
        return lw_op_fail(g, n, "needs gen [G*N,T,C] and pos [G*Np,T,C]");
    if (a->nu && (!has_in(n, 2) || !is_samples(in_type(g, n, 2), a, a->nu) || !has_in(n, 3) ||
                  lw_type_count(in_type(g, n, 3)) != a->groups))
        return lw_op_fail(g, n, "needs uncond [G*Nu,T,C] and one weight per group");
    if (a->n_tau < 1 || a->n_tau > LW_DRIFT_MAX_TAU)
        return lw_op_fail(g, n, "needs 1 to 8 temperatures");
    for (int i = 0; i < a->n_tau; i++)
        if (!(a->tau[i] > 0))
            return lw_op_fail(g, n, "temperatures must be positive");
    lw_type state = lw_type_of(LW_I64, 1, LW_DRIFT_STATE_OF(a->own_scale, a->slots));
    if (a->door && (a->whole < a->groups || !has_in(n, 4) || !lw_type_eq(in_type(g, n, 4), state)))
        return lw_op_fail(g, n, "some of all groups need the sums over those before them");
    if (has_in(n, 5) && !lw_type_eq(in_type(g, n, 5), lw_type_of(LW_F32, 1, 1)))
        return lw_op_fail(g, n, "temperatures are multiplied by one number");
    *out = (lw_infer){a->door ? 5 : 4,
                      {lw_type_of(LW_F32, 1, 1), in_type(g, n, 0),
                       lw_type_of(LW_F32, 1, LW_DRIFT_STATS(a->n_tau)), in_type(g, n, 0), state}};
    return 0;
}

/* dloss/dgen was computed with the loss: scale it by the cotangent (spec: the drift is a constant
 * goal). */
static void grad_drift(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                       lw_val *din)
{
    const lw_attr_drift *a = n->attr;
    if (need[0] && lw_val_ok(dout[0]) && (!a->door || a->door == LW_DRIFT_FIELD))
        din[0] = lw_mul(g, n->out[1], dout[0]);
}

static void cost_drift(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    const lw_attr_drift *a = n->attr;
    double m = a->n + a->np + a->nu;
    lw_cost_bytes(g, n, out);
    out->bytes -= (double)lw_type_bytes(in_type(g, n, 0)); /* dX is read or F, hardly both */
    out->flops = 2.0 * a->groups * a->slots * a->n * m * a->c *
                 (a->door == LW_DRIFT_SCALE ? 1 : 1 + a->n_tau);
}

static void print_drift(lw_str *s, const lw_node *n)
{
    static const char *const variant[] = {"official", "plain", "tau-times-dim"};
    static const char *const door[] = {"", "S of ", "m of ", "F of "};
    const lw_attr_drift *a = n->attr;
    lw_str_add(s, door[a->door]);
    lw_str_addf(s, "%s %d groups of %d gen %d pos %d uncond, tau", variant[a->variant], a->groups,
                a->n, a->np, a->nu);
    for (int i = 0; i < a->n_tau; i++)
        lw_str_addf(s, " %g", a->tau[i]);
    if (!a->normalize_over_x)
        lw_str_add(s, ", rows only");
    if (a->own_scale)
        lw_str_add(s, ", S of each slot");
    if (a->products == LW_DRIFT_BF16)
        lw_str_add(s, ", bf16 products");
}

const lw_op_def lw_op_drift_field = {
    .name = "drift_field",
    .infer = infer_drift,
    .grad = grad_drift,
    .cost = cost_drift,
    .print = print_drift,
    .flags = LW_OPF_ANY_OUT,
};

lw_drift_out lw_drift_through(lw_graph *g, lw_val gen, lw_val pos, lw_val uncond, lw_val weight,
                              lw_val state, lw_val heat, const lw_attr_drift *attr)
{
    const lw_drift_out none = {LW_NOVAL, LW_NOVAL, LW_NOVAL, LW_NOVAL, LW_NOVAL};
    if (!lw_val_ok(gen) || !lw_val_ok(pos))
        return none;
    lw_val in[] = {gen, pos, uncond, weight, state, heat};
    const int inputs = lw_val_ok(heat) ? 6 : attr->door ? 5 : 4;
    lw_node *n = lw_graph_add(g, LW_OP_DRIFT_FIELD, in, inputs, attr, sizeof *attr);
    return n ? (lw_drift_out){n->out[0], n->out[1], n->out[2], n->out[3],
                              attr->door ? n->out[4] : LW_NOVAL}
             : none;
}

lw_drift_out lw_drift_field(lw_graph *g, lw_val gen, lw_val pos, lw_val uncond, lw_val weight,
                            const lw_attr_drift *attr)
{
    return lw_drift_through(g, gen, pos, uncond, weight, LW_NOVAL, LW_NOVAL, attr);
}
