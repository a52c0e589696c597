/* SPDX-License-Identifier: Apache-2.0 */
/* gemm, reference, bf16 operands. Packed weights are a plain [N][K] copy. */
#define REF_A lw_bf16
#define REF_B lw_bf16
#define REF_VALUE(v) ((double)lw_bf16_to_f32(v))
#define REF_WEIGHT(v) REF_VALUE(v)
#include "kernels/gemm/gemm_ref.inc"

void lw_gemm_pack_bf16_ref(void *packed, const float *b, ptrdiff_t N, ptrdiff_t K,
                           ptrdiff_t stride_n, ptrdiff_t stride_k, int64_t task)
{
    lw_bf16 *out = packed;
    ptrdiff_t cols = lw_gemm_pack_cols(N, K), n1 = LW_MIN((task + 1) * cols, N);
    for (ptrdiff_t n = task * cols; n < n1; n++)
        for (ptrdiff_t k = 0; k < K; k++)
            out[n * K + k] = lw_bf16_of_f32(b[n * stride_n + k * stride_k]);
}

void lw_gemm_forward_bf16_ref(void *c, ptrdiff_t ldc, const lw_bf16 *a, ptrdiff_t lda,
                              const void *packed, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K,
                              const lw_epilogue *e, int64_t task)
{
    product_pass(c, ldc, a, lda, packed, NULL, M, N, K, e, task);
}

void lw_gemm_weight_grad_bf16_ref(float *dw, float *db, const lw_bf16 *dy, ptrdiff_t lddy,
                                  const lw_bf16 *x, ptrdiff_t ldx, ptrdiff_t M, ptrdiff_t N,
                                  ptrdiff_t K, int accumulate, float *partials, int64_t task)
{
    (void)partials;
    weight_pass(dw, db, dy, lddy, x, ldx, M, N, K, accumulate, task);
}
