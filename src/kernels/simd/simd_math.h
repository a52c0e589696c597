/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementary functions in the vector words of simd.h: one text for every ISA, the same bits on all
 * of them. Polynomials are Chebyshev fits made for this file (tools: any 40-digit package), Horner
 * form, highest first. Errors measured by tests/kernels/test_simd.c, in units of the last place of
 * float; denormal inputs are honoured.
 */
#ifndef LW_KERNELS_SIMD_MATH_H
#define LW_KERNELS_SIMD_MATH_H

/* 1.5 * 2^23: adding it to |x| < 2^22 leaves round-to-nearest-even(x) in the low mantissa bits. */
#define LW_ROUND_MAGIC 12582912.0f

#ifndef LW_SIMD_HAS_SCALE
/* x * 2^n for whole n in [-252, 254], x near 1, one rounding: two exact halves keep 2^n finite and
 * denormal results right. */
LW_WORD vf v_scale2(vf x, vf n)
{
    vi m = vi_sub(v_as_i(v_add(n, v_set1(LW_ROUND_MAGIC))), v_as_i(v_set1(LW_ROUND_MAGIC)));
    vi half = vi_sra(m, 1);
    vf s1 = v_as_f(vi_shl(vi_add(half, vi_set1(127)), 23));
    vf s2 = v_as_f(vi_shl(vi_add(vi_sub(m, half), vi_set1(127)), 23));
    return v_mul(v_mul(x, s1), s2);
}
#endif

/* e^r where x = n ln2 + r, |r| <= ln2 / 2, and n + LW_ROUND_MAGIC in *n. */
LW_WORD vf v_exp_rest(vf x, vf *n)
{
    *n = v_fma(x, v_set1(1.44269504f), v_set1(LW_ROUND_MAGIC));
    vf t = v_sub(*n, v_set1(LW_ROUND_MAGIC));
    vf r = v_fnma(t, v_set1(0.693145752f), x); /* 16 bits of ln 2: the product is exact */
    r = v_fnma(t, v_set1(1.42860677e-6f), r);
    vf p = v_set1(0.001392692661f);
    p = v_fma(p, r, v_set1(0.008363773874f));
    p = v_fma(p, r, v_set1(0.04166655011f));
    p = v_fma(p, r, v_set1(0.1666657338f));
    p = v_fma(p, r, v_set1(0.5f));
    p = v_fma(v_mul(r, r), p, r);
    return v_add(p, v_set1(1.0f));
}

/* e^x for x in [-105, 89] (other x: no meaning). <= 1.1 ulp. */
LW_WORD vf v_exp_inside(vf x)
{
    vf n, p = v_exp_rest(x, &n);
    return v_scale2(p, v_sub(n, v_set1(LW_ROUND_MAGIC)));
}

/* The same, for x in [-87.3, 88], whose results are normal numbers: n is added to the exponent. */
LW_WORD vf v_exp_normal(vf x)
{
#ifdef LW_SIMD_HAS_SCALE
    return v_exp_inside(x);
#else
    vf n, p = v_exp_rest(x, &n);
    return v_as_f(vi_add(v_as_i(p), vi_shl(v_as_i(n), 23)));
#endif
}

/* e^x. <= 1.1 ulp; inf above 88.72, denormals down to -103.97, then 0; NaN stays. */
LW_WORD vf v_exp(vf x)
{
    x = v_min(v_set1(89.0f), x); /* order of operands keeps a NaN in x */
    return v_exp_inside(v_max(v_set1(-105.0f), x));
}

/* 2^x for x in [-126, 126], off by 3e-6 of itself; 1 at 0. For results that bf16 holds. */
LW_WORD vf v_exp2_low(vf x)
{
    vf t = v_sub(v_add(x, v_set1(LW_ROUND_MAGIC)), v_set1(LW_ROUND_MAGIC)), r = v_sub(x, t);
    vf p = v_set1(9.583044560e-3f);
    p = v_fma(p, r, v_set1(5.590644470e-2f));
    p = v_fma(p, r, v_set1(2.402409405e-1f));
    p = v_fma(p, r, v_set1(6.931241917e-1f));
    return v_scale2(v_fma(p, r, v_set1(1.0f)), t);
}

/* 1 / x for 1 <= x <= 2^125, off by 2.2e-6 of itself, in a third of a division's time: 3/4 of it to 1.04 of that by
 * subtracting from the bits of a float, then a minimax fit of what is missing. */
