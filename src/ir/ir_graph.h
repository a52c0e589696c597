/* SPDX-License-Identifier: Apache-2.0 */
/* The graph: append-only nodes in topological order, typed values, named outputs, a sticky first
 * error. */
#ifndef LW_IR_GRAPH_H
#define LW_IR_GRAPH_H

#include "base/memory.h"
#include "ir/ir_type.h"

typedef struct lw_graph lw_graph;
typedef struct lw_node lw_node;

typedef struct lw_val {
    uint32_t id; /* 0 = invalid or absent */
} lw_val;

static inline bool lw_val_ok(lw_val v)
{
    return v.id != 0;
}
#define LW_NOVAL ((lw_val){0})

enum { LW_MAX_IN = 10, LW_MAX_OUT = 8 };

/* LW_OP_INPUT, LW_OP_CONV2D, ...: one per row of ops.def. */
typedef enum lw_op {
#define OP(NAME, name, doc) LW_OP_##NAME,
#include "ir/ops.def"
#undef OP
    LW_OP_COUNT
} lw_op;

struct lw_node {
    lw_op op;
    int32_t n_in, n_out;
    lw_val in[LW_MAX_IN];   /* absent optional inputs are invalid values */
    lw_val out[LW_MAX_OUT]; /* every output is a value of its own */
    const void *attr; /* the op's attribute struct (ir_ops.h), zero-padded, compared bytewise */
    size_t attr_size;
    const char *scope; /* dotted scope it was built in */
    uint32_t index;    /* position in the graph */
    bool backward;     /* appended by reverse mode: runs after the forward pass */
};

typedef struct lw_cost {
    double flops; /* multiply and add counted separately */
    double bytes; /* operands read and results written once */
} lw_cost;

typedef struct lw_infer {
    int n_out;
    lw_type out[LW_MAX_OUT];
} lw_infer;

enum {
    LW_OPF_LEAF = 1u << 0,    /* input, param, const: nothing to run */
    LW_OPF_ALIAS = 1u << 1,   /* output 0 is input 0's memory under another shape */
    LW_OPF_INPLACE = 1u << 2, /* output 0 may overwrite input 0 when that dies here */
    LW_OPF_VARIES = 1u << 3,  /* an input or a draw: another value each run, never folded */
    LW_OPF_ANY_OUT = 1u << 4, /* kernels skip any output nobody reads; else any but output 0 */
    LW_OPF_CHEAP = 1u << 5,   /* normalises, maps or moves elements: quick to make again */
};

/* What passes know of a product: a matrix product, a convolution, or a gradient of one. Each result
 * is a sum over depth * taps terms. */
typedef struct lw_product {
    int64_t depth, taps, results; /* per row; 1 tap for a matrix product */
    bool weight_gradient;         /* inputs 0 and 1 are activations; else input 1 is a weight */
    bool narrow;                  /* rows are pixels or tokens: kernels take narrow operands */
    int residual;                 /* input that is added to the sum; -1: there is no epilogue */
    int image_bias; /* input [B,O] added to all pixels of an image; -1: there is none */
    size_t act;     /* of the epilogue: lw_act as int32_t, this far into the attributes */
} lw_product;

/* The const record of one op. `infer` checks and types; `grad` appends the VJP; both get
 * the graph. */
typedef struct lw_op_def {
    const char *name, *doc;
    /* Fills *out from n->in and n->attr; returns 0 or LW_ESHAPE with a message. */
    int (*infer)(const lw_graph *g, const lw_node *n, lw_infer *out);
    /* dout[i]: cotangent of output i (may be absent). need[i]: whether din[i] is wanted. Sets
     * din[i]. */
    void (*grad)(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need, lw_val *din);
    void (*cost)(const lw_graph *g, const lw_node *n, lw_cost *out);
    void (*print)(lw_str *s, const lw_node *n); /* attributes; may be NULL when there are none */
    /* Facts of a product; NULL: the op is none. */
    void (*product)(const lw_graph *g, const lw_node *n, lw_product *out);
    uint32_t flags;
} lw_op_def;

