/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products in f32: tiles of 64 x 64 of the result, 256 threads of 4 x 4 each, 16 of the depth (the
 * inner dimension K) at a time through shared memory. A convolution is an implicit product
 * (implicit GEMM) of its pixels' windows with its filters: windows are gathered while a tile is
 * loaded, and nothing is unfolded in memory (no im2col).
 */
#include "backend/cuda/kernels/cuda_gather.h"

LW_ON_DEVICE float product_left(const lw_cuda_product *a, const product_kind kind, int64_t row,
                                int32_t k)
{
    int64_t at = product_left_at(a, kind, row, k);
    return at < 0 ? 0.0f : ((const float *)a->x)[at];
}

LW_ON_DEVICE float product_right(const lw_cuda_product *a, const product_kind kind, int32_t k,
                                 int32_t column)
{
    return ((const float *)a->w)[a->w_pitch ? (int64_t)column * a->w_pitch + k
                                            : product_right_at(a, kind, k, column)];
}

/* left, right: [LW_CUDA_DEPTH][LW_CUDA_TILE + 4] in shared memory */
LW_ON_DEVICE void product_tile(const lw_cuda_product *a, const product_kind kind, float *left,
                               float *right)
{
    const int pitch = LW_CUDA_TILE + 4;
    int64_t row0 = LW_BX * LW_CUDA_TILE;
    int32_t column0 = (int32_t)LW_BY * LW_CUDA_TILE;
    int ty = LW_TID / 16, tx = LW_TID % 16;
    float sum[4][4] = {{0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f},
                       {0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f}};
    for (int32_t k0 = 0; k0 < a->k; k0 += LW_CUDA_DEPTH) {
        for (int e = LW_TID; e < LW_CUDA_TILE * LW_CUDA_DEPTH; e += 256) {
            int32_t k = k0 + e % LW_CUDA_DEPTH, at = e / LW_CUDA_DEPTH;
            int64_t row = row0 + at;
            int32_t column = column0 + at;
            left[e % LW_CUDA_DEPTH * pitch + at] =
                row < a->m && k < a->k ? product_left(a, kind, row, k) : 0.0f;
            right[e % LW_CUDA_DEPTH * pitch + at] =
                column < a->n && k < a->k ? product_right(a, kind, k, column) : 0.0f;
        }
        LW_SYNC();
        LW_UNROLL
        for (int k = 0; k < LW_CUDA_DEPTH; k++) {
            float l[4], r[4];
            LW_UNROLL
            for (int i = 0; i < 4; i++) {
                l[i] = left[k * pitch + ty * 4 + i];
                r[i] = right[k * pitch + tx * 4 + i];
            }
            LW_UNROLL
            for (int i = 0; i < 4; i++)
                LW_UNROLL
                for (int j = 0; j < 4; j++)
                    sum[i][j] = fmaf(l[i], r[j], sum[i][j]);
        }
        LW_SYNC();
    }
    LW_UNROLL
    for (int i = 0; i < 4; i++)
        LW_UNROLL
        for (int j = 0; j < 4; j++)
            if (row0 + ty * 4 + i < a->m && column0 + tx * 4 + j < a->n)
                product_finish(a, kind, row0 + ty * 4 + i, column0 + tx * 4 + j, sum[i][j]);
}

LW_KERNEL(matmul, lw_cuda_product, 256)
{
    LW_SHARED float left[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)];
    LW_SHARED float right[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)];
    product_tile(&a, PRODUCT_MATMUL, left, right);
}

enum { FEW_PITCH = LW_CUDA_FEW_DEPTH + 4, FEW_STAGES = 3 }; /* of a ring buffer */

/* Copies the block's rows of x, or those of w, which lie behind them, to a stage, unless K has
 * ended: four neighbours in K a copy, zeros where there are none. */
LW_ON_DEVICE void few_copy(const lw_cuda_product *a, const bool left, int32_t k0, float *stage)
{
    const int n = left ? LW_CUDA_FEW_ROWS : LW_CUDA_FEW_COLUMNS;
    const float *from = (const float *)(left ? a->x : a->w);
    const int32_t pitch = left ? a->ldx : a->k;
    int32_t k = k0 + LW_TID % 32 * 4, row = (int32_t)(left ? LW_BX : LW_BY) * n + LW_TID / 32;
    stage += ((left ? 0 : LW_CUDA_FEW_ROWS) + LW_TID / 32) * FEW_PITCH + LW_TID % 32 * 4;
    if (k0 >= a->k)
        return;
    LW_UNROLL
    for (int i = 0; i < n; i += 8) {
        bool there = k < a->k && row + i < (left ? (int32_t)a->m : a->n);
        lw_copy_async(stage + i * FEW_PITCH, from + (there ? (row + i) * pitch + k : 0), there);
    }
}

