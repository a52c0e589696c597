/* SPDX-License-Identifier: Apache-2.0 */
/* The vector words of simd.h on AVX-512 (F, BW, DQ, VL). Included by simd.h only. */
#ifndef LW_KERNELS_SIMD_AVX512_H
#define LW_KERNELS_SIMD_AVX512_H

/* One word, one line. */
/* clang-format off */

#include <immintrin.h>

#define VL 16
/* Before clang 16 the name is the second; the files of this level have all flags of it. */
#if defined(__AMX_TILE__) || defined(__AMXTILE__)
#define LW_AMX 1
#define LW_SIMD_SUFFIX _amx
#elif defined(__AVX512BF16__) && defined(__AVX512VNNI__)
#define LW_SIMD_SUFFIX _avx512bf16
#else
#define LW_SIMD_SUFFIX _avx512
#endif
#define LW_SIMD_BASE_SUFFIX _avx512
#ifdef __AVX512VNNI__
#define LW_SIMD_HAS_MAC_U8S8
#endif
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

LW_WORD __mmask16 vm_first(ptrdiff_t n)
{
    return (__mmask16)((1u << n) - 1u);
}

LW_WORD vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
LW_WORD void v_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}
LW_WORD vf v_load_n(const float *p, ptrdiff_t n)
{
    return _mm512_maskz_loadu_ps(vm_first(n), p);
}
LW_WORD void v_store_n(float *p, vf v, ptrdiff_t n)
{
    _mm512_mask_storeu_ps(p, vm_first(n), v);
}
LW_WORD vf v_set1(float x)
{
    return _mm512_set1_ps(x);
}
LW_WORD vf v_zero(void)
{
    return _mm512_setzero_ps();
}
LW_WORD vf v_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
LW_WORD vf v_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
LW_WORD vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
LW_WORD vf v_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
LW_WORD vf v_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}
LW_WORD vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
LW_WORD vf v_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
}
LW_WORD vf v_fms(vf a, vf b, vf c)
{
    return _mm512_fmsub_ps(a, b, c);
}
LW_WORD vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
LW_WORD vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
LW_WORD vf v_neg(vf a)
{
    return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f));
}
LW_WORD vf v_abs(vf a)
{
    return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a);
}
LW_WORD vf v_copysign(vf a, vf b)
{
    vf s = _mm512_set1_ps(-0.0f);
    return _mm512_or_ps(_mm512_andnot_ps(s, a), _mm512_and_ps(s, b));
}

#define LW_SIMD_HAS_SCALE
LW_WORD vf v_scale2(vf x, vf n)
{
    return _mm512_scalef_ps(x, n);
} /* x * 2^n, n whole */

LW_WORD vm v_gt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
LW_WORD vm v_ge(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}
LW_WORD vm v_lt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
LW_WORD vm v_le(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
LW_WORD vm v_eq(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}
LW_WORD vm v_isnan(vf a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}
LW_WORD vm vm_and(vm a, vm b)
{
    return (vm)(a & b);
}
LW_WORD vm vm_or(vm a, vm b)
{
    return (vm)(a | b);
}
LW_WORD int vm_any(vm a)
{
    return a != 0;
}
LW_WORD uint32_t vm_bits(vm a) /* lane l is bit l */
{
    return a;
}
LW_WORD vf v_keep(vm m, vf x)
{
    return _mm512_maskz_mov_ps(m, x);
}
LW_WORD vf v_sel(vm m, vf x, vf y)
{
    return _mm512_mask_blend_ps(m, y, x);
}

LW_WORD float v_hsum(vf a) /* lanes i and i+8, then i+4, i+2, i+1 */
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
LW_WORD void v_transpose(vf r[VL]) /* VL rows become VL columns */
{
    vf t[VL], u[VL];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        __m512d a = _mm512_castps_pd(t[i / 2 * 4 + i % 2]),
                b = _mm512_castps_pd(t[i / 2 * 4 + i % 2 + 2]);
        u[2 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
        u[2 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) { /* quarter L of u[4 i + c]: column 4 L + c of rows 4 i .. */
        vf a = _mm512_shuffle_f32x4(u[c], u[c + 4], 0x88),
           b = _mm512_shuffle_f32x4(u[c + 8], u[c + 12], 0x88),
           d = _mm512_shuffle_f32x4(u[c], u[c + 4], 0xdd),
           e = _mm512_shuffle_f32x4(u[c + 8], u[c + 12], 0xdd);
        r[c] = _mm512_shuffle_f32x4(a, b, 0x88);
        r[c + 4] = _mm512_shuffle_f32x4(d, e, 0x88);
        r[c + 8] = _mm512_shuffle_f32x4(a, b, 0xdd);
        r[c + 12] = _mm512_shuffle_f32x4(d, e, 0xdd);
    }
}
LW_WORD void v_hsum4(float *to, vf a, vf b, vf c, vf d) /* four sums at once */
{
    vf ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    vf cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    vf s = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1)));
}
LW_WORD void v_hmin4(float *to, vf a, vf b, vf c, vf d)
{
    vf ab = _mm512_min_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    vf cd = _mm512_min_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    vf s = _mm512_min_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    __m256 h = _mm256_min_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));
    _mm_storeu_ps(to, _mm_min_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1)));
}
LW_WORD double v_hsum_d(vf a)
{
    __m512d s = _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(a)),
                              _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)));
    __m256d h = _mm256_add_pd(_mm512_castpd512_pd256(s), _mm512_extractf64x4_pd(s, 1));
    __m128d q = _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
    return _mm_cvtsd_f64(_mm_add_sd(q, _mm_unpackhi_pd(q, q)));
}
LW_WORD float v_hmax(vf a)
{
    __m256 h = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}
