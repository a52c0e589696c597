/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of bf16 on tensor cores (mma.sync), sums in f32: tiles of 64 x 64 of the result by 8
 * warps of 16 x 32 each, 32 of K at a time. There are two stages in shared memory: one is filled
 * while the other is multiplied. The left side is filled by asynchronous copies where rows allow
 * it, the right side likewise where weights were packed; otherwise a side goes through registers,
 * where it becomes bf16.
 */
#include "backend/cuda/kernels/cuda_fragment.h"
#include "backend/cuda/kernels/cuda_gather.h"

/* Halves between rows in shared memory: 20 words, so that the 8 rows and 4 words that a warp reads
 * at once are in 32 banks. */
enum { PITCH = LW_CUDA_MMA_DEPTH + 8, STAGE = LW_CUDA_TILE * PITCH };

/* Eight neighbours in K on their way to shared memory: one thread's share of a stage. */
typedef struct mma_eight {
    uint32_t word[4];
} mma_eight;

LW_ON_DEVICE uint32_t mma_right(const lw_cuda_product *a, const product_kind kind, int32_t k,
                                int32_t column)
{
    if (k >= a->k || column >= a->n)
        return 0;
    int64_t at = product_right_at(a, kind, k, column);
    return a->w_narrow ? ((const uint16_t *)a->w)[at] : lw_bf16_bits(((const float *)a->w)[at]);
}

LW_ON_DEVICE uint32_t mma_left(const lw_cuda_product *a, const product_kind kind, int64_t row,
                               int32_t k)
{
    int64_t at = row < a->m && k < a->k ? product_left_at(a, kind, row, k) : -1;
    return at < 0 ? 0 : ((const uint16_t *)a->x)[at];
}

/* The row, and the first of eight elements of K, that a thread brings. Columns of weights that lie
 * side by side are brought by threads side by side. */
LW_ON_DEVICE int mma_row(bool across)
{
    return across ? LW_TID % LW_CUDA_TILE : LW_TID / 4;
}
LW_ON_DEVICE int mma_first(bool across)
{
    return (across ? LW_TID / LW_CUDA_TILE : LW_TID % 4) * 8;
}

LW_ON_DEVICE void mma_put(uint16_t *stage, bool across, const mma_eight *e)
{
    uint32_t *to = (uint32_t *)(stage + mma_row(across) * PITCH + mma_first(across));
    LW_UNROLL
    for (int i = 0; i < 4; i++)
        to[i] = e->word[i];
}

/* One stage's products: this warp's 16 rows by its 32 columns. */
LW_ON_DEVICE void mma_multiply(const uint16_t *left, const uint16_t *right, float sum[4][4])
{
    int warp = LW_TID / 32, lane = lw_fragment_lane(PITCH);
    const uint16_t *l = left + warp / 2 * 16 * PITCH + lane;
    const uint16_t *r = right + warp % 2 * 32 * PITCH + lane;
    LW_UNROLL
    for (int k = 0; k < LW_CUDA_MMA_DEPTH; k += 16) {
        uint32_t a[4], b[2];
        lw_left_fragment(a, l + k, PITCH);
        LW_UNROLL
        for (int j = 0; j < 4; j++) {
            lw_right_fragment(b, r + j * 8 * PITCH + k);
            lw_mma_bf16(sum[j], a, b);
        }
    }
}

