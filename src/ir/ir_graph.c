/* SPDX-License-Identifier: Apache-2.0 */
/* The append-only graph: nodes, typed values, outputs, scopes and the sticky first error. */
#include "ir/ir.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct val_record {
    lw_type type;
    lw_node *node;
    int slot;
    lw_view view;
} val_record;

struct lw_graph {
    lw_arena *arena;
    lw_node **nodes;
    size_t n_nodes, cap_nodes;
    val_record *vals; /* vals[id - 1] */
    size_t n_vals, cap_vals;
    lw_graph_output *outputs;
    size_t n_outputs, cap_outputs;
    const char *scope;
    bool backward;
    int error;
    char message[512];
};

int lw_graph_new(lw_graph **out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = lw_calloc(1, sizeof *g);
    if (!g)
        return LW_ENOMEM;
    LW_TRY(lw_arena_new(&g->arena));
    g->scope = "";
    *out = lw_steal(&g);
    return 0;
}

void lw_graph_free(lw_graph **pp)
{
    lw_graph *g = *pp;
    if (!g)
        return;
    lw_free(&g->nodes);
    lw_free(&g->vals);
    lw_free(&g->outputs);
    lw_arena_free(&g->arena);
    lw_free(pp);
}

lw_arena *lw_graph_arena(lw_graph *g)
{
    return g->arena;
}

int lw_graph_error(const lw_graph *g)
{
    return g->error ? lw_fail(g->error, "%s", g->message) : 0;
}

static void record_error(lw_graph *g, int code, const char *text)
{
    if (g->error)
        return;
    g->error = code;
    const char *sep = g->scope[0] ? ": " : "";
    snprintf(g->message, sizeof g->message, "%s%s%s", g->scope, sep, text);
}

lw_val lw_graph_fail(lw_graph *g, int code, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    record_error(g, code, text);
    return LW_NOVAL;
}

/* Sizes that memory may have. A value may have no rows, but what it would have rows of has numbers. */
static int check_type(lw_type t)
{
    const double most = 1e15;
    double n = 1.0;
    if (t.rank < 0 || t.rank > LW_MAX_RANK)
        return lw_fail(LW_ESHAPE, "a value of %d dimensions: at most %d", t.rank, LW_MAX_RANK);
    for (int i = 0; i < t.rank; i++) {
        const int32_t least = i + 1 == t.rank;
        if (t.dim[i] < least || t.dim[i] > LW_MAX_DIM)
            return lw_fail(LW_ESHAPE, "dimension %d of a value is %d: must be %d to %d", i,
                           t.dim[i], least, LW_MAX_DIM);
        n *= t.dim[i];
    }
    return n <= most ? 0 : lw_fail(LW_ESHAPE, "a value of %.3g elements", n);
}

static int infer_types(const lw_graph *g, const lw_node *n, lw_infer *inf)
{
    LW_TRY(lw_op_get(n->op)->infer(g, n, inf));
    for (int i = 0; i < inf->n_out; i++)
        LW_TRY(check_type(inf->out[i]));
    return 0;
}

static bool add_outputs(lw_graph *g, lw_node *n, const lw_infer *inf)
{
    LW_ASSERT(inf->n_out <= LW_MAX_OUT, "%d outputs", inf->n_out);
    if (lw_grow(&g->vals, &g->cap_vals, g->n_vals + (size_t)inf->n_out, sizeof *g->vals) < 0)
        return false;
    n->n_out = inf->n_out;
    for (int i = 0; i < inf->n_out; i++) {
        g->vals[g->n_vals++] = (val_record){.type = inf->out[i], .node = n, .slot = i};
        n->out[i] = (lw_val){(uint32_t)g->n_vals};
    }
    return true;
}

static bool inputs_valid(lw_graph *g, const lw_val *in, int n_in)
{
    LW_ASSERT(n_in <= LW_MAX_IN, "%d inputs", n_in);
    for (int i = 0; i < n_in; i++)
        LW_ASSERT(in[i].id <= g->n_vals, "value %u of another graph", in[i].id);
    return true;
}

lw_node *lw_graph_add(lw_graph *g, lw_op op, const lw_val *in, int n_in, const void *attr,
                      size_t attr_size)
{
    if (g->error || !inputs_valid(g, in, n_in))
        return NULL;
    lw_node *n = lw_arena_alloc(g->arena, sizeof *n);
    void *copy = attr_size ? lw_arena_alloc(g->arena, attr_size) : NULL;
    if (!n || (attr_size && !copy) ||
        lw_grow(&g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof *g->nodes) < 0) {
        record_error(g, LW_ENOMEM, lw_errmsg());
        return NULL;
    }
    if (attr_size)
        memcpy(copy, attr, attr_size);
    n->op = op;
    n->n_in = n_in;
    for (int i = 0; i < n_in; i++)
        n->in[i] = in[i];
    n->attr = copy;
    n->attr_size = attr_size;
    n->scope = g->scope;
    n->backward = g->backward;
    n->index = (uint32_t)g->n_nodes;
    lw_infer inf = {0};
    int rc = infer_types(g, n, &inf);
    if (rc < 0 || !add_outputs(g, n, &inf)) {
        record_error(g, rc < 0 ? rc : LW_ENOMEM, lw_errmsg());
        return NULL;
    }
    g->nodes[g->n_nodes++] = n;
    return n;
}

