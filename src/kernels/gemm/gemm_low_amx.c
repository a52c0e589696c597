/* SPDX-License-Identifier: Apache-2.0 */
/* The body of gemm_low_body.inc at this ISA level. */
#include "kernels/gemm/gemm_low_body.inc"

void lw_gemm_forward_bf16x3_amx(float *c, ptrdiff_t ldc, const float *a, ptrdiff_t lda,
                                const void *packed, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K,
                                const lw_epilogue *e, int64_t task)
{
    lw_tile_room room;
    _Alignas(64) float rows[LW_TILE_MOST_ROWS * LW_SPLIT_PITCH];
    lw_gemm_job j = {.c = c,
                     .a = a,
                     .packed = packed,
                     .ldc = ldc,
                     .lda = lda,
                     .M = M,
                     .N = N,
                     .K = K,
                     .e = e,
                     .num = LW_NUM_BF16X3,
                     .tiles = &lw_tiles_bf16x3_amx,
                     .room = lw_tiles_begin(&room),
                     .split = lw_bf16x3_split_amx,
                     .rows = rows};
    lw_gemm_run_avx512(j, task);
    lw_tiles_end();
}
