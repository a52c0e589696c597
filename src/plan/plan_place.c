/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place: an operand of a concatenation along the last dimension is written by its producer straight
 * into the result, and read there by everyone else, so that nothing is copied. Input: steps and
 * slots, before lowering, since lowerings ask for pitches. It happens when the producer can write
 * and all readers can read with a pitch between rows, as the device says, and the caller cannot see
 * the value. Rows that the device reads faster with gaps between them get gaps, on the same terms.
 * The result's memory then lives from its first part to the last reader of any, and may be part of another. On the same terms
 * a slice of the last dimension is read where it was cut from, if the device says so. A pure
 * function of the graph: never of the batch.
 */
#include "plan/plan_pass.h"

static bool pitched(const lw_plan *p, const lw_node *n, int i)
{
    return p->dev->pitched && p->dev->pitched(p->dev->self, p->graph, n, i);
}

bool lw_product_pitched(const lw_node *n, int i)
{
    enum { OUTPUT = -1, RESULT_LIKE = 3, RESULT_LIKE_DX = 2 };
    switch (n->op) {
    case LW_OP_MATMUL:
        return !((const lw_attr_matmul *)n->attr)->trans_a &&
               (i == OUTPUT || i == 0 || i == RESULT_LIKE);
    case LW_OP_CONV2D:
    case LW_OP_DEPTHWISE:
        return i == OUTPUT || i == 0 || i == RESULT_LIKE || i == LW_CONV_PROJECT_X;
    case LW_OP_CONV2D_DX:
    case LW_OP_DEPTHWISE_DX:
        return i == OUTPUT || i == 0 || i == RESULT_LIKE_DX;
    case LW_OP_CONV2D_DW:
    case LW_OP_DEPTHWISE_DW:
        return i == 0 || i == 1;
    default:
        return false;
    }
}

/* Can every reader of v but `cat` itself read it with a pitch? Views of v must keep its rows. */
static bool readers_agree(const lw_plan *p, lw_val v, const lw_node *cat)
{
    const lw_graph *g = p->graph;
    int32_t row = lw_type_last(lw_val_type(g, v));
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++) {
        const lw_node *n = lw_graph_node(g, k);
        for (int i = 0; n != cat && i < n->n_in; i++) {
            if (n->in[i].id != v.id)
                continue;
            bool ok = lw_node_is(n, LW_OPF_ALIAS)
                          ? lw_type_last(lw_val_type(g, n->out[0])) == row &&
                                readers_agree(p, n->out[0], cat)
                          : pitched(p, n, i);
            if (!ok)
                return false;
        }
    }
    return true;
}

/* v and all its reshapes are views. */
static void set_views(lw_graph *g, lw_val v, lw_view view)
{
    lw_val_set_view(g, v, view);
    for (uint32_t k = lw_val_node(g, v)->index; k < lw_graph_node_count(g); k++) {
        const lw_node *n = lw_graph_node(g, k);
        if (lw_node_is(n, LW_OPF_ALIAS) && n->in[0].id == v.id)
            set_views(g, n->out[0], view);
    }
}

static lw_val root_of(const lw_graph *g, lw_val v)
{
    while (lw_node_is(lw_val_node(g, v), LW_OPF_ALIAS))
        v = lw_val_node(g, v)->in[0];
    return v;
}

/* Memory that a run writes and that no caller sees. */
static bool private_slot(const lw_slot *s)
{
    return s->place == LW_PLACE_FRAME && s->last != INT32_MAX;
}

