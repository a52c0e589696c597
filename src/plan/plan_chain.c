/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain: convolutions around a depthwise one become one op, which computes them strip by strip, so
 * that what they hand on stays in one worker's cache.
 *
 *   y = project(depthwise(expand(x))) (+ residual)    ->    y = conv_chain(x, residual, weights ..)
 *
 * Input: a fused graph with packed weights. The values between are read by nothing else, and the
 * device says that it pays. An element's sum is the same chain of operations: no bit changes.
 */
#include "plan/plan_pass.h"

enum { W = 1, BIAS = 2, RESIDUAL = 3 }; /* inputs of both kinds of convolution */

typedef struct chains {
    const lw_node **reader; /* by old value id: the only node that reads it, or NULL */
    const lw_node **last;   /* by old node index: the end of the chain it is in */
    lw_attr_conv_chain attr;
    const lw_node *node[LW_CHAIN_MAX];
} chains;

static bool is_stage(const lw_graph *g, const lw_node *n)
{
    if (n->op != LW_OP_CONV2D && n->op != LW_OP_DEPTHWISE)
        return false;
    for (int i = RESIDUAL + 1; i < n->n_in; i++)
        if (lw_val_ok(n->in[i]))
            return false;
    return lw_val_type(g, n->in[0]).dtype == LW_F32 && lw_val_node(g, n->in[W])->op == LW_OP_PACK;
}

static bool has_residual(const lw_node *n)
{
    return n->n_in > RESIDUAL && lw_val_ok(n->in[RESIDUAL]);
}

/* The convolution that alone reads, as its picture, what n makes; n adds nothing. */
static const lw_node *next_stage(const lw_rewrite *r, const chains *c, const lw_node *n)
{
    const lw_node *to = c->reader[n->out[0].id];
    bool alone = to && r->uses[n->out[0].id] == 1 && to->in[0].id == n->out[0].id;
    return alone && !has_residual(n) && is_stage(r->from, to) ? to : NULL;
}

static void add_stage(chains *c, const lw_node *n)
{
    c->attr.depthwise[c->attr.n] = n->op == LW_OP_DEPTHWISE;
    c->attr.stage[c->attr.n] = *(const lw_attr_conv *)n->attr;
    c->node[c->attr.n++] = n;
}

/* The stages around depthwise node d: one before, if d alone reads it, and one behind. */
static void find_chain(const lw_rewrite *r, chains *c, const lw_node *d)
{
    const lw_node *before = lw_val_node(r->from, d->in[0]), *behind = next_stage(r, c, d);
    bool expanded = is_stage(r->from, before) && !c->last[before->index] &&
                    next_stage(r, c, before) == d;
    c->attr = (lw_attr_conv_chain){0};
    if (expanded)
        add_stage(c, before);
    add_stage(c, d);
    if (behind)
        add_stage(c, behind);
    if (c->attr.n < 2 ||
        !r->dev->chain(r->dev->self, &c->attr, lw_val_type(r->from, d->in[0]).dim[0]))
        return;
    for (int i = 0; i < c->attr.n; i++)
        c->last[c->node[i]->index] = c->node[c->attr.n - 1];
}

static int find_all(lw_rewrite *r, chains *c)
{
    const lw_graph *g = r->from;
    uint32_t nodes = lw_graph_node_count(g);
    c->reader = lw_calloc(lw_graph_val_count(g) + 1u, sizeof(void *));
    c->last = lw_calloc(nodes + 1u, sizeof(void *));
    if (!c->reader || !c->last)
        return LW_ENOMEM;
    for (uint32_t k = 0; k < nodes; k++)
        for (int i = 0; r->live[k] && i < lw_graph_node(g, k)->n_in; i++)
            c->reader[lw_graph_node(g, k)->in[i].id] = lw_graph_node(g, k);
    for (uint32_t k = 0; k < nodes; k++) {
        const lw_node *n = lw_graph_node(g, k);
        if (r->live[k] && n->op == LW_OP_DEPTHWISE && is_stage(g, n) && !c->last[k])
            find_chain(r, c, n);
    }
    return 0;
}

/* Emits the chain that ends with n. */
static int emit_chain(lw_rewrite *r, chains *c, const lw_node *n)
{
    lw_val in[LW_MAX_IN] = {{0}};
    const lw_node *stage = n;
    c->attr = (lw_attr_conv_chain){0};
    while (lw_val_ok(stage->in[0]) && c->last[lw_val_node(r->from, stage->in[0])->index] == n)
        stage = lw_val_node(r->from, stage->in[0]);
    in[0] = lw_rewrite_map(r, stage->in[0]);
    if (has_residual(n))
        in[1] = lw_rewrite_map(r, n->in[RESIDUAL]);
    for (;; stage = c->reader[stage->out[0].id]) {
        int i = c->attr.n;
        add_stage(c, stage);
        in[2 + 2 * i] = lw_rewrite_map(r, stage->in[W]);
        if (stage->n_in > BIAS)
            in[3 + 2 * i] = lw_rewrite_map(r, stage->in[BIAS]);
        if (stage == n)
            break;
    }
    return lw_rewrite_emit(r, n, LW_OP_CONV_CHAIN, in, 2 + 2 * c->attr.n, &c->attr, sizeof c->attr);
}

static int chain_node(lw_rewrite *r, const lw_node *n, void *arg)
{
    chains *c = arg;
    if (!c->last)
        LW_TRY(find_all(r, c));
    if (!c->last[n->index])
        return lw_rewrite_copy(r, n, NULL);
    return c->last[n->index] == n ? emit_chain(r, c, n) : 0;
}

int lw_pass_chain(lw_graph **g, lw_device *dev, const lw_compile_opts *o)
{
    (void)o;
    if (!dev->chain)
        return 0;
    chains c = {0};
    int rc = lw_rewrite_graph(g, dev, chain_node, &c);
    lw_free(&c.reader);
    lw_free(&c.last);
    return rc;
}
