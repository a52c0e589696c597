/* SPDX-License-Identifier: Apache-2.0 */
/* gemm, reference, f32: the oracle and the portable path; the loops are in gemm_ref.inc.
 * Packed weights are a plain [N][K] copy; tasks take equal shares of rows. */
#include <math.h>

#include "kernels/cast/cast.h"

#define REF_A float
#define REF_B float
#define REF_VALUE(v) ((double)(v))
#define REF_WEIGHT(v) ((double)(v))
#include "kernels/gemm/gemm_ref.inc"

/* What dropout multiplies the sum at (row, n) by. */
static double dropped(const lw_drop *d, ptrdiff_t row, ptrdiff_t n)
{
    uint64_t id = (uint64_t)d->ids[row / d->per], e = (uint64_t)(row % d->per * d->width + n);
    bool keep = lw_rng_uniform(d->key, d->step, id, e) >= (double)d->p;
    return keep ? 1.0 / (1.0 - (double)d->p) : 0.0;
}

float lw_epilogue_ref(double sum, float old, const lw_epilogue *e, ptrdiff_t image, ptrdiff_t row,
                      ptrdiff_t n)
{
    if (!e)
        return (float)sum;
    double v = sum;
    if (e->accumulate)
        v += (double)old;
    if (e->bias)
        v += (double)e->bias[n];
    if (e->image_bias)
        v += (double)e->image_bias[image * e->ld_image_bias + n];
    if (e->drop)
        v *= dropped(e->drop, row, n);
    if (e->residual)
        v += (double)e->residual[row * e->ld_residual + n];
    if (e->residual_low)
        v += (double)lw_bf16_to_f32(e->residual_low[row * e->ld_residual + n]);
    return (float)lw_act_ref(v, e->act);
}

void lw_store_ref(void *y, ptrdiff_t at, double sum, const lw_epilogue *e, ptrdiff_t image,
                  ptrdiff_t row, ptrdiff_t n)
{
    float *out = (float *)y + at;
    if (e && e->store == LW_NUM_BF16)
        ((lw_bf16 *)y)[at] = lw_bf16_of_f32(lw_epilogue_ref(sum, 0.0f, e, image, row, n));
    else if (e && e->store == LW_NUM_S8)
        lw_cast_f32_to_u8_ref((uint8_t *)y + at,
                              &(float){lw_epilogue_ref(sum, 0.0f, e, image, row, n)}, 1,
                              e->store_pair[0], (int32_t)e->store_pair[1]);
    else
        *out = lw_epilogue_ref(sum, e && e->accumulate ? *out : 0.0f, e, image, row, n);
}

double lw_act_ref(double v, lw_act act)
{
    switch (act) {
    case LW_ACT_RELU:
        return v < 0.0 ? 0.0 : v;
    case LW_ACT_SILU:
        return v / (1.0 + exp(-v));
    case LW_ACT_GELU:
        return 0.5 * v * (1.0 + erf(v * M_SQRT1_2));
    case LW_ACT_GELU_TANH:
        return 0.5 * v * (1.0 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    case LW_ACT_RELU6:
        return v < 0.0 ? 0.0 : v > 6.0 ? 6.0 : v;
    case LW_ACT_QUICK_GELU:
        return v / (1.0 + exp(-1.702 * v));
    default:
        return v;
    }
}

void lw_gemm_pack_ref(float *packed, const float *b, ptrdiff_t N, ptrdiff_t K, ptrdiff_t stride_n,
                      ptrdiff_t stride_k, int64_t task)
{
    ptrdiff_t cols = lw_gemm_pack_cols(N, K), n1 = LW_MIN((task + 1) * cols, N);
    for (ptrdiff_t n = task * cols; n < n1; n++)
        for (ptrdiff_t k = 0; k < K; k++)
            packed[n * K + k] = b[n * stride_n + k * stride_k];
}

void lw_gemm_forward_ref(float *c, ptrdiff_t ldc, const float *a, ptrdiff_t lda,
                         const float *packed, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K,
                         const lw_epilogue *e, int64_t task)
{
    product_pass(c, ldc, a, lda, packed, NULL, M, N, K, e, task);
}

void lw_gemm_weight_grad_ref(float *dw, float *db, const float *dy, ptrdiff_t lddy, const float *x,
                             ptrdiff_t ldx, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, int accumulate,
                             float *partials, int64_t task)
{
    (void)partials; /* one pass: each task owns some rows of dw */
    weight_pass(dw, db, dy, lddy, x, ldx, M, N, K, accumulate, task);
}

void lw_gemm_weight_grad_combine_ref(float *dw, float *db, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K,
                                     int accumulate, const float *partials, int64_t task)
{
    (void)dw, (void)db, (void)M, (void)N, (void)K, (void)accumulate, (void)partials, (void)task;
}
