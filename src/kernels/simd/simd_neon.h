/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vector words of simd.h on 64-bit ARM: eight lanes in two registers of four, so that all kernels of AVX2 are kernels
 * of NEON, with the same tiles (12 sums of eight are 24 of its 32 registers), the same order of sums and the same bits.
 * Included by simd.h only.
 */
#ifndef LW_KERNELS_SIMD_NEON_H
#define LW_KERNELS_SIMD_NEON_H

/* One word, one line. */
/* clang-format off */

#include <arm_neon.h>

#define VL 8
#ifdef __ARM_FEATURE_MATMUL_INT8
#define LW_SIMD_SUFFIX _avxvnni
#define LW_SIMD_HAS_MAC_U8S8
#else
#define LW_SIMD_SUFFIX _avx2
#endif
#define LW_SIMD_BASE_SUFFIX _avx2
typedef struct vf { float32x4_t lo, hi; } vf;
typedef struct vi { uint32x4_t lo, hi; } vi;
typedef struct vm { uint32x4_t lo, hi; } vm; /* all ones or all zeros per lane */

/* Four lanes. */
LW_WORD float32x4_t v4_of(uint32x4_t a)
{
    return vreinterpretq_f32_u32(a);
}
LW_WORD int32x4_t v4_signed(uint32x4_t a)
{
    return vreinterpretq_s32_u32(a);
}
LW_WORD uint32x4_t v4_unsigned(int32x4_t a)
{
    return vreinterpretq_u32_s32(a);
}
LW_WORD float32x4_t v4_max(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
LW_WORD float32x4_t v4_min(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}
/* The first n of four lanes, any n; the others 0. */
LW_WORD float32x4_t v4_load_n(const float *p, ptrdiff_t n)
{
    if (n >= 4)
        return vld1q_f32(p);
    if (n == 3)
        return vcombine_f32(vld1_f32(p), vld1_lane_f32(p + 2, vdup_n_f32(0), 0));
    if (n == 2)
        return vcombine_f32(vld1_f32(p), vdup_n_f32(0));
    return n == 1 ? vld1q_lane_f32(p, vdupq_n_f32(0), 0) : vdupq_n_f32(0);
}
LW_WORD void v4_store_n(float *p, float32x4_t v, ptrdiff_t n)
{
    if (n >= 4) {
        vst1q_f32(p, v);
    } else if (n >= 2) {
        vst1_f32(p, vget_low_f32(v));
        if (n == 3)
            vst1q_lane_f32(p + 2, v, 2);
    } else if (n == 1) {
        vst1q_lane_f32(p, v, 0);
    }
}
LW_WORD uint32_t v4_bits(uint32x4_t m)
{
    static const uint32_t bit[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(m, vld1q_u32(bit)));
}
LW_WORD float v4_sum(float32x4_t q) /* lanes i and i+2, then i+1 */
{
    float32x2_t d = vadd_f32(vget_low_f32(q), vget_high_f32(q));
    return vget_lane_f32(d, 0) + vget_lane_f32(d, 1);
}
LW_WORD uint32x4_t v4_first_64(uint32x4_t a, uint32x4_t b) /* halves of 64 bits: a0 b0 */
{
    return vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}
LW_WORD uint32x4_t v4_second_64(uint32x4_t a, uint32x4_t b) /* a1 b1 */
{
    return vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

LW_WORD vf v_load(const float *p)
{
    return (vf){vld1q_f32(p), vld1q_f32(p + 4)};
}
LW_WORD void v_store(float *p, vf v)
{
    vst1q_f32(p, v.lo);
    vst1q_f32(p + 4, v.hi);
}
LW_WORD vf v_load_n(const float *p, ptrdiff_t n)
{
    return n >= VL ? v_load(p) : (vf){v4_load_n(p, n), v4_load_n(p + 4, n - 4)};
}
LW_WORD void v_store_n(float *p, vf v, ptrdiff_t n)
{
    v4_store_n(p, v.lo, n);
    v4_store_n(p + 4, v.hi, n - 4);
}
LW_WORD vf v_set1(float x)
{
    return (vf){vdupq_n_f32(x), vdupq_n_f32(x)};
}
LW_WORD vf v_zero(void)
{
    return v_set1(0.0f);
}
LW_WORD vf v_add(vf a, vf b)
{
    return (vf){vaddq_f32(a.lo, b.lo), vaddq_f32(a.hi, b.hi)};
}
LW_WORD vf v_sub(vf a, vf b)
{
    return (vf){vsubq_f32(a.lo, b.lo), vsubq_f32(a.hi, b.hi)};
}
LW_WORD vf v_mul(vf a, vf b)
{
    return (vf){vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi)};
}
LW_WORD vf v_div(vf a, vf b)
{
    return (vf){vdivq_f32(a.lo, b.lo), vdivq_f32(a.hi, b.hi)};
}
LW_WORD vf v_sqrt(vf a)
{
    return (vf){vsqrtq_f32(a.lo), vsqrtq_f32(a.hi)};
}
LW_WORD vf v_neg(vf a)
{
    return (vf){vnegq_f32(a.lo), vnegq_f32(a.hi)};
}
LW_WORD vf v_abs(vf a)
{
    return (vf){vabsq_f32(a.lo), vabsq_f32(a.hi)};
}
LW_WORD vf v_fma(vf a, vf b, vf c)
{
    return (vf){vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi)};
}
LW_WORD vf v_fnma(vf a, vf b, vf c)
{
    return (vf){vfmsq_f32(c.lo, a.lo, b.lo), vfmsq_f32(c.hi, a.hi, b.hi)};
}
LW_WORD vf v_fms(vf a, vf b, vf c)
{
    return v_fma(a, b, v_neg(c));
}
LW_WORD vf v_max(vf a, vf b)
{
    return (vf){v4_max(a.lo, b.lo), v4_max(a.hi, b.hi)};
}
LW_WORD vf v_min(vf a, vf b)
{
    return (vf){v4_min(a.lo, b.lo), v4_min(a.hi, b.hi)};
}

