/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of a 3 x 3 convolution (implicit GEMM; stride 1, one zero of padding on all sides): the
 * input tile with its halo is kept in shared memory for all nine taps, so pixels are fetched once.
 * Pictures lie one behind the other, with a column of zeros behind each line and a line of zeros
 * behind each picture:
 *
 *     a b c 0
 *     d e f 0      window of e: the positions -5 -4 -3, -1 0 1, 3 4 5 from it, as for every pixel
 *     g h i 0
 *     0 0 0 0 j ..
 *
 * So a tap has the same offset for a whole tile of neighbouring positions: all taps multiply the
 * same rows of 64 channels in shared memory, each from another first row on. (Tensor cores take any
 * first row: the swizzle depends on the address alone.) Positions of zeros are multiplied too, but
 * not written: 6 % of 32 x 32 pixels, 11 % of 16 x 16.
 *
 *     chunk of 64 channels:  pixels ---- tap 0, 1, .. 8 of weights, through a ring of stages ----
 *                            the next chunk's pixels arrive meanwhile
 *
 * A tile of 256 x 128 fetches 186 KiB for nine taps; without the halo it would be 432. Weights are
 * packed in the layout that they have in shared memory: one thread fetches them in a few copies,
 * and tensor cores see them without waiting for any other thread. K is summed chunk by chunk, and
 * tap by tap in each chunk, whatever the tile.
 *
 * A projection shortcut, y += project_x project_w^T, is more of K behind that: chunks of one tap,
 * whose pixels are the tile's own positions. Groups of up to three of them are fetched into the
 * room of the convolution's pixels, which no thread reads any more by then:
 *
 *     chunk | chunk | .. | group of the projection | group | ..
 *
 * With split-K each group is a split, so a block of a cluster has either chunks or one group.
 */
#ifndef LW_CUDA_HALO_H
#define LW_CUDA_HALO_H

#include "backend/cuda/kernels/cuda_tiles.h"
#include "backend/cuda/kernels/cuda_warpgroup.h"

enum { HALO_TAPS = 9, HALO_MOST = 11 }; /* HALO_MOST: rows of pixels of a thread, at most */

/* Rows of pixels of a tile with its halo, and bytes for them, rounded up to eight rows. */
LW_ON_DEVICE int32_t halo_rows(const lw_cuda_product *a, const tile_shape t)
{
    return t.rows + 2 * a->wide.by + 2;
}
LW_ON_DEVICE int halo_room(const tile_shape t)
{
    return (t.rows + 2 * (LW_CUDA_HALO_WIDTH + 1) + 2 + 7) / 8 * 8 * TILE_ROW;
}

/* The mbarriers, one for each stage, behind the ring. */
LW_ON_DEVICE uint64_t *halo_barriers(const tile_shape t, unsigned char *shared)
{
    return (uint64_t *)(void *)(shared + 2 * halo_room(t) +
                                t.stages * t.taps * t.columns * TILE_ROW);
}

typedef struct halo_state {
    tile_state tile;        /* its steps are chunks */
    int32_t at[HALO_MOST];  /* where a thread's rows of pixels lie in x, in pieces; -1: zeros */
    int32_t chunk, tap;     /* the first chunk of this block; the first tap of the step */
    int32_t steps, fetched; /* of all chunks and groups; steps whose weights were fetched */
    int32_t odd;            /* parity of the phase of the mbarriers */
    const unsigned char *w; /* weights that are fetched next */
} halo_state;

/* ---- the projection's groups of chunks -------------------------------------------------------- */

/* Chunks that are fetched together, at most: tiles of 256 rows have room for two. */
LW_ON_DEVICE int halo_group(const tile_shape t)
{
    return t.rows == 256 ? 2 : LW_CUDA_PROJECT;
}
LW_ON_DEVICE int32_t halo_groups(const lw_cuda_product *a, const tile_shape t)
{
    return (a->project_c / 64 + halo_group(t) - 1) / halo_group(t);
}
/* The first chunk of a group; for the group behind the last one, the number of chunks. */
LW_ON_DEVICE int32_t halo_group_begin(const lw_cuda_product *a, const tile_shape t, int32_t group)
{
    const int32_t all = a->project_c / 64, begin = group * halo_group(t);
    return begin < all ? begin : all;
}
/* The groups of this block: all, none, or the one that is its split. */
LW_ON_DEVICE int32_t halo_first_group(const lw_cuda_product *a, const tile_shape t,
                                      const halo_state *s)
{
    if (!a->split_blocks)
        return 0;
    return s->tile.split < a->own_splits ? halo_groups(a, t) : s->tile.split - a->own_splits;
}
LW_ON_DEVICE int32_t halo_end_group(const lw_cuda_product *a, const tile_shape t,
                                    const halo_state *s)
{
    return a->split_blocks && s->tile.split >= a->own_splits ? s->tile.split - a->own_splits + 1
                                                             : halo_groups(a, t);
}

/* ---- where everything is ----------------------------------------------------------------------- */

