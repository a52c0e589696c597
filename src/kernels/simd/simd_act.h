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

#endif
