/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of bf16 on tensor cores of compute capability 9.0, sums in f32: groups of four warps multiply places of
 * cuda_tiles.h while the next are filled. A place is filled again when all are through the step before the last.
 */
#include "backend/cuda/kernels/cuda_tiles.h"
#include "backend/cuda/kernels/cuda_warpgroup.h"

/* `blocks` of 64 rows for each group; adds: there is room for the sums of parts before */
LW_ON_DEVICE void wgmma_tile(const lw_cuda_product *a, const tile_shape t, const int blocks,
                             const bool adds, unsigned char *shared)
{
    const int numbers = blocks * t.columns / 2;
    int warp = LW_TID / 32, lane = LW_TID % 32, row0 = warp / 4 * blocks * 64;
    float sum[128], total[64], *room = (float *)(void *)shared;
    tile_state s;
    tile_begin(a, t, &s, shared);
    LW_UNROLL
    for (int i = 0; i < numbers; i++) {
        sum[i] = 0.0f;
        if (adds)
            total[i] = 0.0f;
    }
    LW_ROLLED
    while (s.step < s.n) {
        const unsigned char *place = tile_next(a, t, &s, shared);
        LW_GROUP_BEGIN();
        LW_UNROLL
        for (int k = 0; k < TILE_ROW; k += 32)
            LW_UNROLL
            for (int i = 0; i < blocks; i++) {
                const unsigned char *left = place + (row0 + i * 64) * TILE_ROW + k;
                const unsigned char *right = place + t.rows * TILE_ROW + k;
                if (t.columns == 128)
                    lw_group_product_128(sum + i * 64, left, right);
                else
                    lw_group_product_64(sum + i * 32, left, right);
            }
        LW_GROUP_COMMIT();
        LW_GROUP_WAIT_FOR(1);
        if (!adds || !tile_part_ends(a, &s))
            continue;
        LW_GROUP_WAIT_FOR(0);
        tile_keep(total, sum, numbers);
    }
    LW_GROUP_WAIT_FOR(0);
    LW_COPY_WAIT();
    LW_SYNC();
    if (adds) {
        LW_UNROLL
        for (int i = 0; i < numbers; i++)
            sum[i] += total[i];
    }
    if (a->apart && !tile_join(a, t, &s, sum, shared))
        return;
    LW_UNROLL
    for (int i = 0; i < blocks; i++)
        LW_UNROLL
        for (int j = 0; j < t.columns / 4; j++) {
            int row = row0 + i * 64 + warp % 4 * 16 + lane / 4 + j % 2 * 8;
            lw_two two = {{sum[i * t.columns / 2 + j * 2], sum[i * t.columns / 2 + j * 2 + 1]}};
            *(lw_two *)(void *)(room + row * tile_pitch(t) + j / 2 * 8 + lane % 4 * 2) = two;
        }
    LW_SYNC();
    tile_finish(a, t, &s, room);
}

LW_KERNEL_EARLY(wgmma_256x128, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 256, 128, 8, 4, 2, true};
    wgmma_tile(&a, t, 2, false, shared);
}

LW_KERNEL_EARLY(wgmma_128x128, lw_cuda_product, 256, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 128, 128, 8, 3, 1, true};
    wgmma_tile(&a, t, 1, false, shared);
}

/* Of parts, one after the other. */
LW_KERNEL_EARLY(wgmma_128x128_parts, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 128, 128, 8, 6, 4, true};
    wgmma_tile(&a, t, 1, true, shared);
}

LW_KERNEL_EARLY(wgmma_64x64, lw_cuda_product, 128, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {128, 64, 64, 8, 6, 4, true};
    wgmma_tile(&a, t, 1, true, shared);
}