LW_WORD vm v_gt(vf a, vf b)
{
    return (vm){vcgtq_f32(a.lo, b.lo), vcgtq_f32(a.hi, b.hi)};
}
LW_WORD vm v_ge(vf a, vf b)
{
    return (vm){vcgeq_f32(a.lo, b.lo), vcgeq_f32(a.hi, b.hi)};
}
LW_WORD vm v_lt(vf a, vf b)
{
    return v_gt(b, a);
}
LW_WORD vm v_le(vf a, vf b)
{
    return v_ge(b, a);
}
LW_WORD vm v_eq(vf a, vf b)
{
    return (vm){vceqq_f32(a.lo, b.lo), vceqq_f32(a.hi, b.hi)};
}
LW_WORD vm v_isnan(vf a)
{
    vm number = v_eq(a, a);
    return (vm){vmvnq_u32(number.lo), vmvnq_u32(number.hi)};
}
LW_WORD vm vm_and(vm a, vm b)
{
    return (vm){vandq_u32(a.lo, b.lo), vandq_u32(a.hi, b.hi)};
}
LW_WORD vm vm_or(vm a, vm b)
{
    return (vm){vorrq_u32(a.lo, b.lo), vorrq_u32(a.hi, b.hi)};
}
LW_WORD int vm_any(vm a)
{
    return vmaxvq_u32(vorrq_u32(a.lo, a.hi)) != 0;
}
LW_WORD uint32_t vm_bits(vm a) /* lane l is bit l */
{
    return v4_bits(a.lo) | v4_bits(a.hi) << 4;
}
LW_WORD vf v_sel(vm m, vf x, vf y)
{
    return (vf){vbslq_f32(m.lo, x.lo, y.lo), vbslq_f32(m.hi, x.hi, y.hi)};
}
LW_WORD vf v_keep(vm m, vf x)
{
    return v_sel(m, x, v_zero());
}
LW_WORD vf v_copysign(vf a, vf b)
{
    uint32x4_t sign = vdupq_n_u32(0x80000000u);
    return v_sel((vm){sign, sign}, b, a);
}

