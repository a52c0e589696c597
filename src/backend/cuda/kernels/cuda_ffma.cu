/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products in f32 by FFMA, from the stages of the ring buffer of cuda_tiles.h. A thread has the
 * sums of every eighth row and every fourth column of its warp's share of the tile. So the eight
 * rows, and the four columns, that a warp reads at once are in different banks.
 */
#include "backend/cuda/kernels/cuda_tiles.h"

/* Split-K through global memory: each block writes the partial sums of its split, and the last
 * block of a tile that arrives adds those of all splits. True for that one. */
LW_ON_DEVICE bool tile_join(const lw_cuda_product *a, const tile_shape t, const tile_state *s,
                            float *sum, unsigned char *shared)
{
    enum { AT_ONCE = 4 }; /* splits whose sums are loaded together, since global memory is far */
    const int values = t.rows * t.columns / t.threads, four_stride = t.threads * 4;
    uint32_t *last = (uint32_t *)(void *)shared;
    float *far = a->partial + (int64_t)s->tile * a->splits * values * t.threads + LW_TID * 4;
    float *own = far + (int64_t)s->split * values * t.threads;
    LW_UNROLL
    for (int i = 0; i < values; i += 4)
        lw_write(own + i / 4 * four_stride, sum + i, 4);
    LW_SYNC();
    if (LW_TID == 0)
        *last = lw_count_up(a->arrived + s->tile) == (uint32_t)a->splits - 1;
    LW_SYNC();
    bool mine = *last != 0;
    LW_SYNC();
    if (!mine)
        return false;
    LW_UNROLL
    for (int i = 0; i < values; i++)
        sum[i] = 0.0f;
    LW_ROLLED
    for (int k = 0; k < a->splits; k += AT_ONCE, far += AT_ONCE * values * t.threads) {
        LW_UNROLL
        for (int i = 0; i < values; i += 4) {
            lw_four v[AT_ONCE];
            LW_UNROLL
            for (int m = 0; m < AT_ONCE; m++)
                v[m] = k + m < a->splits
                           ? lw_load_far(far + m * values * t.threads + i / 4 * four_stride)
                           : (lw_four){{0.0f, 0.0f, 0.0f, 0.0f}};
            LW_UNROLL
            for (int m = 0; m < AT_ONCE; m++)
                LW_UNROLL
            for (int j = 0; j < 4; j++)
                sum[i + j] += v[m].v[j];
        }
    }
    if (LW_TID == 0)
        a->arrived[s->tile] = 0;
    return true;
}

LW_ON_DEVICE lw_four ffma_piece(const unsigned char *stage, int row, int q)
{
    return lw_four_floats(
        (const float *)(const void *)(stage + row * TILE_ROW + (q ^ row % 8) * 16));
}

/* across: warps side by side, with 8 high rows and 4 wide columns each. adds: as in wgmma_tile. */
LW_ON_DEVICE void ffma_tile(const lw_cuda_product *a, const tile_shape t, const int across,
                            const int high, const int wide, const bool adds, unsigned char *shared)
{
    int warp = LW_TID / 32, lane = LW_TID % 32;
    int row0 = warp / across * 8 * high + lane / 4, column0 = warp % across * 4 * wide + lane % 4;
    float sum[64], total[32], *room = (float *)(void *)shared;
    tile_state s;
    tile_begin(a, t, &s, NULL, shared);
    LW_UNROLL
    for (int i = 0; i < high * wide; i++) {
        sum[i] = 0.0f;
        if (adds)
            total[i] = 0.0f;
    }
    LW_ROLLED
    while (s.step < s.n) {
        const unsigned char *stage = tile_next(a, t, &s, shared);
        LW_ROLLED
        for (int q = 0; q < TILE_PIECES; q++) {
            lw_four right[8];
            LW_UNROLL
            for (int j = 0; j < wide; j++)
                right[j] = ffma_piece(stage + t.rows * TILE_ROW, column0 + j * 4, q);
            LW_UNROLL
            for (int i = 0; i < high; i++) {
                lw_four left = ffma_piece(stage, row0 + i * 8, q);
                LW_UNROLL
                for (int k = 0; k < 4; k++)
                    LW_UNROLL
                    for (int j = 0; j < wide; j++)
                        sum[i * wide + j] = fmaf(left.v[k], right[j].v[k], sum[i * wide + j]);
            }
        }
        if (!adds || !tile_split_ends(a, &s))
            continue;
        tile_keep(total, sum, high * wide);
    }
    LW_COPY_WAIT();
    LW_SYNC();
    if (adds) {
        LW_UNROLL
        for (int i = 0; i < high * wide; i++)
            sum[i] += total[i];
    }
    if (a->split_blocks && !tile_join(a, t, &s, sum, shared))
        return;
    tile_epilogue epilogue;
    tile_find_and_load(a, t, &s, tile_first_row(t, &s), &epilogue);
    LW_UNROLL
    for (int i = 0; i < high; i++)
        LW_UNROLL
        for (int j = 0; j < wide; j++)
            room[(row0 + i * 8) * tile_pitch(t) + column0 + j * 4] = sum[i * wide + j];
    LW_SYNC();
    tile_finish(a, t, &s, room, &epilogue);
}

