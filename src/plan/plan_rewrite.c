/* SPDX-License-Identifier: Apache-2.0 */
/* The machinery of every rewriting pass: copy the live part of a graph, node by node, through a
 * rule. */
#include "plan/plan_pass.h"

#include <string.h>

lw_val lw_rewrite_map(const lw_rewrite *r, lw_val v)
{
    return lw_val_ok(v) ? r->map[v.id] : v;
}

const char *lw_rewrite_scope(lw_rewrite *r, const lw_node *n)
{
    const char *scope = lw_arena_strdup(lw_graph_arena(r->to), n->scope);
    return lw_scope_set(r->to, scope ? scope : "");
}

int lw_rewrite_emit(lw_rewrite *r, const lw_node *n, lw_op op, const lw_val *in, int n_in,
                    const void *attr, size_t attr_size)
{
    const char *up = lw_rewrite_scope(r, n);
    lw_node *m = lw_graph_add(r->to, op, in, n_in, attr, attr_size);
    lw_scope_set(r->to, up);
    if (!m)
        return lw_graph_error(r->to);
    for (int i = 0; i < n->n_out && i < m->n_out; i++)
        r->map[n->out[i].id] = m->out[i];
    return 0;
}

static int copy_leaf(lw_rewrite *r, const lw_node *n)
{
    lw_val v = lw_graph_copy_leaf(r->to, n);
    r->map[n->out[0].id] = v;
    return lw_val_ok(v) ? 0 : lw_graph_error(r->to);
}

lw_val lw_rewrite_shared(lw_rewrite *r, lw_op op, lw_val in, const void *attr, size_t attr_size)
{
    const bool backward = lw_graph_backward(r->to, false);
    lw_graph_backward(r->to, backward);
    for (uint32_t i = 0; i < lw_graph_node_count(r->to); i++) {
        const lw_node *n = lw_graph_node(r->to, i);
        if ((backward || !n->backward) && n->op == op && n->in[0].id == in.id &&
            n->attr_size == attr_size && (!attr_size || memcmp(n->attr, attr, attr_size) == 0))
            return n->out[0];
    }
    return lw_graph_op(r->to, op, &in, 1, attr, attr_size);
}

/* In pairs, so that little is copied twice. */
lw_val lw_rewrite_join(lw_graph *g, lw_val *part, int n)
{
    for (; n > 1; n = (n + 1) / 2)
        for (int i = 0; i < (n + 1) / 2; i++)
            part[i] = 2 * i + 1 < n ? lw_concat(g, part[2 * i], part[2 * i + 1], 0) : part[2 * i];
    return part[0];
}

int lw_rewrite_copy(lw_rewrite *r, const lw_node *n, void *arg)
{
    (void)arg;
    if (lw_node_is(n, LW_OPF_LEAF))
        return copy_leaf(r, n);
    lw_val in[LW_MAX_IN];
    for (int i = 0; i < n->n_in; i++)
        in[i] = lw_rewrite_map(r, n->in[i]);
    return lw_rewrite_emit(r, n, n->op, in, n->n_in, n->attr, n->attr_size);
}

/* Reverse sweep: a node is live when an output or a live node reads it; inputs always are. */
static void mark_live(lw_rewrite *r)
{
    const lw_graph *g = r->from;
    for (int i = 0; i < lw_graph_output_count(g); i++) {
        const lw_graph_output *o = lw_graph_output_at(g, i);
        r->uses[o->val.id]++;
        if (lw_val_ok(o->into)) /* what it goes into stays, even where no step reads it */
            r->uses[o->into.id]++;
    }
    for (uint32_t k = lw_graph_node_count(g); k-- > 0;) {
        const lw_node *n = lw_graph_node(g, k);
        bool live = n->op == LW_OP_INPUT;
        for (int i = 0; i < n->n_out; i++)
            live |= r->uses[n->out[i].id] > 0;
        r->live[k] = live;
        for (int i = 0; live && i < n->n_in; i++)
            r->uses[n->in[i].id]++;
    }
}

static int run_rewrite(lw_rewrite *r, lw_rewrite_fn *fn, void *arg)
{
    const lw_graph *g = r->from;
    r->map = lw_calloc(lw_graph_val_count(g) + 1u, sizeof *r->map);
    r->uses = lw_calloc(lw_graph_val_count(g) + 1u, sizeof *r->uses);
    r->live = lw_calloc(lw_graph_node_count(g) + 1u, sizeof *r->live);
    if (!r->map || !r->uses || !r->live)
        return LW_ENOMEM;
    mark_live(r);
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++) {
        lw_graph_backward(r->to, lw_graph_node(g, k)->backward);
        if (r->live[k])
            LW_TRY(fn(r, lw_graph_node(g, k), arg));
    }
    lw_graph_backward(r->to, false);
    for (int i = 0; i < lw_graph_output_count(g); i++) {
        const lw_graph_output *o = lw_graph_output_at(g, i);
        lw_graph_output_add(r->to, o->name, lw_rewrite_map(r, o->val), lw_rewrite_map(r, o->into));
    }
    return lw_graph_error(r->to);
}

int lw_rewrite_from(const lw_graph *from, lw_device *dev, lw_rewrite_fn *fn, void *arg,
                    lw_graph **out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *to = NULL;
    LW_TRY(lw_graph_new(&to));
    lw_rewrite r = {.from = from, .to = to, .dev = dev};
    int rc = run_rewrite(&r, fn, arg);
    lw_free(&r.map);
    lw_free(&r.uses);
    lw_free(&r.live);
    if (rc < 0)
        return rc;
    *out = lw_steal(&to);
    return 0;
}

int lw_rewrite_graph(lw_graph **g, lw_device *dev, lw_rewrite_fn *fn, void *arg)
{
    lw_graph *to = NULL;
    LW_TRY(lw_rewrite_from(*g, dev, fn, arg, &to));
    lw_graph_free(g);
    *g = to;
    return 0;
}

void lw_plan_mark_params_only(const lw_graph *g, bool *mark)
{
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++) {
        const lw_node *n = lw_graph_node(g, k);
        bool yes = !lw_node_is(n, LW_OPF_VARIES);
        for (int i = 0; i < n->n_in && yes; i++)
            yes = !lw_val_ok(n->in[i]) || mark[lw_val_node(g, n->in[i])->index];
        mark[k] = yes;
    }
}

bool *lw_plan_params_only(const lw_graph *g)
{
    bool *mark = lw_calloc(lw_graph_node_count(g) + 1u, sizeof *mark);
    if (mark)
        lw_plan_mark_params_only(g, mark);
    return mark;
}

int lw_rewrite_params_only(lw_graph **g, lw_device *dev, lw_rewrite_fn *fn)
{
    LW_CLEANUP(lw_free) bool *params_only = lw_plan_params_only(*g);
    return params_only ? lw_rewrite_graph(g, dev, fn, params_only) : LW_ENOMEM;
}

bool lw_plan_has_gradients(const lw_graph *g)
{
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++)
        if (lw_graph_node(g, k)->backward)
            return true;
    return false;
}
