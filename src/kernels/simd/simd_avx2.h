/* SPDX-License-Identifier: Apache-2.0 */
/* The vector words of simd.h on AVX2 with FMA. Included by simd.h only. */
#ifndef LW_KERNELS_SIMD_AVX2_H
#define LW_KERNELS_SIMD_AVX2_H

/* One word, one line. */
/* clang-format off */

#include <immintrin.h>

#define VL 8
#ifdef __AVXVNNI__
#define LW_SIMD_SUFFIX _avxvnni
#define LW_SIMD_HAS_MAC_U8S8
#else
#define LW_SIMD_SUFFIX _avx2
#endif
#define LW_SIMD_BASE_SUFFIX _avx2
typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm; /* all ones or all zeros per lane */

LW_WORD __m256i vm_first(ptrdiff_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

LW_WORD vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
LW_WORD void v_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}
LW_WORD vf v_load_n(const float *p, ptrdiff_t n)
{
    if (__builtin_constant_p(n) && n == VL)
        return _mm256_loadu_ps(p);
    return _mm256_maskload_ps(p, vm_first(n));
}
/* Whole vectors are stored as such: a masked store takes Zen 3 12 cycles, whatever its mask. */
LW_WORD void v_store_n(float *p, vf v, ptrdiff_t n)
{
    if (n >= VL)
        _mm256_storeu_ps(p, v);
    else
        _mm256_maskstore_ps(p, vm_first(n), v);
}
LW_WORD vf v_set1(float x)
{
    return _mm256_set1_ps(x);
}
LW_WORD vf v_zero(void)
{
    return _mm256_setzero_ps();
}
LW_WORD vf v_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
LW_WORD vf v_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
LW_WORD vf v_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
LW_WORD vf v_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
LW_WORD vf v_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}
LW_WORD vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
LW_WORD vf v_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
}
LW_WORD vf v_fms(vf a, vf b, vf c)
{
    return _mm256_fmsub_ps(a, b, c);
}
LW_WORD vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
LW_WORD vf v_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
LW_WORD vf v_neg(vf a)
{
    return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f));
}
LW_WORD vf v_abs(vf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
LW_WORD vf v_copysign(vf a, vf b)
{
    vf s = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(s, a), _mm256_and_ps(s, b));
}

LW_WORD vm v_gt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}
LW_WORD vm v_ge(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_GE_OQ);
}
LW_WORD vm v_lt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
LW_WORD vm v_le(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}
LW_WORD vm v_eq(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}
LW_WORD vm v_isnan(vf a)
{
    return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}
LW_WORD vm vm_and(vm a, vm b)
{
    return _mm256_and_ps(a, b);
}
LW_WORD vm vm_or(vm a, vm b)
{
    return _mm256_or_ps(a, b);
}
LW_WORD int vm_any(vm a)
{
    return _mm256_movemask_ps(a) != 0;
}
LW_WORD uint32_t vm_bits(vm a) /* lane l is bit l */
{
    return (uint32_t)_mm256_movemask_ps(a);
}
LW_WORD vf v_keep(vm m, vf x)
{
    return _mm256_and_ps(m, x);
}
LW_WORD vf v_sel(vm m, vf x, vf y)
{
    return _mm256_blendv_ps(y, x, m);
}

LW_WORD float v_hsum(vf a) /* lanes i and i+4, then i+2, i+1 */
{
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
LW_WORD void v_transpose(vf r[VL]) /* VL rows become VL columns */
{
    vf t[VL], u[VL];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m256d a = _mm256_castps_pd(t[i / 2 * 4 + i % 2]),
                b = _mm256_castps_pd(t[i / 2 * 4 + i % 2 + 2]);
        u[2 * i] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
        u[2 * i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) { /* half L of u[4 i + c]: column 4 L + c of rows 4 i .. */
        r[c] = _mm256_permute2f128_ps(u[c], u[c + 4], 0x20);
        r[c + 4] = _mm256_permute2f128_ps(u[c], u[c + 4], 0x31);
    }
}
LW_WORD void v_hsum4(float *to, vf a, vf b, vf c, vf d) /* four sums at once */
{
    vf ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    vf cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    vf s = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1)));
}
LW_WORD void v_hmin4(float *to, vf a, vf b, vf c, vf d)
{
    vf ab = _mm256_min_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    vf cd = _mm256_min_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    vf s = _mm256_min_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    _mm_storeu_ps(to, _mm_min_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1)));
}
LW_WORD double v_hsum_d(vf a)
{
    __m256d h = _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                              _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
    __m128d q = _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
    return _mm_cvtsd_f64(_mm_add_sd(q, _mm_unpackhi_pd(q, q)));
}
LW_WORD float v_hmax(vf a)
{
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}
LW_WORD float v_hmin(vf a)
{
    __m128 q = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    q = _mm_min_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_min_ss(q, _mm_movehdup_ps(q)));
}

