/* SPDX-License-Identifier: Apache-2.0 */
/* One number for a whole graph. */
#include <string.h>

#include "ir/ir.h"

static void add(uint64_t *h, const void *bytes, size_t n)
{
    const uint64_t part[] = {*h, lw_hash64(bytes, n)};
    *h = lw_hash64(part, sizeof part);
}

static void add_text(uint64_t *h, const char *s)
{
    add(h, s, strlen(s));
}

/* Leaves hold names and addresses; attributes of all others are equal byte by byte. */
static void add_attributes(uint64_t *h, const lw_node *n)
{
    const lw_attr_param *param = lw_node_param(n);
    const lw_attr_const *constant = lw_node_const(n);
    if (param)
        add_text(h, param->name);
    else if (constant)
        add(h, &constant->hash, sizeof constant->hash);
    else if (n->op == LW_OP_INPUT)
        add_text(h, ((const lw_attr_input *)n->attr)->name);
    else if (n->attr_size)
        add(h, n->attr, n->attr_size);
}

uint64_t lw_graph_hash(const lw_graph *g)
{
    uint64_t h = 0;
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *n = lw_graph_node(g, i);
        add_text(&h, lw_op_get(n->op)->name);
        add(&h, n->in, (size_t)n->n_in * sizeof *n->in);
        add_attributes(&h, n);
        for (int k = 0; k < n->n_out; k++) {
            const lw_type t = lw_val_type(g, n->out[k]);
            const int32_t head[] = {(int32_t)t.dtype, t.rank};
            add(&h, head, sizeof head);
            add(&h, t.dim, (size_t)t.rank * sizeof *t.dim);
        }
    }
    for (int i = 0; i < lw_graph_output_count(g); i++) {
        const lw_graph_output *o = lw_graph_output_at(g, i);
        const uint32_t ids[] = {o->val.id, o->into.id};
        add_text(&h, o->name);
        add(&h, ids, sizeof ids);
    }
    return h;
}
