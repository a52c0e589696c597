/* SPDX-License-Identifier: Apache-2.0 */
/* The policy network: body and heads. Embeddings and compositions are in models_policy_state.c. */
#include "models/proof/models_policy_parts.h"

#include <math.h>
#include <stdio.h>

/* Linear with entries of the standard deviation that an orthogonal matrix times `gain` has; bias
 * zero. (The published code starts from orthogonal matrices.) */
lw_val lw_policy_linear(lw_builder *b, const char *name, lw_val x, int32_t out, double gain)
{
    if (!lw_val_ok(x))
        return x;
    int32_t in = lw_type_last(lw_val_type(b->g, x));
    const char *up = lw_scope_push(b->g, name);
    lw_val w = lw_policy_weight(b, in, out, gain);
    lw_val y = lw_linear_op(b->g, x, w, lw_policy_bias(b, out));
    lw_scope_set(b->g, up);
    return y;
}

lw_val lw_policy_weight(lw_builder *b, int32_t in, int32_t out, double gain)
{
    lw_init init = {LW_INIT_NORMAL, (float)(gain / sqrt((double)LW_MAX(in, out)))};
    return lw_param(b, "weight", lw_type_of(LW_F32, 2, out, in), init);
}

lw_val lw_policy_bias(lw_builder *b, int32_t out)
{
    return lw_param(b, "bias", lw_type_of(LW_F32, 1, out), (lw_init){0});
}

/* Behind the first Linear: relu, norm, dropout, the residual blocks. Rank 3 from here on, a state
 * being one slot of one sample: products of rank 2 are for single rows and never narrow. */
static lw_val body_behind(lw_builder *b, const lw_policy_config *c, lw_val x, bool training)
{
    lw_graph *g = b->g;
    if (!lw_val_ok(x))
        return x;
    bool drop = training && c->dropout > 0;
    int32_t rows = lw_val_type(g, x).dim[0];
    char block[48];
    const char *up = lw_scope_push(g, "shared_body.input_transform");
    x = lw_reshape(g, lw_relu(g, x), lw_type_of(LW_F32, 3, rows, 1, c->hidden));
    x = lw_layer_norm(b, "2", x, 0, LW_NOVAL);
    x = drop ? lw_dropout(g, x, b->rows, c->dropout) : x;
    lw_scope_set(g, up);
    for (int32_t k = 0; k < c->blocks; k++) {
        snprintf(block, sizeof block, "shared_body.res_blocks.%d", k);
        up = lw_scope_push(g, block);
        lw_val h = lw_relu(g, lw_policy_linear(b, "0", x, c->hidden, POLICY_GAIN));
        if (drop)
            x = lw_add(g, lw_dropout(g, lw_layer_norm(b, "2", h, 0, LW_NOVAL), b->rows, c->dropout),
                       x);
        else
            x = lw_layer_norm(b, "2", h, 0, x);
        lw_scope_set(g, up);
    }
    return x;
}

static bool bad(lw_builder *b, const lw_policy_config *c)
{
    if (lw_graph_error(b->g) < 0)
        return true;
    int rc = lw_policy_check(c);
    if (rc < 0)
        lw_graph_fail(b->g, rc, "%s", lw_errmsg());
    return rc < 0;
}

lw_val lw_policy_body(lw_builder *b, const lw_policy_config *c, lw_policy_in in)
{
    if (bad(b, c))
        return LW_NOVAL;
    lw_val s = lw_policy_embed(b, c, &in);
    const char *up = lw_scope_push(b->g, "shared_body.input_transform");
    lw_val x = lw_policy_linear(b, "0", s, c->hidden, POLICY_GAIN);
    lw_scope_set(b->g, up);
    return body_behind(b, c, x, b->training);
}

lw_val lw_policy_body_infer(lw_builder *b, const lw_policy_config *c, lw_policy_in in)
{
    if (bad(b, c))
        return LW_NOVAL;
    if (lw_policy_folds(c))
        return body_behind(b, c, lw_policy_embed_folded(b, c, &in), false);
    lw_builder still = *b;
    still.training = false;
    return lw_policy_body(&still, c, in);
}