/* Prefetches the weights of this block that have no stage yet, and its bias, into L2. */
LW_ON_DEVICE void few_prefetch(const lw_cuda_product *a)
{
    const int32_t first = FEW_STAGES * LW_CUDA_FEW_DEPTH;
    int32_t column = (int32_t)LW_BY * LW_CUDA_FEW_COLUMNS + LW_TID;
    if (LW_TID < LW_CUDA_FEW_COLUMNS && column < a->n && first < a->k)
        LW_PREFETCH((const float *)a->w + (int64_t)column * a->k + first, (a->k - first) * 4);
    if (LW_TID < LW_CUDA_FEW_COLUMNS && LW_TID % 4 == 0 && column + 4 <= a->n && a->bias)
        LW_PREFETCH(a->bias + column, 16);
}

enum { FEW_AT_ONCE = 2 }; /* fours of K that are read while as many are multiplied */

LW_ON_DEVICE void few_read(const float *from, lw_four *v)
{
    LW_UNROLL
    for (int i = 0; i < FEW_AT_ONCE; i++)
        v[i] = *(const lw_four *)(from + i * 4);
}

/* A stage's elements of one column by those of `rows` rows, of every fourth row. */
LW_ON_DEVICE void few_multiply(const float *left, const float *right, float *sum, const int rows)
{
    lw_four next[3][FEW_AT_ONCE], now[3][FEW_AT_ONCE]; /* of the column, and of each row */
    few_read(right, next[0]);
    LW_UNROLL
    for (int i = 0; i < rows; i++)
        few_read(left + i * 4 * FEW_PITCH, next[1 + i]);
    LW_UNROLL_BY(2)
    for (int k = 0; k < LW_CUDA_FEW_DEPTH; k += 4 * FEW_AT_ONCE) {
        const int then = (k + 4 * FEW_AT_ONCE) % LW_CUDA_FEW_DEPTH; /* in the end, anything */
        LW_UNROLL
        for (int i = 0; i <= rows; i++) {
            LW_UNROLL
            for (int j = 0; j < FEW_AT_ONCE; j++)
                now[i][j] = next[i][j];
            few_read((i ? left + (i - 1) * 4 * FEW_PITCH : right) + then, next[i]);
        }
        LW_UNROLL
        for (int d = 0; d < 4 * FEW_AT_ONCE; d++)
            LW_UNROLL
        for (int i = 0; i < rows; i++)
            sum[i] = fmaf(now[1 + i][d / 4].v[d % 4], now[0][d / 4].v[d % 4], sum[i]);
    }
}

/*
 * Products whose tiles of 64 x 64 would leave most of a GPU idle or be mostly empty, of w [n][k]
 * with k a multiple of four: tiles of 16 x 32, a warp for 8 x 8 of them. Weights that nothing
 * writes are under way before the kernels before are through; of x, what comes next is while it is
 * multiplied. Sums are taken in the order of the large tiles: they have the same bits, whatever the
 * number of rows.
 */
