/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of a product's result, one for each block. Operands come through a ring buffer of stages in
 * shared memory: all threads fill a stage by asynchronous copies while an earlier one is
 * multiplied. A stage has a row of 128 bytes, neighbours in K ("depth" in names), for each row and
 * each column of the tile. Rows are swizzled: piece q of 16 bytes of row r lies at q xor r % 8, so
 * that piece q of eight neighbouring rows is in different banks.
 *
 *     step s      wait until stage s has come | copy to stage s + ahead | multiply stage s
 *
 * Convolutions are implicit GEMM: a row is a pixel of the result, and the values that it is
 * multiplied with are copied from its window, a piece of a tap's channels at a time; each row of a
 * matrix is a picture of one pixel. Of a convolution's gradient to x with a stride (which a
 * convolution behind nearest upsampling becomes), each of the stride^2 kinds of pixels has its own
 * taps and its own tiles: no zeros are multiplied.
 *
 * Split-K: each split of K has a partial sum, and they are added in the order of the splits. Where
 * there are few tiles, each split has a block of its own (split_blocks); else one block computes
 * all splits one after the other. The sum is the same either way, so bits do not depend on how many
 * pictures there are. On compute capability 9.0 the blocks of a tile are a thread-block cluster:
 * they read each other's shared memory (distributed shared memory), and each finishes its share of
 * the rows. In f32 partial sums go to global memory, and the last block that arrives adds them.
 *
 * All of it is short code, because every launch fetches its instructions anew: that is what
 * unrolled code is slowest at.
 */
#ifndef LW_CUDA_TILES_H
#define LW_CUDA_TILES_H

#include "backend/cuda/kernels/cuda_gather.h"

enum { TILE_ROW = 128, TILE_PIECES = 8, TILE_MOST_ROWS = 8 };

/* The shape of a kernel's tiles, known at compile time. */
typedef struct tile_shape {
    int threads, rows, columns;
    int piece; /* elements in 16 bytes */
    int stages, ahead;
    bool cores;   /* tensor cores read the stages themselves */
    int taps;     /* > 0: halo tiles (cuda_halo.h), with so many of the nine taps in a step */
    bool half;    /* a matrix whose rows are a whole number of half pieces */
    bool cluster; /* the splits' blocks are one cluster */
    int at_once;  /* rows that a thread finishes together: as many as it has registers for */
} tile_shape;

/* Pixel (b, i, j) of a row of its kind. */
typedef struct tile_pixel {
    int32_t b, i, j;
} tile_pixel;

/* Where a block and a thread of it are. A thread copies one of the eight pieces of every
 * (threads / 8)-th row. */
typedef struct tile_state {
    int32_t row0, column0, split, tile;
    int32_t phase_y, phase_x, tap_y, tap_x; /* the kind of pixels, and its first taps */
    int32_t at[TILE_MOST_ROWS]; /* where windows begin in x, in tile_unit; may be outside */
    int16_t y[TILE_MOST_ROWS], x[TILE_MOST_ROWS];
    int32_t c, ty, tx; /* this thread's next piece of K: channel c of tap (ty, tx) */
    int32_t steps;     /* of all of K */
    int32_t n, step;   /* of this block: all steps, and the current one */
    int32_t now, next; /* the stages that are multiplied and filled */
    int32_t split_end; /* the step behind the last one of this split */
} tile_state;

/* Elements of the unit in which offsets into x are counted. */
LW_ON_DEVICE int tile_unit(const tile_shape t)
{
    return t.half ? t.piece / 2 : t.piece;
}

LW_ON_DEVICE tile_pixel tile_pixel_of(const lw_cuda_product *a, int32_t r)
{
    int32_t line = lw_divide(r, &a->wide), b = lw_divide(line, &a->high);
    tile_pixel p = {b, line - b * a->high.by, r - line * a->wide.by};
    return p;
}

LW_ON_DEVICE void tile_find_block(const lw_cuda_product *a, const tile_shape t, tile_state *s)
{
    int32_t bx = (int32_t)LW_BX, across = (a->n + t.columns - 1) / t.columns;
    int32_t high = (a->phase_rows + t.rows - 1) / t.rows, shares = a->split_blocks ? a->splits : 1;
    int32_t down, phase;
    s->split = bx % shares; /* neighbouring blocks, as those of a cluster are */
    s->tile = bx / shares;
    down = s->tile / across;
    phase = down / high;
    s->column0 = s->tile % across * t.columns;
    s->row0 = down % high * t.rows;
    s->phase_y = phase / a->phases;
    s->phase_x = phase % a->phases;
    s->tap_y = a->backward ? (s->phase_y + a->pad_t) % a->phases : 0;
    s->tap_x = a->backward ? (s->phase_x + a->pad_l) % a->phases : 0;
}