LW_WORD float v_hsum(vf a) /* lanes i and i+4, then i+2, i+1 */
{
    return v4_sum(vaddq_f32(a.lo, a.hi));
}
LW_WORD double v_hsum_d(vf a)
{
    float64x2_t first = vaddq_f64(vcvt_f64_f32(vget_low_f32(a.lo)), vcvt_f64_f32(vget_low_f32(a.hi)));
    float64x2_t second = vaddq_f64(vcvt_high_f64_f32(a.lo), vcvt_high_f64_f32(a.hi));
    float64x2_t q = vaddq_f64(first, second);
    return vgetq_lane_f64(q, 0) + vgetq_lane_f64(q, 1);
}
LW_WORD float v_hmax(vf a)
{
    float32x4_t q = v4_max(a.lo, a.hi);
    q = v4_max(q, vextq_f32(q, q, 2));
    return vgetq_lane_f32(v4_max(q, vextq_f32(q, q, 1)), 0);
}
LW_WORD float v_hmin(vf a)
{
    float32x4_t q = v4_min(a.lo, a.hi);
    q = v4_min(q, vextq_f32(q, q, 2));
    return vgetq_lane_f32(v4_min(q, vextq_f32(q, q, 1)), 0);
}
/* Of four vectors of four lanes: a0 b0 c0 d0, a1 .. and so on. */
LW_WORD void v4_transpose(uint32x4_t r[4])
{
    uint32x4_t a = vtrn1q_u32(r[0], r[1]), b = vtrn2q_u32(r[0], r[1]);
    uint32x4_t c = vtrn1q_u32(r[2], r[3]), d = vtrn2q_u32(r[2], r[3]);
    r[0] = v4_first_64(a, c);
    r[1] = v4_first_64(b, d);
    r[2] = v4_second_64(a, c);
    r[3] = v4_second_64(b, d);
}
LW_WORD void v_transpose(vf r[VL]) /* VL rows become VL columns */
{
    for (int half = 0; half < 2; half++) { /* of the columns that there will be */
        uint32x4_t x[4], y[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            x[i] = vreinterpretq_u32_f32(half ? r[4 + i].lo : r[i].lo);
            y[i] = vreinterpretq_u32_f32(half ? r[4 + i].hi : r[i].hi);
        }
        v4_transpose(x);
        v4_transpose(y);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            r[half ? 4 + i : i].lo = v4_of(x[i]);
            r[half ? 4 + i : i].hi = v4_of(y[i]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* r[i]: rows 0..3 of columns i and 4 + i; r[4 + i]: their rows 4..7 */
        float32x4_t t = r[i].hi;
        r[i].hi = r[4 + i].lo;
        r[4 + i].lo = t;
    }
}
/* Four sums, or minima, at once: of lanes 0 and 2, 1 and 3 of each half, then these, then the halves. */
LW_WORD void v4_pairs(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d, float32x4_t out[4])
{
    float32x4_t low = vzip1q_f32(a, b), high = vzip2q_f32(a, b);
    out[0] = low;
    out[1] = high;
    out[2] = vzip1q_f32(c, d);
    out[3] = vzip2q_f32(c, d);
}
LW_WORD float32x4_t v4_joined(float32x4_t ab, float32x4_t cd, const int second)
{
    return second ? vcombine_f32(vget_high_f32(ab), vget_high_f32(cd)) : vcombine_f32(vget_low_f32(ab), vget_low_f32(cd));
}
LW_WORD float32x4_t v4_sums(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d)
{
    float32x4_t p[4];
    v4_pairs(a, b, c, d, p);
    float32x4_t ab = vaddq_f32(p[0], p[1]), cd = vaddq_f32(p[2], p[3]);
    return vaddq_f32(v4_joined(ab, cd, 0), v4_joined(ab, cd, 1));
}
LW_WORD float32x4_t v4_mins(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d)
{
    float32x4_t p[4];
    v4_pairs(a, b, c, d, p);
    float32x4_t ab = v4_min(p[0], p[1]), cd = v4_min(p[2], p[3]);
    return v4_min(v4_joined(ab, cd, 0), v4_joined(ab, cd, 1));
}
LW_WORD void v_hsum4(float *to, vf a, vf b, vf c, vf d)
{
    vst1q_f32(to, vaddq_f32(v4_sums(a.lo, b.lo, c.lo, d.lo), v4_sums(a.hi, b.hi, c.hi, d.hi)));
}
LW_WORD void v_hmin4(float *to, vf a, vf b, vf c, vf d)
{
    vst1q_f32(to, v4_min(v4_mins(a.lo, b.lo, c.lo, d.lo), v4_mins(a.hi, b.hi, c.hi, d.hi)));
}

LW_WORD vi v_as_i(vf a)
{
    return (vi){vreinterpretq_u32_f32(a.lo), vreinterpretq_u32_f32(a.hi)};
}
LW_WORD vf v_as_f(vi a)
{
    return (vf){v4_of(a.lo), v4_of(a.hi)};
}
LW_WORD vf v_from_i(vi a)
{
    return (vf){vcvtq_f32_s32(v4_signed(a.lo)), vcvtq_f32_s32(v4_signed(a.hi))};
}
LW_WORD vi v_to_i(vf a)
{
    return (vi){v4_unsigned(vcvtnq_s32_f32(a.lo)), v4_unsigned(vcvtnq_s32_f32(a.hi))};
}
LW_WORD vi vi_set1(uint32_t x)
{
    return (vi){vdupq_n_u32(x), vdupq_n_u32(x)};
}
LW_WORD vi vi_load(const void *p)
{
    return v_as_i(v_load(p));
}
LW_WORD void vi_store(void *p, vi v)
{
    v_store(p, v_as_f(v));
}
LW_WORD vi vi_of8(const uint32_t of[8])
{
    return (vi){vld1q_u32(of), vld1q_u32(of + 4)};
}
LW_WORD vi vi_iota(void)
{
    static const uint32_t lane[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    return vi_of8(lane);
}
LW_WORD vi vi_load_n(const void *p, ptrdiff_t n)
{
    return v_as_i(v_load_n(p, n));
}
LW_WORD void vi_store_n(void *p, vi v, ptrdiff_t n)
{
    v_store_n(p, v_as_f(v), n);
}
LW_WORD vi vi_add(vi a, vi b)
{
    return (vi){vaddq_u32(a.lo, b.lo), vaddq_u32(a.hi, b.hi)};
}
LW_WORD vi vi_sub(vi a, vi b)
{
    return (vi){vsubq_u32(a.lo, b.lo), vsubq_u32(a.hi, b.hi)};
}
LW_WORD vi vi_and(vi a, vi b)
{
    return (vi){vandq_u32(a.lo, b.lo), vandq_u32(a.hi, b.hi)};
}
LW_WORD vi vi_or(vi a, vi b)
{
    return (vi){vorrq_u32(a.lo, b.lo), vorrq_u32(a.hi, b.hi)};
}
LW_WORD vi vi_xor(vi a, vi b)
{
    return (vi){veorq_u32(a.lo, b.lo), veorq_u32(a.hi, b.hi)};
}
LW_WORD vi vi_xor3(vi a, vi b, vi c)
{
    return vi_xor(vi_xor(a, b), c);
}
LW_WORD vi vi_shl(vi a, unsigned k) /* the compiler's shifts: of a constant by one instruction */
{
    return (vi){a.lo << k, a.hi << k};
}
LW_WORD vi vi_shr(vi a, unsigned k)
{
    return (vi){a.lo >> k, a.hi >> k};
}
LW_WORD vi vi_sra(vi a, unsigned k)
{
    return (vi){v4_unsigned(v4_signed(a.lo) >> (int)k), v4_unsigned(v4_signed(a.hi) >> (int)k)};
}
LW_WORD vm vi_gt(vi a, vi b)
{
    return (vm){vcgtq_s32(v4_signed(a.lo), v4_signed(b.lo)), vcgtq_s32(v4_signed(a.hi), v4_signed(b.hi))};
}
LW_WORD vm vi_eq(vi a, vi b)
{
    return (vm){vceqq_u32(a.lo, b.lo), vceqq_u32(a.hi, b.hi)};
}
LW_WORD vm vi_ltu(vi a, vi b)
{
    return (vm){vcltq_u32(a.lo, b.lo), vcltq_u32(a.hi, b.hi)};
}
LW_WORD vi vi_sel(vm m, vi x, vi y)
{
    return (vi){vbslq_u32(m.lo, x.lo, y.lo), vbslq_u32(m.hi, x.hi, y.hi)};
}
LW_WORD vi vi_max(vi a, vi b)
{
    return vi_sel(vi_gt(a, b), a, b);
}
LW_WORD vi vi_min(vi a, vi b)
{
    return vi_sel(vi_gt(b, a), a, b);
}

/* Whole products of 32 bits. */
LW_WORD uint32x4_t v4_low_halves(uint64x2_t first, uint64x2_t second)
{
    return vuzp1q_u32(vreinterpretq_u32_u64(first), vreinterpretq_u32_u64(second));
}
LW_WORD uint32x4_t v4_high_halves(uint64x2_t first, uint64x2_t second)
{
    return vuzp2q_u32(vreinterpretq_u32_u64(first), vreinterpretq_u32_u64(second));
}
LW_WORD void v4_mulwide(uint32x4_t a, uint32x4_t b, uint32x4_t *hi, uint32x4_t *lo)
{
    uint64x2_t first = vmull_u32(vget_low_u32(a), vget_low_u32(b)), second = vmull_high_u32(a, b);
    *hi = v4_high_halves(first, second);
    *lo = v4_low_halves(first, second);
}
LW_WORD void v_mulwide_u32(vi a, vi b, vi *hi, vi *lo)
{
    v4_mulwide(a.lo, b.lo, &hi->lo, &lo->lo);
    v4_mulwide(a.hi, b.hi, &hi->hi, &lo->hi);
}
LW_WORD vi v_mullo_u32(vi a, vi b)
{
    return (vi){vmulq_u32(a.lo, b.lo), vmulq_u32(a.hi, b.hi)};
}
LW_WORD uint32x4_t v4_mul_even(uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u32_u64(vmull_u32(vmovn_u64(vreinterpretq_u64_u32(a)), vmovn_u64(vreinterpretq_u64_u32(b))));
}
LW_WORD vi v_mul_even_u32(vi a, vi b)
{
    return (vi){v4_mul_even(a.lo, b.lo), v4_mul_even(a.hi, b.hi)};
}
LW_WORD uint32x4_t v4_high(uint32x4_t a)
{
    return vreinterpretq_u32_u64(vshrq_n_u64(vreinterpretq_u64_u32(a), 32));
}
LW_WORD vi vi_high(vi a)
{
    return (vi){v4_high(a.lo), v4_high(a.hi)};
}
LW_WORD vi vi_even_block_iota(void)
{
    static const uint32_t block[8] = {0, 0, 2, 0, 1, 0, 3, 0};
    return vi_of8(block);
}
LW_WORD void vi_interleave_even4(const vi w[4], vi out[2])
{
    uint32x4_t al = vtrn1q_u32(w[0].lo, w[1].lo), ah = vtrn1q_u32(w[0].hi, w[1].hi);
    uint32x4_t bl = vtrn1q_u32(w[2].lo, w[3].lo), bh = vtrn1q_u32(w[2].hi, w[3].hi);
    out[0] = (vi){v4_first_64(al, bl), v4_first_64(ah, bh)};
    out[1] = (vi){v4_second_64(al, bl), v4_second_64(ah, bh)};
}
LW_WORD vi vi_block_iota(void)
{
    static const uint32_t block[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    return vi_of8(block);
}
LW_WORD void vi_interleave4(vi w[4])
{
    uint32x4_t lo[4] = {w[0].lo, w[1].lo, w[2].lo, w[3].lo}, hi[4] = {w[0].hi, w[1].hi, w[2].hi, w[3].hi};
    v4_transpose(lo);
    v4_transpose(hi);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        w[i] = (vi){lo[i], hi[i]};
}

LW_WORD vf v_gather(const float *base, vi index)
{
    uint32_t at[VL];
    float of[VL];
    vi_store(at, index);
#pragma GCC unroll 8
    for (int l = 0; l < VL; l++)
        of[l] = base[(int32_t)at[l]];
    return v_load(of);
}
LW_WORD vi vi_of_u16(uint16x8_t h)
{
    return (vi){vmovl_u16(vget_low_u16(h)), vmovl_high_u16(h)};
}
LW_WORD vi vi_load_u16(const uint16_t *p)
{
    return vi_of_u16(vld1q_u16(p));
}
LW_WORD vi vi_load_u8(const uint8_t *p)
{
    return vi_of_u16(vmovl_u8(vld1_u8(p)));
}
LW_WORD uint16x8_t vi_low_u16(vi v) /* the low halves of all lanes */
{
    return vuzp1q_u16(vreinterpretq_u16_u32(v.lo), vreinterpretq_u16_u32(v.hi));
}
LW_WORD void vi_store_u16(uint16_t *p, vi v)
{
    vst1q_u16(p, vi_low_u16(v));
}
LW_WORD void vi_store_u8(uint8_t *p, vi v)
{
    vst1_u8(p, vmovn_u16(vi_low_u16(v)));
}
LW_WORD vi vi_load_u24(const uint8_t *p)
{
    static const uint8_t at[2][16] = {{0, 1, 2, 255, 3, 4, 5, 255, 6, 7, 8, 255, 9, 10, 11, 255},
                                      {4, 5, 6, 255, 7, 8, 9, 255, 10, 11, 12, 255, 13, 14, 15, 255}};
    return (vi){vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(p), vld1q_u8(at[0]))),
                vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(p + 8), vld1q_u8(at[1])))};
}
LW_WORD void vi_store_u24(uint8_t *p, vi v)
{
    static const uint8_t at[24] = {0,  1,  2,  4,  5,  6,  8,  9,  10, 12, 13, 14,
                                   16, 17, 18, 20, 21, 22, 24, 25, 26, 28, 29, 30};
    uint8x16x2_t all = {{vreinterpretq_u8_u32(v.lo), vreinterpretq_u8_u32(v.hi)}};
    vst1q_u8(p, vqtbl2q_u8(all, vld1q_u8(at)));
    vst1_u8(p + 16, vqtbl2_u8(all, vld1_u8(at + 16)));
}
LW_WORD void vi_zip(vi a, vi b, vi *lo, vi *hi)
{
    vi first = {vzip1q_u32(a.lo, b.lo), vzip2q_u32(a.lo, b.lo)};
    *hi = (vi){vzip1q_u32(a.hi, b.hi), vzip2q_u32(a.hi, b.hi)};
    *lo = first;
}
LW_WORD void vi_unzip(vi lo, vi hi, vi *even, vi *odd)
{
    vi e = {vuzp1q_u32(lo.lo, lo.hi), vuzp1q_u32(hi.lo, hi.hi)};
    *odd = (vi){vuzp2q_u32(lo.lo, lo.hi), vuzp2q_u32(hi.lo, hi.hi)};
    *even = e;
}
/* The flagged of four lanes next to each other: of each the four bytes are looked up. */
LW_WORD uint32x4_t v4_packed(uint32x4_t v, uint32_t bits)
{
    uint16x4_t number = vget_low_u16(vmovl_u8(vcreate_u8(lw_flagged_lanes(bits))));
    uint32x4_t at = vmlaq_u32(vdupq_n_u32(0x03020100), vmovl_u16(number), vdupq_n_u32(0x04040404));
    return vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(v), vreinterpretq_u8_u32(at)));
}
LW_WORD void v_pack(float *p, vf v, vm m)
{
    const vi w = v_as_i(v);
    const uint32_t low = v4_bits(m.lo);
    vst1q_f32(p, v4_of(v4_packed(w.lo, low)));
    vst1q_f32(p + __builtin_popcount(low), v4_of(v4_packed(w.hi, v4_bits(m.hi))));
}
LW_WORD void vi_pack_u16(uint16_t *p, vi v, vm m)
{
    const uint32_t low = v4_bits(m.lo);
    vst1_u16(p, vmovn_u32(v4_packed(v.lo, low)));
    vst1_u16(p + __builtin_popcount(low), vmovn_u32(v4_packed(v.hi, v4_bits(m.hi))));
}

