/* SPDX-License-Identifier: Apache-2.0 */
/* gemm, reference, u8 x s8. Packed weights are a plain [N][K] copy; sums of whole numbers are exact in double. */
#include <math.h>

#define REF_A uint8_t
#define REF_B int8_t
#define REF_VALUE(v) ((double)(v))
#define REF_WEIGHT(v) ((double)(v))
#include "kernels/gemm/gemm_ref.inc"

int8_t lw_s8_of_f32(float x, float scale)
{
    float v = scale > 0.0f ? x / scale : 0.0f;
    v = v > -127.0f ? v : -127.0f;
    return (int8_t)lrintf(v < 127.0f ? v : 127.0f);
}

void lw_gemm_pack_s8_ref(void *packed, const float *b, ptrdiff_t N, ptrdiff_t K, ptrdiff_t stride_n,
                         ptrdiff_t stride_k, const float *scale, int64_t task)
{
    int8_t *out = packed;
    ptrdiff_t cols = lw_gemm_pack_cols(N, K), n1 = LW_MIN((task + 1) * cols, N);
    for (ptrdiff_t n = task * cols; n < n1; n++)
        for (ptrdiff_t k = 0; k < K; k++)
            out[n * K + k] = lw_s8_of_f32(b[n * stride_n + k * stride_k], scale[n]);
}

void lw_gemm_forward_u8_ref(void *c, ptrdiff_t ldc, const uint8_t *a, ptrdiff_t lda,
                            const void *packed, const lw_quant *q, ptrdiff_t M, ptrdiff_t N,
                            ptrdiff_t K, const lw_epilogue *e, int64_t task)
{
    product_pass(c, ldc, a, lda, packed, q, M, N, K, e, task);
}