LW_WORD vf v_recip_low(vf x)
{
    vf y = v_as_f(vi_sub(vi_set1(0x7ec00000u), v_as_i(x))), t = v_mul(x, y);
    vf p = v_fma(v_fma(v_set1(2.22888347f), t, v_set1(-5.11946672f)), t, v_set1(3.91918359f));
    return v_mul(y, p);
}

/* ln x. <= 0.9 ulp; -inf at 0, NaN below, inf at inf. x = 2^e (1 + f), 1 + f in [sqrt(1/2),
 * sqrt(2)). */
LW_WORD vf v_log(vf x)
{
    vm tiny = v_lt(x, v_set1(1.17549435e-38f));
    vf y = v_sel(tiny, v_mul(x, v_set1(8388608.0f)), x);
    vi bits = vi_sub(v_as_i(y), vi_set1(0x3f3504f3u)); /* bits of sqrt(1/2) */
    vf e = v_from_i(vi_sra(bits, 23));
    e = v_sub(e, v_sel(tiny, v_set1(23.0f), v_zero()));
    vf f = v_sub(v_as_f(vi_add(vi_and(bits, vi_set1(0x007fffffu)), vi_set1(0x3f3504f3u))),
                 v_set1(1.0f));
    vf p = v_set1(0.06971346319f);
    p = v_fma(p, f, v_set1(-0.1148308133f));
    p = v_fma(p, f, v_set1(0.1168702488f));
    p = v_fma(p, f, v_set1(-0.1242535982f));
    p = v_fma(p, f, v_set1(0.1424887698f));
    p = v_fma(p, f, v_set1(-0.1666780977f));
    p = v_fma(p, f, v_set1(0.2000072074f));
    p = v_fma(p, f, v_set1(-0.2499999693f));
    p = v_fma(p, f, v_set1(0.3333333116f));
    vf f2 = v_mul(f, f);
    p = v_mul(v_mul(f2, f), p);
    p = v_fma(e, v_set1(1.42860677e-6f), p); /* the low part of e ln 2 */
    p = v_fnma(v_set1(0.5f), f2, p);
    vf r = v_add(f, p);
    r = v_fma(e, v_set1(0.693145752f), r);
    r = v_sel(v_eq(x, v_zero()), v_set1(-INFINITY), r);
    r = v_sel(v_eq(x, v_set1(INFINITY)), x, r);
    return v_sel(v_ge(x, v_zero()), r, v_set1(NAN)); /* negative and NaN */
}

/* ln(1 + x), x >= -1: the rounding of 1 + x is put back to first order. <= 1.3 ulp for x
 * >= -0.9. */
LW_WORD vf v_log1p(vf x)
{
    vf y = v_add(v_set1(1.0f), x);
    vf lost = v_sub(x, v_sub(y, v_set1(1.0f)));
    vf r = v_add(v_log(y), v_div(lost, y));
    r = v_sel(v_eq(y, v_set1(1.0f)), x, r);
    return v_sel(v_eq(x, v_set1(INFINITY)), x, r); /* inf - inf above */
}

/* 1 / (1 + e^-x). <= 2.5 ulp where the result is normal; 0 below -88.72. */
LW_WORD vf v_sigmoid(vf x)
{
    vf one = v_set1(1.0f);
#ifdef LW_SIMD_HAS_SCALE
    return v_div(one, v_add(one, v_exp(v_neg(x))));
#else /* the same bits: what is below 2^-126 adds nothing to one, and beyond the largest float the result is 0 */
    const vf most = v_set1(88.7228317f);
    vf e = v_exp_normal(v_min(most, v_max(v_set1(-87.3f), v_neg(x))));
    return v_sel(v_ge(x, v_neg(most)), v_div(one, v_add(one, e)), v_max(v_zero(), x)); /* 0, NaN */
#endif
}

/* tanh x. <= 1.5 ulp. Odd polynomial below 0.625, 1 - 2 / (e^2x + 1) above. */
LW_WORD vf v_tanh(vf x)
{
    vf a = v_abs(x), u = v_mul(x, x), one = v_set1(1.0f);
    vf p = v_set1(-0.006096714166f);
    p = v_fma(p, u, v_set1(0.020997179f));
    p = v_fma(p, u, v_set1(-0.05385090958f));
    p = v_fma(p, u, v_set1(0.1333276974f));
    p = v_fma(p, u, v_set1(-0.3333332894f));
    vf small = v_fma(v_mul(p, u), x, x);
    vf large = v_sub(one, v_div(v_set1(2.0f), v_add(v_exp(v_add(a, a)), one)));
    return v_sel(v_lt(a, v_set1(0.625f)), small, v_copysign(large, x));
}

