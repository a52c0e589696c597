/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration: which products int8 can compute, by the names of their weights, and which ranges belong to them. A range is
 * that of an edge, a value that such a product reads; its name is that of the weight beside it.
 */
#include "plan/plan_pass.h"

#include <string.h>

/* The largest parameter behind v (the first of them by name where several are), which keeps its
 * name when a BatchNorm is folded into it and programs are fused. False: inputs have a part in v,
 * or so much stands behind it that it is no weight. */
static bool find_weight(const lw_graph *g, lw_val v, const lw_attr_param **best, int *budget)
{
    const lw_node *n = lw_val_node(g, v);
    const lw_attr_param *a = lw_node_param(n);
    if (--*budget < 0 || lw_node_is(n, LW_OPF_VARIES))
        return false;
    if (a) {
        int64_t have = *best ? lw_type_count((*best)->type) : -1, now = lw_type_count(a->type);
        if (now > have || (now == have && strcmp(a->name, (*best)->name) < 0))
            *best = a;
        return true;
    }
    for (int i = 0; i < n->n_in; i++)
        if (lw_val_ok(n->in[i]) && !find_weight(g, n->in[i], best, budget))
            return false;
    return true;
}

static const char *weight_name(const lw_graph *g, lw_val v)
{
    enum { NODES = 64 };
    const lw_attr_param *best = NULL;
    int budget = NODES;
    return find_weight(g, v, &best, &budget) && best ? best->name : NULL;
}

bool lw_product_narrow(const lw_graph *g, const lw_node *n, lw_product *out)
{
    return lw_node_product(g, n, out) && out->narrow && out->depth >= LW_THIN &&
           out->results >= LW_THIN;
}

const char *lw_product_int8_weight(const lw_graph *g, const lw_node *n)
{
    enum { EXACT = 65536 }; /* depth up to which sums of bytes are exact */
    lw_product f;
    if (!lw_product_narrow(g, n, &f) || f.depth % 4 || f.depth * f.taps >= EXACT ||
        f.weight_gradient || n->backward)
        return NULL;
    return weight_name(g, n->in[1]);
}

int32_t lw_calibration_edge(const lw_calibration *c, const lw_graph *g, const lw_node *n)
{
    const char *name = c ? lw_product_int8_weight(g, n) : NULL;
    for (int32_t i = 0; name && i < c->n; i++)
        if (strcmp(c->edge[i].name, name) == 0)
            return i;
    return -1;
}

bool lw_calibration_fits(const lw_graph *g, const lw_calibration *c)
{
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++)
        if (lw_calibration_edge(c, g, lw_graph_node(g, k)) >= 0)
            return true;
    return false;
}

int lw_calibration_check(const lw_calibration *c, const lw_graph *g, bool part)
{
    if (!c || c->n == 0)
        return lw_fail(LW_EUSAGE, "int8 needs the ranges of a calibration: make them with "
                                  "`leeway quantize`");
    if (part || lw_calibration_fits(g, c))
        return 0;
    return lw_fail(LW_EFORMAT,
                   "none of the %d calibrated weights belongs to a product of this "
                   "network that int8 can compute: make its own ranges with `leeway quantize`",
                   (int)c->n);
}

/* ---- what is measured ------------------------------------------------------------------------ */

/* The output that is named so, if there is one. */
static const lw_graph_output *output_named(const lw_graph *g, const char *name)
{
    for (int i = 0; i < lw_graph_output_count(g); i++)
        if (strcmp(lw_graph_output_at(g, i)->name, name) == 0)
            return lw_graph_output_at(g, i);
    return NULL;
}

static int add_edge(lw_graph *g, const lw_node *n, const char *weight)
{
    const char *name = lw_arena_printf(lw_graph_arena(g), LW_EDGE_OUTPUT "%s", weight);
    if (!name)
        return LW_ENOMEM;
    const lw_graph_output *other = output_named(g, name);
    if (!other)
        lw_graph_output_add(g, name, n->in[0], LW_NOVAL);
    else if (other->val.id != n->in[0].id)
        return lw_fail(LW_EUNSUPPORTED,
                       "%s multiplies two different values, and int8 has one range for it: this "
                       "network cannot be quantised",
                       weight);
    return lw_graph_error(g);
}

int lw_calibration_outputs(lw_graph *g)
{
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++) {
        const lw_node *n = lw_graph_node(g, k);
        const char *weight = lw_product_int8_weight(g, n);
        if (weight)
            LW_TRY(add_edge(g, n, weight));
    }
    return lw_graph_error(g);
}
