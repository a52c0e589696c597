/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Curved activations in the vector words of simd.h; formulas in base/kinds.h. One text for every
 * ISA: the same bits on all of them. Errors are those of the functions they are made of
 * (simd_math.h), measured by tests/kernels/test_ew.c.
 */
#ifndef LW_KERNELS_SIMD_ACT_H
#define LW_KERNELS_SIMD_ACT_H

#include "base/kinds.h"
#include "kernels/simd/simd.h"
#include "kernels/tile/unroll.h"

/* The normal distribution function: (1 + erf(x / sqrt 2)) / 2. */
LW_WORD vf v_normal_cdf(vf x)
{
    return v_fma(v_set1(0.5f), v_erf(v_mul(x, v_set1(0.707106781f))), v_set1(0.5f));
}

/* 2 sqrt(2 / pi) (x + 0.044715 x^3) = 2u: (1 + tanh u) / 2 is the sigmoid of it, without
 * cancellation. */
LW_WORD vf v_gelu_tanh_inner(vf x)
{
    vf cubic = v_fma(v_mul(v_mul(v_set1(0.044715f), x), x), x, x);
    return v_mul(v_set1(1.595769122f), cubic);
}

/* One of the curves; act is a constant where it is inlined. */
LW_WORD vf v_curve(vf x, const lw_act act)
{
    switch (act) {
    case LW_ACT_GELU:
        return v_mul(x, v_normal_cdf(x));
    case LW_ACT_GELU_TANH:
        return v_mul(x, v_sigmoid(v_gelu_tanh_inner(x)));
    case LW_ACT_QUICK_GELU:
        return v_mul(x, v_sigmoid(v_mul(v_set1(1.702f), x)));
    default:
        return v_mul(x, v_sigmoid(x));
    }
}

/*
 * The curves for results that are rounded to bf16, off by at most 5e-5 and, where they are above 0.1 in
 * size, by 2e-5 of themselves (bf16: 4e-3). GELU of either kind is x (1/2 + x P(x^2)), a polynomial
 * that is 1/2 / 4.375 at the end of its range, where the curve is x or nothing; minimax fits made for
 * this file.
 */
LW_WORD vf v_gelu_low(vf x, const int tanh_kind)
{
    static const float c[10][2] = {
        {2.616955127e-13f, -1.635303822e-12f},  {1.231246709e-11f, 1.983802815e-10f},
        {-2.870604386e-09f, -1.068039159e-08f}, {1.557114399e-07f, 3.389061961e-07f},
        {-4.495549710e-06f, -7.124975668e-06f}, {8.253697753e-05f, 1.062454329e-04f},
        {-1.046903317e-03f, -1.178568556e-03f}, {9.622025855e-03f, 1.003550497e-02f},
        {-6.604977622e-02f, -6.662039422e-02f}, {3.987499807e-01f, 3.988614166e-01f}};
    vf from = v_max(v_set1(-4.375f), x); /* a NaN goes on */
    vf in = v_min(v_set1(4.375f), from), u = v_mul(in, in);
    vf p = v_set1(c[0][tanh_kind]);
    LW_UNROLL_UP_TO(9)
    for (int i = 1; i < 10; i++)
        p = v_fma(p, u, v_set1(c[i][tanh_kind]));
    return v_mul(from, v_fma(p, in, v_set1(0.5f)));
}

/* x / (1 + e^-kx), by = k / ln 2. */
LW_WORD vf v_swish_low(vf x, float by)
{
    vf z = v_min(v_set1(124.0f), v_max(v_set1(-126.0f), v_mul(x, v_set1(-by))));
    return v_mul(x, v_recip_low(v_add(v_set1(1.0f), v_exp2_low(z))));
}

LW_WORD vf v_curve_low(vf x, const lw_act act)
{
    switch (act) {
    case LW_ACT_GELU:
        return v_gelu_low(x, 0);
    case LW_ACT_GELU_TANH:
        return v_gelu_low(x, 1);
    case LW_ACT_QUICK_GELU:
        return v_swish_low(x, 1.702f * 1.44269504f);
    default:
        return v_swish_low(x, 1.44269504f);
    }
}

#endif