/* Where this thread's windows lie. Rows behind the last have a window outside of x. */
LW_ON_DEVICE void tile_find_rows(const lw_cuda_product *a, const tile_shape t, tile_state *s)
{
    const int row_stride = t.threads / TILE_PIECES;
    LW_UNROLL
    for (int i = 0; i < t.rows / row_stride; i++) {
        int32_t r = s->row0 + LW_TID / TILE_PIECES + i * row_stride, y, x;
        tile_pixel at = tile_pixel_of(a, r);
        if (a->backward) {
            y = at.i + (s->phase_y + a->pad_t - s->tap_y) / a->phases;
            x = at.j + (s->phase_x + a->pad_l - s->tap_x) / a->phases;
        } else {
            y = at.i * a->stride - a->pad_t;
            x = at.j * a->stride - a->pad_l;
        }
        s->at[i] = ((at.b * a->h + y) * a->width + x) * (a->ldx / tile_unit(t));
        s->y[i] = (int16_t)(r < a->phase_rows ? y : -0x4000);
        s->x[i] = (int16_t)x;
    }
}

/* The first step of a split. */
LW_ON_DEVICE int32_t tile_split_begin(const lw_cuda_product *a, int32_t steps, int32_t split)
{
    return steps * split / a->own_splits;
}

LW_ON_DEVICE void tile_find_depth(const lw_cuda_product *a, const tile_shape t, tile_state *s)
{
    const int depth = TILE_PIECES * t.piece;
    int32_t high = a->kh / a->phases, wide = a->kw / a->phases;
    int32_t steps = s->steps = (high * wide * a->c + depth - 1) / depth;
    int32_t first = a->split_blocks ? tile_split_begin(a, steps, s->split) : 0;
    int32_t k = first * depth + LW_TID % TILE_PIECES * t.piece;
    s->n = (a->split_blocks ? tile_split_begin(a, steps, s->split + 1) : steps) - first;
    s->split_end = a->split_blocks ? s->n : tile_split_begin(a, steps, 1);
    s->c = a->flat ? k : k % a->c;
    s->ty = k / a->c / wide;
    s->tx = k / a->c % wide;
}

/* Is a thread's piece within K? The last step may have more pieces than K. */
LW_ON_DEVICE bool tile_in_depth(const lw_cuda_product *a, const tile_state *s)
{
    return a->flat ? s->c < a->c : s->ty < a->kh / a->phases;
}

/* Copies this thread's pieces of the next stage's pixels. */
LW_ON_DEVICE void tile_copy_pixels(const lw_cuda_product *a, const tile_shape t,
                                   const tile_state *s, unsigned char *stage)
{
    const int row_stride = t.threads / TILE_PIECES;
    const bool there = tile_in_depth(a, s);
    int row = LW_TID / TILE_PIECES, q = LW_TID % TILE_PIECES;
    unsigned char *to = stage + row * TILE_ROW + (q ^ row % 8) * 16;
    const unsigned char *x = (const unsigned char *)a->x;
    if (a->flat && !t.half) {
        const unsigned char *from = x + s->c / t.piece * 16;
        LW_UNROLL
        for (int i = 0; i < t.rows / row_stride; i++) {
            bool in = there && s->y[i] >= 0;
            lw_copy_async(to + i * row_stride * TILE_ROW, in ? from + (int64_t)s->at[i] * 16 : x,
                          in);
        }
        return;
    }
    int32_t dy = a->backward ? -s->ty : s->ty, dx = a->backward ? -s->tx : s->tx;
    int32_t off = (dy * a->width + dx) * (a->ldx / tile_unit(t)) + s->c / tile_unit(t);
    LW_UNROLL
    for (int i = 0; i < t.rows / row_stride; i++) {
        int32_t y = s->y[i] + dy, at_x = s->x[i] + dx;
        bool in = there && y >= 0 && y < a->h && at_x >= 0 && at_x < a->width;
        if (t.half) {
            const unsigned char *from = x + (in ? (int64_t)(s->at[i] + off) * 8 : 0);
            bool second = in && s->c + t.piece / 2 < a->c;
            lw_copy_async_8(to + i * row_stride * TILE_ROW, from, in);
            lw_copy_async_8(to + i * row_stride * TILE_ROW + 8, second ? from + 8 : x, second);
        } else {
            lw_copy_async(to + i * row_stride * TILE_ROW,
                          x + (in ? (int64_t)(s->at[i] + off) * 16 : 0), in);
        }
    }
}