LW_KERNEL_EARLY(ffma_128x128, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 128, 128, 4, 4, 3, false, 0, false, false, 8};
    ffma_tile(&a, t, 4, 8, 8, false, shared);
}

LW_KERNEL_EARLY(ffma_64x64, lw_cuda_product, 128, 3)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {128, 64, 64, 4, 4, 3, false, 0, false, false, 4};
    ffma_tile(&a, t, 2, 4, 8, true, shared);
}

/* Few columns: a warp computes two pixels. Each lane has four of 128 neighbours in K, and all `few`
 * columns. What a line of taps reads is loaded together; columns behind the last are the first
 * again. */
LW_ON_DEVICE void few_of(const lw_cuda_product *a, const int few)
{
    int lane = LW_TID % 32;
    int32_t row0 = ((int32_t)LW_BX * 8 + LW_TID / 32) * 2, y[2], x[2], at[2];
    float sum[2 * LW_CUDA_FEW];
    LW_UNROLL
    for (int i = 0; i < 2 * few; i++)
        sum[i] = 0.0f;
    LW_UNROLL
    for (int i = 0; i < 2; i++) {
        int32_t r = row0 + i;
        y[i] = r < a->m ? r / a->ow % a->oh * a->stride - a->pad_t : -0x10000;
        x[i] = r % a->ow * a->stride - a->pad_l;
        at[i] = (r / a->ow / a->oh * a->h + y[i]) * a->width + x[i];
    }
    LW_ROLLED
    for (int32_t c = lane * 4; c < a->c; c += 128)
        LW_ROLLED
        for (int32_t ky = 0; ky < a->kh; ky++)
            LW_UNROLL_BY(3)
            for (int32_t kx = 0; kx < a->kw; kx++) {
                const float *w = (const float *)a->w + (ky * a->kw + kx) * a->c + c;
                const lw_four none = {{0.0f, 0.0f, 0.0f, 0.0f}};
                lw_four left[2], right[LW_CUDA_FEW];
                LW_UNROLL
                for (int i = 0; i < 2; i++) {
                    bool in = y[i] + ky >= 0 && y[i] + ky < a->h && x[i] + kx >= 0 &&
                              x[i] + kx < a->width;
                    int64_t pixel = in ? at[i] + ky * a->width + kx : 0;
                    left[i] = lw_four_floats((const float *)a->x + pixel * a->ldx + c);
                    left[i] = in ? left[i] : none;
                }
                LW_UNROLL
                for (int j = 0; j < few; j++)
                    right[j] = lw_four_floats(w + (j < a->n ? j : 0) * a->w_pitch);
                LW_UNROLL
                for (int j = 0; j < few; j++)
                    LW_UNROLL
                for (int k = 0; k < 4; k++) {
                    sum[j] = fmaf(left[0].v[k], right[j].v[k], sum[j]);
                    sum[few + j] = fmaf(left[1].v[k], right[j].v[k], sum[few + j]);
                }
            }
    float own = 0.0f; /* lane i finishes sum i */
    LW_UNROLL
    for (int i = 0; i < 2 * few; i++) {
        sum[i] = lw_warp_sum(sum[i]);
        own = lane == i ? sum[i] : own;
    }
    int64_t row = row0 + lane / few;
    if (lane < 2 * few && lane % few < a->n && row < a->m)
        product_finish(a, a->drop_rows ? PRODUCT_MATMUL : PRODUCT_CONV, row, lane % few, own);
}