lw_val lw_graph_op(lw_graph *g, lw_op op, const lw_val *in, int n_in, const void *attr,
                   size_t attr_size)
{
    lw_node *n = lw_graph_add(g, op, in, n_in, attr, attr_size);
    return n ? n->out[0] : LW_NOVAL;
}

uint32_t lw_graph_node_count(const lw_graph *g)
{
    return (uint32_t)g->n_nodes;
}

lw_node *lw_graph_node(const lw_graph *g, uint32_t index)
{
    LW_ASSERT(index < g->n_nodes, "node %u of %zu", index, g->n_nodes);
    return g->nodes[index];
}

uint32_t lw_graph_val_count(const lw_graph *g)
{
    return (uint32_t)g->n_vals;
}

static const val_record *record(const lw_graph *g, lw_val v)
{
    static const val_record none;
    if (!v.id)
        return &none;
    LW_ASSERT(v.id <= g->n_vals, "value %u of another graph", v.id);
    return &g->vals[v.id - 1];
}

lw_type lw_val_type(const lw_graph *g, lw_val v)
{
    return record(g, v)->type;
}
lw_node *lw_val_node(const lw_graph *g, lw_val v)
{
    return record(g, v)->node;
}
int lw_val_slot(const lw_graph *g, lw_val v)
{
    return record(g, v)->slot;
}

void lw_val_set_view(lw_graph *g, lw_val v, lw_view view)
{
    LW_ASSERT(v.id && v.id <= g->n_vals, "value %u of another graph", v.id);
    g->vals[v.id - 1].view = view;
}

lw_view lw_val_view(const lw_graph *g, lw_val v)
{
    return record(g, v)->view;
}

int32_t lw_val_pitch(const lw_graph *g, lw_val v)
{
    lw_view view = record(g, v)->view;
    if (lw_val_ok(view.of)) /* which may be a view itself */
        return lw_val_pitch(g, view.of);
    return view.pitch ? view.pitch : lw_type_last(record(g, v)->type);
}

void lw_graph_output_add(lw_graph *g, const char *name, lw_val v, lw_val into)
{
    if (g->error)
        return;
    if (!lw_val_ok(v)) {
        lw_graph_fail(g, LW_ESHAPE, "output '%s' has no value", name);
        return;
    }
    if (lw_val_ok(into) && (!lw_type_eq(lw_val_type(g, v), lw_val_type(g, into)) ||
                            !lw_node_is(lw_val_node(g, into), LW_OPF_LEAF))) {
        lw_graph_fail(g, LW_ESHAPE, "output '%s' goes into an input or parameter of its type",
                      name);
        return;
    }
    const char *copy = lw_arena_strdup(g->arena, name);
    if (!copy || lw_grow(&g->outputs, &g->cap_outputs, g->n_outputs + 1, sizeof *g->outputs) < 0) {
        record_error(g, LW_ENOMEM, lw_errmsg());
        return;
    }
    g->outputs[g->n_outputs++] = (lw_graph_output){copy, v, into};
}

int lw_graph_output_count(const lw_graph *g)
{
    return (int)g->n_outputs;
}

lw_graph_output *lw_graph_output_at(const lw_graph *g, int i)
{
    LW_ASSERT(i >= 0 && (size_t)i < g->n_outputs, "output %d of %zu", i, g->n_outputs);
    return &g->outputs[i];
}

/* ---- scopes ---------------------------------------------------------------------------------- */

const char *lw_scope(const lw_graph *g)
{
    return g->scope;
}

const char *lw_scope_set(lw_graph *g, const char *scope)
{
    const char *old = g->scope;
    g->scope = scope;
    return old;
}

bool lw_graph_backward(lw_graph *g, bool backward)
{
    bool was = g->backward;
    g->backward = backward;
    return was;
}

/* Behind "part:". */
static const char *without_part(const char *scope)
{
    const char *colon = strchr(scope, ':');
    return colon ? colon + 1 : scope;
}

static const char *kept(lw_graph *g, const char *s)
{
    if (!s)
        record_error(g, LW_ENOMEM, lw_errmsg());
    return s ? s : "";
}

static const char *join(lw_graph *g, const char *scope, const char *name)
{
    const char *dot = *without_part(scope) ? "." : "";
    return kept(g, lw_arena_printf(g->arena, "%s%s%s", scope, dot, name));
}

const char *lw_scope_name(lw_graph *g, const char *name)
{
    return join(g, without_part(g->scope), name);
}

const char *lw_scope_push(lw_graph *g, const char *name)
{
    return lw_scope_set(g, join(g, g->scope, name));
}

const char *lw_scope_part(lw_graph *g, const char *part)
{
    return lw_scope_set(g, kept(g, lw_arena_printf(g->arena, "%s:", part)));
}

const char *lw_scope_top(lw_graph *g)
{
    int n = (int)(without_part(g->scope) - g->scope);
    return lw_scope_set(g, kept(g, lw_arena_printf(g->arena, "%.*s", n, g->scope)));
}

const char *lw_scope_pushf(lw_graph *g, const char *fmt, ...)
{
    char name[128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return lw_scope_push(g, name);
}
