/* SPDX-License-Identifier: Apache-2.0 */
/* The graph as text: one line per node, in order. Golden-tested: keep it stable. */
#include "ir/ir.h"

/* Narrow operands say so, that a product's line tells in what type it multiplies. */
static void print_operand(lw_str *s, const lw_graph *g, lw_val v)
{
    if (!lw_val_ok(v)) {
        lw_str_add(s, "-");
        return;
    }
    lw_dtype type = lw_val_type(g, v).dtype;
    lw_str_addf(s, "%%%u", v.id);
    if (type == LW_BF16 || type == LW_U8)
        lw_str_addf(s, ":%s", lw_dtype_name(type));
}

void lw_node_print(lw_str *s, const lw_graph *g, const lw_node *n)
{
    const lw_op_def *def = lw_op_get(n->op);
    for (int i = 0; i < n->n_out; i++)
        lw_str_addf(s, "%s%%%u", i ? ", " : "", n->out[i].id);
    lw_str_addf(s, " = %s(", def->name);
    for (int i = 0; i < n->n_in; i++) {
        lw_str_add(s, i ? ", " : "");
        print_operand(s, g, n->in[i]);
    }
    lw_str_add(s, ")");
    if (def->print) {
        lw_str_add(s, " {");
        def->print(s, n);
        lw_str_add(s, "}");
    }
    lw_str_add(s, " : ");
    for (int i = 0; i < n->n_out; i++) {
        lw_str_add(s, i ? ", " : "");
        lw_type_print(s, lw_val_type(g, n->out[i]));
    }
    if (n->scope[0])
        lw_str_addf(s, "  ; %s", n->scope);
}

void lw_graph_print(lw_str *s, const lw_graph *g)
{
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        lw_node_print(s, g, lw_graph_node(g, i));
        lw_str_add(s, "\n");
    }
    for (int i = 0; i < lw_graph_output_count(g); i++) {
        const lw_graph_output *o = lw_graph_output_at(g, i);
        const char *into = !lw_val_ok(o->into)                      ? ""
                           : lw_node_param(lw_val_node(g, o->into)) ? " (gradient slab)"
                                                                    : " (state)";
        lw_str_addf(s, "output '%s' = %%%u%s\n", o->name, o->val.id, into);
    }
}
