/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of bf16 on tensor cores of compute capability 9.0, sums in f32: warpgroups multiply the
 * stages of cuda_tiles.h, or those of cuda_halo.h, while the next stages are filled. A stage is
 * filled again when all threads have finished the step before the last one, or the last one.
 */
#include "backend/cuda/kernels/cuda_halo.h"

/* sum += left right^T over 64 elements of K, for `blocks` times 64 rows from left on. */
LW_ON_DEVICE void wgmma_step(const tile_shape t, const int blocks, float *sum, lw_rows left,
                             lw_rows right)
{
    LW_UNROLL
    for (int k = 0; k < TILE_ROW; k += 32)
        LW_UNROLL
    for (int i = 0; i < blocks; i++) {
        lw_rows l = lw_rows_behind(left, i * 64 * TILE_ROW + k), r = lw_rows_behind(right, k);
        if (t.columns == 128)
            lw_group_product_128(sum + i * 64, l, r);
        else
            lw_group_product_64(sum + i * 32, l, r);
    }
}

LW_ON_DEVICE void wgmma_clear(float *sum, const int values)
{
    LW_UNROLL
    for (int i = 0; i < values; i++)
        sum[i] = 0.0f;
}

/* Does a thread finish all its rows at once? Then the epilogue's operands are loaded while the
 * first pixels are on their way. */
LW_ON_DEVICE bool wgmma_loads_early(const tile_shape t)
{
    return t.cluster || t.rows * t.columns == t.threads * t.at_once * 4;
}

/* Adds the partial sums of all splits, each of which lies in the shared memory (`room`) of its
 * block of the cluster, and finishes this block's share of the rows. */
LW_ON_DEVICE void wgmma_finish_cluster(const lw_cuda_product *a, const tile_shape t,
                                       const tile_state *s, const float *room,
                                       const tile_epilogue *e)
{
    const int n = t.at_once, step = tile_row_step(a, t);
    int32_t column = tile_column(t, s);
    const lw_four none = {{0.0f, 0.0f, 0.0f, 0.0f}};
    lw_four v[TILE_AT_ONCE];
    LW_CLUSTER_ARRIVE_SHARED();
    LW_CLUSTER_WAIT();
    room += tile_first_row(t, s) * tile_pitch(t) + column - s->column0;
    LW_UNROLL
    for (int i = 0; i < n; i++) {
        lw_four partial[LW_CUDA_CLUSTER];
        v[i] = none;
        if (tile_first_row(t, s) + i * step >= t.rows)
            continue;
        LW_UNROLL
        for (int p = 0; p < LW_CUDA_CLUSTER; p++)
            partial[p] = p < a->splits ? lw_load_cluster(room + i * step * tile_pitch(t), p) : none;
        LW_UNROLL
        for (int p = 0; p < LW_CUDA_CLUSTER; p++)
            if (p < a->splits)
                lw_four_add(&v[i], partial[p]);
    }
    /* this block has read; none ends before all have */
    LW_CLUSTER_ARRIVE();
    if (column < a->n)
        tile_finish_rows(a, t, column, e, v);
    LW_CLUSTER_WAIT();
}

/* After the last product: the sums, with those of earlier splits if there are any (total), go
 * through the epilogue. */
LW_ON_DEVICE void wgmma_end(const lw_cuda_product *a, const tile_shape t, const int blocks,
                            const tile_state *s, float *sum, const float *total,
                            tile_epilogue *epilogue, unsigned char *shared)
{
    int warp = LW_TID / 32, lane = LW_TID % 32;
    float *room = (float *)(void *)shared;
    LW_GROUP_WAIT_FOR(0);
    LW_COPY_WAIT();
    LW_SYNC();
    if (total) {
        LW_UNROLL
        for (int i = 0; i < blocks * t.columns / 2; i++)
            sum[i] += total[i];
    }
    const bool early = wgmma_loads_early(t);
    const bool full = t.at_once < TILE_AT_ONCE; /* registers, as long as they hold sums */
    if (!early && !full)
        tile_find_and_load(a, t, s, tile_first_row(t, s), epilogue);
    LW_UNROLL
    for (int i = 0; i < blocks; i++)
        LW_UNROLL
    for (int j = 0; j < t.columns / 4; j++) {
        int row = (warp / 4 * blocks + i) * 64 + warp % 4 * 16 + lane / 4 + j % 2 * 8;
        lw_two two = {{sum[i * t.columns / 2 + j * 2], sum[i * t.columns / 2 + j * 2 + 1]}};
        *(lw_two *)(void *)(room + row * tile_pitch(t) + j / 2 * 8 + lane % 4 * 2) = two;
    }
    if (!early && full)
        tile_find_and_load(a, t, s, tile_first_row(t, s), epilogue);
    if (t.cluster) {
        wgmma_finish_cluster(a, t, s, room, epilogue);
    } else {
        LW_SYNC();
        tile_finish(a, t, s, room, epilogue);
    }
}