LW_KERNEL_EARLY(matmul_few, lw_cuda_product, 256, 3)
{
    enum { STAGE = (LW_CUDA_FEW_ROWS + LW_CUDA_FEW_COLUMNS) * FEW_PITCH };
    LW_SHARED_AT_LAUNCH(shared);
    float *room = (float *)(void *)shared;
    int lane = LW_TID % 32, warp = LW_TID / 32, at = 0;
    int row = warp / 4 * 8 + lane / 8, column = warp % 4 * 8 + lane % 8; /* and four rows below */
    const int64_t rows = a.m - LW_BX * LW_CUDA_FEW_ROWS - warp / 4 * 8; /* of this warp */
    float sum[2] = {0.0f, 0.0f};
    if (!a.fixed)
        LW_AWAIT_BEFORE();
    LW_ROLLED
    for (int i = 0; i < FEW_STAGES; i++)
        few_copy(&a, false, i * LW_CUDA_FEW_DEPTH, room + i * STAGE);
    few_prefetch(&a);
    LW_AWAIT_BEFORE();
    LW_ROLLED
    for (int i = 0; i < FEW_STAGES; i++) {
        few_copy(&a, true, i * LW_CUDA_FEW_DEPTH, room + i * STAGE);
        LW_COPY_COMMIT();
    }
    LW_ROLLED
    for (int32_t k0 = 0; k0 < a.k; k0 += LW_CUDA_FEW_DEPTH) {
        float *stage = room + at * STAGE;
        const float *left = stage + row * FEW_PITCH;
        const float *right = stage + (LW_CUDA_FEW_ROWS + column) * FEW_PITCH;
        lw_copy_wait_for(FEW_STAGES - 1);
        LW_SYNC();
        if (rows > 4)
            few_multiply(left, right, sum, 2);
        else if (rows > 0)
            few_multiply(left, right, sum, 1);
        LW_SYNC();
        few_copy(&a, true, k0 + FEW_STAGES * LW_CUDA_FEW_DEPTH, stage);
        few_copy(&a, false, k0 + FEW_STAGES * LW_CUDA_FEW_DEPTH, stage);
        LW_COPY_COMMIT();
        at = at + 1 == FEW_STAGES ? 0 : at + 1;
    }
    LW_UNROLL
    for (int i = 0; i < 2; i++) {
        int64_t y = LW_BX * LW_CUDA_FEW_ROWS + row + i * 4;
        int32_t x = (int32_t)LW_BY * LW_CUDA_FEW_COLUMNS + column;
        if (y < a.m && x < a.n)
            product_finish(&a, PRODUCT_MATMUL, y, x, sum[i]);
    }
}

LW_KERNEL(conv2d, lw_cuda_product, 256)
{
    LW_SHARED float left[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)];
    LW_SHARED float right[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)];
    product_tile(&a, PRODUCT_CONV, left, right);
}

LW_KERNEL(conv2d_dx, lw_cuda_product, 256)
{
    LW_SHARED float left[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)];
    LW_SHARED float right[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)];
    product_tile(&a, PRODUCT_CONV_DX, left, right);
}

/* A thread for each sum of a channel's own filter, w [c][kh][kw]. */
LW_KERNEL(depthwise, lw_cuda_product, 256)
{
    const float *x = (const float *)a.x, *w = (const float *)a.w;
    LW_EACH(e, a.m * a.n)
    {
        int64_t row = e / a.n, b = row / ((int64_t)a.oh * a.ow);
        int32_t c = (int32_t)(e % a.n), taps = a.kh * a.kw;
        int32_t y0 = (int32_t)(row / a.ow % a.oh) * a.stride - a.pad_t;
        int32_t x0 = (int32_t)(row % a.ow) * a.stride - a.pad_l;
        float sum = 0.0f;
        for (int32_t t = 0; t < taps; t++) {
            int32_t i = y0 + t / a.kw, j = x0 + t % a.kw;
            if (i >= 0 && j >= 0 && i < a.h && j < a.width)
                sum = fmaf(x[((b * a.h + i) * a.width + j) * a.ldx + c], w[c * taps + t], sum);
        }
        product_finish(&a, PRODUCT_CONV, row, c, sum);
    }
}

/* (w0, w1, w2) to (w2, w1 + w2, w0 + w1, w0): one of the four; elements are `step` apart. */
LW_ON_DEVICE float upconv_spread(const float *w, int64_t step, int which)
{
    return which == 0   ? w[2 * step]
           : which == 1 ? w[step] + w[2 * step]
           : which == 2 ? w[0] + w[step]
                        : w[0];
}

/* [o][3][3][c] to [c][4][4][o]; kernels/pooling has the same. */
LW_KERNEL(upconv_weight, lw_cuda_upconv, 256)
{
    LW_EACH(e, a.c * 16 * a.o)
    {
        int64_t i = e % a.o, q = e / a.o % 4, p = e / a.o / 4 % 4, k = e / a.o / 16;
        float row[3];
        for (int r = 0; r < 3; r++)
            row[r] = upconv_spread(a.w + (i * 9 + 3 * r) * a.c + k, a.c, (int)q);
        a.y[e] = upconv_spread(row, 1, (int)p);
    }
}