LW_WORD float v_hmin(vf a)
{
    __m256 h = _mm256_min_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q = _mm_min_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_min_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_min_ss(q, _mm_movehdup_ps(q)));
}

LW_WORD vf v_from_i(vi a)
{
    return _mm512_cvtepi32_ps(a);
}
LW_WORD vi v_as_i(vf a)
{
    return _mm512_castps_si512(a);
}
LW_WORD vf v_as_f(vi a)
{
    return _mm512_castsi512_ps(a);
}
LW_WORD vi vi_set1(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}
LW_WORD vi vi_iota(void)
{
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
LW_WORD vi vi_load(const void *p)
{
    return _mm512_loadu_si512(p);
}
LW_WORD void vi_store(void *p, vi v)
{
    _mm512_storeu_si512(p, v);
}
LW_WORD vi vi_load_n(const void *p, ptrdiff_t n)
{
    return _mm512_maskz_loadu_epi32(vm_first(n), p);
}
LW_WORD void vi_store_n(void *p, vi v, ptrdiff_t n)
{
    _mm512_mask_storeu_epi32(p, vm_first(n), v);
}
LW_WORD vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}
#ifdef LW_SIMD_HAS_MAC_U8S8
/* sum + the four products of bytes in each lane: of u8 in a, s8 in b. Exact. */
LW_WORD vi vi_mac_u8s8(vi sum, vi a, vi b)
{
    return _mm512_dpbusd_epi32(sum, a, b);
}
#endif
/* sum + the two products of s16 in each lane, modulo 2^32. */
LW_WORD vi vi_mac_s16(vi sum, vi a, vi b)
{
#ifdef __AVX512VNNI__
    return _mm512_dpwssd_epi32(sum, a, b);
#else
    sum = vi_add(sum, _mm512_madd_epi16(a, b));
    __asm__("" : "+v"(sum)); /* additions in this order: in another there would be more sums than registers */
    return sum;
#endif
}
/* Vectors of 2 VL whole numbers of 16 bits. */
LW_WORD vi vi16_add(vi a, vi b)
{
    return _mm512_add_epi16(a, b);
}
LW_WORD vi vi16_sub(vi a, vi b)
{
    return _mm512_sub_epi16(a, b);
}
LW_WORD vi vi16_shl(vi a, unsigned k)
{
    return _mm512_slli_epi16(a, k);
}
LW_WORD vi vi16_shr(vi a, unsigned k)
{
    return _mm512_srli_epi16(a, k);
}
LW_WORD vi vi16_sra(vi a, unsigned k)
{
    return _mm512_srai_epi16(a, k);
}
LW_WORD vi vi16_load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
/* The first n of them, a multiple of 4, others 0. */
LW_WORD vi vi16_load_u8_n(const uint8_t *p, ptrdiff_t n)
{
    return _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi32((__mmask8)((1u << n / 4) - 1), p));
}
LW_WORD vi vi_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}
LW_WORD vi vi_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}
LW_WORD vi vi_or(vi a, vi b)
{
    return _mm512_or_si512(a, b);
}
LW_WORD vi vi_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}
LW_WORD vi vi_shl(vi a, unsigned k)
{
    return _mm512_slli_epi32(a, k);
}
LW_WORD vi vi_shr(vi a, unsigned k)
{
    return _mm512_srli_epi32(a, k);
}
LW_WORD vi vi_sra(vi a, unsigned k)
{
    return _mm512_srai_epi32(a, k);
}
LW_WORD void v_mulwide_u32(vi a, vi b, vi *hi, vi *lo)
{
    vi even = _mm512_mul_epu32(a, b);
    vi odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    *hi = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    *lo = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}
