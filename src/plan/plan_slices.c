/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slices: the wide layers at the beginning of a network of pictures are computed a few pictures at a
 * time, so that what one layer writes is still in the cache when the next reads it.
 *
 *   y = f3(f2(f1(x)))            y = concat over slices s of f3(f2(f1(x[s])))
 *
 * Input: a fused forward graph with packed weights. Only ops that treat every picture alone, from
 * the first on, up to where values have become small; weights are read by all slices. A picture's
 * bits do not depend on its batch, so none change; the cut depends on the batch, as speed does.
 */
#include "plan/plan_pass.h"

#include <string.h>

enum {
    MIN_NODES = 6, /* fewer are not worth two copies */
    MAX_NODES = 256,
    LOOK_AHEAD = 4 /* nodes behind the last large one among which the cut is made */
};

typedef struct slices {
    const bool *params_only;
    const lw_node *node[MAX_NODES]; /* the beginning, in order */
    int n;                          /* of them: 0, nothing is to be sliced */
    lw_val x;                       /* what the first reads */
    int32_t batch, images;          /* of all, of a slice */
    bool *inside;                   /* by old value id: made by one of them, or x */
    bool emitted;
} slices;

/* ---- which nodes ----------------------------------------------------------------------------- */

static int64_t value_bytes(const lw_graph *g, lw_val v)
{
    return (int64_t)lw_type_bytes(lw_val_type(g, v));
}

/* May operand i be what one of the nodes made? Not what is one row a picture beside it. */
static bool takes_pictures(const lw_node *n, int i)
{
    if (n->op == LW_OP_EW)
        return ((const lw_attr_ew *)n->attr)->mode[i] == LW_EW_FULL;
    return i == 0 || (i == 3 && (n->op == LW_OP_CONV2D || n->op == LW_OP_DEPTHWISE)) ||
           (i == 1 && n->op == LW_OP_CONV_CHAIN);
}

/* Operands are pictures of the beginning, or prepared and the same for all pictures. */
static bool picture_by_picture(const lw_graph *g, const lw_node *n, const slices *s)
{
    bool any = false;
    if (n->op != LW_OP_CONV2D && n->op != LW_OP_DEPTHWISE && n->op != LW_OP_EW &&
        n->op != LW_OP_POOL && n->op != LW_OP_CAST && n->op != LW_OP_CONV_CHAIN &&
        n->op != LW_OP_RESIZE)
        return false;
    for (int i = 0; i < n->n_in; i++) {
        lw_val v = n->in[i];
        if (!lw_val_ok(v))
            continue;
        if (s->inside[v.id] != takes_pictures(n, i))
            return false;
        if (n->op == LW_OP_EW && ((const lw_attr_ew *)n->attr)->mode[i] >= LW_EW_BATCH)
            return false; /* as many rows as there are pictures */
        if (!s->inside[v.id] && !s->params_only[lw_val_node(g, v)->index])
            return false;
        any |= s->inside[v.id];
    }
    return any && n->n_out == 1 && lw_val_type(g, n->out[0]).dim[0] == s->batch;
}

static bool is_inference(const lw_graph *g)
{
    for (int i = 0; i < lw_graph_output_count(g); i++)
        if (lw_val_ok(lw_graph_output_at(g, i)->into))
            return false;
    return !lw_plan_has_gradients(g);
}

/* Is what node i makes read by others than the first n nodes, or by the caller? */
static bool crosses(const slices *s, int i, int n, const uint32_t *uses)
{
    lw_val v = s->node[i]->out[0];
    uint32_t here = 0;
    for (int k = i + 1; k < n; k++)
        for (int j = 0; j < s->node[k]->n_in; j++)
            here += s->node[k]->in[j].id == v.id;
    return here < uses[v.id];
}

/* Bytes of the values that the first n nodes make and others, or the caller, read; INT64_MAX where
 * one of them is narrow, which cannot be joined. */
static int64_t crossing_bytes(const lw_graph *g, const slices *s, int n, const uint32_t *uses)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        if (!crosses(s, i, n, uses))
            continue;
        if (lw_val_type(g, s->node[i]->out[0]).dtype != LW_F32)
            return INT64_MAX;
        bytes += value_bytes(g, s->node[i]->out[0]);
    }
    return bytes;
}

/* Cuts behind the last large step, where least crosses; images of a slice: its widest step takes a
 * fifth of what is near, because the next one reads what it wrote, and residuals wait. */
static void cut(const lw_graph *g, slices *s, const uint32_t *uses, int64_t near_all)
{
    int large = 0, all = s->n;
    int64_t most = 0, least = INT64_MAX;
    for (int i = 0; i < all; i++) {
        int64_t bytes = value_bytes(g, s->node[i]->out[0]) + value_bytes(g, s->node[i]->in[0]);
        most = LW_MAX(most, bytes);
        large = bytes > near_all / 2 ? i + 1 : large; /* beyond, they leave the cache */
    }
    s->n = 0;
    for (int n = large; large >= MIN_NODES && n < LW_MIN(all, large + LOOK_AHEAD); n++) {
        int64_t bytes = crossing_bytes(g, s, n, uses);
        s->n = bytes < least ? n : s->n;
        least = LW_MIN(least, bytes);
    }
    s->images = (int32_t)LW_MAX(near_all / 16 * 3 / (most / s->batch), 1);
}

