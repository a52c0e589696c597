/* SPDX-License-Identifier: Apache-2.0 */
/* Reference attention in plain loops, for float and for double data; task split and
 * scratch sizes. */
#include "kernels/attention/attention.h"

#include <math.h>

#include "base/base.h"
#include "base/bf16.h"

#include "kernels/attention/attention_block.h"

enum { REF_BLOCK = 64 }; /* output channels held in double at a time */

static double attention_scale(const lw_attention_shape *s)
{
    return (double)s->scale;
}

#define ATTENTION_DOT(name, real)                                 \
    static double name(const real *a, const real *b, ptrdiff_t n) \
    {                                                             \
        double sum = 0;                                           \
        for (ptrdiff_t c = 0; c < n; c++)                         \
            sum += (double)a[c] * (double)b[c];                   \
        return sum;                                               \
    }
ATTENTION_DOT(attention_dot_ref, float)
ATTENTION_DOT(attention_dot_f64, double)

#define LW_REAL float
#define LW_REF(name) name##_ref
#include "kernels/attention/attention_ref.inc"
#undef LW_REAL
#undef LW_REF
#define LW_REAL double
#define LW_REF(name) name##_f64
#include "kernels/attention/attention_ref.inc"

static double rounded(double x)
{
    return (double)lw_bf16_to_f32(lw_bf16_of_f32((float)x));
}

static double dot_bf16(const lw_bf16 *a, const lw_bf16 *b, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t c = 0; c < n; c++)
        sum += (double)lw_bf16_to_f32(a[c]) * (double)lw_bf16_to_f32(b[c]);
    return sum;
}

static double score_bf16(const lw_bf16 *q, const lw_bf16 *k, const lw_attention_shape *s)
{
    return dot_bf16(q, k, s->hd) * attention_scale(s);
}

LW_ATTENTION_FORWARD_BF16(lw_attention_forward_bf16_ref)
{
    ptrdiff_t h, r0, r1;
    (void)scratch;
    lw_attention_range(s, task, &h, &r0, &r1);
    k += h * s->hd;
    v += h * s->hd;
    for (ptrdiff_t i = r0; i < r1; i++) {
        const lw_bf16 *row = q + i * s->q_pitch + h * s->hd;
        double top = -HUGE_VAL, sum = 0;
        for (ptrdiff_t j = 0; j < s->tk; j++)
            top = fmax(top, score_bf16(row, k + j * s->k_pitch, s));
        for (ptrdiff_t j = 0; j < s->tk; j++)
            sum += exp(score_bf16(row, k + j * s->k_pitch, s) - top);
        if (lse)
            lse[h * s->tq + i] = (float)(top + log(sum));
        for (ptrdiff_t c0 = 0; c0 < s->hd; c0 += REF_BLOCK) {
            ptrdiff_t n = s->hd - c0 < REF_BLOCK ? s->hd - c0 : REF_BLOCK;
            double acc[REF_BLOCK] = {0};
            for (ptrdiff_t j = 0; j < s->tk; j++) {
                double p = rounded(exp(score_bf16(row, k + j * s->k_pitch, s) - top));
                for (ptrdiff_t c = 0; c < n; c++)
                    acc[c] += p * (double)lw_bf16_to_f32(v[j * s->v_pitch + c0 + c]);
            }
            for (ptrdiff_t c = 0, at = i * s->o_pitch + h * s->hd + c0; c < n; c++)
                if (s->store == LW_NUM_BF16)
                    ((lw_bf16 *)o)[at + c] = lw_bf16_of_f32((float)(acc[c] / sum));
                else
                    ((float *)o)[at + c] = (float)(acc[c] / sum);
        }
    }
}

/* P and dS of query i and key j of a head, as products read them. */
static void pair_bf16(double *p, double *ds, const lw_bf16 *g, const lw_bf16 *o, double lse,
                      const lw_bf16 *q, const lw_bf16 *k, const lw_bf16 *v,
                      const lw_attention_shape *s)
{
    double at = exp(score_bf16(q, k, s) - lse), dp = dot_bf16(g, v, s->hd) - dot_bf16(g, o, s->hd);
    *p = rounded(at);
    *ds = rounded(at * attention_scale(s) * dp);
}

