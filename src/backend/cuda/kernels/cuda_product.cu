/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products in f32: tiles of 64 x 64 of the result, 256 threads of 4 x 4 each, 16 of the depth at a
 * time through shared memory. A convolution is the product of its pixels' windows with its filters,
 * which are gathered while a tile is loaded: nothing is unfolded in memory.
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
    LW_SHARED float left[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)], right[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)];
    product_tile(&a, PRODUCT_MATMUL, left, right);
}

/* Four neighbours of the depth of row i * 8 + warp of the block's rows of x, or behind those of its columns of w; zeros where
 * there is none. */
LW_ON_DEVICE lw_four few_read(const lw_cuda_product *a, const int i, int32_t k)
{
    const bool left = i * 8 < LW_CUDA_FEW_ROWS;
    const int32_t row = (left ? (int32_t)LW_BX * LW_CUDA_FEW_ROWS + i * 8
                              : (int32_t)LW_BY * LW_CUDA_FEW_COLUMNS + i * 8 - LW_CUDA_FEW_ROWS) +
                        LW_TID / 32;
    if (k < a->k && row < (left ? (int32_t)a->m : a->n))
        return *(const lw_four *)((const float *)(left ? a->x : a->w) + (row * a->k + k));
    return (lw_four){{0.0f, 0.0f, 0.0f, 0.0f}};
}

/* Sums of a warp's part of the depth: lane (ty, tx) has rows ty, ty + 4, .. and columns tx, tx + 8, .. */
LW_ON_DEVICE void few_multiply(float sum[4][4], const float *tile)
{
    const int pitch = LW_CUDA_FEW_DEPTH + 4, lane = LW_TID % 32;
    tile += LW_TID / 32 * (LW_CUDA_FEW_DEPTH / 8);
    LW_ROLLED
    for (int k = 0; k < LW_CUDA_FEW_DEPTH / 8; k += 4) {
        lw_four l[4];
        LW_UNROLL
        for (int i = 0; i < 4; i++)
            l[i] = *(const lw_four *)(tile + (lane / 8 + i * 4) * pitch + k);
        LW_UNROLL
        for (int j = 0; j < 4; j++) {
            lw_four r = *(const lw_four *)(tile + (LW_CUDA_FEW_ROWS + lane % 8 + j * 8) * pitch + k);
            LW_UNROLL
            for (int i = 0; i < 4; i++)
                LW_UNROLL
                for (int d = 0; d < 4; d++)
                    sum[i][j] = fmaf(l[i].v[d], r.v[d], sum[i][j]);
        }
    }
}

/*
 * Products whose tiles of 64 x 64 would leave most of a GPU idle, of w [n][k] with k a multiple of four: tiles of 16 x 32, whose
 * depth eight warps share. What comes next is read while it is multiplied.
 */
LW_KERNEL_SHARING(matmul_few, lw_cuda_product, 256, 3)
{
    enum { PITCH = LW_CUDA_FEW_DEPTH + 4, TILE = LW_CUDA_FEW_ROWS + LW_CUDA_FEW_COLUMNS };
    enum { SUMS = LW_CUDA_FEW_ROWS * LW_CUDA_FEW_COLUMNS };
    LW_SHARED LW_ALIGNED16 float room[TILE * PITCH];
    float sum[4][4] = {{0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f},
                       {0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f}};
    int lane = LW_TID % 32, warp = LW_TID / 32;
    lw_four next[TILE / 8];
    LW_UNROLL
    for (int i = 0; i < TILE / 8; i++)
        next[i] = few_read(&a, i, lane * 4);
    for (int32_t k0 = 0; k0 < a.k; k0 += LW_CUDA_FEW_DEPTH) {
        LW_UNROLL
        for (int i = 0; i < TILE / 8; i++)
            *(lw_four *)(room + (warp + i * 8) * PITCH + lane * 4) = next[i];
        LW_SYNC();
        LW_UNROLL
        for (int i = 0; i < TILE / 8; i++)
            next[i] = few_read(&a, i, k0 + LW_CUDA_FEW_DEPTH + lane * 4);
        few_multiply(sum, room);
        LW_SYNC();
    }
    LW_UNROLL
    for (int i = 0; i < 4; i++)
        LW_UNROLL
    for (int j = 0; j < 4; j++)
        room[warp * SUMS + (lane / 8 + i * 4) * LW_CUDA_FEW_COLUMNS + lane % 8 + j * 8] = sum[i][j];
    LW_SYNC();
    LW_ROLLED
    for (int e = LW_TID; e < SUMS; e += 256) {
        int64_t row = LW_BX * LW_CUDA_FEW_ROWS + e / LW_CUDA_FEW_COLUMNS;
        int32_t column = (int32_t)LW_BY * LW_CUDA_FEW_COLUMNS + e % LW_CUDA_FEW_COLUMNS;
        float all = 0.0f;
        for (int w = 0; w < 8; w++)
            all += room[w * SUMS + e];
        if (row < a.m && column < a.n)
            product_finish(&a, PRODUCT_MATMUL, row, column, all);
    }
}

/* The same of up to eight rows: a warp for each column, whose lanes share the depth. */
LW_KERNEL(matmul_dot, lw_cuda_product, 256)
{
    int32_t column = (int32_t)LW_BX * LW_CUDA_DOT_COLUMNS + LW_TID / 32, lane = LW_TID % 32;
    int64_t row0 = LW_BY * LW_CUDA_DOT_ROWS;
    const float *x = (const float *)a.x + row0 * a.ldx;
    float sum[LW_CUDA_DOT_ROWS] = {0.0f, 0.0f, 0.0f, 0.0f}, mine = 0.0f;
    if (column >= a.n)
        return;
    for (int32_t k = lane * 4; k < a.k; k += 128) {
        const lw_four w = *(const lw_four *)((const float *)a.w + (int64_t)column * a.k + k);
        LW_UNROLL
        for (int r = 0; r < LW_CUDA_DOT_ROWS; r++)
            if (row0 + r < a.m) {
                const lw_four l = *(const lw_four *)(x + (int64_t)r * a.ldx + k);
                LW_UNROLL
                for (int d = 0; d < 4; d++)
                    sum[r] = fmaf(l.v[d], w.v[d], sum[r]);
            }
    }
    LW_UNROLL
    for (int r = 0; r < LW_CUDA_DOT_ROWS; r++) {
        float all = lw_warp_sum(sum[r]);
        mine = lane == r ? all : mine;
    }
    if (lane < LW_CUDA_DOT_ROWS && row0 + lane < a.m)
        product_finish(&a, PRODUCT_MATMUL, row0 + lane, column, mine);
}

LW_KERNEL(conv2d, lw_cuda_product, 256)
{
    LW_SHARED float left[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)], right[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)];
    product_tile(&a, PRODUCT_CONV, left, right);
}

LW_KERNEL(conv2d_dx, lw_cuda_product, 256)
{
    LW_SHARED float left[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)], right[LW_CUDA_DEPTH * (LW_CUDA_TILE + 4)];
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
                sum = fmaf(x[((b * a.h + i) * a.width + j) * a.n + c], w[c * taps + t], sum);
        }
        product_finish(&a, PRODUCT_CONV, row, c, sum);
    }
}

/* (w0, w1, w2) to (w2, w1 + w2, w0 + w1, w0): one of the four, of numbers `step` apart. */
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
