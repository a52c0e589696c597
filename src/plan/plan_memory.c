/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory: lifetimes -> offsets in two blocks, the frame and the derived one. First, elementwise
 * results take over the memory of an operand that dies there; then, largest first, every value gets
 * the lowest gap free of values alive at the same time. Inputs and outputs live for ever. What runs
 * read of the prepare segment outlives all writing there; what only prepare steps read (weights with
 * a norm folded in, of which runs take the packed ones) lies where others are written later. With
 * opt 0 nothing is shared.
 */
#include "plan/plan_pass.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

/* An operand whose memory the step's first output may overwrite; 0: none. */
static uint32_t dying_operand(const lw_plan *p, const lw_plan_step *s, int at)
{
    const lw_node *n = s->node;
    const lw_slot *out = &p->slot[s->out[0]];
    if (!lw_node_is(n, LW_OPF_INPLACE) || !s->out[0] || out->last == INT32_MAX)
        return 0;
    for (int i = 0; i < n->n_in; i++) {
        const lw_slot *in = &p->slot[s->in[i]];
        bool full = n->op == LW_OP_EW ? ((const lw_attr_ew *)n->attr)->mode[i] == LW_EW_FULL
                                      : i == 0;
        bool once = true;
        for (int k = 0; k < n->n_in; k++)
            once &= k == i || s->in[k] != s->in[i];
        if (full && once && s->in[i] && in->place == LW_PLACE_FRAME && in->last == at &&
            in->bytes == out->bytes)
            return s->in[i];
    }
    return 0;
}

static void replace_slot(lw_plan *p, uint32_t old, uint32_t by, int from)
{
    for (int k = from; k < p->n_steps; k++) {
        lw_plan_step *s = &p->step[k];
        for (int i = 0; i < s->node->n_in; i++)
            s->in[i] = s->in[i] == old ? by : s->in[i];
        for (int i = 0; i < s->node->n_out; i++)
            s->out[i] = s->out[i] == old ? by : s->out[i];
    }
    for (uint32_t i = 1; i <= p->n_slots; i++)
        if (p->slot[i].place == LW_PLACE_VIEW && p->slot[i].base == old)
            p->slot[i].base = by;
}

static void share_in_place(lw_plan *p)
{
    for (int k = p->n_prepare; k < p->n_steps; k++) {
        lw_plan_step *s = &p->step[k];
        uint32_t by = dying_operand(p, s, k);
        if (!by)
            continue;
        uint32_t old = s->out[0];
        p->slot[by].last = p->slot[old].last;
        p->slot[old].place = LW_PLACE_NONE;
        replace_slot(p, old, by, k);
    }
}

typedef struct block {
    uint32_t slot;
    size_t bytes;
} block;

static int larger_first(const void *a, const void *b)
{
    const block *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->slot < y->slot ? -1 : 1;
}

static bool overlap_in_time(const lw_slot *a, const lw_slot *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Lowest offset where `s` fits between the placed slots alive at the same time (sorted
 * by offset). */
static size_t lowest_gap(const lw_plan *p, const block *placed, size_t n, const lw_slot *s,
                         size_t bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const lw_slot *o = &p->slot[placed[i].slot];
        if (!overlap_in_time(o, s))
            continue;
        if (at + bytes <= o->offset)
            break;
        at = LW_MAX(at, o->offset + placed[i].bytes);
    }
    return at;
}

static void insert_sorted(const lw_plan *p, block *placed, size_t n, block b)
{
    size_t i = n;
    while (i > 0 && p->slot[placed[i - 1].slot].offset > p->slot[b.slot].offset) {
        placed[i] = placed[i - 1];
        i--;
    }
    placed[i] = b;
}

/* One block's values, of which `placed` has room for all; its bytes. */
static size_t place_block(lw_plan *p, lw_place place, block *todo, block *placed)
{
    size_t end = 0, n = 0;
    for (uint32_t i = 1; i <= p->n_slots; i++)
        if (p->slot[i].place == place)
            todo[n++] = (block){i, LW_ROUND_UP(p->slot[i].bytes, ALIGN)};
    if (p->opt)
        qsort(todo, n, sizeof *todo, larger_first);
    for (size_t i = 0; i < n; i++) {
        lw_slot *s = &p->slot[todo[i].slot];
        s->offset = p->opt ? lowest_gap(p, placed, i, s, todo[i].bytes) : end;
        insert_sorted(p, placed, i, todo[i]);
        end = LW_MAX(end, s->offset + todo[i].bytes);
    }
    return end;
}

int lw_pass_memory(lw_plan *p)
{
    if (p->opt)
        share_in_place(p);
    block *todo = lw_calloc(p->n_slots + 1u, sizeof *todo);
    block *placed = lw_calloc(p->n_slots + 1u, sizeof *placed);
    int rc = todo && placed ? 0 : LW_ENOMEM;
    if (rc == 0) {
        p->derived_bytes = place_block(p, LW_PLACE_DERIVED, todo, placed);
        p->frame_bytes = place_block(p, LW_PLACE_FRAME, todo, placed);
    }
    lw_free(&todo);
    lw_free(&placed);
    return rc;
}
