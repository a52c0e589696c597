/* SPDX-License-Identifier: Apache-2.0 */
/*
 * derived: the block that prepare steps fill. Execs of one device whose plans prepare the same from
 * the same slab share one: a network at batch 1 and at batch 64, an exec and its neighbours. The
 * list hangs at the device, and a block goes with its last exec. Nothing in a block belongs to a
 * plan, and equal plans lay it out alike: so any of its execs can fill it for all.
 */
#include "plan/plan_pass.h"

static void add(uint64_t *key, const void *bytes, size_t n)
{
    const uint64_t part[] = {*key, lw_hash64(bytes, n)};
    *key = lw_hash64(part, sizeof part);
}

/* What a prepare step reads or makes: a parameter, a constant, or a place in the block. */
static void add_value(uint64_t *key, const lw_plan *p, lw_val v, uint32_t slot)
{
    const lw_slot *s = &p->slot[slot]; /* number 0, absent, has no place */
    const lw_type t = lw_val_type(p->graph, v);
    uint64_t what[] = {(uint64_t)s->place, s->offset, 0, 0};
    if (s->place == LW_PLACE_PARAM) {
        what[2] = (uintptr_t)s->param->params;
        what[3] = (uint64_t)s->param->index;
    } else if (s->place == LW_PLACE_CONST) {
        what[2] = lw_node_const(lw_val_node(p->graph, (lw_val){s->val}))->hash;
    }
    add(key, &t, sizeof t);
    add(key, what, sizeof what);
}

/* Equal keys: equal steps on equal operands, equal places, and versions of the same stores. */
static uint64_t key_of(const lw_plan *p, lw_slab weights)
{
    uint64_t key = (uint64_t)weights;
    add(&key, p->store, (size_t)p->n_store * sizeof *p->store);
    for (int k = 0; k < p->n_prepare; k++) {
        const lw_plan_step *s = &p->step[k];
        const lw_node *n = s->node;
        const uint64_t step[] = {(uint64_t)n->op, (uint64_t)n->n_in, (uint64_t)n->n_out,
                                 s->work ? 1u + p->slot[s->work].offset : 0u};
        add(&key, step, sizeof step);
        add(&key, n->attr, n->attr_size);
        for (int i = 0; i < n->n_in; i++)
            add_value(&key, p, n->in[i], s->in[i]);
        for (int i = 0; i < n->n_out; i++)
            add_value(&key, p, n->out[i], s->out[i]);
    }
    return key;
}

static lw_derived *find(const lw_plan *p, uint64_t key)
{
    lw_derived *d = p->dev->derived;
    while (d && d->key != key)
        d = d->next;
    return d;
}

static size_t bytes_of(const lw_plan *p)
{
    return LW_MAX(p->derived_bytes, 64);
}

size_t lw_derived_room(const lw_plan *p, lw_slab weights)
{
    return find(p, key_of(p, weights)) ? 0 : bytes_of(p);
}

lw_derived *lw_derived_take(const lw_plan *p, lw_slab weights)
{
    const uint64_t key = key_of(p, weights);
    lw_derived *d = find(p, key);
    if (!d) {
        d = lw_calloc(1, sizeof *d + (size_t)p->n_store * sizeof *d->version);
        if (!d)
            return NULL;
        d->key = key;
        d->bytes = bytes_of(p);
        d->data = lw_memory_alloc(p->dev->memory, d->bytes);
        if (!d->data) {
            lw_free(&d);
            return NULL;
        }
        d->next = p->dev->derived;
        p->dev->derived = d;
    }
    d->users++;
    return d;
}

void lw_derived_drop(lw_device *dev, lw_derived **pp)
{
    lw_derived *d = *pp, **at = &dev->derived;
    *pp = NULL;
    if (!d || --d->users > 0)
        return;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    lw_memory_free(dev->memory, &d->data, d->bytes);
    lw_free(&d);
}

bool lw_derived_stale(lw_derived *d, const lw_plan *p, lw_slab weights)
{
    bool any = !d->made;
    for (int i = 0; i < p->n_store; i++) {
        const lw_params *s = p->store[i];
        /* a store without averages is read from PARAM, as an exec's addresses are */
        lw_slab read = s->address(s->self, 0, weights) ? weights : LW_SLAB_PARAM;
        uint64_t v = s->version(s->self, read);
        any |= d->version[i] != v;
        d->version[i] = v;
    }
    d->made = true;
    return any;
}
