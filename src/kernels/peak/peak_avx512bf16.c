/* SPDX-License-Identifier: Apache-2.0 */
/* Peaks of the dot-product instructions: of bytes, and of pairs of bf16 into f32, where a step adds 2^-10 to each lane. */
#include "kernels/peak/peak_int8_body.inc"

void lw_peak_bf16_avx512bf16(double *ops, float *sink, ptrdiff_t rounds)
{
    enum { CHAINS = 12 };
    __m512 acc[CHAINS], sum = _mm512_setzero_ps();
    __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f));
    __m512bh y = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0x1p-10f), _mm512_set1_ps(0x1p-10f));
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) acc[i] = _mm512_set1_ps((float)i);
    for (ptrdiff_t r = 0; r < rounds; r++)
        _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++)
            acc[i] = _mm512_dpbf16_ps(acc[i], x, y);
    _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sum = _mm512_add_ps(sum, acc[i]);
    *sink = _mm512_reduce_add_ps(sum);
    *ops = 4.0 * CHAINS * VL * (double)rounds;
}