const lw_op_def *lw_op_get(lw_op op);
static inline bool lw_node_is(const lw_node *n, uint32_t flag) /* LW_OPF_* */
{
    return (lw_op_get(n->op)->flags & flag) != 0;
}
/* Fills *out and returns true when n is a product. */
bool lw_node_product(const lw_graph *g, const lw_node *n, lw_product *out);
/* The explicit "not differentiable": gradients stop here. */
void lw_grad_none(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need, lw_val *din);
/* Bytes in and out, no arithmetic worth counting. */
void lw_cost_bytes(const lw_graph *g, const lw_node *n, lw_cost *out);

typedef struct lw_graph_output {
    const char *name;
    lw_val val;
    /* Where it goes. A parameter: its gradient slab receives it. An input of the same type: it is a
     * state value, which the next run reads as that input. Absent: nowhere, an ordinary output. */
    lw_val into;
} lw_graph_output;

int lw_graph_new(lw_graph **out);
void lw_graph_free(lw_graph **pp);
lw_arena *lw_graph_arena(lw_graph *g);
/* 0, or the first error with its scope path (message set). */
int lw_graph_error(const lw_graph *g);
/* Records an error if none is recorded yet; returns the invalid value. */
lw_val lw_graph_fail(lw_graph *g, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends a node; attr is copied. Returns NULL after an error. Values are typed by the
 * op's infer. */
lw_node *lw_graph_add(lw_graph *g, lw_op op, const lw_val *in, int n_in, const void *attr,
                      size_t attr_size);
/* Same and returns output 0. */
lw_val lw_graph_op(lw_graph *g, lw_op op, const lw_val *in, int n_in, const void *attr,
                   size_t attr_size);

uint32_t lw_graph_node_count(const lw_graph *g);
lw_node *lw_graph_node(const lw_graph *g, uint32_t index);
uint32_t lw_graph_val_count(const lw_graph *g); /* ids run 1 .. count */
lw_type lw_val_type(const lw_graph *g, lw_val v);
lw_node *lw_val_node(const lw_graph *g, lw_val v);
int lw_val_slot(const lw_graph *g, lw_val v); /* which output of its node */

/* A value may live inside the rows of a wider one, columns [at, at + C) of `of`, or have gaps behind
 * its own. The plan decides that; a device's lowering asks for pitches. */
typedef struct lw_view {
    lw_val of; /* invalid: memory of its own */
    int32_t at;
    int32_t pitch; /* of memory of its own; 0: rows lie close */
} lw_view;
void lw_val_set_view(lw_graph *g, lw_val v, lw_view view);
lw_view lw_val_view(const lw_graph *g, lw_val v);
/* Elements between rows (all dimensions but the last) of v. */
int32_t lw_val_pitch(const lw_graph *g, lw_val v);

/* Names v as an output of the graph; into: see lw_graph_output. */
void lw_graph_output_add(lw_graph *g, const char *name, lw_val v, lw_val into);
int lw_graph_output_count(const lw_graph *g);
lw_graph_output *lw_graph_output_at(const lw_graph *g, int i);

/*
 * Scopes: dotted names of parameters, RNG streams and messages. Before them a node's scope may have
 * the part of the program it belongs to, "encoder:layer1.0": for messages and for telling where time
 * goes, never in a name.
 */
const char *lw_scope(const lw_graph *g); /* "" at the top; arena memory */
/* Enter a scope (may hold dots) and return the former one, to be given back to lw_scope_set:
 * `const char *up = lw_scope_push(g, "mid_block"); ... lw_scope_set(g, up);` */
const char *lw_scope_push(lw_graph *g, const char *name);
const char *lw_scope_pushf(lw_graph *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *lw_scope_set(lw_graph *g, const char *scope); /* returns the former one */
const char *lw_scope_name(lw_graph *g, const char *name); /* scope.name in the arena */
/* Leave all scopes for a part, or for the top of the part one is in. Both return the former scope. */
const char *lw_scope_part(lw_graph *g, const char *part);
const char *lw_scope_top(lw_graph *g);

/* Are nodes appended from now on part of the backward pass? Returns the former answer. */
bool lw_graph_backward(lw_graph *g, bool backward);

/* Of ops, attributes, types, constants, names of inputs, parameters and outputs; not of scopes, nor of
 * what parameters hold: graphs that compute the same the same way have the same number. */
uint64_t lw_graph_hash(const lw_graph *g);

/* One line per node: %12 = conv2d(%3, %4) {stride 1} : f32[...]  ; scope */
void lw_graph_print(lw_str *s, const lw_graph *g);
void lw_node_print(lw_str *s, const lw_graph *g, const lw_node *n);

#endif
