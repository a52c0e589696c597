/* SPDX-License-Identifier: Apache-2.0 */
/* The replay: who owns which block, step by step. */
#include "plan/plan_prover.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"

enum { BLOCK = 64 };
/* Owners of a block: the root value's id, or a step's workspace; 0 is nobody. */
#define WORK_OF(step) (0x80000000u | (uint32_t)(step))

typedef struct prover {
    const lw_plan *p;
    plan_proof *out;
    uint32_t *owner[2]; /* frame, derived */
    bool *twice;        /* frame */
    size_t n[2];
    int step;
} prover;

static bool no(prover *v, const char *what, uint32_t slot)
{
    const lw_plan_step *s = v->step < v->p->n_steps ? &v->p->step[v->step] : NULL;
    snprintf(v->out->why, sizeof v->out->why, "step %d (%s): %s (slot %u)", v->step,
             s ? lw_op_get(s->node->op)->name : "end", what, slot);
    return false;
}

/* The value whose memory this is: through reshapes, and through views into the rows of another. */
static uint32_t root(const lw_graph *g, lw_val x)
{
    while (lw_op_get(lw_val_node(g, x)->op)->flags & LW_OPF_ALIAS)
        x = lw_val_node(g, x)->in[0];
    lw_val of = lw_val_view(g, x).of;
    return lw_val_ok(of) ? root(g, of) : x.id; /* a slice of what lies in a concatenation */
}

/* The slot that holds the memory of a slot. */
static const lw_slot *home(const lw_plan *p, uint32_t slot)
{
    const lw_slot *s = &p->slot[slot];
    while (s->place == LW_PLACE_VIEW)
        s = &p->slot[s->base];
    return s;
}

/* Where a slot begins there. */
static size_t begin_at_home(const lw_plan *p, const lw_slot *s)
{
    size_t at = 0;
    for (; s->place == LW_PLACE_VIEW; s = &p->slot[s->base])
        at += s->offset;
    return at;
}

static bool region(prover *v, uint32_t slot, uint32_t **owner, size_t *from, size_t *to)
{
    const lw_slot *s = home(v->p, slot);
    if (s->place != LW_PLACE_FRAME && s->place != LW_PLACE_DERIVED)
        return false;
    int k = s->place == LW_PLACE_DERIVED;
    *owner = v->owner[k];
    *from = s->offset / BLOCK;
    *to = (s->offset + s->bytes + BLOCK - 1) / BLOCK;
    return true;
}

static bool owned(prover *v, uint32_t slot, uint32_t who)
{
    uint32_t *owner;
    size_t a, b;
    if (!region(v, slot, &owner, &a, &b))
        return true;
    for (size_t i = a; i < b; i++)
        if (owner[i] != who)
            return false;
    return true;
}

static bool take(prover *v, uint32_t slot, uint32_t who)
{
    uint32_t *owner;
    size_t a, b;
    if (!region(v, slot, &owner, &a, &b))
        return true;
    int k = owner == v->owner[1];
    if (home(v->p, slot)->offset % BLOCK || b > v->n[k])
        return no(v, "unaligned, or outside its block of memory", slot);
    if (k && v->step >= v->p->n_prepare) /* what is prepared once serves all runs */
        return no(v, "a run writes prepared memory", slot);
    for (size_t i = a; i < b; i++) {
        if (!k && owner[i] && owner[i] != who)
            v->twice[i] = true;
        owner[i] = who;
    }
    return true;
}

/* Two views into the rows of one value that share no column. */
static bool other_columns(const lw_plan *p, const lw_slot *x, const lw_slot *y)
{
    if (x->place != LW_PLACE_VIEW || y->place != LW_PLACE_VIEW ||
        home(p, (uint32_t)(x - p->slot)) != home(p, (uint32_t)(y - p->slot)))
        return false;
    const size_t at[2] = {begin_at_home(p, x), begin_at_home(p, y)};
    const lw_type t = lw_val_type(p->graph, (lw_val){at[0] < at[1] ? x->val : y->val});
    return LW_MIN(at[0], at[1]) + lw_dtype_size(t.dtype) * (size_t)lw_type_last(t) <=
           LW_MAX(at[0], at[1]);
}

/* Are rows of operand k of a step those of its result, moved from other columns or not at all? */
static bool moves_inside(const lw_plan *p, const lw_plan_step *s, int k, int i)
{
    const lw_slot *in = &p->slot[s->in[k]], *out = &p->slot[s->out[i]];
    if (s->node->op == LW_OP_SLICE)
        return out->place == LW_PLACE_VIEW && out->base == s->in[k];
    return s->node->op == LW_OP_CONCAT && in->place == LW_PLACE_VIEW &&
           home(p, s->in[k]) == home(p, s->out[i]);
}

