/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd: vector words. A kernel body written in these words compiles for AVX-512 (VL 16), AVX2 with
 * FMA (VL 8), on 64-bit ARM NEON (VL 8, in two registers) and plain C (VL 1), chosen by macros, so by the
 * flags of the file that includes it.
 *
 * Types: vf = VL floats, vi = VL 32-bit integers, vm = VL lane flags (from comparisons).
 * Names: v_* on floats, vi_* on integers, vm_* on flags. All are exact IEEE operations, one
 * rounding per word; v_fma is fused everywhere (fmaf in plain C). So a body without reductions
 * gives the SAME BITS on every ISA (but for the sign of a NaN): the functions of simd_math.h (exp,
 * log, ...) do, and kernels/random depends on it. v_hsum, v_hmax add lanes in a fixed tree that
 * depends on VL: same bits for one ISA only.
 *
 *   v_load(p) v_store(p,v) v_load_n(p,n) v_store_n(p,v,n)   unaligned; _n: 0..VL lanes, the others
 *                                                           0 or untouched
 *   v_set1(x) v_zero() v_add v_sub v_mul v_div v_sqrt v_neg v_abs
 *   v_fma(a,b,c) = a*b+c    v_fnma(a,b,c) = c-a*b    v_fms(a,b,c) = a*b-c
 *   v_max(a,b) = a>b?a:b    v_min(a,b) = a<b?a:b     (as the hardware: b when either is NaN)
 *   v_gt v_ge v_lt v_le v_eq v_isnan -> vm (false on NaN, but v_isnan);  vm_and vm_or vm_any
 *   v_sel(m,x,y) = m?x:y    v_keep(m,x) = m?x:0    v_select_gt(a,b,x,y) = a>b?x:y
 *   v_copysign(a,b): |a| with the sign of b
 *   v_scale2(x,n): x * 2^n for whole n, |n| <= 252, x near 1
 *   v_hsum v_hmax v_hmin: one float from VL lanes;  v_hsum_d: the sum in double;
 *   v_hsum4(to, a, b, c, d), v_hmin4: four of them;  v_transpose(r[VL]);  vm_bits: lane l as bit l
 *   v_from_i(vi) = round to nearest float of signed lanes; v_as_i / v_as_f: bit casts
 *   v_to_i(v): to nearest even, |v| < 2^31
 *   vi_set1 vi_iota(0,1,..) vi_load vi_store vi_load_n vi_store_n vi_add vi_sub vi_and vi_or vi_xor
 *   vi_shl(a,k) vi_shr(a,k) (zero fill) vi_sra(a,k) (sign fill), k a constant
 *   v_mullo_u32 v_mulhi_u32; v_mulwide_u32(a,b,&hi,&lo) does both at the price of one
 *   vi_gt (signed) vi_eq vi_ltu (unsigned) -> vm;  vi_sel(m,x,y)
 *   vi_block_iota, vi_interleave4(w[4]): when lane l of w[k] belongs to 4-word block
 *       vi_block_iota[l], leaves the 4 VL words in block order, w[0] first
 *   Not in plain C, of VL / 2 lanes of 64 bits whose upper halves do not matter:
 *   v_mul_even_u32 (the whole products), vi_high (upper halves moved down), vi_even_block_iota,
 *   vi_interleave_even4(w[4], out[2]): as above, 2 VL words of VL / 2 blocks;  vi_xor3
 *   v_gather(base, vi index): base[index[lane]]
 *   v_load_u8(p) v_load_u8_n(p,n): bytes to floats 0..255
 *   vi_load_u16(p) vi_load_u16_n(p,n): halves to lanes; vi_load_u8, vi_load_u8_n: bytes to lanes
 *   vi_max(a,b) vi_min(a,b): signed
 *   vi_store_u16 vi_store_u16_n vi_store_u8 vi_store_u8_n: the low half or byte of each lane
 *   vi_store_u8_most(p,v,n), where LW_SIMD_SATURATES_U8: the first n lanes, unsigned, as bytes, of which 255 is the most
 *   vi16_add, vi16_sub, vi16_shl, vi16_shr, vi16_sra, vi16_load_u8, vi16_load_u8_n: of 2 VL lanes of 16 bits
 *   vi_mac_s16(sum,a,b): the two products of s16 in each lane added; vi_mac_u8s8, where LW_SIMD_HAS_MAC_U8S8: the four of
 *       u8 in a and s8 in b, exact
 *   v_pack(p,v,m) vi_pack_u16(p,v,m): the flagged lanes next to each other; VL are written, those behind them of no matter
 *   vi_load_u24(p) vi_store_u24(p,v): the low three bytes of each lane, 3 VL bytes
 *   vi_zip(a,b,&lo,&hi): lanes in turns, a0 b0 a1 b1 ..; vi_unzip(lo,hi,&even,&odd): back
 *   v_load_bf16(p,n): the first n numbers of bf16 as floats, the rest 0;  v_of_bf16(w): of lanes whose low halves they are
 *   vi_bf16(v): floats to bf16 in the low halves, the rest 0 (lw_bf16_of_f32)
 *   v_store_bf16(p,v,n): the first n floats rounded to bf16, as vi_bf16 rounds, but that at avx512bf16 and amx, where
 *       an instruction does it, numbers below 2^-126 become 0
 *
 * LWV(name) pastes the suffix: LWV(lw_ew_run) is lw_ew_run_avx512 / _avx2 (NEON's, too) / _ref. LWV_BASE(name)
 * pastes that of the level whose words these are: at avx512bf16 and amx it is the function of avx512.
 */
#ifndef LW_KERNELS_SIMD_H
#define LW_KERNELS_SIMD_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LW_WORD static inline __attribute__((always_inline, unused))

/* The numbers of those of four lanes that are flagged, in bytes, the first lowest: for words that bring them together. */
LW_WORD uint32_t lw_flagged_lanes(uint32_t bits)
{
    static const uint32_t lanes[16] = {0,      0,        1,        0x0100,    2,      0x0200,
                                       0x0201, 0x020100, 3,        0x0300,    0x0301, 0x030100,
                                       0x0302, 0x030200, 0x030201, 0x03020100};
    return lanes[bits & 15];
}

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include "kernels/simd/simd_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "kernels/simd/simd_avx2.h"
#elif defined(LW_NEON) /* set for the files of a level, as NEON is always there */
#include "kernels/simd/simd_neon.h"
#else
#include "kernels/simd/simd_scalar.h"
#endif
#if VL == 8
#include "kernels/simd/simd_eight.h"
#endif
#ifndef LW_SIMD_SATURATES_U8
#define LW_SIMD_SATURATES_U8 0
#endif

#define LWV_PASTE_(name, suffix) name##suffix
#define LWV_PASTE(name, suffix) LWV_PASTE_(name, suffix)
#define LWV(name) LWV_PASTE(name, LW_SIMD_SUFFIX)
#define LWV_BASE(name) LWV_PASTE(name, LW_SIMD_BASE_SUFFIX)

LW_WORD vf v_select_gt(vf a, vf b, vf x, vf y)
{
    return v_sel(v_gt(a, b), x, y);
}

LW_WORD vf v_of_bf16(vi w)
{
    return v_as_f(vi_shl(w, 16));
}

LW_WORD vi vi_bf16(vf v)
{
    vi u = v_as_i(v), high = vi_shr(u, 16);
    vi even = vi_add(vi_set1(0x7fff), vi_and(high, vi_set1(1)));
    return vi_sel(v_isnan(v), vi_or(high, vi_set1(0x40)), vi_shr(vi_add(u, even), 16));
}

LW_WORD vf v_load_bf16(const uint16_t *p, ptrdiff_t n)
{
#if VL == 16
    /* One permutation of halves, between which it leaves zeros: widening and shifting are two instructions. */
    const __m256i halves = n == VL ? _mm256_loadu_si256((const __m256i *)(const void *)p)
                                   : _mm256_maskz_loadu_epi16(vm_first(n), p);
    return v_as_f(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, vi_shl(vi_iota(), 16),
                                                 _mm512_castsi256_si512(halves)));
#else
    return v_of_bf16(n == VL ? vi_load_u16(p) : vi_load_u16_n(p, n));
#endif
}

LW_WORD void v_store_bf16(uint16_t *p, vf v, ptrdiff_t n)
{
#ifdef __AVX512BF16__
    const __m256i halves = (__m256i)_mm512_cvtneps_pbh(v);
    if (n == VL)
        _mm256_storeu_si256((__m256i *)(void *)p, halves);
    else
        _mm256_mask_storeu_epi16(p, vm_first(n), halves);
#else
    if (n == VL)
        vi_store_u16(p, vi_bf16(v));
    else
        vi_store_u16_n(p, vi_bf16(v), n);
#endif
}

#include "kernels/simd/simd_math.h"

#endif
