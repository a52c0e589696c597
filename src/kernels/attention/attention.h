/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention: o = softmax(q k^T * scale) v per head, never storing the T x T matrix (Dao et al.,
 * "FlashAttention", 2022: online softmax forward, recomputation backward).
 *
 * One call = one task of one sample; pointers are those of the sample. q is [Tq, q_pitch], k and v
 * are [Tk, k_pitch] and [Tk, v_pitch]; head h is at channels h * hd. In one packed buffer q | k | v
 * of C = heads * hd channels each, that is buf, buf + C and buf + 2 C with pitches of 3 C.
 *
 * forward_bf16 reads q, k and v of bf16 and rounds the probabilities before they are divided by their
 * sum (2^-9, to nearest even); scores, their scaling, sums and the softmax are f32, the exponential to
 * 3e-6. It writes f32, or bf16 where the shape says so; lse may be NULL. scale > 0.
 *
 * rope: rotary positions (Su et al., "RoFormer", 2021) of q or k before. A row is pieces of d channels, and
 * channels i and i + d/2 of a piece are turned by an angle of their own ("rotate half"):
 *
 *   y[i] = x[i] cos - x[i + d/2] sin,   y[i + d/2] = x[i + d/2] cos + x[i] sin
 *
 * Cost: 4 Tq Tk hd FLOP a head forward, 10 Tq Tk hd backward (scores are made again). One thread
 * reaches 24 % of the peak at 16 tokens, where the softmax of single vectors dominates, and 73 to
 * 83 % from 64 on; of bf16 58 to 75 % of its twice as high one (docs/performance-zen4.md). Heads of
 * at most 16 channels cost exponentials more than products: forward_bf16 has a way of its own for
 * them (attention_narrow_body.inc).
 */
#ifndef LW_KERNELS_ATTENTION_H
#define LW_KERNELS_ATTENTION_H

#include <stddef.h>

#include "base/base.h"

typedef struct lw_attention_shape {
    ptrdiff_t tq, tk; /* tokens of q, o; of k, v */
    ptrdiff_t heads, hd;
    /* elements between tokens of q and dq, of k and dk, of v and dv, of o and dO; >= heads * hd */
    ptrdiff_t q_pitch, k_pitch, v_pitch, o_pitch;
    float scale;       /* usually 1 / sqrt(hd) */
    ptrdiff_t samples; /* that tasks are shared out with; 0: this one has threads enough */
    lw_num store;      /* LW_NUM_BF16: o is bf16; forward_bf16 only */
} lw_attention_shape;

/* o [Tq, o_pitch] and lse [heads, Tq] (log-sum-exp of the scaled scores) for the rows of
 * task `task`. */
#define LW_ATTENTION_FORWARD(name, real)                                       \
    void name(real *o, real *lse, const real *q, const real *k, const real *v, \
              const lw_attention_shape *s, ptrdiff_t task, float *scratch)
#define LW_ATTENTION_FORWARD_BF16(name)                                                  \
    void name(void *o, float *lse, const lw_bf16 *q, const lw_bf16 *k, const lw_bf16 *v, \
              const lw_attention_shape *s, ptrdiff_t task, float *scratch)
/*
 * dq, dk, dv (as q, k, v; any may be NULL) of head `head` from dO [Tq, o_pitch], o, lse and the
 * forward's inputs; added to when add is 1. One task = one head.
 */
#define LW_ATTENTION_BACKWARD(name, real)                                                     \
    void name(real *dq, real *dk, real *dv, const real *dout, const real *o, const real *lse, \
              const real *q, const real *k, const real *v, const lw_attention_shape *s,       \
              ptrdiff_t head, int add, float *scratch)

/* The same of bf16 q, k, v, dO and o, into floats: scores as forward_bf16 has them, P and
 * dS = P (dP - dO . o) are rounded for the products with dO, q and k. */
#define LW_ATTENTION_BACKWARD_BF16(name)                                              \
    void name(float *dq, float *dk, float *dv, const lw_bf16 *dout, const lw_bf16 *o, \
              const float *lse, const lw_bf16 *q, const lw_bf16 *k, const lw_bf16 *v, \
              const lw_attention_shape *s, ptrdiff_t head, int add, float *scratch)

typedef struct lw_rope_shape {
    ptrdiff_t c, d;           /* channels of a row, of a piece (even) */
    ptrdiff_t tokens, pieces; /* rows of the table; pieces of such a row: a row of x repeats it */
} lw_rope_shape;
/* Rows [r0, r1) of y and x [rows, c]; row r is token r % tokens. table [tokens, pieces, d]: of each piece
 * d/2 cosines, then d/2 sines, these times sign (-1 turns back). y may be x. */
typedef void lw_attention_rope_fn(float *y, const float *x, const float *table, float sign,
                                  const lw_rope_shape *s, ptrdiff_t r0, ptrdiff_t r1);

typedef LW_ATTENTION_FORWARD(lw_attention_forward_fn, float);
typedef LW_ATTENTION_FORWARD_BF16(lw_attention_forward_bf16_fn);
typedef LW_ATTENTION_BACKWARD(lw_attention_backward_fn, float);
typedef LW_ATTENTION_BACKWARD_BF16(lw_attention_backward_bf16_fn);

typedef struct lw_attention_kernels {
    lw_attention_forward_fn *forward;
    lw_attention_forward_bf16_fn *forward_bf16;
    lw_attention_backward_fn *backward;
    lw_attention_backward_bf16_fn *backward_bf16;
    lw_attention_rope_fn *rope;
} lw_attention_kernels;

/* Forward tasks of one sample: heads x row blocks, of fewer rows where samples are few (no bit depends on
 * it); backward tasks: heads. */
ptrdiff_t lw_attention_tasks(const lw_attention_shape *s);
/* Head and rows [r0, r1) of a forward task. */
void lw_attention_range(const lw_attention_shape *s, ptrdiff_t task, ptrdiff_t *head, ptrdiff_t *r0,
                        ptrdiff_t *r1);
/* Floats of scratch one call needs (64-byte aligned). */
size_t lw_attention_scratch(const lw_attention_shape *s, int backward);

/* The reference in double, for gradient checks. */
LW_ATTENTION_FORWARD(lw_attention_forward_f64, double);
LW_ATTENTION_BACKWARD(lw_attention_backward_f64, double);

#define K(family, isa, field, function) lw_attention_##field##_fn function;
#include "kernels/attention/attention.def"
#undef K

#endif