LW_WORD vf v_from_i(vi a)
{
    return _mm256_cvtepi32_ps(a);
}
LW_WORD vi v_as_i(vf a)
{
    return _mm256_castps_si256(a);
}
LW_WORD vf v_as_f(vi a)
{
    return _mm256_castsi256_ps(a);
}
LW_WORD vi vi_set1(uint32_t x)
{
    return _mm256_set1_epi32((int)x);
}
LW_WORD vi vi_iota(void)
{
    return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
}
LW_WORD vi vi_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
LW_WORD void vi_store(void *p, vi v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}
LW_WORD vi vi_load_n(const void *p, ptrdiff_t n)
{
    return _mm256_maskload_epi32((const int *)p, vm_first(n));
}
LW_WORD void vi_store_n(void *p, vi v, ptrdiff_t n)
{
    if (n >= VL)
        _mm256_storeu_si256((__m256i *)p, v);
    else
        _mm256_maskstore_epi32((int *)p, vm_first(n), v);
}
LW_WORD vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}
#ifdef LW_SIMD_HAS_MAC_U8S8
/* sum + the four products of bytes in each lane: of u8 in a, s8 in b. Exact. */
LW_WORD vi vi_mac_u8s8(vi sum, vi a, vi b)
{
    return _mm256_dpbusd_avx_epi32(sum, a, b);
}
#endif
/* sum + the two products of s16 in each lane, modulo 2^32. */
LW_WORD vi vi_mac_s16(vi sum, vi a, vi b)
{
#ifdef __AVXVNNI__
    return _mm256_dpwssd_avx_epi32(sum, a, b);
#else
    sum = vi_add(sum, _mm256_madd_epi16(a, b));
    __asm__("" : "+x"(sum)); /* additions in this order: in another there would be more sums than registers */
    return sum;
#endif
}
/* Vectors of 2 VL whole numbers of 16 bits. */
LW_WORD vi vi16_add(vi a, vi b)
{
    return _mm256_add_epi16(a, b);
}
LW_WORD vi vi16_sub(vi a, vi b)
{
    return _mm256_sub_epi16(a, b);
}
LW_WORD vi vi16_shl(vi a, unsigned k)
{
    return _mm256_slli_epi16(a, (int)k);
}
LW_WORD vi vi16_shr(vi a, unsigned k)
{
    return _mm256_srli_epi16(a, (int)k);
}
LW_WORD vi vi16_sra(vi a, unsigned k)
{
    return _mm256_srai_epi16(a, (int)k);
}
LW_WORD vi vi16_load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* The first n of them, a multiple of 4, others 0. */
LW_WORD vi vi16_load_u8_n(const uint8_t *p, ptrdiff_t n)
{
    const __m128i words = _mm_set1_epi32((int)(n / 4)),
                  first = _mm_cmpgt_epi32(words, _mm_setr_epi32(0, 1, 2, 3));
    return _mm256_cvtepu8_epi16(_mm_maskload_epi32((const int *)(const void *)p, first));
}
LW_WORD vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}
LW_WORD vi vi_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}
LW_WORD vi vi_or(vi a, vi b)
{
    return _mm256_or_si256(a, b);
}
LW_WORD vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}
LW_WORD vi vi_shl(vi a, unsigned k)
{
    return _mm256_slli_epi32(a, (int)k);
}
LW_WORD vi vi_shr(vi a, unsigned k)
{
    return _mm256_srli_epi32(a, (int)k);
}
LW_WORD vi vi_sra(vi a, unsigned k)
{
    return _mm256_srai_epi32(a, (int)k);
}
LW_WORD void v_mulwide_u32(vi a, vi b, vi *hi, vi *lo)
{
    vi even = _mm256_mul_epu32(a, b);
    vi odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    *hi = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *lo = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
LW_WORD vi v_mul_even_u32(vi a, vi b)
{
    return _mm256_mul_epu32(a, b);
}
LW_WORD vi vi_high(vi a)
{
    return _mm256_srli_epi64(a, 32);
}
LW_WORD vi vi_xor3(vi a, vi b, vi c)
{
    return vi_xor(vi_xor(a, b), c);
}
LW_WORD vi vi_even_block_iota(void)
{
    return _mm256_setr_epi32(0, 0, 2, 0, 1, 0, 3, 0);
}
LW_WORD void vi_interleave_even4(const vi w[4], vi out[2])
{
    vi a = _mm256_blend_epi32(w[0], _mm256_slli_epi64(w[1], 32), 0xaa);
    vi b = _mm256_blend_epi32(w[2], _mm256_slli_epi64(w[3], 32), 0xaa);
    out[0] = _mm256_unpacklo_epi64(a, b);
    out[1] = _mm256_unpackhi_epi64(a, b);
}
LW_WORD vi v_mullo_u32(vi a, vi b)
{
    return _mm256_mullo_epi32(a, b);
}
LW_WORD vm vi_gt(vi a, vi b)
{
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b));
}
LW_WORD vm vi_eq(vi a, vi b)
{
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b));
}
LW_WORD vm vi_ltu(vi a, vi b)
{
    vi s = _mm256_set1_epi32((int)0x80000000u);
    return vi_gt(_mm256_xor_si256(b, s), _mm256_xor_si256(a, s));
}
LW_WORD vi vi_sel(vm m, vi x, vi y)
{
    return _mm256_blendv_epi8(y, x, _mm256_castps_si256(m));
}
LW_WORD vf v_gather(const float *base, vi index)
{
    return _mm256_i32gather_ps(base, index, 4);
}

