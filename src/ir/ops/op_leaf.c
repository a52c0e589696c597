/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves: inputs, parameters, constants. */
#include "ir/ops/ops.h"

#include <string.h>

static int infer_input(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    (void)g;
    return lw_op_one(out, ((const lw_attr_input *)n->attr)->type);
}

static void print_input(lw_str *s, const lw_node *n)
{
    lw_str_addf(s, "'%s'", ((const lw_attr_input *)n->attr)->name);
}

const lw_op_def lw_op_input = {
    .name = "input",
    .infer = infer_input,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
    .print = print_input,
    .flags = LW_OPF_LEAF | LW_OPF_VARIES,
};

lw_val lw_input(lw_graph *g, const char *name, lw_type type)
{
    lw_attr_input a = {.type = type};
    a.name = lw_arena_strdup(lw_graph_arena(g), name);
    if (!a.name)
        return lw_graph_fail(g, LW_ENOMEM, "%s", lw_errmsg());
    return lw_graph_op(g, LW_OP_INPUT, NULL, 0, &a, sizeof a);
}

static int infer_param(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    (void)g;
    return lw_op_one(out, ((const lw_attr_param *)n->attr)->type);
}

static void print_param(lw_str *s, const lw_node *n)
{
    lw_str_addf(s, "'%s'", ((const lw_attr_param *)n->attr)->name);
}

const lw_op_def lw_op_param = {
    .name = "param",
    .infer = infer_param,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
    .print = print_param,
    .flags = LW_OPF_LEAF,
};

static int infer_const(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    (void)g;
    return lw_op_one(out, ((const lw_attr_const *)n->attr)->type);
}

static void print_const(lw_str *s, const lw_node *n)
{
    const lw_attr_const *a = n->attr;
    if (a->type.dtype == LW_F32 && lw_type_count(a->type) == 1)
        lw_str_addf(s, "%.9g", (double)*(const float *)a->data);
    else
        lw_str_addf(s, "#%016llx", (unsigned long long)a->hash);
}

const lw_op_def lw_op_constant = {
    .name = "constant",
    .infer = infer_const,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
    .print = print_const,
    .flags = LW_OPF_LEAF,
};

/* A constant of these bytes (NULL: zeros), whose hash is *hash, or made of them (NULL). */
static lw_val add_const(lw_graph *g, lw_type type, const void *data, const uint64_t *hash)
{
    size_t bytes = lw_type_bytes(type);
    void *copy = lw_arena_alloc(lw_graph_arena(g), bytes);
    if (!copy)
        return lw_graph_fail(g, LW_ENOMEM, "%s", lw_errmsg());
    if (data)
        memcpy(copy, data, bytes);
    lw_attr_const a = {.type = type, .data = copy};
    a.hash = hash ? *hash : lw_hash64(copy, bytes) ^ lw_hash64(&type, sizeof type);
    return lw_graph_op(g, LW_OP_CONST, NULL, 0, &a, sizeof a);
}

lw_val lw_const(lw_graph *g, lw_type type, const void *data)
{
    return add_const(g, type, data, NULL);
}

const lw_attr_param *lw_node_param(const lw_node *n)
{
    return n->op == LW_OP_PARAM ? n->attr : NULL;
}

const lw_attr_const *lw_node_const(const lw_node *n)
{
    return n->op == LW_OP_CONST ? n->attr : NULL;
}

lw_val lw_graph_copy_leaf(lw_graph *to, const lw_node *n)
{
    const lw_attr_const *c = lw_node_const(n);
    if (c)
        return add_const(to, c->type, c->data, &c->hash);
    if (n->op == LW_OP_INPUT)
        return lw_input(to, ((const lw_attr_input *)n->attr)->name,
                        ((const lw_attr_input *)n->attr)->type);
    lw_attr_param a = *lw_node_param(n);
    a.name = lw_arena_strdup(lw_graph_arena(to), a.name);
    if (!a.name)
        return lw_graph_fail(to, LW_ENOMEM, "%s", lw_errmsg());
    return lw_graph_op(to, LW_OP_PARAM, NULL, 0, &a, sizeof a);
}

lw_val lw_const_f32(lw_graph *g, float value)
{
    return lw_const(g, lw_type_of(LW_F32, 1, 1), &value);
}

lw_val lw_zeros(lw_graph *g, lw_type type)
{
    return lw_const(g, type, NULL);
}
