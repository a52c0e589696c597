/* SPDX-License-Identifier: Apache-2.0 */
/* Peaks of the dot-product instructions: pairs of bf16 into f32, quadruples of u8 x s8 into s32.
 * Twelve chains hide their latency; each begins with another number, or the compiler would keep one
 * for all of them. A step adds 2^-10, or 1, to each lane. */
#include <immintrin.h>

#include "kernels/peak/peak.h"

enum { CHAINS = 12, LANES = 16 };

void lw_peak_bf16_avx512bf16(double *ops, float *sink, ptrdiff_t rounds)
{
    __m512 acc[CHAINS], sum = _mm512_setzero_ps();
    __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f));
    __m512bh y = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0x1p-10f), _mm512_set1_ps(0x1p-10f));
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) acc[i] = _mm512_set1_ps((float)i);
    for (ptrdiff_t r = 0; r < rounds; r++)
        _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++)
            acc[i] = _mm512_dpbf16_ps(acc[i], x, y);
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum = _mm512_add_ps(sum, acc[i]);
    *sink = _mm512_reduce_add_ps(sum);
    *ops = 4.0 * CHAINS * LANES * (double)rounds;
}

void lw_peak_int8_avx512bf16(double *ops, float *sink, ptrdiff_t rounds)
{
    __m512i acc[CHAINS], sum = _mm512_setzero_si512();
    __m512i x = _mm512_set1_epi8(1), y = _mm512_set1_epi32(0x01ff0001); /* 1, 0, -1, 1 */
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) acc[i] = _mm512_set1_epi32(i);
    for (ptrdiff_t r = 0; r < rounds; r++)
        _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++)
            acc[i] = _mm512_dpbusd_epi32(acc[i], x, y);
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum = _mm512_add_epi32(sum, acc[i]);
    *sink = (float)_mm512_reduce_add_epi32(sum);
    *ops = 8.0 * CHAINS * LANES * (double)rounds;
}
