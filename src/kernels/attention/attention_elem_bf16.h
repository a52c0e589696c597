/* SPDX-License-Identifier: Apache-2.0 */
/* See attention_elem_f32.h. Here: two bf16 in a word, the earlier one low. Operands are words of
 * memory as they are; scores are scaled in the softmax. Where the instruction rounds, denormal numbers
 * become 0. */
#ifndef LW_KERNELS_ATTENTION_ELEM_BF16_H
#define LW_KERNELS_ATTENTION_ELEM_BF16_H

#include <math.h>

#include "kernels/gemm/gemm_elem_bf16.h"

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_block.h"
#include "kernels/tile/tile.h"
#if defined(LW_AMX)
#include "kernels/tile/tile_amx.h"
#endif

#define AT(name) LWV_PASTE(name##_bf16, LW_SIMD_SUFFIX)
#define AT_FORWARD(name) LW_ATTENTION_FORWARD_BF16(name)
#define AT_BACKWARD(name) LW_ATTENTION_BACKWARD_BF16(name)
enum { AT_PER = 2 };
/* AT_CHUNK: words that a product takes at a time; operands have zeros up to a multiple of it. */
#if defined(LW_AMX)
enum { AT_CHUNK = AMX_WORDS };
#define at_product amx_product
#define at_begin amx_begin
#define at_end amx_end

#define AT_ROWS
/* Row operands [rows][words], both multiples of 16, from the steps [words][pitch] of them. */
static const float *at_rows(float *room, const float *steps, ptrdiff_t pitch, ptrdiff_t rows,
                            ptrdiff_t words)
{
    for (ptrdiff_t i = 0; i < rows; i += VL)
        for (ptrdiff_t k = 0; k < words; k += VL) {
            vf r[VL];
            LW_UNROLL for (int l = 0; l < VL; l++) r[l] = v_load(steps + (k + l) * pitch + i);
            v_transpose(r);
            LW_UNROLL for (int l = 0; l < VL; l++) v_store(room + (i + l) * words + k, r[l]);
        }
    return room;
}
#else
enum { AT_CHUNK = 1 };
#define at_product tile_product
#define at_begin()
#define at_end()
#endif
typedef lw_bf16 at_real;
typedef void at_out;

LW_WORD vf at_load(const lw_bf16 *p, ptrdiff_t n)
{
    return v_load_bf16(p, n);
}

/* Words of a row of hd elements as an operand of products. */
static ptrdiff_t row_length(ptrdiff_t hd)
{
    return LW_ROUND_UP((hd + 1) / 2, AT_CHUNK);
}

/* [t, pitch] columns 0..hd-1 to [t / 2][dp] words of two rows, zeros behind. */
static void pack_steps(float *to, const lw_bf16 *from, ptrdiff_t pitch, ptrdiff_t t, ptrdiff_t hd,
                       ptrdiff_t dp)
{
    for (ptrdiff_t i = 0; i < t; i += 2, to += dp, from += 2 * pitch)
        for (ptrdiff_t c = 0; c < dp; c += VL) {
            ptrdiff_t n = LW_MIN(hd - c, VL);
            vi second = i + 1 < t ? vi_load_u16_n(from + pitch + c, n) : vi_set1(0);
            vi_store(to + c, vi_or(vi_load_u16_n(from + c, n), vi_shl(second, 16)));
        }
    for (ptrdiff_t i = (t + 1) / 2; i % AT_CHUNK != 0; i++, to += dp)
        memset(to, 0, (size_t)dp * sizeof *to);
}

/* Up to VL words of a row, its last n elements; zeros behind. */
LW_WORD vi row_words(const lw_bf16 *row, ptrdiff_t n)
{
    lw_bf16 all[2 * VL] = {0};
    if (n >= 2 * VL)
        return vi_load(row);
    if (n % 2 == 0)
        return vi_load_n(row, n / 2);
    memcpy(all, row, (size_t)n * sizeof *row);
    return vi_load(all);
}

