/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of proximal policy optimisation as a graph. */
#include "jobs/prove/ppo/prove_ppo_update.h"

static lw_val f32s(lw_graph *g, const char *name, int32_t n)
{
    return lw_input(g, name, lw_type_of(LW_F32, 1, n));
}

static lw_val i32s(lw_graph *g, const char *name, int32_t n)
{
    return lw_input(g, name, lw_type_of(LW_I32, 1, n));
}

static lw_val clamp(lw_graph *g, lw_val x, double lo, double hi)
{
    x = lw_ew2(g, LW_EW_max, x, lw_const_f32(g, (float)lo));
    return lw_ew2(g, LW_EW_min, x, lw_const_f32(g, (float)hi));
}

/* [B,S]: the logits of each choice, -1e9 (and no gradient) where it has no successor. */
static lw_val padded_logits(const lw_policy_config *net, lw_graph *g, lw_val head, lw_ppo_sizes z)
{
    lw_val from = lw_embedding(g, head, i32s(g, "from", z.pairs)),
           to = lw_embedding(g, head, i32s(g, "to", z.pairs));
    lw_val pair = lw_sum(g, lw_mul(g, from, to), LW_OVER_LAST);
    pair = lw_scale(g, pair, lw_policy_logit_scale(net));
    lw_type wide = lw_type_of(LW_F32, 2, z.choices, z.successors);
    lw_val x = lw_embedding(g, pair, i32s(g, "place", z.choices * z.successors));
    return lw_add(g, lw_reshape(g, x, wide), lw_input(g, "mask", wide));
}

/* -sum p log p over the last dimension; masked successors have p = 0 and add nothing. */
static lw_val entropy(lw_graph *g, lw_val logits)
{
    lw_val p = lw_softmax(g, logits);
    lw_val log_p = lw_ew1(g, LW_EW_log, lw_add_f32(g, p, 1e-20f));
    lw_val h = lw_scale(g, lw_sum(g, lw_mul(g, p, log_p), LW_OVER_LAST), -1.0f);
    return lw_reshape(g, h, lw_type_of(LW_F32, 1, lw_val_type(g, h).dim[0]));
}

static lw_val policy_loss(const lw_ppo_config *c, lw_graph *g, lw_val nlp, int32_t n)
{
    lw_val advantage = f32s(g, "advantage", n), old = f32s(g, "old_log_prob", n);
    lw_val ratio = lw_ew1(g, LW_EW_exp, lw_scale(g, lw_add(g, nlp, old), -1.0f));
    lw_val free = lw_mul(g, advantage, ratio),
           bound = lw_mul(g, advantage, clamp(g, ratio, 1.0 - c->clip_range, 1.0 + c->clip_range));
    return lw_scale(g, lw_ew2(g, LW_EW_min, free, bound), -1.0f);
}

static lw_val value_loss(const lw_ppo_config *c, lw_graph *g, lw_val value, int32_t n)
{
    double most = c->clip_range_vf;
    if (most > 0.0) {
        lw_val old = f32s(g, "old_value", n);
        value = lw_add(g, old, clamp(g, lw_sub(g, value, old), -most, most));
    }
    return lw_sqr(g, lw_sub(g, f32s(g, "target", n), value));
}

int lw_ppo_graph(const lw_ppo_config *c, lw_store *store, lw_ppo_sizes z, bool gradient,
                 lw_graph *g)
{
    const lw_policy_config *net = &c->net;
    int32_t a = net->max_atoms, n = z.choices;
    lw_builder b = {.g = g, .params = lw_store_params(store), .training = gradient};
    if (net->dropout > 0.0f)
        b.rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, z.states));
    lw_policy_in in = {lw_input(g, "predicates", lw_type_of(LW_I32, 2, z.states, a)),
                       lw_input(g, "arguments", lw_type_of(LW_I32, 2, z.states, 2 * a)),
                       f32s(g, "scale", z.states)};
    lw_val body = lw_policy_body(&b, net, in);
    lw_val logits = padded_logits(net, g, lw_policy_head(&b, net, body), z);
    lw_val value = lw_embedding(g, lw_policy_value(&b, net, body), i32s(g, "state", n));
    value = lw_reshape(g, value, lw_type_of(LW_F32, 1, n));
    lw_val nlp = lw_cross_entropy(g, logits, i32s(g, "action", n)), h = entropy(g, logits);
    lw_val loss = policy_loss(c, g, nlp, n);
    loss = lw_add(g, loss, lw_scale(g, value_loss(c, g, value, n), (float)c->vf_coef));
    loss = lw_sub(g, loss, lw_mul(g, h, f32s(g, "entropy_coef", 1)));
    loss = lw_sum(g, lw_mul(g, loss, f32s(g, "weight", n)), LW_OVER_ALL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    lw_graph_output_add(g, "nlp", nlp, LW_NOVAL);
    lw_graph_output_add(g, "new_value", value, LW_NOVAL);
    lw_graph_output_add(g, "entropy", h, LW_NOVAL);
    return gradient ? lw_grad_params(g, loss, LW_NOVAL) : lw_graph_error(g);
}
