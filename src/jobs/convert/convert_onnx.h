/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph as an ONNX model: node by node, with the shapes it was built for. Inside it computes as the
 * graph does, channels last; convolutions, pooling and resizing stand between two Transposes, which
 * runtimes move together and remove. Inputs and outputs of pictures are [N,C,H,W] f32.
 *
 * convert_onnx.c knows names, tensors and the file, convert_onnx_ew.c scalar operations,
 * convert_onnx_ops.c all other ops.
 */
#ifndef LW_CONVERT_ONNX_H
#define LW_CONVERT_ONNX_H

#include "formats/formats.h"
#include "models/models.h"

/* LW_EUNSUPPORTED: an op that is not covered, named. model: the bytes of the file. */
int lw_onnx_of_graph(const lw_graph *g, const char *name, lw_str *model);

/* ---- what the parts of it share ------------------------------------------------------------ */

/* A tensor of the model: a value of the graph by its id, or one made on the way, counted from behind
 * these. 0: absent. */
typedef uint32_t lw_onnx_val;

typedef struct lw_onnx {
    const lw_graph *g;
    lw_str nodes, tensors, inputs, outputs; /* encoded fields of GraphProto */
    lw_str attrs;                           /* those of the next node */
    lw_onnx_val last;
} lw_onnx;

/* Attributes of the node that is added next. */
void lw_onnx_int(lw_onnx *m, const char *name, int64_t v);
void lw_onnx_ints(lw_onnx *m, const char *name, const int64_t *v, int n);
void lw_onnx_float(lw_onnx *m, const char *name, float v);
void lw_onnx_word(lw_onnx *m, const char *name, const char *v);

/* A node whose only result is `out`; absent inputs are 0. */
void lw_onnx_node(lw_onnx *m, const char *op, const lw_onnx_val *in, int n, lw_onnx_val out);
lw_onnx_val lw_onnx_1(lw_onnx *m, const char *op, lw_onnx_val a);
lw_onnx_val lw_onnx_2(lw_onnx *m, const char *op, lw_onnx_val a, lw_onnx_val b);
lw_onnx_val lw_onnx_3(lw_onnx *m, const char *op, lw_onnx_val a, lw_onnx_val b, lw_onnx_val c);

lw_onnx_val lw_onnx_i64(lw_onnx *m, const int64_t *v, int n); /* a constant [n] */
lw_onnx_val lw_onnx_f32s(lw_onnx *m, const float *v, int n);  /* a constant [n] */
lw_onnx_val lw_onnx_f32(lw_onnx *m, float v);                 /* a constant [1] */
lw_onnx_val lw_onnx_shape(lw_onnx *m, lw_onnx_val x, const int64_t *dim, int rank);
lw_onnx_val lw_onnx_turn(lw_onnx *m, lw_onnx_val x, const int64_t *perm, int rank);
/* [B,H,W,C] -> [B,C,H,W] and back. */
lw_onnx_val lw_onnx_planar(lw_onnx *m, lw_onnx_val x);
lw_onnx_val lw_onnx_last(lw_onnx *m, lw_onnx_val x);

/* Input i of n, 0 where it is absent, and its type. */
lw_onnx_val lw_onnx_in(const lw_node *n, int i);
lw_type lw_onnx_type(const lw_onnx *m, const lw_node *n, int i);
/* The same as [last dimension]. */
lw_onnx_val lw_onnx_row(lw_onnx *m, const lw_node *n, int i);

lw_onnx_val lw_onnx_act(lw_onnx *m, lw_onnx_val x, int32_t act);
/* Output 0 of a node; 0: not covered. */
lw_onnx_val lw_onnx_ew(lw_onnx *m, const lw_node *n);
lw_onnx_val lw_onnx_op(lw_onnx *m, const lw_node *n);

#endif
