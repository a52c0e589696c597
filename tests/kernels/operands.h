/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of products of every type for the kernel tests, and the numbers that they stand for. */
#ifndef LW_TESTS_OPERANDS_H
#define LW_TESTS_OPERANDS_H

#include <math.h>

#include "kernels/check.h"
#include "base/base.h"
#include "kernels/kernels.h"

/* The activations by their formulas (base/kinds.h), apart from the reference kernels. */
static inline double activated(double x, lw_act act)
{
    const double pi = 3.14159265358979323846;
    switch (act) {
    case LW_ACT_RELU:
        return LW_MAX(x, 0.0);
    case LW_ACT_RELU6:
        return LW_MIN(LW_MAX(x, 0.0), 6.0);
    case LW_ACT_SILU:
        return x / (1.0 + exp(-x));
    case LW_ACT_GELU:
        return 0.5 * x * erfc(-x / sqrt(2.0));
    case LW_ACT_GELU_TANH:
        return x / (1.0 + exp(-2.0 * sqrt(2.0 / pi) * (x + 0.044715 * pow(x, 3.0))));
    case LW_ACT_QUICK_GELU:
        return x / (1.0 + exp(-1.702 * x));
    default:
        return x;
    }
}

/* A sum behind its epilogue: of channel n of pixel `row`, of an image. */
static inline double finished(double s, const lw_epilogue *e, double old, ptrdiff_t image,
                              ptrdiff_t row, ptrdiff_t n)
{
    s += e->accumulate ? old : 0.0;
    s += e->bias ? (double)e->bias[n] : 0.0;
    s += e->image_bias ? (double)e->image_bias[image * e->ld_image_bias + n] : 0.0;
    s += e->residual ? (double)e->residual[row * e->ld_residual + n] : 0.0;
    return activated(s, e->act);
}

/* n random bf16 in [-1, 1), and their values. */
static inline lw_bf16 *operands_bf16(check *t, int64_t n, int shift, double **values)
{
    float *x = check_in(t, n, 0, -1, 1);
    lw_bf16 *p = check_bytes(t, (size_t)n * sizeof *p, shift);
    *values = check_doubles(t, n);
    for (int64_t i = 0; i < n; i++) {
        p[i] = lw_bf16_of_f32(x[i]);
        (*values)[i] = (double)lw_bf16_to_f32(p[i]);
    }
    return p;
}

/* n random bytes, many of them 0 or 255, and their values scale * (byte - zero). */
static inline uint8_t *operands_u8(check *t, int64_t n, int shift, const lw_quant *q,
                                   double **values)
{
    float *x = check_in(t, n, 0, -64, 320);
    uint8_t *p = check_bytes(t, (size_t)n, shift);
    *values = check_doubles(t, n);
    for (int64_t i = 0; i < n; i++) {
        p[i] = (uint8_t)LW_MIN(LW_MAX(x[i], 0.0f), 255.0f);
        (*values)[i] = (double)q->a_scale * (double)(p[i] - q->a_zero);
    }
    return p;
}

/* One scale per filter of `depth` weights (a filter in seven gets 0: all its weights count as 0,
 * and one in five clips), and the values of the rounded weights. */
static inline float *operand_scales(check *t, const float *w, int64_t filters, int64_t depth,
                                    double **values)
{
    float *scale = check_out(t, filters, 1);
    *values = check_doubles(t, filters * depth);
    for (int64_t f = 0; f < filters; f++) {
        float most = 0.0f;
        for (int64_t i = 0; i < depth; i++)
            most = fmaxf(most, fabsf(w[f * depth + i]));
        scale[f] = f % 7 == 6 ? 0.0f : most / (f % 5 == 4 ? 200.0f : 127.0f);
        for (int64_t i = 0; i < depth && scale[f] > 0.0f; i++) {
            double s8 = rint((double)(w[f * depth + i] / scale[f]));
            (*values)[f * depth + i] = (double)scale[f] * LW_MIN(LW_MAX(s8, -127.0), 127.0);
        }
    }
    return scale;
}

/* n random operands of a type and their values; q: of bytes. */
static inline void *operands(check *t, lw_num num, int64_t n, int shift, const lw_quant *q,
                             double **values)
{
    if (num == LW_NUM_S8)
        return operands_u8(t, n, shift, q, values);
    if (num == LW_NUM_BF16)
        return operands_bf16(t, n, shift, values);
    float *x = check_in(t, n, shift, -1, 1);
    *values = check_doubles(t, n);
    for (int64_t i = 0; i < n; i++)
        (*values)[i] = (double)x[i];
    return x;
}

