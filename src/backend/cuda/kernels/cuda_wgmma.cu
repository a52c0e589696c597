/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of bf16 on tensor cores of compute capability 9.0, sums in f32: groups of four warps multiply places of
 * cuda_tiles.h, or of cuda_pixels_stay.h, while the next are filled. A place is filled again when all are through the step
 * before the last, or the last.
 */
#include "backend/cuda/kernels/cuda_pixels_stay.h"

/* sum += left right^T of 64 numbers of the depth, `blocks` times 64 rows from left on. */
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

LW_ON_DEVICE void wgmma_clear(float *sum, const int numbers)
{
    LW_UNROLL
    for (int i = 0; i < numbers; i++)
        sum[i] = 0.0f;
}

/* Are all rows of a thread finished at once? Then what is beside them is asked for while the first pixels are on their way. */
LW_ON_DEVICE bool wgmma_asks_early(const tile_shape t)
{
    return t.cluster || t.rows * t.columns == t.threads * t.at_once * 4;
}

/* Sums of all parts, each of which lies in the room of a block of the cluster. */
LW_ON_DEVICE void wgmma_finish_cluster(const lw_cuda_product *a, const tile_shape t, const tile_state *s,
                                       const float *room, const tile_beside *b)
{
    const int n = t.at_once, step = tile_row_step(a, t);
    int32_t column = tile_column(t, s);
    const lw_four none = {{0.0f, 0.0f, 0.0f, 0.0f}};
    lw_four v[TILE_AT_ONCE];
    LW_CLUSTER_ARRIVE();
    LW_CLUSTER_WAIT();
    room += tile_first_row(t, s) * tile_pitch(t) + column - s->column0;
    LW_UNROLL
    for (int i = 0; i < n; i++) {
        lw_four part[LW_CUDA_CLUSTER];
        v[i] = none;
        if (tile_first_row(t, s) + i * step >= t.rows)
            continue;
        LW_UNROLL
        for (int p = 0; p < LW_CUDA_CLUSTER; p++)
            part[p] = p < a->parts ? lw_load_cluster(room + i * step * tile_pitch(t), p) : none;
        LW_UNROLL
        for (int p = 0; p < LW_CUDA_CLUSTER; p++)
            if (p < a->parts)
                lw_four_add(&v[i], part[p]);
    }
    /* this block has read; none goes before all have */
    LW_CLUSTER_ARRIVE();
    if (column < a->n)
        tile_finish_rows(a, t, column, b, v);
    LW_CLUSTER_WAIT();
}

/* Behind the last product: sums, and those of parts before if there are any, to what is made of them. */
LW_ON_DEVICE void wgmma_end(const lw_cuda_product *a, const tile_shape t, const int blocks,
                            const tile_state *s, float *sum, const float *total,
                            tile_beside *beside, unsigned char *shared)
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
    const bool early = wgmma_asks_early(t), full = t.at_once < TILE_AT_ONCE; /* of registers, while there are sums */
    if (!early && !full)
        tile_find_and_ask(a, t, s, tile_first_row(t, s), beside);
    LW_UNROLL
    for (int i = 0; i < blocks; i++)
        LW_UNROLL
    for (int j = 0; j < t.columns / 4; j++) {
        int row = (warp / 4 * blocks + i) * 64 + warp % 4 * 16 + lane / 4 + j % 2 * 8;
        lw_two two = {{sum[i * t.columns / 2 + j * 2], sum[i * t.columns / 2 + j * 2 + 1]}};
        *(lw_two *)(void *)(room + row * tile_pitch(t) + j / 2 * 8 + lane % 4 * 2) = two;
    }
    if (!early && full)
        tile_find_and_ask(a, t, s, tile_first_row(t, s), beside);
    if (t.cluster) {
        wgmma_finish_cluster(a, t, s, room, beside);
    } else {
        LW_SYNC();
        tile_finish(a, t, s, room, beside);
    }
}

/* `blocks` of 64 rows for each group; adds: there is room for the sums of parts before */
LW_ON_DEVICE void wgmma_tile(const lw_cuda_product *a, const tile_shape t, const int blocks,
                             const bool adds, unsigned char *shared)
{
    const int numbers = blocks * t.columns / 2;
    int row0 = LW_TID / 128 * blocks * 64;
    float sum[128], total[64];
    tile_beside beside;
    tile_state s;
    tile_begin(a, t, &s, wgmma_asks_early(t) ? &beside : NULL, shared);
    if (wgmma_asks_early(t))
        tile_ask(a, t, &s, &beside);
    wgmma_clear(sum, numbers);
    if (adds)
        wgmma_clear(total, numbers);
    LW_ROLLED
    while (s.step < s.n) {
        const unsigned char *place = tile_next(a, t, &s, shared);
        LW_GROUP_BEGIN();
        wgmma_step(t, blocks, sum, lw_group_rows(place + row0 * TILE_ROW),
                   lw_group_rows(place + t.rows * TILE_ROW));
        LW_GROUP_COMMIT();
        LW_GROUP_WAIT_FOR(1);
        if (!adds || !tile_part_ends(a, &s))
            continue;
        LW_GROUP_WAIT_FOR(0);
        tile_keep(total, sum, numbers);
    }
    wgmma_end(a, t, blocks, &s, sum, adds ? total : NULL, &beside, shared);
}

