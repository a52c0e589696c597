/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products in f32 from places of cuda_tiles.h. A thread has sums of every eighth row and every fourth column of its warp's
 * part of the tile: the eight rows, and the four columns, that a warp reads at once are in different banks.
 */
#include "backend/cuda/kernels/cuda_tiles.h"

LW_ON_DEVICE lw_four ffma_piece(const unsigned char *place, int row, int q)
{
    return lw_four_floats((const float *)(const void *)(place + row * TILE_ROW + (q ^ row % 8) * 16));
}

/* across: warps side by side; each has 8 high rows and 4 wide columns */
LW_ON_DEVICE void ffma_tile(const lw_cuda_product *a, const tile_shape t, const int across,
                            const int high, const int wide, unsigned char *shared)
{
    int warp = LW_TID / 32, lane = LW_TID % 32;
    int row0 = warp / across * 8 * high + lane / 4, column0 = warp % across * 4 * wide + lane % 4;
    float sum[64], *room = (float *)(void *)shared;
    tile_state s;
    tile_begin(a, t, &s, shared);
    LW_UNROLL
    for (int i = 0; i < high * wide; i++)
        sum[i] = 0.0f;
    LW_ROLLED
    while (s.step < s.n) {
        const unsigned char *place = tile_next(a, t, &s, shared);
        LW_ROLLED
        for (int q = 0; q < TILE_PIECES; q++) {
            lw_four right[8];
            LW_UNROLL
            for (int j = 0; j < wide; j++)
                right[j] = ffma_piece(place + t.rows * TILE_ROW, column0 + j * 4, q);
            LW_UNROLL
            for (int i = 0; i < high; i++) {
                lw_four left = ffma_piece(place, row0 + i * 8, q);
                LW_UNROLL
                for (int k = 0; k < 4; k++)
                    LW_UNROLL
                    for (int j = 0; j < wide; j++)
                        sum[i * wide + j] = fmaf(left.of[k], right[j].of[k], sum[i * wide + j]);
            }
        }
    }
    LW_COPY_WAIT();
    LW_SYNC();
    if (a->splits > 1 && !tile_join(a, t, &s, sum, shared))
        return;
    LW_UNROLL
    for (int i = 0; i < high; i++)
        LW_UNROLL
        for (int j = 0; j < wide; j++)
            room[(row0 + i * 8) * tile_pitch(t) + column0 + j * 4] = sum[i * wide + j];
    LW_SYNC();
    tile_finish(a, t, &s, room);
}

LW_KERNEL_SHARING(ffma_128x128, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 128, 128, 4, 4, 3, false};
    ffma_tile(&a, t, 4, 8, 8, shared);
}

LW_KERNEL_SHARING(ffma_64x64, lw_cuda_product, 128, 3)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {128, 64, 64, 4, 4, 3, false};
    ffma_tile(&a, t, 2, 4, 8, shared);
}
