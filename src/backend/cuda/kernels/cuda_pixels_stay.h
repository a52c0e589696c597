/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of a 3 x 3 convolution (stride 1, a zero all around) whose pixels are fetched once for all nine taps. Pictures lie one
 * behind the other, with a column of zeros behind each line and a line of zeros behind each picture:
 *
 *     a b c 0
 *     d e f 0      window of e: the positions -5 -4 -3, -1 0 1, 3 4 5 from it, which is so of every pixel
 *     g h i 0
 *     0 0 0 0 j ..
 *
 * so that a tap is the same way off for a whole tile of neighbouring positions: what a tap multiplies are the same rows of 64
 * channels in shared memory, begun a few rows further on (tensor cores take any row to begin with: which piece lies where is a
 * matter of the address alone). Positions of zeros are multiplied, too, and not written: of 32 x 32 pixels 6 %, 16 x 16 11 %.
 *
 *     chunk of 64 channels:  pixels ---- tap 0, 1, .. 8 of weights, through a ring of places ----
 *                            next chunk's pixels come meanwhile
 *
 * A tile of 256 x 128 fetches 186 KiB for nine taps; without pixels that stay it is 432. Weights are packed as they lie in
 * shared memory, so that one thread fetches them in a few copies, and no other has to be waited for that they are seen by
 * tensor cores. The depth is summed up chunk by chunk, in each tap by tap, whatever the tile.
 *
 * A projection shortcut, y += project_x project_w^T, is more of the depth behind it: chunks of one tap, whose pixels are the
 * tile's own positions. Groups of up to three of them are fetched into the room of the pixels before, which all are through then:
 *
 *     chunk | chunk | .. | group of the projection | group | ..
 *
 * Where the depth has parts, each group is one of them, so that a block of a cluster has chunks, or one group.
 */
#ifndef LW_CUDA_PIXELS_STAY_H
#define LW_CUDA_PIXELS_STAY_H

#include "backend/cuda/kernels/cuda_tiles.h"
#include "backend/cuda/kernels/cuda_warpgroup.h"

enum { STAY_TAPS = 9, STAY_MOST = 11 }; /* rows of pixels of a thread */

/* Rows of pixels of a tile, and room for them: so many as whole groups of eight take. */
LW_ON_DEVICE int32_t stay_rows(const lw_cuda_product *a, const tile_shape t)
{
    return t.rows + 2 * a->wide.by + 2;
}
LW_ON_DEVICE int stay_room(const tile_shape t)
{
    return (t.rows + 2 * (LW_CUDA_STAY_WIDTH + 1) + 2 + 7) / 8 * 8 * TILE_ROW;
}

/* One for each place, behind the ring. */
LW_ON_DEVICE uint64_t *stay_barriers(const tile_shape t, unsigned char *shared)
{
    return (uint64_t *)(void *)(shared + 2 * stay_room(t) +
                                t.places * t.taps * t.columns * TILE_ROW);
}

typedef struct stay_state {
    tile_state tile;        /* its steps are chunks */
    int32_t at[STAY_MOST];  /* where a thread's rows of pixels lie in x, in pieces; -1: zeros */
    int32_t chunk, tap;     /* this block's first; of the step, its first */
    int32_t steps, fetched; /* of all chunks and groups; those whose weights were fetched */
    int32_t odd;            /* turn of the places */
    const unsigned char *w; /* weights that are fetched next */
} stay_state;

/* ---- the projection's groups of chunks -------------------------------------------------------- */

/* Chunks that are fetched together, most: there is room for two of 256 rows. */
LW_ON_DEVICE int stay_group(const tile_shape t)
{
    return t.rows == 256 ? 2 : LW_CUDA_PROJECT;
}
LW_ON_DEVICE int32_t stay_groups(const lw_cuda_product *a, const tile_shape t)
{
    return (a->project_c / 64 + stay_group(t) - 1) / stay_group(t);
}
/* The first chunk of a group; of the one behind the last, their number. */
LW_ON_DEVICE int32_t stay_group_begin(const lw_cuda_product *a, const tile_shape t, int32_t group)
{
    const int32_t all = a->project_c / 64, begin = group * stay_group(t);
    return begin < all ? begin : all;
}
/* The groups of this block: all, none, or the one that is its part. */
LW_ON_DEVICE int32_t stay_first_group(const lw_cuda_product *a, const tile_shape t,
                                      const stay_state *s)
{
    if (!a->apart)
        return 0;
    return s->tile.part < a->own_parts ? stay_groups(a, t) : s->tile.part - a->own_parts;
}
LW_ON_DEVICE int32_t stay_end_group(const lw_cuda_product *a, const tile_shape t,
                                    const stay_state *s)
{
    return a->apart && s->tile.part >= a->own_parts ? s->tile.part - a->own_parts + 1
                                                    : stay_groups(a, t);
}

