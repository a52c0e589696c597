/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What attention needs to know of the elements of its products (this file: floats;
 * attention_elem_bf16.h: pairs of bf16). A word holds AT_PER of them; a row operand (A of tile.h)
 * has words along its channels or keys, a panel or column operand (B) words of AT_PER steps.
 */
#ifndef LW_KERNELS_ATTENTION_ELEM_F32_H
#define LW_KERNELS_ATTENTION_ELEM_F32_H

#include <math.h>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_block.h"
#include "kernels/simd/simd_fetch.h"
#include "kernels/tile/tile.h"

#define AT(name) LWV(name)
#define AT_FORWARD(name) LW_ATTENTION_FORWARD(name, float)
#define AT_BACKWARD(name) LW_ATTENTION_BACKWARD(name, float)
enum { AT_PER = 1, AT_CHUNK = 1 };
enum { AHEAD = 8 /* rows that are asked for before they are packed */ };
#define at_product tile_product
#define at_begin()
#define at_end()

static ptrdiff_t row_length(ptrdiff_t hd)
{
    return hd;
}
typedef float at_real;
typedef float at_out;

LW_WORD vf at_load(const float *p, ptrdiff_t n)
{
    return v_load_n(p, n);
}

/* [t, pitch] columns 0..hd-1 to rows of dp floats, zeros behind: steps of a product over tokens. */
static void pack_steps(float *to, const float *from, ptrdiff_t pitch, ptrdiff_t t, ptrdiff_t hd,
                       ptrdiff_t dp)
{
    for (ptrdiff_t i = 0; i < t; i++, to += dp, from += pitch) {
        ptrdiff_t c = 0;
        lw_fetch_floats(from, AHEAD * pitch, hd, LW_FETCH_L1);
        for (; c + VL <= hd; c += VL)
            v_store(to + c, v_load(from + c));
        if (c < dp)
            v_store(to + c, v_load_n(from + c, hd - c));
    }
}

/* The same as a row operand for the backward pass: there the steps, which lie in `to`, serve. Returns
 * its pitch. */
static ptrdiff_t pack_row_operand(float *to, const float *from, ptrdiff_t pitch, ptrdiff_t t,
                                  ptrdiff_t hd, ptrdiff_t dp)
{
    (void)to, (void)from, (void)pitch, (void)t, (void)hd;
    return dp;
}

/* [t, pitch] to panels [t / NR][hd][NR] of from times scale, zeros behind the last token. */
static void pack_panels(float *to, const float *from, ptrdiff_t pitch, ptrdiff_t t, ptrdiff_t hd,
                        float scale)
{
    enum { NR = LW_ATTENTION_NR };
    for (ptrdiff_t j0 = 0; j0 < t; j0 += NR, to += NR * hd) {
        ptrdiff_t n = t - j0 < NR ? t - j0 : NR;
        if (n < NR)
            memset(to, 0, (size_t)(NR * hd) * sizeof *to);
        tile_transpose(to, NR, from + j0 * pitch, pitch, n, hd, scale);
    }
}

/* m rows of queries as row operands: here they lie so. */
static const float *query_rows(float *room, const float *q, ptrdiff_t *pitch, ptrdiff_t m,
                               ptrdiff_t hd)
{
    (void)room, (void)pitch, (void)m, (void)hd;
    return q;
}

/* e^x, but nothing below e^-87: it counts for nothing beside 1 and denormal numbers are slow. */
LW_WORD vf attention_exp(vf x)
{
    return v_exp_normal(v_max(v_set1(-87.3f), x));
}

/* One row of scores to probabilities p, which may be s, relative to `top`, the running maximum, which
 * was `old` before; returns the factor for what came before. Keys were scaled as they were packed. */
static float softmax_step(float *p, const float *s, ptrdiff_t n, float old, float top, float *sum,
                          float scale)
{
    (void)scale;
    vf acc = v_zero(), mv = v_set1(top);
    for (ptrdiff_t j = 0; j < n; j += VL) {
        vf e = attention_exp(v_sub(v_load(s + j), mv));
        acc = v_add(acc, e);
        v_store(p + j, e);
    }
    float back = old > -HUGE_VALF ? expf(old - top) : 0.0f;
    *sum = *sum * back + v_hsum(acc);
    return back;
}

static float log_sum(float top, float sum, float scale)
{
    (void)scale;
    return top + logf(sum);
}

/* Probabilities again, from raw scores. */
LW_WORD vf probabilities(vf s, float scale, float lse)
{
    return attention_exp(v_fms(s, v_set1(scale), v_set1(lse)));
}

/* A vector of AT_PER rows as a step; of one row as a row operand, which of floats is the same. */
LW_WORD void put_step(float *to, const vf *x)
{
    v_store(to, x[0]);
}
LW_WORD void put_row(float *to, ptrdiff_t j, vf x)
{
    (void)to, (void)j, (void)x;
}
/* Zeros behind n elements of a row operand that do not fill its last word. */
LW_WORD void end_row(float *row, ptrdiff_t n)
{
    (void)row, (void)n;
}

/* n lanes of an output row. */
LW_WORD void put_output(at_out *o, ptrdiff_t at, vf v, ptrdiff_t n, const lw_attention_shape *s)
{
    (void)s;
    v_store_n(o + at, v, n);
}

#endif