LW_WORD vi v_to_i(vf a)
{
    return _mm256_cvtps_epi32(a);
}
LW_WORD vi vi_load_u16(const uint16_t *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
LW_WORD vi vi_load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
LW_WORD vi vi_max(vi a, vi b)
{
    return _mm256_max_epi32(a, b);
}
LW_WORD vi vi_min(vi a, vi b)
{
    return _mm256_min_epi32(a, b);
}
LW_WORD __m128i vi_low_u16(vi v) /* the low halves of all lanes */
{
    vi s = _mm256_shuffle_epi8(v, _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1,
                                                   -1, -1, 0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1,
                                                   -1, -1, -1, -1, -1));
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(s, 0x08));
}
LW_WORD __m128i vi_low_u8(vi v) /* the low bytes of all lanes, 8 of them */
{
    return _mm_shuffle_epi8(vi_low_u16(v), _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, -1, -1, -1, -1,
                                                         -1, -1, -1, -1));
}
LW_WORD void vi_store_u16(uint16_t *p, vi v)
{
    _mm_storeu_si128((__m128i *)(void *)p, vi_low_u16(v));
}
LW_WORD void vi_store_u8(uint8_t *p, vi v)
{
    _mm_storel_epi64((__m128i *)(void *)p, vi_low_u8(v));
}
LW_WORD __m128i vi_packing(uint32_t bits) /* a permutation of four lanes that brings the flagged ones together */
{
    return _mm_cvtepu8_epi32(_mm_cvtsi32_si128((int)lw_flagged_lanes(bits)));
}
LW_WORD void v_pack(float *p, vf v, vm m)
{
    const uint32_t bits = vm_bits(m);
    _mm_storeu_ps(p, _mm_permutevar_ps(_mm256_castps256_ps128(v), vi_packing(bits)));
    _mm_storeu_ps(p + __builtin_popcount(bits & 15),
                  _mm_permutevar_ps(_mm256_extractf128_ps(v, 1), vi_packing(bits >> 4)));
}
LW_WORD void vi_pack_half_u16(uint16_t *p, __m128 v, uint32_t bits)
{
    const __m128i low = _mm_set1_epi64x(0x0d0c090805040100);
    __m128i packed = _mm_castps_si128(_mm_permutevar_ps(v, vi_packing(bits)));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_shuffle_epi8(packed, low));
}
LW_WORD void vi_pack_u16(uint16_t *p, vi v, vm m)
{
    const uint32_t bits = vm_bits(m);
    const __m256 f = v_as_f(v);
    vi_pack_half_u16(p, _mm256_castps256_ps128(f), bits);
    vi_pack_half_u16(p + __builtin_popcount(bits & 15), _mm256_extractf128_ps(f, 1), bits >> 4);
}

LW_WORD vi vi_load_u24(const uint8_t *p)
{
    __m128i lo = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i hi = _mm_loadl_epi64((const __m128i *)(const void *)(p + 16));
    vi v = _mm256_inserti128_si256(_mm256_castsi128_si256(lo), hi, 1);
    v = _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5));
    return _mm256_shuffle_epi8(v, _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11,
                                                   -1, 0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10,
                                                   11, -1));
}
LW_WORD void vi_store_u24(uint8_t *p, vi v)
{
    v = _mm256_shuffle_epi8(v, _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1,
                                                -1, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1,
                                                -1, -1));
    v = _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7));
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(v));
    _mm_storel_epi64((__m128i *)(void *)(p + 16), _mm256_extracti128_si256(v, 1));
}
LW_WORD void vi_zip(vi a, vi b, vi *lo, vi *hi)
{
    vi x = _mm256_unpacklo_epi32(a, b), y = _mm256_unpackhi_epi32(a, b);
    *lo = _mm256_permute2x128_si256(x, y, 0x20);
    *hi = _mm256_permute2x128_si256(x, y, 0x31);
}
LW_WORD void vi_unzip(vi lo, vi hi, vi *even, vi *odd)
{
    vf x = _mm256_castsi256_ps(lo), y = _mm256_castsi256_ps(hi);
    vi e = _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0x88));
    vi o = _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0xdd));
    *even = _mm256_permute4x64_epi64(e, 0xd8);
    *odd = _mm256_permute4x64_epi64(o, 0xd8);
}

LW_WORD vi vi_block_iota(void)
{
    return _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
}
LW_WORD void vi_interleave4(vi w[4])
{
    vi a = _mm256_unpacklo_epi32(w[0], w[1]), b = _mm256_unpackhi_epi32(w[0], w[1]);
    vi c = _mm256_unpacklo_epi32(w[2], w[3]), d = _mm256_unpackhi_epi32(w[2], w[3]);
    w[0] = _mm256_unpacklo_epi64(a, c);
    w[1] = _mm256_unpackhi_epi64(a, c);
    w[2] = _mm256_unpacklo_epi64(b, d);
    w[3] = _mm256_unpackhi_epi64(b, d);
}

#endif