LW_WORD vi v_mul_even_u32(vi a, vi b)
{
    return _mm512_mul_epu32(a, b);
}
LW_WORD vi vi_high(vi a)
{
    return _mm512_srli_epi64(a, 32);
}
LW_WORD vi vi_xor3(vi a, vi b, vi c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}
LW_WORD vi vi_even_block_iota(void)
{
    return _mm512_setr_epi32(0, 0, 4, 0, 1, 0, 5, 0, 2, 0, 6, 0, 3, 0, 7, 0);
}
LW_WORD void vi_interleave_even4(const vi w[4], vi out[2])
{
    vi a = _mm512_mask_shuffle_epi32(w[0], 0xaaaa, w[1], _MM_PERM_CCAA);
    vi b = _mm512_mask_shuffle_epi32(w[2], 0xaaaa, w[3], _MM_PERM_CCAA);
    out[0] = _mm512_unpacklo_epi64(a, b);
    out[1] = _mm512_unpackhi_epi64(a, b);
}
LW_WORD vi v_mullo_u32(vi a, vi b)
{
    return _mm512_mullo_epi32(a, b);
}
LW_WORD vm vi_gt(vi a, vi b)
{
    return _mm512_cmpgt_epi32_mask(a, b);
}
LW_WORD vm vi_eq(vi a, vi b)
{
    return _mm512_cmpeq_epi32_mask(a, b);
}
LW_WORD vm vi_ltu(vi a, vi b)
{
    return _mm512_cmplt_epu32_mask(a, b);
}
LW_WORD vi vi_sel(vm m, vi x, vi y)
{
    return _mm512_mask_blend_epi32(m, y, x);
}
LW_WORD vf v_gather(const float *base, vi index)
{
    return _mm512_i32gather_ps(index, base, 4);
}
LW_WORD vf v_load_u8(const uint8_t *p)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
}

LW_WORD vi v_to_i(vf a)
{
    return _mm512_cvtps_epi32(a);
}
LW_WORD vi vi_load_u16(const uint16_t *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
LW_WORD vi vi_load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
LW_WORD vi vi_max(vi a, vi b)
{
    return _mm512_max_epi32(a, b);
}
LW_WORD vi vi_min(vi a, vi b)
{
    return _mm512_min_epi32(a, b);
}
LW_WORD void vi_store_u16(uint16_t *p, vi v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(v));
}
LW_WORD void vi_store_u8(uint8_t *p, vi v)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(v));
}
LW_WORD vi vi_load_u16_n(const uint16_t *p, ptrdiff_t n)
{
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(vm_first(n), p));
}
LW_WORD void vi_store_u16_n(uint16_t *p, vi v, ptrdiff_t n)
{
    _mm256_mask_storeu_epi16(p, vm_first(n), _mm512_cvtepi32_epi16(v));
}
LW_WORD void v_pack(float *p, vf v, vm m)
{
    v_store(p, _mm512_maskz_compress_ps(m, v));
}
LW_WORD void vi_pack_u16(uint16_t *p, vi v, vm m)
{
    vi_store_u16(p, _mm512_maskz_compress_epi32(m, v));
}
LW_WORD void vi_store_u8_n(uint8_t *p, vi v, ptrdiff_t n)
{
    _mm_mask_storeu_epi8(p, vm_first(n), _mm512_cvtepi32_epi8(v));
}
#define LW_SIMD_SATURATES_U8 1
LW_WORD void vi_store_u8_most(uint8_t *p, vi v, ptrdiff_t n)
{
    if (n == VL)
        _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtusepi32_epi8(v));
    else
        _mm_mask_storeu_epi8(p, vm_first(n), _mm512_cvtusepi32_epi8(v));
}
LW_WORD vi vi_load_u8_n(const uint8_t *p, ptrdiff_t n)
{
    return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(vm_first(n), p));
}
LW_WORD vf v_load_u8_n(const uint8_t *p, ptrdiff_t n)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(vm_first(n), p)));
}

LW_WORD vi v_mulhi_u32(vi a, vi b)
{
    vi hi, lo;
    v_mulwide_u32(a, b, &hi, &lo);
    return hi;
}

LW_WORD vi vi_load_u24(const uint8_t *p)
{
    vi v = _mm512_maskz_loadu_epi8(0xffffffffffffu, p);
    v = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11), v);
    return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(_mm_setr_epi8(
                                      0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1)));
}
LW_WORD void vi_store_u24(uint8_t *p, vi v)
{
    v = _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12,
                                                                    13, 14, -1, -1, -1, -1)));
    v = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 3, 3, 3), v);
    _mm512_mask_storeu_epi8(p, 0xffffffffffffu, v);
}
LW_WORD void vi_zip(vi a, vi b, vi *lo, vi *hi)
{
    *lo = _mm512_permutex2var_epi32(
        a, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), b);
    *hi = _mm512_permutex2var_epi32(
        a, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), b);
}
LW_WORD void vi_unzip(vi lo, vi hi, vi *even, vi *odd)
{
    *even = _mm512_permutex2var_epi32(
        lo, _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), hi);
    *odd = _mm512_permutex2var_epi32(
        lo, _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31), hi);
}

LW_WORD vi vi_block_iota(void)
{
    return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}
LW_WORD void vi_interleave4(vi w[4])
{
    vi a = _mm512_unpacklo_epi32(w[0], w[1]), b = _mm512_unpackhi_epi32(w[0], w[1]);
    vi c = _mm512_unpacklo_epi32(w[2], w[3]), d = _mm512_unpackhi_epi32(w[2], w[3]);
    w[0] = _mm512_unpacklo_epi64(a, c);
    w[1] = _mm512_unpackhi_epi64(a, c);
    w[2] = _mm512_unpacklo_epi64(b, d);
    w[3] = _mm512_unpackhi_epi64(b, d);
}

#endif