/* The same for weights, which lie behind the pixels. */
LW_ON_DEVICE void tile_copy_weights(const lw_cuda_product *a, const tile_shape t,
                                    const tile_state *s, unsigned char *stage)
{
    const int row_stride = t.threads / TILE_PIECES;
    const bool there = tile_in_depth(a, s);
    int row = LW_TID / TILE_PIECES, q = LW_TID % TILE_PIECES;
    int32_t tap = a->flat ? 0
                          : (s->tap_y + s->ty * a->phases) * a->kw + s->tap_x + s->tx * a->phases;
    unsigned char *to = stage + (t.rows + row) * TILE_ROW + (q ^ row % 8) * 16;
    const unsigned char *w = (const unsigned char *)a->w;
    const unsigned char *from = w + ((int64_t)(s->column0 + row) * (a->w_pitch / t.piece) +
                                     (tap * (a->c / t.piece) + s->c / t.piece)) *
                                        16;
    LW_UNROLL
    for (int i = 0; i < t.columns / row_stride; i++) {
        bool in = there && s->column0 + row + i * row_stride < a->n;
        lw_copy_async(to + i * row_stride * TILE_ROW, in ? from : w, in);
        from += (int64_t)a->w_pitch / t.piece * (row_stride * 16);
    }
}

/* To the piece of K of the next stage. */
LW_ON_DEVICE void tile_advance(const lw_cuda_product *a, const tile_shape t, tile_state *s)
{
    s->c += TILE_PIECES * t.piece;
    if (a->flat)
        return;
    while (s->c >= a->c) {
        s->c -= a->c;
        if (++s->tx == a->kw / a->phases) {
            s->tx = 0;
            s->ty++;
        }
    }
}

/* Copies this thread's pieces of the next stage, if there is another. */
LW_ON_DEVICE void tile_copy(const lw_cuda_product *a, const tile_shape t, tile_state *s,
                            bool another, unsigned char *stage)
{
    if (another) {
        tile_copy_pixels(a, t, s, stage);
        tile_copy_weights(a, t, s, stage);
    }
    LW_COPY_COMMIT();
    tile_advance(a, t, s);
}

/* Prefetches the weights of this block's columns and steps into L2 while earlier kernels still
 * run. */
LW_ON_DEVICE void tile_prefetch(const lw_cuda_product *a, const tile_shape t, const tile_state *s)
{
    const int depth = TILE_PIECES * t.piece;
    int32_t column = s->column0 + LW_TID;
    int32_t first = a->split_blocks ? tile_split_begin(a, s->steps, s->split) * depth : 0;
    int32_t n = s->n * depth < a->w_pitch - first ? s->n * depth : a->w_pitch - first;
    if (a->phases == 1 && LW_TID < t.columns && column < a->n)
        LW_PREFETCH((const unsigned char *)a->w +
                        ((int64_t)column * a->w_pitch + first) * (16 / t.piece),
                    n / t.piece * 16);
}

/* Elements from row to row of sums in shared memory: eight lanes' rows are in different banks. */
LW_ON_DEVICE int tile_pitch(const tile_shape t)
{
    return t.columns + 8;
}

/* The row of the result of row r of this kind of pixels; -1: none. */
LW_ON_DEVICE int32_t tile_row_of(const lw_cuda_product *a, const tile_shape t, const tile_state *s,
                                 int32_t r)
{
    if (r >= a->phase_rows)
        return -1;
    if (a->phases == 1 && !t.taps)
        return r;
    tile_pixel at = tile_pixel_of(a, r);
    if (t.taps && (at.i == a->oh || at.j == a->ow)) /* zeros between lines */
        return -1;
    return (at.b * a->oh + at.i * a->phases + s->phase_y) * a->ow + at.j * a->phases + s->phase_x;
}

/*
 * The epilogue: a thread has four columns of every tile_row_step-th row of the tile, and finishes
 * some rows at once. The epilogue's operands lie in global memory: those of all these rows are
 * loaded together, and before they are needed.
 *
 *     sums + bias + its picture's row of image_bias + residual, then the activation
 *
 * Where splits are blocks of a cluster, each block has its share of the rows, and reads their
 * partial sums from the shared memory of all of them.
 */