/* [t, pitch] to panels [t / NR][hd / 2][NR] of words, zeros behind the last token. */
static void pack_panels(float *to, const lw_bf16 *from, ptrdiff_t pitch, ptrdiff_t t, ptrdiff_t hd,
                        float scale)
{
    enum { NR = LW_ATTENTION_NR };
    const ptrdiff_t words = row_length(hd);
    (void)scale;
    for (ptrdiff_t j = 0; j < LW_ROUND_UP(t, NR); j += VL)
        for (ptrdiff_t c = 0; c < words; c += VL) {
            vf r[VL];
            LW_UNROLL_UP_TO(16)
            for (int l = 0; l < VL; l++)
                r[l] = j + l < t ? v_as_f(row_words(from + (j + l) * pitch + 2 * c, hd - 2 * c))
                                 : v_zero();
            v_transpose(r);
            float *panel = to + j / NR * NR * words + j % NR;
            for (ptrdiff_t w = 0; w < LW_MIN(words - c, VL); w++)
                v_store(panel + (c + w) * NR, r[w]);
        }
}

/* m rows of queries as row operands, in `room`, zeros behind. */
static const float *query_rows(float *room, const lw_bf16 *q, ptrdiff_t *pitch, ptrdiff_t m,
                               ptrdiff_t hd)
{
    ptrdiff_t from = *pitch, words = (hd + 1) / 2, to = LW_ROUND_UP(words, VL);
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t c = 0; c < words; c += VL)
            vi_store(room + i * to + c, row_words(q + i * from + 2 * c, hd - 2 * c));
    *pitch = to;
    return room;
}

/* t rows as a row operand for the backward pass; returns its pitch. */
static ptrdiff_t pack_row_operand(float *to, const lw_bf16 *from, ptrdiff_t pitch, ptrdiff_t t,
                                  ptrdiff_t hd, ptrdiff_t dp)
{
    (void)dp;
    query_rows(to, from, &pitch, t, hd);
    return pitch;
}

/* As of floats, in powers of two, so that scaling the scores is part of taking the maximum off; nothing
 * below 2^-126: it counts for nothing beside 1 and denormal numbers are slow. */
static float softmax_step(float *p, const float *s, ptrdiff_t n, float old, float top, float *sum,
                          float scale)
{
    lw_bf16 *to = (lw_bf16 *)(void *)p;
    const float by = scale * 1.44269504f;
    vf acc = v_zero(), factor = v_set1(by), off = v_set1(top * by);
    for (ptrdiff_t j = 0; j < n; j += VL) {
        vf e = v_exp2_low(v_max(v_set1(-126.0f), v_fms(v_load(s + j), factor, off)));
        acc = v_add(acc, e);
        v_store_bf16(to + j, e, VL);
    }
    float back = old > -HUGE_VALF ? exp2f((old - top) * by) : 0.0f;
    *sum = *sum * back + v_hsum(acc);
    return back;
}

static float log_sum(float top, float sum, float scale)
{
    return top * scale + logf(sum);
}

LW_WORD vf probabilities(vf s, float scale, float lse)
{
    const float by = 1.44269504f;
    return v_exp2_low(v_max(v_set1(-126.0f), v_fms(s, v_set1(scale * by), v_set1(lse * by))));
}

LW_WORD void put_step(float *to, const vf *x)
{
    vi_store(to, word_of_halves(x[0], x[1]));
}
LW_WORD void put_row(float *to, ptrdiff_t j, vf x)
{
    v_store_bf16((lw_bf16 *)(void *)to + j, x, VL);
}
LW_WORD void end_row(float *row, ptrdiff_t n)
{
    ((lw_bf16 *)(void *)row)[n] = 0;
}

LW_WORD void put_output(at_out *o, ptrdiff_t at, vf v, ptrdiff_t n, const lw_attention_shape *s)
{
    if (s->store != LW_NUM_BF16)
        v_store_n((float *)o + at, v, n);
    else
        v_store_bf16((lw_bf16 *)o + at, v, n);
}

#endif