/* ---- where everything is ----------------------------------------------------------------------- */

LW_ON_DEVICE void stay_find(const lw_cuda_product *a, const tile_shape t, stay_state *s)
{
    const int32_t all = a->c / (TILE_PIECES * t.piece);
    tile_find_block(a, t, &s->tile);
    const bool own = s->tile.part < a->own_parts;
    s->chunk = a->apart ? own ? tile_part_begin(a, all, s->tile.part) : all : 0;
    s->tile.n = (a->apart && own ? tile_part_begin(a, all, s->tile.part + 1) : all) - s->chunk;
    s->tile.part_end = a->apart ? s->tile.n : tile_part_begin(a, all, 1);
    s->tile.step = 0;
    s->tile.now = t.places - 1;
    s->tile.next = 0;
    s->steps = s->tile.n * (STAY_TAPS / t.taps);
    if (a->project_c) {
        int32_t first = stay_first_group(a, t, s), end = stay_end_group(a, t, s);
        s->steps += t.taps > 1 ? end - first
                               : stay_group_begin(a, t, end) - stay_group_begin(a, t, first);
    }
    s->fetched = s->tap = 0;
    s->odd = 1;
    s->w = (const unsigned char *)a->w +
           ((int64_t)(s->tile.column0 / 64) * all + s->chunk) * STAY_TAPS * 64 * TILE_ROW;
}

/* The weights of the next step that has none, if there is one: by one thread, 64 columns of a tap at a time. */
LW_ON_DEVICE void stay_fetch_weights(const lw_cuda_product *a, const tile_shape t, stay_state *s,
                                     unsigned char *ring, uint64_t *barriers)
{
    const uint32_t bytes = 64 * TILE_ROW;
    const int halves = t.columns == 128 && s->tile.column0 + 64 < a->n ? 2 : 1;
    const int32_t own = s->tile.n * (STAY_TAPS / t.taps);
    int64_t apart = (int64_t)a->c * STAY_TAPS * 64 * 2;
    int taps = t.taps;
    if (s->fetched == s->steps)
        return;
    if (s->fetched >= own) {
        const int32_t first = stay_first_group(a, t, s);
        apart = (int64_t)a->project_c * 64 * 2;
        if (s->fetched == own)
            s->w = (const unsigned char *)a->project_w +
                   ((int64_t)(s->tile.column0 / 64) * (a->project_c / 64) +
                    stay_group_begin(a, t, first)) *
                       bytes;
        if (t.taps > 1)
            taps = stay_group_begin(a, t, first + s->fetched - own + 1) -
                   stay_group_begin(a, t, first + s->fetched - own);
    }
    uint64_t *b = barriers + s->tile.next;
    unsigned char *place = ring + s->tile.next * t.taps * t.columns * TILE_ROW;
    lw_barrier_expect(b, bytes * (uint32_t)(taps * halves));
    LW_ROLLED
    for (int k = 0; k < taps; k++, s->w += bytes, place += t.columns * TILE_ROW) {
        lw_copy_bulk(place, s->w, bytes, b);
        if (halves == 2)
            lw_copy_bulk(place + bytes, s->w + apart, bytes, b);
    }
    s->fetched++;
    s->tile.next = s->tile.next + 1 == t.places ? 0 : s->tile.next + 1;
}

/* A thread's rows of pixels, from position r0 on, of pixels that are `ld` apart; those behind the last are zeros. */
LW_ON_DEVICE void stay_find_pixels(const lw_cuda_product *a, const tile_shape t, stay_state *s,
                                   int32_t r0, int32_t ld, int32_t chunk)
{
    const int apart = t.threads / TILE_PIECES;
    LW_UNROLL
    for (int i = 0; i < STAY_MOST; i++) {
        int32_t r = r0 + LW_TID / TILE_PIECES + i * apart;
        tile_pixel p = tile_pixel_of(a, r < 0 ? 0 : r);
        bool there = r >= 0 && r < a->phase_rows && p.i < a->h && p.j < a->width;
        s->at[i] = there ? ((p.b * a->h + p.i) * a->width + p.j) * (ld / t.piece) +
                               chunk * TILE_PIECES + LW_TID % TILE_PIECES
                         : -1;
    }
}
/* Of a chunk, or of the projection. */
LW_ON_DEVICE void stay_find_own(const lw_cuda_product *a, const tile_shape t, stay_state *s,
                                bool own)
{
    stay_find_pixels(a, t, s, own ? s->tile.row0 - a->wide.by - 1 : s->tile.row0,
                     own ? a->ldx : a->ld_project, own ? s->chunk : 0);
}