/* Vectors of 2 VL whole numbers of 16 bits. */
LW_WORD vi vi_of16(uint16x8_t lo, uint16x8_t hi)
{
    return (vi){vreinterpretq_u32_u16(lo), vreinterpretq_u32_u16(hi)};
}
LW_WORD uint16x8_t v4_as16(uint32x4_t a)
{
    return vreinterpretq_u16_u32(a);
}
LW_WORD vi vi16_add(vi a, vi b)
{
    return vi_of16(vaddq_u16(v4_as16(a.lo), v4_as16(b.lo)), vaddq_u16(v4_as16(a.hi), v4_as16(b.hi)));
}
LW_WORD vi vi16_sub(vi a, vi b)
{
    return vi_of16(vsubq_u16(v4_as16(a.lo), v4_as16(b.lo)), vsubq_u16(v4_as16(a.hi), v4_as16(b.hi)));
}
LW_WORD vi vi16_shl(vi a, unsigned k)
{
    return vi_of16(v4_as16(a.lo) << k, v4_as16(a.hi) << k);
}
LW_WORD vi vi16_shr(vi a, unsigned k)
{
    return vi_of16(v4_as16(a.lo) >> k, v4_as16(a.hi) >> k);
}
LW_WORD vi vi16_sra(vi a, unsigned k)
{
    int16x8_t lo = vreinterpretq_s16_u32(a.lo) >> (int)k, hi = vreinterpretq_s16_u32(a.hi) >> (int)k;
    return (vi){vreinterpretq_u32_s16(lo), vreinterpretq_u32_s16(hi)};
}
LW_WORD vi vi16_load_u8(const uint8_t *p)
{
    return vi_of16(vmovl_u8(vld1_u8(p)), vmovl_u8(vld1_u8(p + 8)));
}
/* The first n of them, a multiple of 4, others 0. */
LW_WORD vi vi16_load_u8_n(const uint8_t *p, ptrdiff_t n)
{
    uint8_t all[2 * VL] = {0};
    memcpy(all, p, (size_t)n);
    return vi16_load_u8(all);
}
LW_WORD int16x8_t vi_even_s16(vi a) /* the low halves of all lanes */
{
    return vreinterpretq_s16_u16(vi_low_u16(a));
}
LW_WORD int16x8_t vi_odd_s16(vi a)
{
    return vuzp2q_s16(vreinterpretq_s16_u32(a.lo), vreinterpretq_s16_u32(a.hi));
}
LW_WORD vi vi_mac_lanes(vi sum, int16x8_t a, int16x8_t b)
{
    return (vi){v4_unsigned(vmlal_s16(v4_signed(sum.lo), vget_low_s16(a), vget_low_s16(b))),
                v4_unsigned(vmlal_high_s16(v4_signed(sum.hi), a, b))};
}
/* sum + the two products of s16 in each lane, modulo 2^32. What takes a and b apart is shared by all sums of a tile that read
 * them. */
LW_WORD vi vi_mac_s16(vi sum, vi a, vi b)
{
    return vi_mac_lanes(vi_mac_lanes(sum, vi_even_s16(a), vi_even_s16(b)), vi_odd_s16(a), vi_odd_s16(b));
}
#ifdef LW_SIMD_HAS_MAC_U8S8
LW_WORD uint32x4_t v4_mac_u8s8(uint32x4_t sum, uint32x4_t a, uint32x4_t b)
{
    return v4_unsigned(vusdotq_s32(v4_signed(sum), vreinterpretq_u8_u32(a), vreinterpretq_s8_u32(b)));
}
/* sum + the four products of bytes in each lane: of u8 in a, s8 in b. Exact. */
LW_WORD vi vi_mac_u8s8(vi sum, vi a, vi b)
{
    return (vi){v4_mac_u8s8(sum.lo, a.lo, b.lo), v4_mac_u8s8(sum.hi, a.hi, b.hi)};
}
#endif

#endif