/* The projection's groups of this block, behind its chunks if it has any. */
LW_ON_DEVICE void wgmma_project(const lw_cuda_product *a, const tile_shape t, const int blocks,
                                const bool adds, stay_state *s, float *sum, float *total,
                                unsigned char *shared)
{
    const int numbers = blocks * t.columns / 2;
    int row0 = LW_TID / 128 * blocks * 64;
    const int32_t end = stay_end_group(a, t, s);
    if (s->tile.n)
        stay_find_own(a, t, s, false);
    LW_ROLLED
    for (int32_t group = stay_first_group(a, t, s); group < end; group++) {
        const int32_t chunk = stay_group_begin(a, t, group), n = stay_group_begin(a, t, group + 1) - chunk;
        LW_GROUP_WAIT_FOR(0);
        if (adds && a->parts > 1) /* the part before ends here */
            tile_keep(total, sum, numbers);
        LW_SYNC(); /* nobody reads pixels any more */
        stay_copy_projection(a, t, s, chunk, n, shared);
        lw_rows left = lw_group_rows(shared + row0 * TILE_ROW);
        LW_ROLLED
        for (int32_t k = 0; k < n; k += t.taps) {
            lw_rows right = lw_group_rows(stay_next_weights(a, t, s, k == 0, shared));
            LW_GROUP_BEGIN();
            LW_UNROLL
            for (int j = 0; j < t.taps; j++) {
                if (k + j < n)
                    wgmma_step(t, blocks, sum, left, lw_rows_behind(right, j * t.columns * TILE_ROW));
                left = lw_rows_behind(left, t.rows * TILE_ROW);
            }
            LW_GROUP_COMMIT();
            if (t.places - t.ahead > 1)
                LW_GROUP_WAIT_FOR(1);
            else
                LW_GROUP_WAIT_FOR(0);
        }
    }
}

/* The same of pixels that stay. */
LW_ON_DEVICE void wgmma_stay(const lw_cuda_product *a, const tile_shape t, const int blocks,
                             const bool adds, unsigned char *shared)
{
    const int numbers = blocks * t.columns / 2;
    int row0 = LW_TID / 128 * blocks * 64;
    float sum[128], total[64];
    tile_beside beside;
    stay_state s;
    stay_begin(a, t, &s, wgmma_asks_early(t) ? &beside : NULL, shared);
    if (wgmma_asks_early(t))
        tile_ask(a, t, &s.tile, &beside);
    wgmma_clear(sum, numbers);
    if (adds)
        wgmma_clear(total, numbers);
    LW_ROLLED
    while (s.tile.step < s.tile.n) {
        lw_rows right = lw_group_rows(stay_next(a, t, &s, shared));
        int line = s.tap / 3 * a->wide.by + s.tap % 3;
        lw_rows left = lw_group_rows(shared + s.tile.step % 2 * stay_room(t) + (row0 + line) * TILE_ROW);
        LW_GROUP_BEGIN();
        LW_UNROLL
        for (int k = 0; k < t.taps; k++) /* one, or a line of three */
            wgmma_step(t, blocks, sum, lw_rows_behind(left, k * TILE_ROW),
                       lw_rows_behind(right, k * t.columns * TILE_ROW));
        LW_GROUP_COMMIT();
        if (t.places - t.ahead > 1)
            LW_GROUP_WAIT_FOR(1);
        else
            LW_GROUP_WAIT_FOR(0);
        s.tap += t.taps;
        if (s.tap < STAY_TAPS)
            continue;
        s.tap = 0;
        s.tile.step++;
        if (!adds || !tile_part_ends(a, &s.tile))
            continue;
        LW_GROUP_WAIT_FOR(0);
        tile_keep(total, sum, numbers);
    }
    if (a->project_c)
        wgmma_project(a, t, blocks, adds, &s, sum, total, shared);
    wgmma_end(a, t, blocks, &s.tile, sum, adds ? total : NULL, &beside, shared);
}

LW_KERNEL_EARLY(wgmma_256x128, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 256, 128, 8, 4, 2, true, 0, false, false, 8};
    wgmma_tile(&a, t, 2, false, shared);
}

/* Of rows that begin at multiples of eight bytes. */
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

/* Of parts, one after the other. */
LW_KERNEL_EARLY(wgmma_128x128_parts, lw_cuda_product, 256, 1)
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

/* Parts of the depth, each a block of a cluster. */
LW_KERNEL_EARLY(wgmma_64x64_cluster, lw_cuda_product, 128, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {128, 64, 64, 8, 6, 4, true, 0, false, true, 4};
    wgmma_tile(&a, t, 1, false, shared);
}

LW_KERNEL_EARLY(stay_256x128, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 256, 128, 8, 3, 1, true, 3, false, false, 8};
    wgmma_stay(&a, t, 2, false, shared);
}

LW_KERNEL_EARLY(stay_128x128, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 128, 128, 8, 3, 1, true, 3, false, false, 8};
    wgmma_stay(&a, t, 1, true, shared);
}

/* Two on a multiprocessor: while one begins or ends, the other multiplies. */
LW_KERNEL_EARLY(stay_128x128_two, lw_cuda_product, 256, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {256, 128, 128, 8, 3, 2, true, 1, false, false, 4};
    wgmma_stay(&a, t, 1, false, shared);
}

/* Of few tiles: all weights of a chunk lie ready before its pixels do. */
LW_KERNEL_EARLY(stay_64x64, lw_cuda_product, 128, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {128, 64, 64, 8, 3, 1, true, 3, false, false, 8};
    wgmma_stay(&a, t, 1, true, shared);
}

LW_KERNEL_EARLY(stay_64x64_cluster, lw_cuda_product, 128, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    const tile_shape t = {128, 64, 64, 8, 3, 1, true, 3, false, true, 4};
    wgmma_stay(&a, t, 1, false, shared);
}