/* x / max(|x|, 1e-12) per row; bounded under the root, whose slope at 0 is infinite. */
static lw_val unit_rows(lw_graph *g, lw_val x)
{
    lw_val square = lw_sum(g, lw_sqr(g, x), LW_OVER_LAST);
    lw_val length = lw_ew1(g, LW_EW_sqrt, lw_ew2(g, LW_EW_max, square, lw_const_f32(g, 1e-24f)));
    return lw_div(g, x, lw_broadcast(g, length, lw_val_type(g, x)));
}

/* [R,1,C] -> [R,C] */
static lw_val as_rows(lw_graph *g, lw_val x)
{
    lw_type t = lw_val_type(g, x);
    return lw_val_ok(x) ? lw_reshape(g, x, lw_type_of(LW_F32, 2, t.dim[0], lw_type_last(t))) : x;
}

static lw_val first_of_head(lw_builder *b, const lw_policy_config *c, lw_val body)
{
    return lw_relu(
        b->g, lw_policy_linear(b, "policy_head.out_transform.0", body, c->hidden, POLICY_GAIN));
}

lw_val lw_policy_head(lw_builder *b, const lw_policy_config *c, lw_val body)
{
    lw_val h = first_of_head(b, c, body);
    lw_val f = lw_policy_linear(b, "policy_head.out_transform.2", h, c->embed, POLICY_GAIN);
    f = as_rows(b->g, f);
    return c->l2_norm && lw_val_ok(f) ? unit_rows(b->g, f) : f;
}

lw_val lw_policy_value(lw_builder *b, const lw_policy_config *c, lw_val body)
{
    int32_t half = LW_MAX(c->hidden / 2, 1);
    body = as_rows(b->g, body);
    lw_val h = lw_relu(b->g, lw_policy_linear(b, "value_head.output_layer.0", body, half, 1.0));
    return lw_policy_linear(b, "value_head.output_layer.2", h, 1, 1.0);
}

float lw_policy_logit_scale(const lw_policy_config *c)
{
    double s = c->sqrt_scale ? 1.0 / sqrt((double)c->embed) : 1.0;
    return (float)(c->temperature > 0 ? s / (double)c->temperature : s);
}

int32_t lw_policy_key_width(const lw_policy_config *c)
{
    return c->l2_norm ? c->embed : c->hidden;
}

lw_val lw_policy_key(lw_builder *b, const lw_policy_config *c, lw_val body)
{
    return c->l2_norm ? lw_policy_head(b, c, body) : as_rows(b->g, first_of_head(b, c, body));
}

lw_val lw_policy_query(lw_builder *b, const lw_policy_config *c, lw_val key)
{
    lw_graph *g = b->g;
    float s = lw_policy_logit_scale(c);
    if (!lw_val_ok(key) || c->l2_norm)
        return lw_val_ok(key) ? lw_scale(g, key, s) : key;
    const char *up = lw_scope_push(g, "policy_head.out_transform.2");
    lw_val w = lw_policy_weight(b, c->hidden, c->embed, POLICY_GAIN);
    lw_val bias = lw_reshape(g, lw_policy_bias(b, c->embed), lw_type_of(LW_F32, 2, 1, c->embed));
    lw_scope_set(g, up);
    lw_val square = lw_scale(g, lw_matmul(g, w, w, true, false), s); /* symmetric [H,H] */
    lw_val shift = lw_scale(g, lw_matmul(g, bias, w, false, false), s);
    return lw_linear_op(g, key, square, lw_reshape(g, shift, lw_type_of(LW_F32, 1, c->hidden)));
}

int lw_policy_declare(const lw_policy_config *c, lw_store *s)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_policy_check(c));
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_policy_in in = {
        .predicates = lw_input(g, "predicates", lw_type_of(LW_I32, 2, 1, c->max_atoms)),
        .arguments = lw_input(g, "arguments", lw_type_of(LW_I32, 2, 1, 2 * c->max_atoms)),
        .scale = lw_input(g, "scale", lw_type_of(LW_F32, 1, 1))};
    lw_val body = lw_policy_body(&b, c, in);
    lw_policy_head(&b, c, body);
    lw_policy_value(&b, c, body);
    LW_TRY(lw_graph_error(g));
    return lw_store_fix(s);
}
