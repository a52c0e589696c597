/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs, and reductions. Intermediate values that a program reads again lie in
 * shared memory, a column for each thread. */
#include "backend/cuda/kernels/cuda_port.h"

enum {
    EW_NONE,
#define EW(name, arity, ref, body, slope) EW_##name,
#include "ir/ewops.def"
#undef EW
};

LW_ON_DEVICE float ew_sigmoid(float a)
{
    return 1.0f / (1.0f + expf(-a));
}

/* Behind 1e4 slopes are what they are there, 0 or 1: a stays where its powers are numbers. */
LW_ON_DEVICE float ew_near(float a)
{
    return a > 1e4f ? 1e4f : a < -1e4f ? -1e4f : a; /* a NaN stays */
}

/* The slope of a sigmoid(k a), of a (1 + tanh(u)) / 2 with u(a) and its slope. */
LW_ON_DEVICE float ew_gate_slope(float a, float k)
{
    a = ew_near(a);
    float s = ew_sigmoid(k * a);
    return s * fmaf(k * a, 1.0f - s, 1.0f);
}

LW_ON_DEVICE float ew_gelu_tanh_slope(float a)
{
    a = ew_near(a);
    float s = ew_sigmoid(a * fmaf(0.07135481f * a, a, 1.5957691f));
    return fmaf(a * s * (1.0f - s), fmaf(0.21406444f * a, a, 1.5957691f), s);
}

LW_ON_DEVICE float ew_gelu_slope(float a)
{
    a = ew_near(a);
    return fmaf(a * expf(-0.5f * a * a), 0.39894228f, 0.5f * (1.0f + erff(a * 0.70710678f)));
}

/* ewops.def's formulas in f32; what stands there and not here cannot be compiled. */
#define EW_VALUES(V)                                                                               \
    V(konst, imm)                                                                                  \
    V(copy, a)                                                                                     \
    V(add, a + b)                                                                                  \
    V(sub, a - b)                                                                                  \
    V(mul, a *b)                                                                                   \
    V(div, a / b)                                                                                  \
    V(fma, fmaf(a, b, c))                                                                          \
    V(max, a != a || a > b ? a : b)                                                                \
    V(min, a != a || a < b ? a : b)                                                                \
    V(neg, -a)                                                                                     \
    V(abs, fabsf(a))                                                                               \
    V(sqr, a *a)                                                                                   \
    V(sqrt, sqrtf(a))                                                                              \
    V(rsqrt, 1.0f / sqrtf(a))                                                                      \
    V(recip, 1.0f / a)                                                                             \
    V(exp, expf(a))                                                                                \
    V(log, logf(a))                                                                                \
    V(sin, sinf(a))                                                                                \
    V(cos, cosf(a))                                                                                \
    V(tanh, tanhf(a))                                                                              \
    V(erf, erff(a))                                                                                \
    V(sigmoid, ew_sigmoid(a))                                                                      \
    V(softplus, (a > 0.0f ? a : 0.0f) + log1pf(expf(-fabsf(a))))                                   \
    V(relu, lw_activate(a, 1))                                                                     \
    V(relu6, lw_activate(a, 6))                                                                    \
    V(silu, lw_activate(a, 2))                                                                     \
    V(silu_grad, ew_gate_slope(a, 1.0f))                                                           \
    V(gelu, lw_activate(a, 3))                                                                     \
    V(gelu_grad, ew_gelu_slope(a))                                                                 \
    V(gelu_tanh, lw_activate(a, 4))                                                                \
    V(gelu_tanh_grad, ew_gelu_tanh_slope(a))                                                       \
    V(quick_gelu, lw_activate(a, 5))                                                               \
    V(quick_gelu_grad, ew_gate_slope(a, 1.702f))                                                   \
    V(step, a > 0.0f ? 1.0f : 0.0f)                                                                \
    V(select, a > 0.0f ? b : c)

enum {
#define V(name, value) EW_HAS_##name,
    EW_VALUES(V)
#undef V
#define EW(name, arity, ref, body, slope) EW_IS_##name = EW_HAS_##name,
#include "ir/ewops.def"
#undef EW
};

LW_ON_DEVICE void ew_value(lw_cuda_ew_step s, const float *p, const float *q, const float *r,
                           float *y, const int wide)
{
    const float imm = s.imm;
    switch (s.op) {
#define V(name, value)                                \
    case EW_##name:                                   \
        LW_UNROLL                                     \
        for (int k = 0; k < wide; k++) {              \
            const float a = p[k], b = q[k], c = r[k]; \
            (void)a;                                  \
            (void)b;                                  \
            (void)c;                                  \
            y[k] = (value);                           \
        }                                             \
        break;
        EW_VALUES(V)
#undef V
    default:
        break;
    }
    (void)imm;
}

/* Where element (b, s, c) of the result lies in an operand, row = b S + s (lw_ew_mode). */
LW_ON_DEVICE int64_t ew_index(const lw_cuda_ew *a, int mode, int64_t row, int64_t b, int64_t c)
{
    return mode == 1 ? 0 : mode == 2 ? c : mode == 3 ? b : mode == 4 ? b * a->c + c : row;
}