/* The last way of multiplying at a level. */
static inline lw_num operand_last(const check *t)
{
    return t->isa >= LW_ISA_AMX ? LW_NUM_BF16X3 : LW_NUM_S8;
}

static inline size_t operand_bytes(lw_num num)
{
    return sizeof(float) / (size_t)lw_num_per_word(num);
}

/* What weights are worth once they are packed for a type; s8 gets its scales in q. */
static inline double *operand_weights(check *t, lw_num num, const float *w, int64_t filters,
                                      int64_t depth, lw_quant *q)
{
    double *v;
    if (num == LW_NUM_S8) {
        q->b_scale = operand_scales(t, w, filters, depth, &v);
        return v;
    }
    v = check_doubles(t, filters * depth);
    for (int64_t i = 0; i < filters * depth; i++)
        v[i] = (double)(num == LW_NUM_BF16 ? lw_bf16_to_f32(lw_bf16_of_f32(w[i])) : w[i]);
    return v;
}

/* A chain of `depth` products: of numbers below 1 in f32, 1e-6 of the size of a random sum, and
 * what rounding adds to a long one (every addition rounds to the sum so far, whose size grows with
 * the root; the worst of 40 seeds comes to three quarters). Whole sums are exact; what follows
 * rounds a few times (3.2: the largest product of bytes at the scale 0.0123). */
static inline check_tol operand_tol(lw_num num, int64_t depth)
{
    double root = sqrt((double)depth);
    return num == LW_NUM_S8
               ? (check_tol){.abs = 1e-6 + 3.2e-7 * root, .rel = 4e-7}
               : (check_tol){.abs = 1e-6 + 1e-6 * root + 5e-8 * (double)depth, .rel = 2e-7};
}

/* Is low what the floats are rounded to? The smallest numbers may be 0 (gemm.h); behind a curve, which may
 * be approximated, a bf16 more or less. */
static inline void check_rounded(check *t, const lw_bf16 *low, const float *floats, int64_t n,
                                 lw_act act, const char *name)
{
    float *got = check_out(t, n, 0);
    double *want = check_doubles(t, n);
    const check_tol curve = {.abs = 5e-5, .rel = 1.0 / 128}, exact = {.abs = 1.2e-38};
    for (int64_t i = 0; i < n; i++) {
        got[i] = lw_bf16_to_f32(low[i]);
        want[i] = (double)lw_bf16_to_f32(lw_bf16_of_f32(floats[i]));
    }
    check_close(t, got, want, n, lw_act_is_curve(act) ? curve : exact, "%s, act %d, rounded", name,
                (int)act);
}

/* Rules of bytes for results, of which some are beyond both ends: the second has none for numbers below 0. */
static const float operand_pairs[2][2] = {{0.011f, 97.0f}, {0.011f, 0.0f}};

/* n bytes of a kernel are those that a cast makes of its floats; behind a curve, of floats as near as its approximation. */
static inline void check_cast(check *t, const uint8_t *bytes, const float *floats, int64_t n,
                              const lw_epilogue *e, const char *name)
{
    const float *pair = e->store_pair;
    uint8_t *want = check_bytes(t, (size_t)n, 0);
    for (int64_t i = 0; i < n; i++) {
        const float off = lw_act_is_curve(e->act) ? 5e-5f + 2e-5f * fabsf(floats[i]) : 0.0f;
        const float ends[2] = {floats[i] - off, floats[i] + off};
        uint8_t of_ends[2];
        lw_cast_f32_to_u8_ref(of_ends, ends, 2, pair[0], (int32_t)pair[1]);
        want[i] = LW_MIN(LW_MAX(bytes[i], of_ends[0]), of_ends[1]);
    }
    check_same(t, bytes, want, (size_t)n, "%s, act %d: bytes", name, (int)e->act);
}

/* n random bf16 that are added to results, and the same as floats. */
static inline lw_bf16 *operands_added(check *t, int64_t n, float **floats)
{
    double *values;
    lw_bf16 *low = operands_bf16(t, n, 1, &values);
    *floats = check_out(t, n, 1);
    for (int64_t i = 0; i < n; i++)
        (*floats)[i] = (float)values[i];
    return low;
}

/* Tasks that follow those of the phase before them. */
typedef struct phase {
    int64_t tasks;
    lw_pool_fn *task;
} phase;

static inline void run_phases(int threads, const phase *phases, size_t count, void *arg)
{
    lw_pool *pool = NULL;
    if (lw_pool_new(threads, &pool))
        LW_ASSERT(false, "%s", lw_errmsg());
    for (size_t i = 0; i < count; i++)
        lw_pool_run(pool, phases[i].tasks, phases[i].task, arg);
    lw_pool_free(&pool);
}

#endif