enum { TILE_AT_ONCE = 8 }; /* rows that a thread finishes at once, at most */
typedef struct tile_epilogue {
    int32_t row[TILE_AT_ONCE];     /* of the result; -1: none */
    int32_t picture[TILE_AT_ONCE]; /* where its picture's row of image_bias begins */
    lw_four bias, image[TILE_AT_ONCE];
    lw_four residual[TILE_AT_ONCE]; /* as loaded: two words if bf16 */
} tile_epilogue;

/* The first of a thread's four columns. */
LW_ON_DEVICE int32_t tile_column(const tile_shape t, const tile_state *s)
{
    return s->column0 + LW_TID % (t.columns / 4) * 4;
}
/* A thread's rows of the tile: the first, and the distance from one to the next. */
LW_ON_DEVICE int tile_first_row(const tile_shape t, const tile_state *s)
{
    const int across = t.columns / 4, row_stride = t.threads / across;
    return LW_TID / across + (t.cluster ? s->split * row_stride : 0);
}
LW_ON_DEVICE int tile_row_step(const lw_cuda_product *a, const tile_shape t)
{
    const int row_stride = t.threads / (t.columns / 4);
    return t.cluster ? a->splits * row_stride : row_stride;
}

/* Which rows of the result this thread's rows from r0 on are, and their pictures. */
LW_ON_DEVICE void tile_find_epilogue(const lw_cuda_product *a, const tile_shape t,
                                     const tile_state *s, int r0, tile_epilogue *e)
{
    const int step = tile_row_step(a, t);
    LW_UNROLL
    for (int i = 0; i < t.at_once; i++)
        e->row[i] = r0 + i * step < t.rows ? tile_row_of(a, t, s, s->row0 + r0 + i * step) : -1;
    if (a->image_bias) {
        LW_UNROLL
        for (int i = 0; i < t.at_once; i++)
            e->picture[i] = lw_divide(e->row[i] < 0 ? 0 : e->row[i], &a->pixels) * a->n;
    }
}

/* Loads the operands of these rows. */
LW_ON_DEVICE void tile_load_epilogue(const lw_cuda_product *a, const tile_shape t,
                                     const tile_state *s, tile_epilogue *e)
{
    int32_t column = tile_column(t, s);
    column = column < a->n ? column : 0;
    e->bias = (lw_four){{0.0f, 0.0f, 0.0f, 0.0f}};
    if (a->bias)
        e->bias = lw_four_floats(a->bias + column);
    if (a->residual && !a->drop_rows) {
        LW_UNROLL
        for (int i = 0; i < t.at_once; i++) {
            int64_t at = (e->row[i] < 0 ? 0 : e->row[i]) * (int64_t)a->ld_residual + column;
            if (a->residual_narrow) {
                lw_words w = *(const lw_words *)(const void *)((const uint16_t *)a->residual + at);
                e->residual[i].v[0] = lw_bits_to_float(w.v[0]);
                e->residual[i].v[1] = lw_bits_to_float(w.v[1]);
            } else {
                e->residual[i] = lw_four_floats((const float *)a->residual + at);
            }
        }
    }
    if (a->image_bias) {
        LW_UNROLL
        for (int i = 0; i < t.at_once; i++)
            e->image[i] = lw_four_floats(a->image_bias + e->picture[i] + column);
    }
}

/* tile_find_epilogue and tile_load_epilogue. */
LW_ON_DEVICE void tile_find_and_load(const lw_cuda_product *a, const tile_shape t,
                                     const tile_state *s, int r0, tile_epilogue *e)
{
    tile_find_epilogue(a, t, s, r0, e);
    tile_load_epilogue(a, t, s, e);
}

/* Finds where everything is (epilogue: this thread's first rows, too) and fills the first stages.
 * The weights for tensor cores are packed, and no kernel of a CUDA graph packs any: they are copied
 * before the wait for earlier kernels (programmatic dependent launch). */
LW_ON_DEVICE void tile_begin(const lw_cuda_product *a, const tile_shape t, tile_state *s,
                             tile_epilogue *epilogue, unsigned char *ring)
{
    const int stage_bytes = (t.rows + t.columns) * TILE_ROW;
    tile_find_block(a, t, s);
    tile_find_depth(a, t, s);
    tile_prefetch(a, t, s);
    tile_find_rows(a, t, s);
    if (epilogue)
        tile_find_epilogue(a, t, s, tile_first_row(t, s), epilogue);
    s->step = 0;
    s->now = t.stages - 1;
    s->next = t.ahead;
    const int32_t c = s->c, ty = s->ty, tx = s->tx;
    LW_ROLLED
    for (int i = 0; i < t.ahead && t.cores; i++) {
        if (i < s->n)
            tile_copy_weights(a, t, s, ring + i * stage_bytes);
        tile_advance(a, t, s);
    }
    s->c = c;
    s->ty = ty;
    s->tx = tx;
    LW_AWAIT_BEFORE();
    LW_ROLLED
    for (int i = 0; i < t.ahead; i++) {
        if (i < s->n)
            tile_copy_pixels(a, t, s, ring + i * stage_bytes);
        if (i < s->n && !t.cores)
            tile_copy_weights(a, t, s, ring + i * stage_bytes);
        LW_COPY_COMMIT();
        tile_advance(a, t, s);
    }
}