static void place_operand(lw_plan *p, int step, int i, int32_t at)
{
    lw_graph *g = p->graph;
    const lw_node *cat = p->step[step].node;
    lw_val v = root_of(g, cat->in[i]), other = root_of(g, cat->in[1 - i]);
    uint32_t slot = p->slot_of[v.id], base = p->slot_of[cat->out[0].id];
    lw_slot *s = &p->slot[slot], *b = &p->slot[base];
    if (v.id == other.id || !private_slot(s) || !private_slot(b) || s->first < p->n_prepare ||
        lw_val_slot(g, v) != 0 ||
        lw_type_last(lw_val_type(g, v)) != lw_type_last(lw_val_type(g, cat->in[i])) ||
        !pitched(p, cat, i) || !pitched(p, lw_val_node(g, v), -1) || !readers_agree(p, v, cat))
        return;
    set_views(g, v, (lw_view){.of = cat->out[0], .at = at});
    s->place = LW_PLACE_VIEW;
    s->base = base;
    s->offset = (size_t)at * lw_dtype_size(lw_val_type(g, v).dtype);
    b->first = LW_MIN(b->first, s->first);
    b->last = LW_MAX(b->last, s->last);
    p->step[step].cost.bytes -= 2.0 * (double)s->bytes; /* neither read nor written here */
}

/* The result of a slice, read where it lies. */
static void place_slice(lw_plan *p, int step)
{
    lw_graph *g = p->graph;
    const lw_node *n = p->step[step].node;
    lw_val v = n->out[0], of = n->in[0];
    int32_t at = ((const lw_attr_axis *)n->attr)->begin;
    uint32_t base = p->slot_of[of.id];
    lw_slot *s = &p->slot[p->slot_of[v.id]], *b = &p->slot[base];
    if (!private_slot(s) || !private_slot(b) ||
        lw_val_pitch(g, of) != lw_type_last(lw_val_type(g, of)) ||
        lw_val_pitch(g, v) == lw_val_pitch(g, of) || !pitched(p, n, 0) ||
        !readers_agree(p, v, NULL))
        return;
    set_views(g, v, (lw_view){.of = of, .at = at});
    s->place = LW_PLACE_VIEW;
    s->base = base;
    s->offset = (size_t)at * lw_dtype_size(lw_val_type(g, v).dtype);
    b->last = LW_MAX(b->last, s->last);
    p->step[step].cost.bytes = 0.0;
}

/* Gaps between the rows of v where the device wants them, and nobody else reads them dense. */
static void space_rows(lw_plan *p, lw_val v)
{
    lw_graph *g = p->graph;
    lw_type t = lw_val_type(g, v);
    lw_slot *s = &p->slot[p->slot_of[v.id]];
    int32_t row = lw_type_last(t), pitch = p->dev->pitch ? p->dev->pitch(p->dev->self, t) : row;
    if (pitch == row || t.rank < 3 || !private_slot(s) || lw_val_ok(lw_val_view(g, v).of) ||
        !pitched(p, lw_val_node(g, v), -1) || !readers_agree(p, v, NULL))
        return;
    set_views(g, v, (lw_view){.pitch = pitch});
    s->bytes = s->bytes / (size_t)row * (size_t)pitch;
}

int lw_pass_place(lw_plan *p)
{
    for (int k = p->n_prepare; k < p->n_steps; k++) {
        const lw_node *n = p->step[k].node;
        lw_type t = lw_val_type(p->graph, n->out[0]);
        if (n->op == LW_OP_SLICE && t.dtype == LW_F32 && t.rank > 1 &&
            ((const lw_attr_axis *)n->attr)->axis == t.rank - 1)
            place_slice(p, k);
        if (n->op != LW_OP_CONCAT || (t.dtype != LW_F32 && t.dtype != LW_BF16) ||
            ((const lw_attr_axis *)n->attr)->axis != t.rank - 1 || t.rank < 2)
            continue;
        const int32_t second = lw_type_last(lw_val_type(p->graph, n->in[0]));
        if (t.dtype == LW_BF16 && (second % 2 || lw_type_last(t) % 2))
            continue; /* products read words of two */
        place_operand(p, k, 0, 0);
        place_operand(p, k, 1, second);
    }
    for (int k = p->n_prepare; k < p->n_steps; k++)
        space_rows(p, p->step[k].node->out[0]);
    return 0;
}
