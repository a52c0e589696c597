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

/*
 * Products whose tiles of 64 x 64 would leave most of a GPU idle or be mostly empty, of w [n][k] with k a multiple of four:
 * tiles of 16 x 32, a warp for 8 x 8 of them. What comes next is read while it is multiplied. Sums are taken in the order of the large tiles: they have
 * the same bits, whatever the number of rows.
 */
LW_KERNEL(matmul_few, lw_cuda_product, 256)
{
    enum { PITCH = LW_CUDA_FEW_DEPTH + 4, TILE = LW_CUDA_FEW_ROWS + LW_CUDA_FEW_COLUMNS };
    LW_SHARED LW_ALIGNED16 float room[TILE * PITCH];
    int lane = LW_TID % 32, warp = LW_TID / 32;
    int row = warp / 4 * 8 + lane / 8, column = warp % 4 * 8 + lane % 8; /* and four rows below */
    const float *left = room + row * PITCH, *right = room + (LW_CUDA_FEW_ROWS + column) * PITCH;
    const int64_t rows = a.m - LW_BX * LW_CUDA_FEW_ROWS - warp / 4 * 8; /* of this warp */
    float sum[2] = {0.0f, 0.0f};
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
        for (int k = 0; k < LW_CUDA_FEW_DEPTH && rows > 0; k += 4) {
            const lw_four r = *(const lw_four *)(right + k);
            LW_UNROLL
            for (int i = 0; i < 2; i++) {
                if (i * 4 >= rows)
                    break;
                const lw_four l = *(const lw_four *)(left + i * 4 * PITCH + k);
                LW_UNROLL
                for (int d = 0; d < 4; d++)
                    sum[i] = fmaf(l.v[d], r.v[d], sum[i]);
            }
        }
        LW_SYNC();
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