/* Operand i of `wide` elements from e on, of which there are `left`; the first is (row, b, c). */
LW_ON_DEVICE void ew_read(const lw_cuda_ew *a, int i, int64_t e, int left, int64_t row, int64_t b,
                          float *v, const int wide)
{
    const float *in = a->in[i];
    const int mode = a->mode[i];
    int64_t c = e - row * a->c, s = row - b * a->s;
    const bool side = a->c % wide == 0; /* all of them are of one row */
    if (mode == 1 || (side && (mode == 3 || mode == 5))) {
        const float all = in[ew_index(a, mode, row, b, c)];
        LW_UNROLL
        for (int k = 0; k < wide; k++)
            v[k] = all;
    } else if (left == wide && (mode == 0 || side)) {
        lw_read(v, in + (mode == 0 ? e : ew_index(a, mode, row, b, c)), wide);
    } else {
        LW_UNROLL
        for (int k = 0; k < wide; k++) {
            v[k] = k < left ? in[mode == 0 ? e + k : ew_index(a, mode, row, b, c)] : 0.0f;
            if (++c == a->c) {
                c = 0;
                row++;
                b += ++s == a->s;
                s = s == a->s ? 0 : s;
            }
        }
    }
}

LW_ON_DEVICE void ew_operand(const float *room, int at, const float *last, float *v, const int wide)
{
    if (at != LW_CUDA_EW_LAST)
        lw_read(v, room + at * LW_CUDA_EW_THREADS * wide, wide);
    else
        LW_UNROLL
    for (int k = 0; k < wide; k++)
        v[k] = last[k];
}

LW_ON_DEVICE void ew_run(const lw_cuda_ew *a, float *room, const int wide)
{
    room += LW_TID * wide;
    for (int64_t e = (LW_BX * LW_THREADS + LW_TID) * wide; e < a->n;
         e += LW_BLOCKS * LW_THREADS * wide) {
        const int left = a->n - e < wide ? (int)(a->n - e) : wide;
        float y[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        const int64_t row = a->plain ? 0 : e / a->c, b = a->plain ? 0 : row / a->s;
        LW_ROLLED
        for (int i = 0; i < a->n_in; i++) {
            float v[4];
            ew_read(a, i, e, left, row, b, v, wide);
            lw_write(room + i * LW_CUDA_EW_THREADS * wide, v, wide);
        }
        LW_ROLLED
        for (int i = 0; i < a->n_step; i++) {
            const lw_cuda_ew_step s = a->step[i];
            float p[4], q[4], r[4];
            ew_operand(room, s.a, y, p, wide);
            ew_operand(room, s.b, y, q, wide);
            ew_operand(room, s.c, y, r, wide);
            ew_value(s, p, q, r, y, wide);
            if (a->to[i] != LW_CUDA_EW_LAST)
                lw_write(room + a->to[i] * LW_CUDA_EW_THREADS * wide, y, wide);
        }
        if (left == wide && a->store)
            lw_write_bf16((uint16_t *)a->y + e, y, wide);
        else if (left == wide)
            lw_write((float *)a->y + e, y, wide);
        else
            LW_UNROLL
        for (int k = 0; k < wide; k++)
            if (k < left && a->store)
                ((uint16_t *)a->y)[e + k] = lw_bf16_bits(y[k]);
            else if (k < left)
                ((float *)a->y)[e + k] = y[k];
    }
}

/* Programs of few places, four elements at a time; of many, or where a pointer is not aligned. */
LW_KERNEL(ew, lw_cuda_ew, LW_CUDA_EW_THREADS)
{
    LW_SHARED LW_ALIGNED16 float room[LW_CUDA_EW_PLACES * LW_CUDA_EW_THREADS * 4];
    ew_run(&a, room, 4);
}

LW_KERNEL(ew_single, lw_cuda_ew, LW_CUDA_EW_THREADS)
{
    LW_SHARED float room[(LW_CUDA_EW_IN + LW_CUDA_EW_STEPS) * LW_CUDA_EW_THREADS];
    ew_run(&a, room, 1);
}

/* A block for each sum of neighbours. */
LW_KERNEL(reduce_rows, lw_cuda_reduce, 256)
{
    LW_SHARED double room[256];
    double sum = 0.0;
    const float *x = a.x + LW_BX * a.r;
    for (int64_t i = LW_TID; i < a.r; i += 256)
        sum += (double)x[i];
    sum = lw_block_sum(room, sum);
    if (LW_TID == 0)
        a.y[LW_BX] = (float)(sum * a.scale);
}

/* A thread for each column. */
LW_KERNEL(reduce_columns, lw_cuda_reduce, 64)
{
    LW_EACH(e, a.a * a.c)
    {
        const float *x = a.x + e / a.c * a.r * a.c + e % a.c;
        double sum = 0.0;
        for (int64_t i = 0; i < a.r; i++)
            sum += (double)x[i * a.c];
        a.y[e] = (float)(sum * a.scale);
    }
}