static void find_beginning(const lw_rewrite *r, slices *s)
{
    const lw_graph *g = r->from;
    if (!is_inference(g) || r->dev->near_all == 0)
        return;
    for (uint32_t k = 0; k < lw_graph_node_count(g) && s->n < MAX_NODES; k++) {
        const lw_node *n = lw_graph_node(g, k);
        if (!r->live[k] || lw_node_is(n, LW_OPF_LEAF) || s->params_only[k])
            continue;
        if (!lw_val_ok(s->x) && n->n_in > 0 && lw_val_type(g, n->in[0]).rank == 4) {
            s->x = n->in[0];
            s->batch = lw_val_type(g, s->x).dim[0];
            s->inside[s->x.id] = true;
        }
        if (!lw_val_ok(s->x) || s->batch < 2 || !picture_by_picture(g, n, s))
            break;
        s->node[s->n++] = n;
        s->inside[n->out[0].id] = true;
    }
    if (s->n > 0)
        cut(g, s, r->uses, r->dev->near_all);
}

/* ---- rewriting ------------------------------------------------------------------------------- */

/* Node n of the slice with `images` pictures; made[i]: what node i of it is. */
static lw_val emit_node(lw_rewrite *r, const slices *s, int n, const lw_val *made, lw_val x,
                        int32_t images)
{
    const lw_node *node = s->node[n];
    lw_val in[LW_MAX_IN] = {{0}};
    for (int i = 0; i < node->n_in; i++) {
        in[i] = node->in[i].id == s->x.id ? x : lw_rewrite_map(r, node->in[i]);
        for (int k = 0; k < n; k++)
            if (node->in[i].id == s->node[k]->out[0].id)
                in[i] = made[k];
    }
    const char *up = lw_scope_set(r->to, lw_scope_name(r->to, node->scope));
    lw_val v;
    if (node->op == LW_OP_EW) {
        lw_attr_ew a = *(const lw_attr_ew *)node->attr;
        a.type.dim[0] = images;
        v = lw_graph_op(r->to, node->op, in, node->n_in, &a, sizeof a);
    } else {
        v = lw_graph_op(r->to, node->op, in, node->n_in, node->attr, node->attr_size);
    }
    lw_scope_set(r->to, up);
    return v;
}

static int emit_slices(lw_rewrite *r, slices *s)
{
    int parts = (int)LW_CEIL_DIV(s->batch, s->images);
    lw_val x = lw_rewrite_map(r, s->x);
    LW_CLEANUP(lw_free)
    lw_val *made = lw_calloc((size_t)parts * (size_t)s->n, sizeof *made);
    LW_CLEANUP(lw_free) lw_val *part = lw_calloc((size_t)parts, sizeof *part);
    if (!made || !part)
        return LW_ENOMEM;
    for (int p = 0; p < parts; p++) {
        int32_t from = p * s->images, to = LW_MIN(from + s->images, s->batch);
        lw_val *of = made + (ptrdiff_t)p * s->n, xs = lw_slice(r->to, x, 0, from, to);
        for (int i = 0; i < s->n; i++)
            of[i] = emit_node(r, s, i, of, xs, to - from);
    }
    for (int i = 0; i < s->n; i++) {
        if (!crosses(s, i, s->n, r->uses))
            continue;
        for (int p = 0; p < parts; p++)
            part[p] = made[(ptrdiff_t)p * s->n + i];
        r->map[s->node[i]->out[0].id] = lw_rewrite_join(r->to, part, parts);
    }
    s->emitted = true;
    return lw_graph_error(r->to);
}

static int slices_node(lw_rewrite *r, const lw_node *n, void *arg)
{
    slices *s = arg;
    if (!s->inside) {
        s->inside = lw_calloc(lw_graph_val_count(r->from) + 1u, sizeof *s->inside);
        if (!s->inside)
            return LW_ENOMEM;
        find_beginning(r, s);
    }
    for (int i = 0; i < s->n; i++)
        if (s->node[i] == n)
            return 0;
    if (s->n > 0 && !s->emitted && n->index > s->node[s->n - 1]->index &&
        !lw_node_is(n, LW_OPF_LEAF) && !s->params_only[n->index])
        LW_TRY(emit_slices(r, s));
    return lw_rewrite_copy(r, n, NULL);
}

int lw_pass_slices(lw_graph **g, lw_device *dev, const lw_compile_opts *o)
{
    (void)o;
    LW_CLEANUP(lw_free)
    bool *params_only = lw_plan_params_only(*g);
    if (!params_only)
        return LW_ENOMEM;
    slices s = {.params_only = params_only};
    int rc = lw_rewrite_graph(g, dev, slices_node, &s);
    lw_free(&s.inside);
    return rc;
}