/* left, right: two stages each, aligned to 16 bytes */
LW_ON_DEVICE void mma_tile(const lw_cuda_product *a, const product_kind kind, const bool packed,
                           uint16_t *left, uint16_t *right)
{
    int64_t row0 = LW_BX * LW_CUDA_TILE;
    int32_t column0 = (int32_t)LW_BY * LW_CUDA_TILE;
    bool across =
        !packed && (kind == PRODUCT_CONV_DX || (kind == PRODUCT_MATMUL && !a->trans_w));
    float sum[4][4] = {{0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f},
                       {0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f}};
    LW_ROLLED
    for (int32_t k0 = -LW_CUDA_MMA_DEPTH, at = 1; k0 < a->k; k0 += LW_CUDA_MMA_DEPTH, at ^= 1) {
        int32_t next = k0 + LW_CUDA_MMA_DEPTH;
        mma_eight l = {{0, 0, 0, 0}}, r = {{0, 0, 0, 0}};
        LW_COPY_WAIT();
        LW_SYNC();
        if (next < a->k && a->chunks) {
            int64_t row = row0 + mma_row(false);
            int32_t k = next + mma_first(false);
            int64_t from = row < a->m && k < a->k ? product_left_at(a, kind, row, k) : -1;
            lw_copy_async(left + (at ^ 1) * STAGE + mma_row(false) * PITCH + mma_first(false),
                          (const uint16_t *)a->x + (from < 0 ? 0 : from), from >= 0);
        }
        if (next < a->k && packed) {
            int32_t column = column0 + mma_row(false), k = next + mma_first(false);
            bool there = column < a->n && k < a->w_pitch;
            lw_copy_async(right + (at ^ 1) * STAGE + mma_row(false) * PITCH + mma_first(false),
                          (const uint16_t *)a->w + (there ? product_packed_at(a, column, k) : 0),
                          there);
        }
        if (next < a->k && !(packed && a->chunks)) {
            LW_UNROLL
            for (int i = 0; i < 4; i++) {
                int32_t kl = next + mma_first(false) + 2 * i, kr = next + mma_first(across) + 2 * i;
                int32_t column = column0 + mma_row(across);
                if (!a->chunks)
                    l.word[i] = mma_left(a, kind, row0 + mma_row(false), kl) |
                                mma_left(a, kind, row0 + mma_row(false), kl + 1) << 16;
                if (!packed)
                    r.word[i] =
                        mma_right(a, kind, kr, column) | mma_right(a, kind, kr + 1, column) << 16;
            }
        }
        if (k0 >= 0)
            mma_multiply(left + at * STAGE, right + at * STAGE, sum);
        if (next < a->k) {
            if (!a->chunks)
                mma_put(left + (at ^ 1) * STAGE, false, &l);
            if (!packed)
                mma_put(right + (at ^ 1) * STAGE, across, &r);
        }
    }
    int warp = LW_TID / 32, lane = LW_TID % 32;
    LW_UNROLL
    for (int j = 0; j < 4; j++)
        LW_UNROLL
        for (int i = 0; i < 4; i++) {
            int64_t row = row0 + warp / 2 * 16 + lane / 4 + i / 2 * 8;
            int32_t column = column0 + warp % 2 * 32 + j * 8 + lane % 4 * 2 + i % 2;
            if (row < a->m && column < a->n)
                product_finish(a, kind, row, column, sum[j][i]);
        }
}

LW_KERNEL(mma_matmul, lw_cuda_product, 256)
{
    LW_SHARED LW_ALIGNED16 uint16_t left[2 * STAGE], right[2 * STAGE];
    if (a.w_pitch)
        mma_tile(&a, PRODUCT_MATMUL, true, left, right);
    else
        mma_tile(&a, PRODUCT_MATMUL, false, left, right);
}

LW_KERNEL(mma_conv2d, lw_cuda_product, 256)
{
    LW_SHARED LW_ALIGNED16 uint16_t left[2 * STAGE], right[2 * STAGE];
    if (a.w_pitch)
        mma_tile(&a, PRODUCT_CONV, true, left, right);
    else
        mma_tile(&a, PRODUCT_CONV, false, left, right);
}

LW_KERNEL(mma_conv2d_dx, lw_cuda_product, 256)
{
    LW_SHARED LW_ALIGNED16 uint16_t left[2 * STAGE], right[2 * STAGE];
    if (a.w_pitch)
        mma_tile(&a, PRODUCT_CONV_DX, true, left, right);
    else
        mma_tile(&a, PRODUCT_CONV_DX, false, left, right);
}

/* Packs weights as products read them best: neighbours in K side by side, rounded once for products
 * of bf16. */
LW_KERNEL(mma_pack, lw_cuda_product, 256)
{
    LW_EACH(e, (int64_t)a.n * a.w_pitch)
    {
        int32_t k = (int32_t)(e % a.w_pitch), column = (int32_t)(e / a.w_pitch);
        float w = 0.0f;
        if (k < a.k && column < a.columns)
            w = ((const float *)a.w)[product_right_at(&a, (product_kind)a.kind, k, column)];
        if (a.store)
            ((uint16_t *)a.y)[product_packed_at(&a, column, k)] = lw_bf16_bits(w);
        else
            ((float *)a.y)[e] = w;
    }
}