/* Waits for the next step's stage and returns it. All threads have finished with the earlier stages
 * except the newest stages - 1 - ahead. */
LW_ON_DEVICE const unsigned char *tile_next(const lw_cuda_product *a, const tile_shape t,
                                            tile_state *s, unsigned char *ring)
{
    const int stage_bytes = (t.rows + t.columns) * TILE_ROW;
    lw_copy_wait_for(t.ahead - 1);
    if (t.cores)
        LW_FENCE_FOR_CORES();
    LW_SYNC();
    tile_copy(a, t, s, s->step + t.ahead < s->n, ring + s->next * stage_bytes);
    s->step++;
    s->now = s->now + 1 == t.stages ? 0 : s->now + 1;
    s->next = s->next + 1 == t.stages ? 0 : s->next + 1;
    return ring + s->now * stage_bytes;
}

/* Has a block that computes all splits finished one that is not the last? Then the next begins. */
LW_ON_DEVICE bool tile_split_ends(const lw_cuda_product *a, tile_state *s)
{
    if (s->step < s->split_end || s->step == s->n)
        return false;
    s->split++;
    s->split_end = tile_split_begin(a, s->n, s->split + 1);
    return true;
}

/* Adds the partial sums of a split to those of the splits before, and clears them for the next. */
LW_ON_DEVICE void tile_keep(float *total, float *sum, const int values)
{
    LW_UNROLL
    for (int i = 0; i < values; i++) {
        total[i] += sum[i];
        sum[i] = 0.0f;
    }
}

/* The epilogue of these rows, from their sums v up to the result. */
LW_ON_DEVICE void tile_finish_rows(const lw_cuda_product *a, const tile_shape t, int32_t column,
                                   const tile_epilogue *e, lw_four *v)
{
    const int n = t.at_once;
    LW_UNROLL
    for (int i = 0; i < n; i++)
        lw_four_add(&v[i], e->bias);
    if (a->image_bias) {
        LW_UNROLL
        for (int i = 0; i < n; i++)
            lw_four_add(&v[i], e->image[i]);
    }
    if (a->residual && !a->drop_rows) {
        LW_UNROLL
        for (int i = 0; i < n; i++) {
            lw_four w = e->residual[i];
            if (a->residual_narrow) {
                const lw_words two = {{lw_float_to_bits(w.v[0]), lw_float_to_bits(w.v[1])}};
                lw_read_bf16(w.v, (const uint16_t *)(const void *)&two, 4);
            }
            lw_four_add(&v[i], w);
        }
    }
    product_write_fours(a, e->row, column, v, n);
}

/* The epilogue of sums in shared memory; e: of this thread's first rows. */
LW_ON_DEVICE void tile_finish(const lw_cuda_product *a, const tile_shape t, const tile_state *s,
                              const float *room, tile_epilogue *e)
{
    const int n = t.at_once, step = tile_row_step(a, t);
    int32_t column = tile_column(t, s);
    if (column >= a->n)
        return;
    room += column - s->column0;
    LW_ROLLED
    for (int r0 = tile_first_row(t, s); r0 < t.rows; r0 += n * step) {
        lw_four v[TILE_AT_ONCE];
        tile_epilogue next;
        const bool more = n * step < t.rows && r0 + n * step < t.rows;
        const bool ahead = n == TILE_AT_ONCE; /* there are registers for two epilogues */
        LW_UNROLL
        for (int i = 0; i < n; i++)
            v[i] = lw_four_floats(room + (r0 + i * step) * tile_pitch(t));
        if (ahead && more)
            tile_find_and_load(a, t, s, r0 + n * step, &next);
        tile_finish_rows(a, t, column, e, v);
        if (!more)
            break;
        if (ahead)
            *e = next;
        else
            tile_find_and_load(a, t, s, r0 + n * step, e);
    }
}

#endif