static bool apart(prover *v, uint32_t x, uint32_t y)
{
    if (other_columns(v->p, &v->p->slot[x], &v->p->slot[y]))
        return true;
    uint32_t *o1, *o2;
    size_t a, b, c, d;
    return !region(v, x, &o1, &a, &b) || !region(v, y, &o2, &c, &d) || o1 != o2 || b <= c || d <= a;
}

/* May output i of the step stand on input k's memory? */
static bool may_share(const prover *v, const lw_plan_step *s, int i, int k)
{
    const lw_node *n = s->node;
    if (i != 0 || !(lw_op_get(n->op)->flags & LW_OPF_INPLACE))
        return false;
    for (int j = 0; j < n->n_in; j++)
        if (j != k && s->in[j] == s->in[k])
            return false;
    if (lw_type_bytes(lw_val_type(v->p->graph, n->in[k])) !=
        lw_type_bytes(lw_val_type(v->p->graph, n->out[0])))
        return false;
    return n->op == LW_OP_EW ? ((const lw_attr_ew *)n->attr)->mode[k] == LW_EW_FULL : k == 0;
}

static bool check_outputs(prover *v, const lw_plan_step *s)
{
    for (int i = 0; i < s->node->n_out; i++) {
        if (!s->out[i])
            continue;
        if (s->work && !apart(v, s->out[i], s->work))
            return no(v, "output and workspace overlap", s->out[i]);
        for (int j = 0; j < i; j++)
            if (s->out[j] && !apart(v, s->out[i], s->out[j]))
                return no(v, "two outputs overlap", s->out[i]);
        for (int k = 0; k < s->node->n_in; k++) {
            if (!s->in[k] || apart(v, s->out[i], s->in[k]))
                continue;
            if (s->node->op == LW_OP_CONCAT && v->p->slot[s->in[k]].place == LW_PLACE_VIEW &&
                v->p->slot[s->in[k]].base == s->out[i]) {
                v->out->placed++; /* written where it belongs */
                continue;
            }
            if (moves_inside(v->p, s, k, i))
                continue;
            if (s->in[k] != s->out[i] || !may_share(v, s, i, k))
                return no(v, "output overlaps an operand", s->out[i]);
            v->out->in_place++;
        }
    }
    return true;
}

static bool replay_step(prover *v, const lw_plan_step *s)
{
    const lw_graph *g = v->p->graph;
    for (int i = 0; i < s->node->n_in; i++) {
        if (!s->in[i])
            continue;
        if (!owned(v, s->in[i], root(g, s->node->in[i])))
            return no(v, "reads what another value has overwritten, or what nobody made", s->in[i]);
        if (s->work && !apart(v, s->in[i], s->work))
            return no(v, "operand and workspace overlap", s->in[i]);
    }
    if (!check_outputs(v, s) || (s->work && !take(v, s->work, WORK_OF(v->step))))
        return false;
    for (int i = 0; i < s->node->n_out; i++)
        if (s->out[i] && !take(v, s->out[i], root(g, s->node->out[i])))
            return false;
    return true;
}

/* Inputs stay the caller's from the first step of a run to the next run; outputs stay
 * until read. */
static bool check_ports(prover *v)
{
    const lw_plan *p = v->p;
    int i = 0;
    for (uint32_t k = 0; k < lw_graph_node_count(p->graph); k++) {
        const lw_node *n = lw_graph_node(p->graph, k);
        if (n->op == LW_OP_INPUT && !owned(v, p->input[i++].slot, n->out[0].id))
            return no(v, "an input was overwritten", p->input[i - 1].slot);
    }
    for (int k = 0; k < p->n_output; k++) {
        lw_val o = lw_graph_output_at(p->graph, k)->val;
        if (!owned(v, p->output[k].slot, root(p->graph, o)))
            return no(v, "an output was overwritten", p->output[k].slot);
    }
    return true;
}

static bool replay(prover *v)
{
    const lw_plan *p = v->p;
    for (int i = 0; i < p->n_input; i++)
        if (!take(v, p->input[i].slot, p->slot[p->input[i].slot].val))
            return false;
    for (v->step = 0; v->step < p->n_steps; v->step++)
        if (!replay_step(v, &p->step[v->step]))
            return false;
    if (!check_ports(v))
        return false;
    for (size_t i = 0; i < v->n[0]; i++)
        v->out->shared += v->twice[i];
    return true;
}

bool plan_prove(const lw_plan *p, plan_proof *out)
{
    prover v = {
        .p = p, .out = out, .n = {p->frame_bytes / BLOCK + 1, p->derived_bytes / BLOCK + 1}};
    memset(out, 0, sizeof *out);
    v.owner[0] = lw_calloc(v.n[0], sizeof *v.owner[0]);
    v.owner[1] = lw_calloc(v.n[1], sizeof *v.owner[1]);
    v.twice = lw_calloc(v.n[0], sizeof *v.twice);
    bool ok = v.owner[0] && v.owner[1] && v.twice && replay(&v);
    lw_free(&v.owner[0]);
    lw_free(&v.owner[1]);
    lw_free(&v.twice);
    return ok;
}
