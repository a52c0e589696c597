/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reverse mode as VJP: appends gradient nodes behind the graph. Input: a forward graph. Output: the
 * same graph, longer. Keeps every existing value; only walks nodes between the wanted leaves and
 * the results.
 */
#include "plan/plan.h"

#include <string.h>

typedef struct grad_state {
    lw_graph *g;
    uint32_t n_vals;
    lw_val *cot; /* cotangent per value id, built so far */
    bool *reach; /* the value depends on a wanted leaf */
} grad_state;

static void accumulate(grad_state *s, lw_val v, lw_val d)
{
    if (!lw_val_ok(d))
        return;
    s->cot[v.id] = lw_val_ok(s->cot[v.id]) ? lw_add(s->g, s->cot[v.id], d) : d;
}

static void mark_reach(grad_state *s, uint32_t n_nodes)
{
    for (uint32_t i = 0; i < n_nodes; i++) {
        const lw_node *n = lw_graph_node(s->g, i);
        bool any = false;
        for (int k = 0; k < n->n_in; k++)
            any |= lw_val_ok(n->in[k]) && s->reach[n->in[k].id];
        for (int k = 0; any && k < n->n_out; k++)
            s->reach[n->out[k].id] = true;
    }
}

static void backward_node(grad_state *s, const lw_node *n)
{
    lw_val dout[LW_MAX_OUT] = {{0}}, din[LW_MAX_IN] = {{0}};
    bool need[LW_MAX_IN] = {false}, any_out = false, any_in = false;
    for (int i = 0; i < n->n_out; i++) {
        dout[i] = s->cot[n->out[i].id];
        any_out |= lw_val_ok(dout[i]);
    }
    for (int i = 0; i < n->n_in; i++) {
        need[i] = lw_val_ok(n->in[i]) && s->reach[n->in[i].id];
        any_in |= need[i];
    }
    if (!any_out || !any_in)
        return;
    const char *up = lw_scope_set(s->g, n->scope);
    lw_op_get(n->op)->grad(s->g, n, dout, need, din);
    for (int i = 0; i < n->n_in; i++)
        if (need[i])
            accumulate(s, n->in[i], din[i]);
    lw_scope_set(s->g, up);
}

void lw_grad(lw_graph *g, const lw_val *y, const lw_val *dy, int n_y, const lw_val *wrt,
             lw_val *din, int n_wrt)
{
    for (int i = 0; i < n_wrt; i++)
        din[i] = LW_NOVAL;
    if (lw_graph_error(g) < 0)
        return;
    uint32_t n_nodes = lw_graph_node_count(g);
    bool was = lw_graph_backward(g, true);
    grad_state s = {.g = g, .n_vals = lw_graph_val_count(g)};
    s.cot = lw_calloc(s.n_vals + 1, sizeof *s.cot);
    s.reach = lw_calloc(s.n_vals + 1, sizeof *s.reach);
    if (!s.cot || !s.reach) {
        lw_graph_fail(g, LW_ENOMEM, "%s", lw_errmsg());
    } else {
        for (int i = 0; i < n_wrt; i++)
            s.reach[wrt[i].id] = true;
        mark_reach(&s, n_nodes);
        for (int i = 0; i < n_y; i++)
            accumulate(&s, y[i], dy[i]);
        for (uint32_t i = n_nodes; i-- > 0 && lw_graph_error(g) == 0;)
            backward_node(&s, lw_graph_node(g, i));
        for (int i = 0; i < n_wrt; i++)
            din[i] = s.cot[wrt[i].id];
    }
    lw_free(&s.cot);
    lw_free(&s.reach);
    lw_graph_backward(g, was);
}

int lw_grad_params_of(lw_graph *g, const lw_val *y, const lw_val *dy, int n_y)
{
    LW_TRY(lw_graph_error(g));
    uint32_t n_nodes = lw_graph_node_count(g);
    lw_val *wrt = lw_calloc(n_nodes + 1, sizeof *wrt), *din = lw_calloc(n_nodes + 1, sizeof *din);
    int n = 0;
    for (uint32_t i = 0; wrt && din && i < n_nodes; i++) {
        const lw_node *node = lw_graph_node(g, i);
        const lw_attr_param *a = lw_node_param(node);
        if (a && !a->frozen)
            wrt[n++] = node->out[0];
    }
    int rc = wrt && din ? 0 : LW_ENOMEM;
    if (rc == 0) {
        lw_grad(g, y, dy, n_y, wrt, din, n);
        for (int i = 0; i < n; i++) {
            const lw_attr_param *a = lw_val_node(g, wrt[i])->attr;
            lw_val d = lw_val_ok(din[i]) ? din[i] : lw_zeros(g, a->type);
            lw_str name = {0};
            lw_str_addf(&name, "grad/%s", a->name);
            lw_graph_output_add(g, lw_str_c(&name), d, wrt[i]);
            lw_str_clear(&name);
        }
        rc = lw_graph_error(g);
    }
    lw_free(&wrt);
    lw_free(&din);
    return rc;
}

int lw_grad_params(lw_graph *g, lw_val loss, lw_val seed)
{
    LW_TRY(lw_graph_error(g));
    if (!lw_val_ok(seed))
        seed = lw_broadcast(g, lw_const_f32(g, 1.0f), lw_val_type(g, loss));
    return lw_grad_params_of(g, &loss, &seed, 1);
}