/* erf x. <= 2.5 ulp. Odd polynomial below 1, 1 - exp(polynomial of |x| fitted to ln erfc) on [1,
 * 4], then 1. */
LW_WORD vf v_erf(vf x)
{
    vf a = v_abs(x), u = v_mul(x, x);
    vf p = v_set1(7.875875063e-5f);
    p = v_fma(p, u, v_set1(-0.0008016864287f));
    p = v_fma(p, u, v_set1(0.005189087423f));
    p = v_fma(p, u, v_set1(-0.02685421201f));
    p = v_fma(p, u, v_set1(0.1128359472f));
    p = v_fma(p, u, v_set1(-0.3761262667f));
    p = v_fma(p, u, v_set1(1.128379166f));
    vf small = v_mul(p, x);
    vf t = v_min(v_set1(4.0f), a); /* a NaN goes on */
    vf q = v_set1(1.637151415e-6f);
    q = v_fma(q, t, v_set1(-4.605804269e-5f));
    q = v_fma(q, t, v_set1(0.0005968056257f));
    q = v_fma(q, t, v_set1(-0.004759596293f));
    q = v_fma(q, t, v_set1(0.02642113601f));
    q = v_fma(q, t, v_set1(-0.1100800829f));
    q = v_fma(q, t, v_set1(-0.6318260516f));
    q = v_fma(q, t, v_set1(-1.130233435f));
    q = v_fma(q, t, v_set1(0.0003201380497f));
    vf large = v_sub(v_set1(1.0f), v_exp(q));
    return v_sel(v_lt(a, v_set1(1.0f)), small, v_copysign(large, x));
}

/* sin and cos of r in [-pi/4, pi/4], rotated by q quarter turns (q modulo 4). */
LW_WORD void v_sincos_quadrant(vf r, vi q, vf *s, vf *c)
{
    vf u = v_mul(r, r);
    vf a = v_set1(-0.0001958537321f);
    a = v_fma(a, u, v_set1(0.008332736559f));
    a = v_fma(a, u, v_set1(-0.166666646f));
    vf sn = v_fma(v_mul(a, u), r, r);
    vf b = v_set1(2.454541908e-5f);
    b = v_fma(b, u, v_set1(-0.00138882913f));
    b = v_fma(b, u, v_set1(0.0416666646f));
    b = v_fma(b, u, v_set1(-0.5f));
    vf cs = v_fma(b, u, v_set1(1.0f));
    vm odd = vi_eq(vi_and(q, vi_set1(1)), vi_set1(1));
    vi sign_s = vi_shl(vi_and(q, vi_set1(2)), 30);
    vi sign_c = vi_shl(vi_and(vi_add(q, vi_set1(1)), vi_set1(2)), 30);
    *s = v_as_f(vi_xor(v_as_i(v_sel(odd, cs, sn)), sign_s));
    *c = v_as_f(vi_xor(v_as_i(v_sel(odd, sn, cs)), sign_c));
}

/* sin x and cos x, |x| <= 1e5: <= 1.5 ulp there; NaN for NaN and inf. Three-part pi / 2. */
LW_WORD void v_sincos(vf x, vf *s, vf *c)
{
    vf t = v_fma(x, v_set1(0.636619772f), v_set1(LW_ROUND_MAGIC));
    vi q = v_as_i(t); /* low bits: the quarter turn */
    t = v_sub(t, v_set1(LW_ROUND_MAGIC));
    vf r = v_fnma(t, v_set1(1.57079637f), x);
    r = v_fnma(t, v_set1(-4.37113883e-8f), r);
    r = v_fnma(t, v_set1(-1.71512451e-15f), r);
    v_sincos_quadrant(r, q, s, c);
}

LW_WORD vf v_sin(vf x)
{
    vf s, c;
    v_sincos(x, &s, &c);
    return s;
}

LW_WORD vf v_cos(vf x)
{
    vf s, c;
    v_sincos(x, &s, &c);
    return c;
}

#endif
