/* SPDX-License-Identifier: Apache-2.0 */
/* Peak of the dot product of u8 x s8 on vectors of AVX2, as peak_avx512bf16.c has it. */
#include <immintrin.h>

#include "kernels/peak/peak.h"

enum { CHAINS = 12, LANES = 8 };

void lw_peak_int8_avxvnni(double *ops, float *sink, ptrdiff_t rounds)
{
    __m256i acc[CHAINS], sum = _mm256_setzero_si256();
    __m256i x = _mm256_set1_epi8(1), y = _mm256_set1_epi32(0x01ff0001); /* 1, 0, -1, 1 */
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) acc[i] = _mm256_set1_epi32(i);
    for (ptrdiff_t r = 0; r < rounds; r++)
        _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++)
            acc[i] = _mm256_dpbusd_avx_epi32(acc[i], x, y);
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum = _mm256_add_epi32(sum, acc[i]);
    *sink = (float)_mm256_extract_epi32(sum, 0);
    *ops = 8.0 * CHAINS * LANES * (double)rounds;
}
