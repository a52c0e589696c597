/* SPDX-License-Identifier: Apache-2.0 */
/* Private to ir: declarations of the op records and what the op files share. */
#ifndef LW_IR_OPS_PRIVATE_H
#define LW_IR_OPS_PRIVATE_H

#include "ir/ir.h"

#define OP(NAME, name, doc) extern const lw_op_def lw_op_##name;
#include "ir/ops.def"
#undef OP

/* LW_ESHAPE: "op(f32[..], f32[..]): what". */
int lw_op_fail(const lw_graph *g, const lw_node *n, const char *what);
/* Sets the single output's type, returns 0. */
int lw_op_one(lw_infer *out, lw_type t);
/* infer rule: the type of input 0. */
int lw_op_like_first(const lw_graph *g, const lw_node *n, lw_infer *out);

/* Is input i a pair f32[2] of scale and zero point? (op_cast.c) */
bool lw_op_is_quant(const lw_graph *g, const lw_node *n, int i);
/* Activation i of a product: f32, bf16, or u8 with its pair as input `quant` (-1: no u8). */
int lw_op_check_operand(const lw_graph *g, const lw_node *n, int i, int quant);
/* Is input i absent or f32? Kernels read scales, shifts, biases and weights as such. */
bool lw_op_is_f32(const lw_graph *g, const lw_node *n, int i);
/* The element type of a product's result, and whether there is a rule for its bytes just where it has such. */
lw_dtype lw_op_stored(int32_t store);
int lw_op_check_stored(const lw_graph *g, const lw_node *n, int32_t store);
/* How dumps say it: "", " to bf16" or " to u8". */
const char *lw_op_stored_text(int32_t store);
/* Residual i of a result y: f32, or bf16 where operands are not f32. */
int lw_op_check_residual(const lw_graph *g, const lw_node *n, int i, lw_type y);
/* Equal but for the element type. */
bool lw_op_same_shape(lw_type a, lw_type b);

/* How dumps say it: "" or " silu". LW_ESHAPE from lw_op_check_act: this op has no such activation.
 */
const char *lw_op_act_text(int32_t act);
int lw_op_check_act(const lw_graph *g, const lw_node *n, int32_t act, lw_act last);

/* What convolutions share (op_conv.c): the result's type; is x its picture, are kernel, stride and
 * pads possible; bias and residual (inputs of these numbers) of a result y. */
lw_type lw_op_conv_out(const lw_attr_conv *a, int32_t batch);
int lw_op_conv_check(const lw_graph *g, const lw_node *n);
int lw_op_conv_extras(const lw_graph *g, const lw_node *n, int bias, int residual, lw_type y);
/* Is input 0 the cotangent of its result? The type of its picture. */
int lw_op_conv_check_dy(const lw_graph *g, const lw_node *n);
lw_type lw_op_conv_in(const lw_attr_conv *a, int32_t batch);
/* A convolution of pictures x [B,H,W,C] with w [O,KH,KW,..] that has c input channels; its gradients,
 * by ops dx and dw of (dy, w) and (dy, x). */
lw_val lw_op_conv_of(lw_graph *g, lw_op op, lw_val x, lw_val w, lw_val bias, int32_t c, int stride,
                     const int pad[4]);
void lw_op_conv_grad(lw_graph *g, const lw_node *n, lw_op dx, lw_op dw, lw_val dy, const bool *need,
                     lw_val *din);
/* Pairs of output pixel and tap inside the image. */
double lw_op_conv_taps(const lw_attr_conv *a);
void lw_op_conv_print(lw_str *s, const lw_node *n);
void lw_op_conv_print_one(lw_str *s, const lw_attr_conv *a);
/* Does v come from a pack node? */
bool lw_op_packed(const lw_graph *g, lw_val v);

static inline lw_type in_type(const lw_graph *g, const lw_node *n, int i)
{
    return lw_val_type(g, n->in[i]);
}

static inline bool has_in(const lw_node *n, int i)
{
    return i < n->n_in && lw_val_ok(n->in[i]);
}

#endif
