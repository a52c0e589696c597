/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simplify: the same program with fewer nodes. Merges equal nodes, drops identities (reshape to the
 * same type, copy, * 1, + -0), turns scalar constants into instructions, folds reshape chains. Dead
 * nodes go with the rewrite. Must not change the value of any output bit.
 */
#include "plan/plan_pass.h"

#include <math.h>
#include <string.h>

typedef struct seen_table {
    const lw_node **node; /* open addressing over nodes of the new graph */
    size_t cap;
} seen_table;

static uint64_t hash_node(lw_op op, const lw_val *in, int n_in, const void *attr, size_t attr_size)
{
    uint64_t h = lw_hash64(in, sizeof *in * (size_t)n_in) * 31u + (uint64_t)op;
    return attr_size ? h ^ lw_hash64(attr, attr_size) : h;
}

static bool same_node(const lw_node *m, lw_op op, const lw_val *in, int n_in, const void *attr,
                      size_t attr_size)
{
    return m->op == op && m->n_in == n_in && m->attr_size == attr_size &&
           memcmp(m->in, in, sizeof *in * (size_t)n_in) == 0 &&
           (!attr_size || memcmp(m->attr, attr, attr_size) == 0);
}

/* Of the forward pass only such a node: a forward run makes nothing of the backward pass. */
static const lw_node *find_same(const seen_table *t, lw_op op, const lw_val *in, int n_in,
                                const void *attr, size_t attr_size, bool backward)
{
    uint64_t h = hash_node(op, in, n_in, attr, attr_size);
    for (size_t i = h % t->cap; t->node[i]; i = (i + 1) % t->cap)
        if ((backward || !t->node[i]->backward) &&
            same_node(t->node[i], op, in, n_in, attr, attr_size))
            return t->node[i];
    return NULL;
}

static void remember(seen_table *t, const lw_node *m)
{
    uint64_t h = hash_node(m->op, m->in, m->n_in, m->attr, m->attr_size);
    size_t i = h % t->cap;
    while (t->node[i])
        i = (i + 1) % t->cap;
    t->node[i] = m;
}

/* f32[1] constant behind a value of the new graph? */
static const float *scalar_const(const lw_graph *g, lw_val v)
{
    const lw_node *n = lw_val_node(g, v);
    while (lw_node_is(n, LW_OPF_ALIAS))
        n = lw_val_node(g, n->in[0]);
    const lw_attr_const *a = lw_node_const(n);
    return a && a->type.dtype == LW_F32 && lw_type_count(a->type) == 1 ? a->data : NULL;
}

/* Operand k of a program becomes a `konst` instruction in front; registers are renumbered. */
static void operand_to_konst(lw_attr_ew *a, lw_val *in, int *n_in, int k, float value)
{
    int old_in = *n_in;
    memmove(&a->step[1], &a->step[0], sizeof a->step[0] * (size_t)a->n_step);
    for (int i = 1; i <= a->n_step; i++) {
        uint8_t *reg[3] = {&a->step[i].a, &a->step[i].b, &a->step[i].c};
        for (int j = 0; j < 3; j++) {
            int r = *reg[j];
            /* operands after k move down; the konst is register old_in - 1; old steps keep their
             * number + 0 */
            *reg[j] = (uint8_t)(r == k ? old_in - 1 : r > k && r < old_in ? r - 1 : r);
        }
    }
    a->step[0] = (lw_ew_step){.op = LW_EW_konst, .imm = value};
    a->n_step++;
    for (int i = k; i + 1 < old_in; i++) {
        in[i] = in[i + 1];
        a->mode[i] = a->mode[i + 1];
    }
    a->mode[old_in - 1] = 0;
    *n_in = old_in - 1;
}

static void absorb_constants(const lw_graph *g, lw_attr_ew *a, lw_val *in, int *n_in)
{
    for (int k = 0; k < *n_in;) {
        const float *c = a->mode[k] == LW_EW_SCALAR ? scalar_const(g, in[k]) : NULL;
        if (c && *n_in > 1 && a->n_step + 1 <= LW_EW_MAX_INSTR)
            operand_to_konst(a, in, n_in, k, *c);
        else
            k++;
    }
}

/* x * 1, x + -0, copy(x) at x's own type. Not x + 0: that makes 0 of -0. */
static bool is_identity(const lw_graph *g, const lw_attr_ew *a, const lw_val *in, int n_in)
{
    if (n_in != 1 || !lw_type_eq(lw_val_type(g, in[0]), a->type))
        return false;
    if (a->n_step == 1)
        return a->step[0].op == LW_EW_copy;
    if (a->n_step != 2 || a->step[0].op != LW_EW_konst)
        return false;
    const lw_ew_step *s = &a->step[1];
    bool both = (s->a == 0 && s->b == 1) || (s->a == 1 && s->b == 0);
    return both && ((s->op == LW_EW_mul && a->step[0].imm == 1.0f) ||
                    (s->op == LW_EW_add && a->step[0].imm == 0.0f && signbit(a->step[0].imm)));
}

static int simplify_node(lw_rewrite *r, const lw_node *n, void *arg)
{
    seen_table *t = arg;
    if (lw_node_is(n, LW_OPF_LEAF))
        return lw_rewrite_copy(r, n, NULL);
    lw_val in[LW_MAX_IN];
    int n_in = n->n_in;
    for (int i = 0; i < n_in; i++)
        in[i] = lw_rewrite_map(r, n->in[i]);
    lw_attr_ew ew;
    const void *attr = n->attr;
    if (n->op == LW_OP_RESHAPE) {
        const lw_node *p = lw_val_node(r->to, in[0]);
        if (p->op == LW_OP_RESHAPE)
            in[0] = p->in[0];
        if (lw_type_eq(lw_val_type(r->to, in[0]), ((const lw_attr_type *)attr)->type)) {
            r->map[n->out[0].id] = in[0];
            return 0;
        }
    } else if (n->op == LW_OP_EW) {
        ew = *(const lw_attr_ew *)attr;
        attr = &ew;
        absorb_constants(r->to, &ew, in, &n_in);
        if (is_identity(r->to, &ew, in, n_in)) {
            r->map[n->out[0].id] = in[0];
            return 0;
        }
    }
    const lw_node *same = find_same(t, n->op, in, n_in, attr, n->attr_size, n->backward);
    if (same) {
        for (int i = 0; i < n->n_out; i++)
            r->map[n->out[i].id] = same->out[i];
        return 0;
    }
    LW_TRY(lw_rewrite_emit(r, n, n->op, in, n_in, attr, n->attr_size));
    remember(t, lw_val_node(r->to, r->map[n->out[0].id]));
    return 0;
}

int lw_pass_simplify(lw_graph **g, lw_device *dev, const lw_compile_opts *o)
{
    (void)o;
    seen_table t = {.cap = 4u * lw_graph_node_count(*g) + 16u};
    t.node = lw_calloc(t.cap, sizeof *t.node);
    if (!t.node)
        return LW_ENOMEM;
    int rc = lw_rewrite_graph(g, dev, simplify_node, &t);
    lw_free(&t.node);
    return rc;
}