/* This thread's pieces of the pixels of a chunk, counted from this block's first. */
LW_ON_DEVICE void stay_copy_pixels(const lw_cuda_product *a, const tile_shape t,
                                   const stay_state *s, int32_t chunk, unsigned char *pixels)
{
    const int apart = t.threads / TILE_PIECES;
    int row = LW_TID / TILE_PIECES, q = LW_TID % TILE_PIECES, rows = stay_rows(a, t);
    unsigned char *to = pixels + chunk % 2 * stay_room(t) + row * TILE_ROW + (q ^ row % 8) * 16;
    const unsigned char *x = (const unsigned char *)a->x + (int64_t)chunk * TILE_ROW;
    LW_UNROLL
    for (int i = 0; i < STAY_MOST; i++)
        if (i * apart * TILE_ROW < stay_room(t) && row + i * apart < rows)
            lw_copy_async(to + i * apart * TILE_ROW,
                          x + (s->at[i] < 0 ? 0 : (int64_t)s->at[i] * 16), s->at[i] >= 0);
    LW_COPY_COMMIT();
}

/* The same of n chunks of the projection, one behind the other. */
LW_ON_DEVICE void stay_copy_projection(const lw_cuda_product *a, const tile_shape t,
                                       const stay_state *s, int32_t chunk, int32_t n,
                                       unsigned char *pixels)
{
    const int apart = t.threads / TILE_PIECES;
    int row = LW_TID / TILE_PIECES, q = LW_TID % TILE_PIECES;
    unsigned char *to = pixels + row * TILE_ROW + (q ^ row % 8) * 16;
    const unsigned char *x = (const unsigned char *)a->project_x + (int64_t)chunk * TILE_ROW;
    LW_ROLLED
    for (int32_t k = 0; k < n; k++, to += t.rows * TILE_ROW, x += TILE_ROW) {
        LW_UNROLL
        for (int i = 0; i < t.rows / apart; i++)
            lw_copy_async(to + i * apart * TILE_ROW,
                          x + (s->at[i] < 0 ? 0 : (int64_t)s->at[i] * 16), s->at[i] >= 0);
    }
    LW_COPY_COMMIT();
}

/* Finds where everything is (beside: as in tile_begin); the first weights come while kernels before are not through, then the first pixels. */
LW_ON_DEVICE void stay_begin(const lw_cuda_product *a, const tile_shape t, stay_state *s,
                             tile_beside *beside, unsigned char *shared)
{
    uint64_t *barriers = stay_barriers(t, shared);
    stay_find(a, t, s);
    if (LW_TID == 0) {
        LW_ROLLED
        for (int i = 0; i < t.places; i++)
            lw_barrier_make(barriers + i);
        LW_BARRIERS_MADE();
        LW_ROLLED
        for (int i = 0; i < t.places; i++)
            stay_fetch_weights(a, t, s, shared + 2 * stay_room(t), barriers);
    }
    stay_find_own(a, t, s, s->tile.n > 0);
    if (beside)
        tile_find_beside(a, t, &s->tile, tile_first_row(t, &s->tile), beside);
    LW_AWAIT_BEFORE();
    if (s->tile.n)
        stay_copy_pixels(a, t, s, 0, shared);
    LW_SYNC();
}

/* The weights of the next step, which have come; new_pixels: and so have the pixels. All threads are through the places before
 * but for the newest places - 1 - ahead: the place that was left longest ago gets the weights of the step `ahead` of this one. */
LW_ON_DEVICE const unsigned char *stay_next_weights(const lw_cuda_product *a, const tile_shape t,
                                                    stay_state *s, bool new_pixels,
                                                    unsigned char *shared)
{
    unsigned char *ring = shared + 2 * stay_room(t);
    uint64_t *barriers = stay_barriers(t, shared);
    if (new_pixels) {
        lw_copy_wait_for(0);
        LW_FENCE_FOR_CORES();
    }
    s->tile.now = s->tile.now + 1 == t.places ? 0 : s->tile.now + 1;
    s->odd ^= s->tile.now == 0;
    lw_barrier_wait(barriers + s->tile.now, (uint32_t)s->odd);
    LW_SYNC();
    if (LW_TID == 0 && (s->tile.now + t.ahead) % t.places == s->tile.next)
        stay_fetch_weights(a, t, s, ring, barriers);
    return ring + s->tile.now * t.taps * t.columns * TILE_ROW;
}

/* The next step of a chunk. In the second one nobody reads pixels of the chunk before any more: the next chunk's take their
 * place. */
LW_ON_DEVICE const unsigned char *stay_next(const lw_cuda_product *a, const tile_shape t,
                                            stay_state *s, unsigned char *shared)
{
    const unsigned char *weights = stay_next_weights(a, t, s, s->tap == 0, shared);
    if (s->tap == t.taps && s->tile.step + 1 < s->tile.n)
        stay_copy_pixels(a, t, s, s->tile.step + 1, shared);
    return weights;
}

#endif