LW_ON_DEVICE void halo_find(const lw_cuda_product *a, const tile_shape t, halo_state *s)
{
    const int32_t all = a->c / (TILE_PIECES * t.piece);
    tile_find_block(a, t, &s->tile);
    const bool own = s->tile.split < a->own_splits;
    s->chunk = a->split_blocks ? own ? tile_split_begin(a, all, s->tile.split) : all : 0;
    s->tile.n = (a->split_blocks && own ? tile_split_begin(a, all, s->tile.split + 1) : all) -
                s->chunk;
    s->tile.split_end = a->split_blocks ? s->tile.n : tile_split_begin(a, all, 1);
    s->tile.step = 0;
    s->tile.now = t.stages - 1;
    s->tile.next = 0;
    s->steps = s->tile.n * (HALO_TAPS / t.taps);
    if (a->project_c) {
        int32_t first = halo_first_group(a, t, s), end = halo_end_group(a, t, s);
        s->steps += t.taps > 1 ? end - first
                               : halo_group_begin(a, t, end) - halo_group_begin(a, t, first);
    }
    s->fetched = s->tap = 0;
    s->odd = 1;
    s->w = (const unsigned char *)a->w +
           ((int64_t)(s->tile.column0 / 64) * all + s->chunk) * HALO_TAPS * 64 * TILE_ROW;
}

/* Fetches the weights of the next step whose weights were not fetched yet, if there is one: by one
 * thread, 64 columns of a tap at a time. */
LW_ON_DEVICE void halo_fetch_weights(const lw_cuda_product *a, const tile_shape t, halo_state *s,
                                     unsigned char *ring, uint64_t *barriers)
{
    const uint32_t bytes = 64 * TILE_ROW;
    const int halves = t.columns == 128 && s->tile.column0 + 64 < a->n ? 2 : 1;
    const int32_t own = s->tile.n * (HALO_TAPS / t.taps);
    int64_t half_stride = (int64_t)a->c * HALO_TAPS * 64 * 2;
    int taps = t.taps;
    if (s->fetched == s->steps)
        return;
    if (s->fetched >= own) {
        const int32_t first = halo_first_group(a, t, s);
        half_stride = (int64_t)a->project_c * 64 * 2;
        if (s->fetched == own)
            s->w = (const unsigned char *)a->project_w +
                   ((int64_t)(s->tile.column0 / 64) * (a->project_c / 64) +
                    halo_group_begin(a, t, first)) *
                       bytes;
        if (t.taps > 1)
            taps = halo_group_begin(a, t, first + s->fetched - own + 1) -
                   halo_group_begin(a, t, first + s->fetched - own);
    }
    uint64_t *b = barriers + s->tile.next;
    unsigned char *stage = ring + s->tile.next * t.taps * t.columns * TILE_ROW;
    lw_barrier_expect(b, bytes * (uint32_t)(taps * halves));
    LW_ROLLED
    for (int k = 0; k < taps; k++, s->w += bytes, stage += t.columns * TILE_ROW) {
        lw_copy_bulk(stage, s->w, bytes, b);
        if (halves == 2)
            lw_copy_bulk(stage + bytes, s->w + half_stride, bytes, b);
    }
    s->fetched++;
    s->tile.next = s->tile.next + 1 == t.stages ? 0 : s->tile.next + 1;
}

/* Where a thread's rows of pixels lie, from position r0 on, in pixels that are `ld` elements from
 * each other; those behind the last are zeros. */
LW_ON_DEVICE void halo_find_pixels(const lw_cuda_product *a, const tile_shape t, halo_state *s,
                                   int32_t r0, int32_t ld, int32_t chunk)
{
    const int row_stride = t.threads / TILE_PIECES;
    LW_UNROLL
    for (int i = 0; i < HALO_MOST; i++) {
        int32_t r = r0 + LW_TID / TILE_PIECES + i * row_stride;
        tile_pixel p = tile_pixel_of(a, r < 0 ? 0 : r);
        bool there = r >= 0 && r < a->phase_rows && p.i < a->h && p.j < a->width;
        s->at[i] = there ? ((p.b * a->h + p.i) * a->width + p.j) * (ld / t.piece) +
                               chunk * TILE_PIECES + LW_TID % TILE_PIECES
                         : -1;
    }
}
/* The same for the convolution's own chunks, or for the projection's. */
LW_ON_DEVICE void halo_find_own(const lw_cuda_product *a, const tile_shape t, halo_state *s,
                                bool own)
{
    halo_find_pixels(a, t, s, own ? s->tile.row0 - a->wide.by - 1 : s->tile.row0,
                     own ? a->ldx : t.piece, own ? s->chunk : 0);
}