/* `blocks` times 64 rows for each warpgroup; adds: there are registers for the sums of the splits
 * before */
LW_ON_DEVICE void wgmma_tile(const lw_cuda_product *a, const tile_shape t, const int blocks,
                             const bool adds, unsigned char *shared)
{
    const int values = blocks * t.columns / 2;
    int row0 = LW_TID / 128 * blocks * 64;
    float sum[128], total[64];
    tile_epilogue epilogue;
    tile_state s;
    tile_begin(a, t, &s, wgmma_loads_early(t) ? &epilogue : NULL, shared);
    if (wgmma_loads_early(t))
        tile_load_epilogue(a, t, &s, &epilogue);
    wgmma_clear(sum, values);
    if (adds)
        wgmma_clear(total, values);
    LW_ROLLED
    while (s.step < s.n) {
        const unsigned char *stage = tile_next(a, t, &s, shared);
        LW_GROUP_BEGIN();
        wgmma_step(t, blocks, sum, lw_group_rows(stage + row0 * TILE_ROW),
                   lw_group_rows(stage + t.rows * TILE_ROW));
        LW_GROUP_COMMIT();
        LW_GROUP_WAIT_FOR(1);
        if (!adds || !tile_split_ends(a, &s))
            continue;
        LW_GROUP_WAIT_FOR(0);
        tile_keep(total, sum, values);
    }
    wgmma_end(a, t, blocks, &s, sum, adds ? total : NULL, &epilogue, shared);
}

/* The projection's groups of chunks that are this block's, after its own chunks if it has any. */
LW_ON_DEVICE void wgmma_project(const lw_cuda_product *a, const tile_shape t, const int blocks,
                                const bool adds, halo_state *s, float *sum, float *total,
                                unsigned char *shared)
{
    const int values = blocks * t.columns / 2;
    int row0 = LW_TID / 128 * blocks * 64;
    const int32_t end = halo_end_group(a, t, s);
    if (s->tile.n)
        halo_find_own(a, t, s, false);
    LW_ROLLED
    for (int32_t group = halo_first_group(a, t, s); group < end; group++) {
        const int32_t chunk = halo_group_begin(a, t, group),
                      n = halo_group_begin(a, t, group + 1) - chunk;
        LW_GROUP_WAIT_FOR(0);
        if (adds && a->splits > 1) /* the split before ends here */
            tile_keep(total, sum, values);
        LW_SYNC(); /* no thread reads pixels any more */
        halo_copy_projection(a, t, s, chunk, n, shared);
        lw_rows left = lw_group_rows(shared + row0 * TILE_ROW);
        LW_ROLLED
        for (int32_t k = 0; k < n; k += t.taps) {
            lw_rows right = lw_group_rows(halo_next_weights(a, t, s, k == 0, shared));
            LW_UNROLL
            for (int j = 0; j < t.taps; j++) {
                /* a fence and a group for each: behind a branch ptxas puts others of its own */
                if (k + j < n) {
                    LW_GROUP_BEGIN();
                    wgmma_step(t, blocks, sum, left,
                               lw_rows_behind(right, j * t.columns * TILE_ROW));
                    LW_GROUP_COMMIT();
                }
                left = lw_rows_behind(left, t.rows * TILE_ROW);
            }
            if (t.taps == 1) /* the next step fills this one's stage again */
                LW_GROUP_WAIT_FOR(0);
        }
    }
}

