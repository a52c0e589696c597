/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule: graph order is a valid order; split it into the prepare segment (everything that
 * depends on parameters and constants only) and the run segment, give every root value a slot, list
 * the ports. Must not reorder within a segment: dumps and bits depend on it.
 */
#include "plan/plan_pass.h"

#include <string.h>

static uint32_t new_slot(lw_plan *p, lw_place place, size_t bytes, uint32_t val)
{
    if (lw_grow(&p->slot, &p->cap_slots, p->n_slots + 2u, sizeof *p->slot) < 0)
        return 0;
    p->slot[++p->n_slots] =
        (lw_slot){.place = place, .bytes = LW_MAX(bytes, 4), .first = -1, .last = -1, .val = val};
    return p->n_slots;
}

uint32_t lw_plan_new_work(lw_plan *p, size_t bytes, int step)
{
    lw_place place = step < p->n_prepare ? LW_PLACE_DERIVED : LW_PLACE_FRAME;
    uint32_t s = new_slot(p, place, bytes, 0);
    if (s)
        p->slot[s].first = p->slot[s].last = step;
    return s;
}

uint32_t lw_plan_new_table(lw_plan *p, const void *data, size_t bytes)
{
    uint32_t s = new_slot(p, LW_PLACE_CONST, bytes, 0);
    if (s)
        p->slot[s].data = data;
    return s;
}

static int leaf_slot(lw_plan *p, const lw_node *n)
{
    lw_type t = lw_val_type(p->graph, n->out[0]);
    const lw_attr_param *param = lw_node_param(n);
    const lw_attr_const *constant = lw_node_const(n);
    lw_place place = param ? LW_PLACE_PARAM : constant ? LW_PLACE_CONST : LW_PLACE_FRAME;
    uint32_t s = new_slot(p, place, lw_type_bytes(t), n->out[0].id);
    if (!s)
        return LW_ENOMEM;
    p->slot_of[n->out[0].id] = s;
    if (param) {
        p->slot[s].param = param;
        for (int i = 0; i < p->n_store; i++)
            if (p->store[i] == param->params)
                return 0;
        p->store[p->n_store++] = param->params;
    } else if (constant) {
        p->slot[s].data = constant->data;
    } else {
        p->slot[s].first = -1;
        p->slot[s].last = INT32_MAX;
        p->input[p->n_input++] =
            (lw_plan_port){.name = ((const lw_attr_input *)n->attr)->name, .type = t, .slot = s};
    }
    return 0;
}

static int node_slots(lw_plan *p, const lw_node *n, bool prepare, const uint32_t *uses)
{
    if (lw_node_is(n, LW_OPF_ALIAS)) {
        p->slot_of[n->out[0].id] = p->slot_of[n->in[0].id];
        return 0;
    }
    for (int i = 0; i < n->n_out; i++) {
        if (!uses[n->out[i].id] && (i > 0 || lw_node_is(n, LW_OPF_ANY_OUT)))
            continue; /* nobody reads it: the kernel gets NULL */
        uint32_t s = new_slot(p, prepare ? LW_PLACE_DERIVED : LW_PLACE_FRAME,
                              lw_type_bytes(lw_val_type(p->graph, n->out[i])), n->out[i].id);
        if (!s)
            return LW_ENOMEM;
        p->slot_of[n->out[i].id] = s;
    }
    return 0;
}

static void fill_step(lw_plan *p, const lw_node *n, int at)
{
    lw_plan_step *s = &p->step[at];
    s->node = n;
    lw_op_get(n->op)->cost(p->graph, n, &s->cost);
    for (int i = 0; i < n->n_in; i++) {
        s->in[i] = lw_val_ok(n->in[i]) ? p->slot_of[n->in[i].id] : 0;
        lw_slot *v = &p->slot[s->in[i]];
        if (s->in[i] && v->last != INT32_MAX)
            v->last = at;
    }
    for (int i = 0; i < n->n_out; i++) {
        s->out[i] = p->slot_of[n->out[i].id];
        if (s->out[i])
            p->slot[s->out[i]].first = p->slot[s->out[i]].last = at;
    }
}

