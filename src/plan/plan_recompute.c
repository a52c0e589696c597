/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute: values of the forward pass that are cheap to make are made again where the backward
 * pass first reads them, instead of being stored in between. Input: the finished graph of forward
 * and backward pass, behind all other rewriting, so that nothing else changes and every bit stays.
 *
 * The rule, in graph order. A value can be had again when its op is cheap (normalisation with its
 * activation, elementwise programs, dropout, moving elements) and everything it reads can be had:
 * parameters and what follows from them, inputs, values stored for the backward pass anyway, values
 * that can be had again. If something is missing, it is stored instead, provided that it is
 * smaller (the two halves of a concatenation, one of which is stored anyway). All else that the
 * backward pass reads is stored, as are small values.
 */
#include "plan/plan_pass.h"

#include <string.h>

enum { SMALL = 1024 }; /* bytes that are not worth a step */

typedef struct recompute {
    const lw_graph *g;
    bool *params_only; /* per node */
    bool *wanted;      /* per value: read by the backward pass */
    bool *at_hand;     /* per value: stored, or can be had again */
    bool *again;       /* per value: made again */
    lw_val *copy;      /* per value: what the backward pass reads, once made */
} recompute;

static size_t bytes_of(const recompute *s, lw_val v)
{
    return lw_type_bytes(lw_val_type(s->g, v));
}

/* A view is wanted: so is what it looks at. An output stays for ever: it is at hand. */
static void mark_wanted(recompute *s)
{
    for (uint32_t k = lw_graph_node_count(s->g); k-- > 0;) {
        const lw_node *n = lw_graph_node(s->g, k);
        for (int i = 0; i < n->n_in; i++)
            s->wanted[n->in[i].id] |= n->backward ||
                                      (lw_node_is(n, LW_OPF_ALIAS) && s->wanted[n->out[0].id]);
    }
    for (int i = 0; i < lw_graph_output_count(s->g); i++) {
        lw_val v = lw_graph_output_at(s->g, i)->val;
        for (s->at_hand[v.id] = true; lw_node_is(lw_val_node(s->g, v), LW_OPF_ALIAS);
             s->at_hand[v.id] = true)
            v = lw_val_node(s->g, v)->in[0];
    }
}

/* Bytes that n reads and that are not at hand. */
static size_t missing(const recompute *s, const lw_node *n)
{
    size_t bytes = 0;
    for (int i = 0; i < n->n_in; i++)
        if (lw_val_ok(n->in[i]) && !s->at_hand[n->in[i].id])
            bytes += bytes_of(s, n->in[i]);
    return bytes;
}

static void decide(recompute *s, const lw_node *n)
{
    lw_val v = n->out[0];
    for (int i = 1; i < n->n_out; i++)
        s->at_hand[n->out[i].id] = true; /* statistics: small */
    if (s->at_hand[v.id])
        return;
    if (lw_node_is(n, LW_OPF_ALIAS)) {
        s->at_hand[v.id] = s->at_hand[n->in[0].id];
        s->again[v.id] = s->again[n->in[0].id];
        return;
    }
    size_t lacks = missing(s, n);
    bool small = bytes_of(s, v) < SMALL && s->wanted[v.id];
    s->again[v.id] = lw_node_is(n, LW_OPF_CHEAP) && !small &&
                     (!lacks || (s->wanted[v.id] && lacks < bytes_of(s, v)));
    s->at_hand[v.id] = s->again[v.id] || s->wanted[v.id];
    for (int i = 0; s->again[v.id] && i < n->n_in; i++)
        s->at_hand[n->in[i].id] = true;
}

static void analyse(recompute *s)
{
    lw_plan_mark_params_only(s->g, s->params_only);
    mark_wanted(s);
    for (uint32_t k = 0; k < lw_graph_node_count(s->g); k++) {
        const lw_node *n = lw_graph_node(s->g, k);
        if (lw_node_is(n, LW_OPF_LEAF) || s->params_only[k])
            for (int i = 0; i < n->n_out; i++)
                s->at_hand[n->out[i].id] = true;
        else if (!n->backward)
            decide(s, n);
    }
}

/* What the backward pass reads for v: a copy of its producer (and of what that reads), or v. */
static lw_val had(lw_rewrite *r, recompute *s, lw_val v)
{
    if (!lw_val_ok(v) || !s->again[v.id])
        return lw_rewrite_map(r, v);
    if (lw_val_ok(s->copy[v.id]))
        return s->copy[v.id];
    const lw_node *n = lw_val_node(s->g, v);
    lw_val in[LW_MAX_IN];
    for (int i = 0; i < n->n_in; i++)
        in[i] = had(r, s, n->in[i]);
    const char *up = lw_scope_set(r->to, lw_scope_name(r->to, n->scope));
    s->copy[v.id] = lw_graph_op(r->to, n->op, in, n->n_in, n->attr, n->attr_size);
    lw_scope_set(r->to, up);
    return s->copy[v.id];
}

static int recompute_node(lw_rewrite *r, const lw_node *n, void *arg)
{
    recompute *s = arg;
    if (!n->backward || lw_node_is(n, LW_OPF_LEAF))
        return lw_rewrite_copy(r, n, NULL);
    lw_val in[LW_MAX_IN];
    for (int i = 0; i < n->n_in; i++)
        in[i] = had(r, s, n->in[i]);
    return lw_rewrite_emit(r, n, n->op, in, n->n_in, n->attr, n->attr_size);
}

static int run(lw_graph **g, lw_device *dev, recompute *s)
{
    size_t nodes = lw_graph_node_count(*g) + 1u, vals = lw_graph_val_count(*g) + 1u;
    s->g = *g;
    s->params_only = lw_calloc(nodes, sizeof *s->params_only);
    s->wanted = lw_calloc(vals, sizeof *s->wanted);
    s->at_hand = lw_calloc(vals, sizeof *s->at_hand);
    s->again = lw_calloc(vals, sizeof *s->again);
    s->copy = lw_calloc(vals, sizeof *s->copy);
    if (!s->params_only || !s->wanted || !s->at_hand || !s->again || !s->copy)
        return LW_ENOMEM;
    analyse(s);
    return lw_rewrite_graph(g, dev, recompute_node, s);
}

int lw_pass_recompute(lw_graph **g, lw_device *dev, const lw_compile_opts *o)
{
    (void)o;
    recompute s = {0};
    LW_TRY(lw_rewrite_graph(g, dev, lw_rewrite_copy, NULL)); /* what is dead wants nothing */
    int rc = run(g, dev, &s);
    lw_free(&s.params_only);
    lw_free(&s.wanted);
    lw_free(&s.at_hand);
    lw_free(&s.again);
    lw_free(&s.copy);
    return rc;
}
