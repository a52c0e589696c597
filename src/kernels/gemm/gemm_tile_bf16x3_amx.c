/* SPDX-License-Identifier: Apache-2.0 */
/* The body of gemm_tile_amx_body.inc for LW_NUM_BF16X3, and the split of rows. */
#include "kernels/gemm/gemm_job.h"
#include "kernels/simd/simd_fetch.h"

#define TILE_INTEGER 0
#define TILE_PARTS 3
#define TILE_RUN lw_tile_run_bf16x3_amx
#define TILE_KIND lw_tiles_bf16x3_amx
#define TILE_FINISH lw_tile_run_avx512
#include "kernels/gemm/gemm_tile_amx_body.inc"

/* The next bf16 of 32 numbers, which are left over. */
LW_WORD void next_part(float *to, vf *low, vf *high)
{
    const __m512i w = (__m512i)_mm512_cvtne2ps_pbh(*high, *low);
    _mm512_storeu_si512(to, w);
    *low = v_sub(*low, v_of_bf16(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(w))));
    *high = v_sub(*high, v_of_bf16(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(w, 1))));
}

void lw_bf16x3_split_amx(float *to, const float *from, ptrdiff_t n)
{
    enum {
        AHEAD = 1024
    }; /* floats: rows follow one another, and come from behind the second cache */
    for (; n > 0; n -= LW_BF16X3_NUMBERS, from += LW_BF16X3_NUMBERS, to += LW_BF16X3_WORDS) {
        const bool whole = n >= LW_BF16X3_NUMBERS;
        lw_fetch_floats(from, AHEAD, LW_BF16X3_NUMBERS, LW_FETCH_L1);
        vf low = whole ? v_load(from) : v_load_n(from, LW_MIN(n, VL));
        vf high = whole ? v_load(from + VL) : n > VL ? v_load_n(from + VL, n - VL) : v_zero();
        next_part(to, &low, &high);
        next_part(to + AMX_WORDS, &low, &high);
        next_part(to + 2 * AMX_WORDS, &low, &high);
    }
}