/* Copies this thread's pieces of a chunk's pixels; chunks are counted from this block's first. */
LW_ON_DEVICE void halo_copy_pixels(const lw_cuda_product *a, const tile_shape t,
                                   const halo_state *s, int32_t chunk, unsigned char *pixels)
{
    const int row_stride = t.threads / TILE_PIECES;
    int row = LW_TID / TILE_PIECES, q = LW_TID % TILE_PIECES, rows = halo_rows(a, t);
    unsigned char *to = pixels + chunk % 2 * halo_room(t) + row * TILE_ROW + (q ^ row % 8) * 16;
    const unsigned char *x = (const unsigned char *)a->x + (int64_t)chunk * TILE_ROW;
    LW_UNROLL
    for (int i = 0; i < HALO_MOST; i++)
        if (i * row_stride * TILE_ROW < halo_room(t) && row + i * row_stride < rows)
            lw_copy_async(to + i * row_stride * TILE_ROW,
                          x + (s->at[i] < 0 ? 0 : (int64_t)s->at[i] * 16), s->at[i] >= 0);
    LW_COPY_COMMIT();
}

/* The same for n chunks of the projection, one behind the other. Rows are counted as if they had one piece, since in pieces there
 * may be more than 32 bits count. */
LW_ON_DEVICE void halo_copy_projection(const lw_cuda_product *a, const tile_shape t,
                                       const halo_state *s, int32_t chunk, int32_t n,
                                       unsigned char *pixels)
{
    const int row_stride = t.threads / TILE_PIECES;
    int row = LW_TID / TILE_PIECES, q = LW_TID % TILE_PIECES;
    unsigned char *to = pixels + row * TILE_ROW + (q ^ row % 8) * 16;
    const unsigned char *x = (const unsigned char *)a->project_x;
    const int64_t row_bytes = (int64_t)a->ld_project * 2;
    int64_t at = (int64_t)chunk * TILE_ROW + q * 16 - q * row_bytes;
    LW_ROLLED
    for (int32_t k = 0; k < n; k++, to += t.rows * TILE_ROW, at += TILE_ROW) {
        LW_UNROLL
        for (int i = 0; i < t.rows / row_stride; i++)
            lw_copy_async(to + i * row_stride * TILE_ROW,
                          x + (s->at[i] < 0 ? 0 : at + s->at[i] * row_bytes), s->at[i] >= 0);
    }
    LW_COPY_COMMIT();
}

/* Finds where everything is (epilogue: as in tile_begin). The first weights are fetched before the
 * wait for earlier kernels (programmatic dependent launch), the first pixels after it. */
LW_ON_DEVICE void halo_begin(const lw_cuda_product *a, const tile_shape t, halo_state *s,
                             tile_epilogue *epilogue, unsigned char *shared)
{
    uint64_t *barriers = halo_barriers(t, shared);
    halo_find(a, t, s);
    if (LW_TID == 0) {
        LW_ROLLED
        for (int i = 0; i < t.stages; i++)
            lw_barrier_make(barriers + i);
        LW_BARRIERS_MADE();
        LW_ROLLED
        for (int i = 0; i < t.stages; i++)
            halo_fetch_weights(a, t, s, shared + 2 * halo_room(t), barriers);
    }
    halo_find_own(a, t, s, s->tile.n > 0);
    if (epilogue)
        tile_find_epilogue(a, t, &s->tile, tile_first_row(t, &s->tile), epilogue);
    LW_AWAIT_BEFORE();
    if (s->tile.n)
        halo_copy_pixels(a, t, s, 0, shared);
    LW_SYNC();
}

/* Waits for the weights of the next step and returns them; new_pixels: waits for pixels, too. All
 * threads have finished with the earlier stages except the newest stages - 1 - ahead: the stage
 * that became free longest ago gets the weights of the step that is `ahead` of this one. */
LW_ON_DEVICE const unsigned char *halo_next_weights(const lw_cuda_product *a, const tile_shape t,
                                                    halo_state *s, bool new_pixels,
                                                    unsigned char *shared)
{
    unsigned char *ring = shared + 2 * halo_room(t);
    uint64_t *barriers = halo_barriers(t, shared);
    if (new_pixels) {
        lw_copy_wait_for(0);
        LW_FENCE_FOR_CORES();
    }
    s->tile.now = s->tile.now + 1 == t.stages ? 0 : s->tile.now + 1;
    s->odd ^= s->tile.now == 0;
    lw_barrier_wait(barriers + s->tile.now, (uint32_t)s->odd);
    LW_SYNC();
    if (LW_TID == 0 && (s->tile.now + t.ahead) % t.stages == s->tile.next)
        halo_fetch_weights(a, t, s, ring, barriers);
    return ring + s->tile.now * t.taps * t.columns * TILE_ROW;
}

/* The next step of a chunk. From a chunk's second step on no thread reads the pixels of the chunk
 * before: the next chunk's pixels are copied over them. */
LW_ON_DEVICE const unsigned char *halo_next(const lw_cuda_product *a, const tile_shape t,
                                            halo_state *s, unsigned char *shared)
{
    const unsigned char *weights = halo_next_weights(a, t, s, s->tap == 0, shared);
    if (s->tap == t.taps && s->tile.step + 1 < s->tile.n)
        halo_copy_pixels(a, t, s, s->tile.step + 1, shared);
    return weights;
}

#endif
