/* SPDX-License-Identifier: Apache-2.0 */
/* Scoped parameters and the parametrised layers every model is made of. */
#include "ir/ir.h"

#include <math.h>
#include <string.h>

/* A parameter named twice is one value, so that its gradients meet. */
static lw_val find_param(const lw_graph *g, const lw_params *params, int32_t index)
{
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *n = lw_graph_node(g, i);
        const lw_attr_param *a = n->attr;
        if (n->op == LW_OP_PARAM && a->params == params && a->index == index)
            return n->out[0];
    }
    return LW_NOVAL;
}

lw_val lw_param(lw_builder *b, const char *name, lw_type type, lw_init init)
{
    lw_graph *g = b->g;
    lw_attr_param a = {.name = lw_scope_name(g, name),
                       .params = b->params,
                       .type = type,
                       .frozen = b->params->frozen};
    if (lw_graph_error(g) < 0)
        return LW_NOVAL;
    int rc = b->params->declare(b->params->self, a.name, type, init, &a.index);
    if (rc < 0)
        return lw_graph_fail(g, rc, "%s", lw_errmsg());
    lw_val seen = find_param(g, a.params, a.index);
    if (lw_val_ok(seen))
        return seen;
    return lw_graph_op(g, LW_OP_PARAM, NULL, 0, &a, sizeof a);
}

/* PyTorch's default for Linear and Conv2d: uniform in +-1/sqrt(fan in), weight and bias alike. */
static lw_init default_init(int64_t fan_in)
{
    return (lw_init){LW_INIT_UNIFORM, (float)(1.0 / sqrt((double)fan_in))};
}

lw_val lw_layer_done(lw_builder *b, const char *name, lw_val before, lw_val y)
{
    if (!b->hook || !lw_val_ok(y))
        return y;
    const char *up = name[0] ? lw_scope_push(b->g, name) : lw_scope(b->g);
    const char *part = strchr(lw_scope(b->g), ':');
    y = b->hook->output(b->hook->self, b, part ? part + 1 : lw_scope(b->g), before, y);
    lw_scope_set(b->g, up);
    return y;
}

lw_val lw_linear(lw_builder *b, const char *name, lw_val x, int out, bool bias)
{
    if (!lw_val_ok(x))
        return x;
    int32_t in = lw_type_last(lw_val_type(b->g, x));
    const char *up = lw_scope_push(b->g, name);
    lw_val w = lw_param(b, "weight", lw_type_of(LW_F32, 2, out, in), default_init(in));
    lw_val c = bias ? lw_param(b, "bias", lw_type_of(LW_F32, 1, out), default_init(in)) : LW_NOVAL;
    lw_val y = lw_linear_op(b->g, x, w, c);
    lw_scope_set(b->g, up);
    return lw_layer_done(b, name, LW_NOVAL, y);
}

lw_val lw_conv2d(lw_builder *b, const char *name, lw_val x, int out, lw_conv_opts o)
{
    if (!lw_val_ok(x))
        return x;
    int32_t c = lw_type_last(lw_val_type(b->g, x)), k = o.kernel;
    lw_init init = o.zero_init ? (lw_init){0} : default_init((int64_t)c * k * k);
    const char *up = lw_scope_push(b->g, name);
    lw_val w = lw_param(b, "weight", lw_type_of(LW_F32, 4, out, k, k, c), init);
    lw_val bias = o.no_bias ? LW_NOVAL : lw_param(b, "bias", lw_type_of(LW_F32, 1, out), init);
    const int end = o.pad + o.pad_end, pad[4] = {o.pad, o.pad, end, end};
    lw_val y = lw_conv2d_pad(b->g, x, w, bias, o.stride ? o.stride : 1, pad);
    lw_scope_set(b->g, up);
    return y;
}

/* weight and bias of a norm of C channels */
static lw_val norm_param(lw_builder *b, const char *name, lw_val x, lw_init_kind kind)
{
    lw_type c = lw_type_of(LW_F32, 1, lw_type_last(lw_val_type(b->g, x)));
    return lw_param(b, name, c, (lw_init){kind, 0});
}

lw_val lw_group_norm(lw_builder *b, const char *name, lw_val x, lw_norm_opts o)
{
    if (!lw_val_ok(x))
        return x;
    const char *up = lw_scope_push(b->g, name);
    lw_val gamma = norm_param(b, "weight", x, LW_INIT_ONES);
    lw_val beta = norm_param(b, "bias", x, LW_INIT_ZEROS);
    lw_val y = lw_group_norm_op(b->g, x, gamma, beta, o.scale, o.shift, o.groups,
                                o.eps > 0 ? o.eps : 1e-5f, o.act);
    lw_scope_set(b->g, up);
    return y;
}

lw_val lw_layer_norm(lw_builder *b, const char *name, lw_val x, float eps, lw_val residual)
{
    if (!lw_val_ok(x))
        return x;
    const char *up = lw_scope_push(b->g, name);
    lw_val gamma = norm_param(b, "weight", x, LW_INIT_ONES);
    lw_val beta = norm_param(b, "bias", x, LW_INIT_ZEROS);
    lw_val y = lw_layer_norm_op(b->g, x, gamma, beta, residual, eps > 0 ? eps : 1e-5f);
    lw_scope_set(b->g, up);
    return y;
}