LW_KERNEL_SHARING(few_columns, lw_cuda_product, 256, 2)
{
    if (a.n <= 4)
        few_of(&a, 4);
    else
        few_of(&a, LW_CUDA_FEW);
}

/* A short K: a block for 32 pixels and 128 columns, whose windows and weights all fit into shared
 * memory; a thread has four columns of four pixels. */
LW_KERNEL(short_depth, lw_cuda_product, 256)
{
    enum { WIDE = 128 + 4 };
    LW_SHARED LW_ALIGNED16 float right[LW_CUDA_SHORT * WIDE];
    LW_SHARED float left[32 * LW_CUDA_SHORT];
    int32_t column0 = (int32_t)LW_BY * 128, column = column0 + LW_TID % 32 * 4;
    int32_t row0 = (int32_t)LW_BX * 32, pixel0 = LW_TID / 32 * 4;
    /* eight threads gather a pixel's window */
    int32_t r = row0 + LW_TID / 8, y = r / a.ow % a.oh * a.stride - a.pad_t;
    int32_t x = r % a.ow * a.stride - a.pad_l, b = r / a.ow / a.oh;
    lw_four sum[4];
    LW_UNROLL_BY(4)
    for (int32_t k = LW_TID % 8; k < a.k; k += 8) {
        int32_t tap = k / a.c, i = y + tap / a.kw, j = x + tap % a.kw;
        bool in = r < a.m && i >= 0 && i < a.h && j >= 0 && j < a.width;
        left[LW_TID / 8 * LW_CUDA_SHORT + k] =
            in ? ((const float *)a.x)[(((int64_t)b * a.h + i) * a.width + j) * a.ldx + k % a.c]
               : 0.0f;
    }
    LW_UNROLL_BY(4)
    for (int32_t e = LW_TID; e < 128 * a.k; e += 256) {
        int32_t k = e % a.k, n = e / a.k;
        right[k * WIDE + n] =
            column0 + n < a.n ? ((const float *)a.w)[(int64_t)(column0 + n) * a.w_pitch + k] : 0.0f;
    }
    LW_SYNC();
    LW_UNROLL
    for (int i = 0; i < 4; i++)
        LW_UNROLL
        for (int j = 0; j < 4; j++)
            sum[i].v[j] = 0.0f;
    LW_UNROLL_BY(4)
    for (int32_t k = 0; k < a.k; k++) {
        lw_four w = lw_four_floats(right + k * WIDE + LW_TID % 32 * 4);
        LW_UNROLL
        for (int i = 0; i < 4; i++) {
            float v = left[(pixel0 + i) * LW_CUDA_SHORT + k];
            LW_UNROLL
            for (int j = 0; j < 4; j++)
                sum[i].v[j] = fmaf(v, w.v[j], sum[i].v[j]);
        }
    }
    if (column >= a.n)
        return;
    int32_t row[4];
    LW_UNROLL
    for (int i = 0; i < 4; i++) {
        int32_t m = row0 + pixel0 + i;
        row[i] = m < a.m ? m : -1;
        m = m < a.m ? m : 0;
        if (a.bias)
            lw_four_add(&sum[i], lw_four_floats(a.bias + column));
        if (a.image_bias)
            lw_four_add(&sum[i],
                        lw_four_floats(a.image_bias + (int64_t)(m / (a.oh * a.ow)) * a.n + column));
        if (a.residual && !a.drop_rows)
            lw_four_add(&sum[i], lw_four_floats((const float *)a.residual +
                                                ((int64_t)m * a.ld_residual + column)));
    }
    product_write_fours(&a, row, column, sum, 4);
}