static void count_uses(const lw_graph *g, uint32_t *uses)
{
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++) {
        const lw_node *n = lw_graph_node(g, k);
        for (int i = 0; i < n->n_in; i++)
            uses[n->in[i].id]++;
    }
    for (int i = 0; i < lw_graph_output_count(g); i++)
        uses[lw_graph_output_at(g, i)->val.id]++;
}

static void mark_prepared(const lw_graph *g, bool *prepared)
{
    lw_plan_mark_params_only(g, prepared);
    for (int i = 0; i < lw_graph_output_count(g); i++) /* outputs are made by every run */
        prepared[lw_val_node(g, lw_graph_output_at(g, i)->val)->index] = false;
}

static int make_steps(lw_plan *p, const bool *prepared, const uint32_t *uses)
{
    const lw_graph *g = p->graph;
    uint32_t n_nodes = lw_graph_node_count(g);
    for (uint32_t k = 0; k < n_nodes; k++) {
        const lw_node *n = lw_graph_node(g, k);
        LW_TRY(lw_node_is(n, LW_OPF_LEAF) ? leaf_slot(p, n) : node_slots(p, n, prepared[k], uses));
    }
    for (int segment = 0; segment < 2; segment++) {
        for (uint32_t k = 0; k < n_nodes; k++) {
            const lw_node *n = lw_graph_node(g, k);
            if (!lw_node_is(n, LW_OPF_LEAF | LW_OPF_ALIAS) && prepared[k] == (segment == 0))
                fill_step(p, n, p->n_steps++);
        }
        if (segment == 0)
            p->n_prepare = p->n_steps;
    }
    return 0;
}

static void list_outputs(lw_plan *p)
{
    for (int i = 0; i < lw_graph_output_count(p->graph); i++) {
        const lw_graph_output *o = lw_graph_output_at(p->graph, i);
        uint32_t s = p->slot_of[o->val.id];
        lw_plan_port port = {.name = o->name, .type = lw_val_type(p->graph, o->val), .slot = s};
        p->slot[s].last = INT32_MAX;
        if (lw_val_ok(o->into))
            port.grad_of = lw_node_param(lw_val_node(p->graph, o->into));
        if (port.grad_of) { /* the store's gradient slab holds it */
            p->slot[s].place = LW_PLACE_NONE;
        } else if (lw_val_ok(o->into)) { /* in every second run its memory is the input's */
            for (int k = 0; k < p->n_input; k++)
                if (p->input[k].slot == p->slot_of[o->into.id])
                    port.next = 1 + k;
            p->slot[s].first = -1;
        }
        p->output[p->n_output++] = port;
    }
}

int lw_pass_schedule(lw_plan *p)
{
    uint32_t n = lw_graph_node_count(p->graph), v = lw_graph_val_count(p->graph) + 1;
    int n_out = lw_graph_output_count(p->graph);
    p->slot_of = lw_arena_alloc(p->arena, v * sizeof *p->slot_of);
    p->step = lw_arena_alloc(p->arena, (n + 1) * sizeof *p->step);
    p->input = lw_arena_alloc(p->arena, (n + 1) * sizeof *p->input);
    p->output = lw_arena_alloc(p->arena, (size_t)(n_out + 1) * sizeof *p->output);
    p->store = lw_arena_alloc(p->arena, (n + 1) * sizeof *p->store);
    bool *prepared = lw_arena_alloc(p->arena, n + 1);
    uint32_t *uses = lw_arena_alloc(p->arena, v * sizeof *uses);
    if (!p->slot_of || !p->step || !p->input || !p->output || !p->store || !prepared || !uses)
        return LW_ENOMEM;
    count_uses(p->graph, uses);
    mark_prepared(p->graph, prepared);
    LW_TRY(make_steps(p, prepared, uses));
    list_outputs(p);
    return 0;
}