static void add_bf16(double *acc, double by, const lw_bf16 *x, ptrdiff_t n)
{
    for (ptrdiff_t c = 0; c < n; c++)
        acc[c] += by * (double)lw_bf16_to_f32(x[c]);
}

LW_ATTENTION_BACKWARD_BF16(lw_attention_backward_bf16_ref)
{
    const ptrdiff_t at = head * s->hd;
    double p, ds;
    (void)scratch;
    for (ptrdiff_t c0 = 0; c0 < s->hd; c0 += REF_BLOCK) {
        const ptrdiff_t n = LW_MIN(s->hd - c0, REF_BLOCK), to = at + c0;
        for (ptrdiff_t i = 0; dq && i < s->tq; i++) {
            double aq[REF_BLOCK] = {0};
            for (ptrdiff_t j = 0; j < s->tk; j++) {
                pair_bf16(&p, &ds, dout + i * s->o_pitch + at, o + i * s->o_pitch + at,
                          (double)lse[head * s->tq + i], q + i * s->q_pitch + at,
                          k + j * s->k_pitch + at, v + j * s->v_pitch + at, s);
                add_bf16(aq, ds, k + j * s->k_pitch + to, n);
            }
            attention_put_ref(dq + i * s->q_pitch + to, aq, n, add);
        }
        for (ptrdiff_t j = 0; j < s->tk; j++) {
            double ak[REF_BLOCK] = {0}, av[REF_BLOCK] = {0};
            for (ptrdiff_t i = 0; i < s->tq; i++) {
                pair_bf16(&p, &ds, dout + i * s->o_pitch + at, o + i * s->o_pitch + at,
                          (double)lse[head * s->tq + i], q + i * s->q_pitch + at,
                          k + j * s->k_pitch + at, v + j * s->v_pitch + at, s);
                add_bf16(ak, ds, q + i * s->q_pitch + to, n);
                add_bf16(av, p, dout + i * s->o_pitch + to, n);
            }
            if (dk)
                attention_put_ref(dk + j * s->k_pitch + to, ak, n, add);
            if (dv)
                attention_put_ref(dv + j * s->v_pitch + to, av, n, add);
        }
    }
}

/* Tasks of a head: of about as many rows each. */
static ptrdiff_t row_blocks(const lw_attention_shape *s)
{
    ptrdiff_t blocks = LW_CEIL_DIV(s->tq, LW_ATTENTION_ROWS), heads = s->samples * s->heads;
    while (heads && heads * blocks < LW_ATTENTION_TASKS && s->tq / (2 * blocks) >= LW_ATTENTION_FEW)
        blocks *= 2;
    return blocks;
}

ptrdiff_t lw_attention_tasks(const lw_attention_shape *s)
{
    return s->heads * row_blocks(s);
}

void lw_attention_range(const lw_attention_shape *s, ptrdiff_t task, ptrdiff_t *head, ptrdiff_t *r0,
                        ptrdiff_t *r1)
{
    ptrdiff_t blocks = row_blocks(s);
    ptrdiff_t rows = LW_ROUND_UP(LW_CEIL_DIV(s->tq, blocks), LW_ATTENTION_QF);
    *head = task / blocks;
    *r0 = LW_MIN(task % blocks * rows, s->tq);
    *r1 = LW_MIN(*r0 + rows, s->tq);
}

size_t lw_attention_scratch(const lw_attention_shape *s, int backward)
{
    size_t tq = (size_t)(s->tq + 63) / 64 * 64, tk = (size_t)(s->tk + 63) / 64 * 64,
           d = (size_t)(s->hd + 31) / 32 * 32;
    return backward ? LW_ATTENTION_BACKWARD_FLOATS(tq, tk, d) : LW_ATTENTION_FORWARD_FLOATS(tk, d);
}