/* The same from halo tiles. */
LW_ON_DEVICE void wgmma_halo(const lw_cuda_product *a, const tile_shape t, const int blocks,
                             const bool adds, unsigned char *shared)
{
    const int values = blocks * t.columns / 2;
    int row0 = LW_TID / 128 * blocks * 64;
    float sum[128], total[64];
    tile_epilogue epilogue;
    halo_state s;
    halo_begin(a, t, &s, wgmma_loads_early(t) ? &epilogue : NULL, shared);
    if (wgmma_loads_early(t))
        tile_load_epilogue(a, t, &s.tile, &epilogue);
    wgmma_clear(sum, values);
    if (adds)
        wgmma_clear(total, values);
    LW_ROLLED
    while (s.tile.step < s.tile.n) {
        lw_rows right = lw_group_rows(halo_next(a, t, &s, shared));
        int line = s.tap / 3 * a->wide.by + s.tap % 3;
        lw_rows left =
            lw_group_rows(shared + s.tile.step % 2 * halo_room(t) + (row0 + line) * TILE_ROW);
        LW_GROUP_BEGIN();
        LW_UNROLL
        for (int k = 0; k < t.taps; k++) /* one tap, or a line of three */
            wgmma_step(t, blocks, sum, lw_rows_behind(left, k * TILE_ROW),
                       lw_rows_behind(right, k * t.columns * TILE_ROW));
        LW_GROUP_COMMIT();
        if (t.stages - t.ahead > 1)
            LW_GROUP_WAIT_FOR(1);
        else
            LW_GROUP_WAIT_FOR(0);
        s.tap += t.taps;
        if (s.tap < HALO_TAPS)
            continue;
        s.tap = 0;
        s.tile.step++;
        if (!adds || !tile_split_ends(a, &s.tile))
            continue;
        LW_GROUP_WAIT_FOR(0);
        tile_keep(total, sum, values);
    }
    if (a->project_c)
        wgmma_project(a, t, blocks, adds, &s, sum, total, shared);
    wgmma_end(a, t, blocks, &s.tile, sum, adds ? total : NULL, &epilogue, shared);
}

LW_KERNEL_EARLY(wgmma_256x128, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 256, 128, 8, 4, 2, true, 0, false, false, 8};
    wgmma_tile(&a, t, 2, false, shared);
}

/* For rows that begin at multiples of eight bytes. */
LW_KERNEL_EARLY(wgmma_256x128_half, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 256, 128, 8, 4, 2, true, 0, true, false, 8};
    wgmma_tile(&a, t, 2, false, shared);
}

LW_KERNEL_EARLY(wgmma_128x128, lw_cuda_product, 256, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 128, 128, 8, 3, 1, true, 0, false, false, 4};
    wgmma_tile(&a, t, 1, false, shared);
}

/* Split-K, one split after the other. */
LW_KERNEL_EARLY(wgmma_128x128_splits, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 128, 128, 8, 6, 4, true, 0, false, false, 8};
    wgmma_tile(&a, t, 1, true, shared);
}

LW_KERNEL_EARLY(wgmma_64x64, lw_cuda_product, 128, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {128, 64, 64, 8, 6, 4, true, 0, false, false, 8};
    wgmma_tile(&a, t, 1, true, shared);
}

/* Split-K, each split a block of a thread-block cluster. */
LW_KERNEL_EARLY(wgmma_64x64_cluster, lw_cuda_product, 128, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {128, 64, 64, 8, 6, 4, true, 0, false, true, 4};
    wgmma_tile(&a, t, 1, false, shared);
}

LW_KERNEL_EARLY(halo_256x128, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 256, 128, 8, 3, 1, true, 3, false, false, 8};
    wgmma_halo(&a, t, 2, false, shared);
}

LW_KERNEL_EARLY(halo_128x128, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 128, 128, 8, 3, 1, true, 3, false, false, 8};
    wgmma_halo(&a, t, 1, true, shared);
}

/* Two blocks on a multiprocessor: while one begins or ends, the other multiplies. */
LW_KERNEL_EARLY(halo_128x128_two, lw_cuda_product, 256, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 128, 128, 8, 3, 2, true, 1, false, false, 4};
    wgmma_halo(&a, t, 1, false, shared);
}

/* For few tiles: all weights of a chunk are there before its pixels are. */
LW_KERNEL_EARLY(halo_64x64, lw_cuda_product, 128, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {128, 64, 64, 8, 3, 1, true, 3, false, false, 8};
    wgmma_halo(&a, t, 1, true, shared);
}

LW_KERNEL_EARLY(halo_64x64_cluster, lw_cuda_product, 128, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {128, 64, 64, 8, 3, 1, true, 3, false, true, 4};
    wgmma_halo(&a, t, 1, false, shared);
}
