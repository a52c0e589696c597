/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of a product's result, one for a block: what is multiplied comes through a ring of places in shared memory, which
 * every thread fills by copies that go on by themselves while an earlier place is multiplied. A place has a row of 128 bytes
 * for each row and each column of the tile, the depth side by side; of row r, its piece of 16 bytes number q lies at q xor r % 8,
 * so that eight rows' pieces of one number are in different banks.
 *
 *     step s      wait until place s has come | copy to place s + ahead | multiply place s
 *
 * A row of a convolution is a pixel of the result: what it is multiplied with lies in its window, pieces of a tap's channels
 * a copy; a matrix is a picture of one pixel a row. Of a convolution's gradient to x with a stride (what is behind nearest
 * upsampling), each of the stride^2 kinds of pixels has its own taps and its own tiles: no zeros are multiplied.
 *
 * A depth of parts has a sum for each, which are added up in their order. Where there are few tiles, the parts of one are
 * `apart`: each has a block of its own; else one block makes them one after the other. That is the same number either way, so
 * that bits do not depend on how many pictures there are. Blocks of compute capability 9.0 are a cluster then, who read each
 * other's shared memory, and each finishes its share of the rows; in f32 sums go to memory, and the last block that comes adds
 * them up.
 *
 * All of it is short code: every launch fetches its instructions anew, which unrolled code is slower at than at anything else.
 */
#ifndef LW_CUDA_TILES_H
#define LW_CUDA_TILES_H

#include "backend/cuda/kernels/cuda_gather.h"

enum { TILE_ROW = 128, TILE_PIECES = 8, TILE_MOST_ROWS = 8 };

/* Of a kernel, known while it is compiled. */
typedef struct tile_shape {
    int threads, rows, columns;
    int piece; /* numbers in 16 bytes */
    int places, ahead;
    bool cores; /* tensor cores read the places by themselves */
    int taps; /* > 0: pixels stay for all nine taps (cuda_pixels_stay.h), so many of which are a step */
    bool half;    /* of a matrix whose rows are so many halves of pieces */
    bool cluster; /* parts of the depth are blocks of one cluster */
    int at_once;  /* rows of a thread that are finished together: as many as it has registers for */
} tile_shape;

/* Pixel (b, i, j) of a row of its kind. */
typedef struct tile_pixel {
    int32_t b, i, j;
} tile_pixel;

/* Where a block and a thread of it are. A thread copies one of the eight pieces of every (threads / 8)-th row. */
typedef struct tile_state {
    int32_t row0, column0, part, tile;
    int32_t phase_y, phase_x, tap_y, tap_x; /* the kind of pixels, and its first taps */
    int32_t at[TILE_MOST_ROWS]; /* where windows begin in x, in tile_unit; may be outside */
    int16_t y[TILE_MOST_ROWS], x[TILE_MOST_ROWS];
    int32_t c, ty, tx;          /* of the depth, this thread's next: channel c of a tap */
    int32_t steps;              /* of the whole depth */
    int32_t n, step, now, next; /* of this block; places that are multiplied and filled */
    int32_t part_end;           /* the step behind the last of this part */
} tile_state;

/* Numbers of what x is counted in. */
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
    int32_t high = (a->phase_rows + t.rows - 1) / t.rows, shares = a->apart ? a->parts : 1;
    int32_t down, phase;
    s->part = bx % shares; /* side by side, as blocks of a cluster are */
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

/* Rows behind the last have a window that is outside. */
LW_ON_DEVICE void tile_find_rows(const lw_cuda_product *a, const tile_shape t, tile_state *s)
{
    const int apart = t.threads / TILE_PIECES;
    LW_UNROLL
    for (int i = 0; i < t.rows / apart; i++) {
        int32_t r = s->row0 + LW_TID / TILE_PIECES + i * apart, y, x;
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

/* The step that a part of the depth begins with. */
LW_ON_DEVICE int32_t tile_part_begin(const lw_cuda_product *a, int32_t steps, int32_t part)
{
    return steps * part / a->own_parts;
}

LW_ON_DEVICE void tile_find_depth(const lw_cuda_product *a, const tile_shape t, tile_state *s)
{
    const int depth = TILE_PIECES * t.piece;
    int32_t high = a->kh / a->phases, wide = a->kw / a->phases;
    int32_t steps = s->steps = (high * wide * a->c + depth - 1) / depth;
    int32_t first = a->apart ? tile_part_begin(a, steps, s->part) : 0;
    int32_t k = first * depth + LW_TID % TILE_PIECES * t.piece;
    s->n = (a->apart ? tile_part_begin(a, steps, s->part + 1) : steps) - first;
    s->part_end = a->apart ? s->n : tile_part_begin(a, steps, 1);
    s->c = a->flat ? k : k % a->c;
    s->ty = k / a->c / wide;
    s->tx = k / a->c % wide;
}

/* Where a thread's piece of the depth is, of which there are more than there are numbers. */
LW_ON_DEVICE bool tile_in_depth(const lw_cuda_product *a, const tile_state *s)
{
    return a->flat ? s->c < a->c : s->ty < a->kh / a->phases;
}

/* This thread's pieces of the next place's pixels. */
LW_ON_DEVICE void tile_copy_pixels(const lw_cuda_product *a, const tile_shape t,
                                   const tile_state *s, unsigned char *place)
{
    const int apart = t.threads / TILE_PIECES;
    const bool there = tile_in_depth(a, s);
    int row = LW_TID / TILE_PIECES, q = LW_TID % TILE_PIECES;
    unsigned char *to = place + row * TILE_ROW + (q ^ row % 8) * 16;
    const unsigned char *x = (const unsigned char *)a->x;
    if (a->flat && !t.half) {
        const unsigned char *from = x + s->c / t.piece * 16;
        LW_UNROLL
        for (int i = 0; i < t.rows / apart; i++) {
            bool in = there && s->y[i] >= 0;
            lw_copy_async(to + i * apart * TILE_ROW, in ? from + (int64_t)s->at[i] * 16 : x, in);
        }
        return;
    }
    int32_t dy = a->backward ? -s->ty : s->ty, dx = a->backward ? -s->tx : s->tx;
    int32_t off = (dy * a->width + dx) * (a->ldx / tile_unit(t)) + s->c / tile_unit(t);
    LW_UNROLL
    for (int i = 0; i < t.rows / apart; i++) {
        int32_t y = s->y[i] + dy, at_x = s->x[i] + dx;
        bool in = there && y >= 0 && y < a->h && at_x >= 0 && at_x < a->width;
        if (t.half) {
            const unsigned char *from = x + (in ? (int64_t)(s->at[i] + off) * 8 : 0);
            bool second = in && s->c + t.piece / 2 < a->c;
            lw_copy_async_8(to + i * apart * TILE_ROW, from, in);
            lw_copy_async_8(to + i * apart * TILE_ROW + 8, second ? from + 8 : x, second);
        } else {
            lw_copy_async(to + i * apart * TILE_ROW, x + (in ? (int64_t)(s->at[i] + off) * 16 : 0),
                          in);
        }
    }
}

/* The same of weights, which lie behind the pixels. */
LW_ON_DEVICE void tile_copy_weights(const lw_cuda_product *a, const tile_shape t,
                                    const tile_state *s, unsigned char *place)
{
    const int apart = t.threads / TILE_PIECES;
    const bool there = tile_in_depth(a, s);
    int row = LW_TID / TILE_PIECES, q = LW_TID % TILE_PIECES;
    int32_t tap = a->flat ? 0
                          : (s->tap_y + s->ty * a->phases) * a->kw + s->tap_x + s->tx * a->phases;
    unsigned char *to = place + (t.rows + row) * TILE_ROW + (q ^ row % 8) * 16;
    const unsigned char *w = (const unsigned char *)a->w;
    const unsigned char *from = w + ((int64_t)(s->column0 + row) * (a->w_pitch / t.piece) +
                                     (tap * (a->c / t.piece) + s->c / t.piece)) *
                                        16;
    LW_UNROLL
    for (int i = 0; i < t.columns / apart; i++) {
        bool in = there && s->column0 + row + i * apart < a->n;
        lw_copy_async(to + i * apart * TILE_ROW, in ? from : w, in);
        from += (int64_t)a->w_pitch / t.piece * (apart * 16);
    }
}

/* To the next place's piece of the depth. */
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

/* This thread's pieces of the next place, if there is one. */
LW_ON_DEVICE void tile_copy(const lw_cuda_product *a, const tile_shape t, tile_state *s,
                            bool another, unsigned char *place)
{
    if (another) {
        tile_copy_pixels(a, t, s, place);
        tile_copy_weights(a, t, s, place);
    }
    LW_COPY_COMMIT();
    tile_advance(a, t, s);
}

/* Weights of this block's columns and depth go to the second cache while kernels before are not through. */
LW_ON_DEVICE void tile_prefetch(const lw_cuda_product *a, const tile_shape t, const tile_state *s)
{
    const int depth = TILE_PIECES * t.piece;
    int32_t column = s->column0 + LW_TID;
    int32_t first = a->apart ? tile_part_begin(a, s->steps, s->part) * depth : 0;
    int32_t n = s->n * depth < a->w_pitch - first ? s->n * depth : a->w_pitch - first;
    if (a->phases == 1 && LW_TID < t.columns && column < a->n)
        LW_PREFETCH((const unsigned char *)a->w +
                        ((int64_t)column * a->w_pitch + first) * (16 / t.piece),
                    n / t.piece * 16);
}

/* Numbers from row to row of sums in shared memory: eight lanes' rows are in different banks. */
LW_ON_DEVICE int tile_pitch(const tile_shape t)
{
    return t.columns + 8;
}

/* The row of the result that row r of this kind of pixels is; -1: none. */
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
 * Behind the sums a thread has four columns of every so many rows of the tile, and finishes some of them at once. What is beside
 * their sums is far: it is asked for together, and before it is wanted.
 *
 *     sums + bias + its picture's row + residual, then the activation
 *
 * Where parts of the depth are blocks of a cluster, each block has its share of the rows, whose sums it reads from all.
 */
enum { TILE_AT_ONCE = 8 }; /* rows of a thread, most */
typedef struct tile_beside {
    int32_t row[TILE_AT_ONCE];     /* of the result; -1: none */
    int32_t picture[TILE_AT_ONCE]; /* where its picture's row of image_bias begins */
    lw_four bias, image[TILE_AT_ONCE];
    lw_four residual[TILE_AT_ONCE]; /* as it comes: of bf16 two words */
} tile_beside;

/* The first of a thread's four columns. */
LW_ON_DEVICE int32_t tile_column(const tile_shape t, const tile_state *s)
{
    return s->column0 + LW_TID % (t.columns / 4) * 4;
}
/* A thread's rows of the tile: the first, and how far they are from each other. */
LW_ON_DEVICE int tile_first_row(const tile_shape t, const tile_state *s)
{
    const int across = t.columns / 4, apart = t.threads / across;
    return LW_TID / across + (t.cluster ? s->part * apart : 0);
}
LW_ON_DEVICE int tile_row_step(const lw_cuda_product *a, const tile_shape t)
{
    const int apart = t.threads / (t.columns / 4);
    return t.cluster ? a->parts * apart : apart;
}

/* Which rows of the result those of this thread from r0 on are. */
LW_ON_DEVICE void tile_find_beside(const lw_cuda_product *a, const tile_shape t,
                                   const tile_state *s, int r0, tile_beside *b)
{
    const int step = tile_row_step(a, t);
    LW_UNROLL
    for (int i = 0; i < t.at_once; i++)
        b->row[i] = r0 + i * step < t.rows ? tile_row_of(a, t, s, s->row0 + r0 + i * step) : -1;
    if (a->image_bias) {
        LW_UNROLL
        for (int i = 0; i < t.at_once; i++)
            b->picture[i] = lw_divide(b->row[i] < 0 ? 0 : b->row[i], &a->pixels) * a->n;
    }
}

/* Asks for what is beside them. */
LW_ON_DEVICE void tile_ask(const lw_cuda_product *a, const tile_shape t, const tile_state *s,
                           tile_beside *b)
{
    int32_t column = tile_column(t, s);
    column = column < a->n ? column : 0;
    b->bias = (lw_four){{0.0f, 0.0f, 0.0f, 0.0f}};
    if (a->bias)
        b->bias = lw_four_floats(a->bias + column);
    if (a->residual && !a->drop_rows) {
        LW_UNROLL
        for (int i = 0; i < t.at_once; i++) {
            int64_t at = (b->row[i] < 0 ? 0 : b->row[i]) * (int64_t)a->ld_residual + column;
            if (a->residual_narrow) {
                lw_words w = *(const lw_words *)(const void *)((const uint16_t *)a->residual + at);
                b->residual[i].v[0] = lw_bits_to_float(w.v[0]);
                b->residual[i].v[1] = lw_bits_to_float(w.v[1]);
            } else {
                b->residual[i] = lw_four_floats((const float *)a->residual + at);
            }
        }
    }
    if (a->image_bias) {
        LW_UNROLL
        for (int i = 0; i < t.at_once; i++)
            b->image[i] = lw_four_floats(a->image_bias + b->picture[i] + column);
    }
}

/* Both. */
LW_ON_DEVICE void tile_find_and_ask(const lw_cuda_product *a, const tile_shape t,
                                    const tile_state *s, int r0, tile_beside *b)
{
    tile_find_beside(a, t, s, r0, b);
    tile_ask(a, t, s, b);
}

/* Finds where everything is (beside: this thread's first rows, too) and fills the first places. What tensor cores multiply by is packed, which no kernel of a recording
 * does: it is copied while kernels before are not through. */
LW_ON_DEVICE void tile_begin(const lw_cuda_product *a, const tile_shape t, tile_state *s,
                             tile_beside *beside, unsigned char *ring)
{
    const int place = (t.rows + t.columns) * TILE_ROW;
    tile_find_block(a, t, s);
    tile_find_depth(a, t, s);
    tile_prefetch(a, t, s);
    tile_find_rows(a, t, s);
    if (beside)
        tile_find_beside(a, t, s, tile_first_row(t, s), beside);
    s->step = 0;
    s->now = t.places - 1;
    s->next = t.ahead;
    const int32_t c = s->c, ty = s->ty, tx = s->tx;
    LW_ROLLED
    for (int i = 0; i < t.ahead && t.cores; i++) {
        if (i < s->n)
            tile_copy_weights(a, t, s, ring + i * place);
        tile_advance(a, t, s);
    }
    s->c = c;
    s->ty = ty;
    s->tx = tx;
    LW_AWAIT_BEFORE();
    LW_ROLLED
    for (int i = 0; i < t.ahead; i++) {
        if (i < s->n)
            tile_copy_pixels(a, t, s, ring + i * place);
        if (i < s->n && !t.cores)
            tile_copy_weights(a, t, s, ring + i * place);
        LW_COPY_COMMIT();
        tile_advance(a, t, s);
    }
}

/* The next step's place, which has come; all threads are through the places before but for the newest places - 1 - ahead. */
LW_ON_DEVICE const unsigned char *tile_next(const lw_cuda_product *a, const tile_shape t,
                                            tile_state *s, unsigned char *ring)
{
    const int place = (t.rows + t.columns) * TILE_ROW;
    lw_copy_wait_for(t.ahead - 1);
    if (t.cores)
        LW_FENCE_FOR_CORES();
    LW_SYNC();
    tile_copy(a, t, s, s->step + t.ahead < s->n, ring + s->next * place);
    s->step++;
    s->now = s->now + 1 == t.places ? 0 : s->now + 1;
    s->next = s->next + 1 == t.places ? 0 : s->next + 1;
    return ring + s->now * place;
}

/* Is a block that makes all parts through with one of them? Then the next one is it. */
LW_ON_DEVICE bool tile_part_ends(const lw_cuda_product *a, tile_state *s)
{
    if (s->step < s->part_end || s->step == s->n)
        return false;
    s->part++;
    s->part_end = tile_part_begin(a, s->n, s->part + 1);
    return true;
}

/* The sums of a part go to those of the parts before; the next begins. */
LW_ON_DEVICE void tile_keep(float *total, float *sum, const int numbers)
{
    LW_UNROLL
    for (int i = 0; i < numbers; i++) {
        total[i] += sum[i];
        sum[i] = 0.0f;
    }
}

/* What is behind the sums v of these rows, up to the result. */
LW_ON_DEVICE void tile_finish_rows(const lw_cuda_product *a, const tile_shape t, int32_t column,
                                   const tile_beside *b, lw_four *v)
{
    const int n = t.at_once;
    LW_UNROLL
    for (int i = 0; i < n; i++)
        lw_four_add(&v[i], b->bias);
    if (a->image_bias) {
        LW_UNROLL
        for (int i = 0; i < n; i++)
            lw_four_add(&v[i], b->image[i]);
    }
    if (a->residual && !a->drop_rows) {
        LW_UNROLL
        for (int i = 0; i < n; i++) {
            lw_four w = b->residual[i];
            if (a->residual_narrow) {
                const lw_words two = {{lw_float_to_bits(w.v[0]), lw_float_to_bits(w.v[1])}};
                lw_read_bf16(w.v, (const uint16_t *)(const void *)&two, 4);
            }
            lw_four_add(&v[i], w);
        }
    }
    product_write_fours(a, b->row, column, v, n);
}

/* What is behind the sums, from shared memory; b: beside this thread's first rows. */
LW_ON_DEVICE void tile_finish(const lw_cuda_product *a, const tile_shape t, const tile_state *s,
                              const float *room, tile_beside *b)
{
    const int n = t.at_once, step = tile_row_step(a, t);
    int32_t column = tile_column(t, s);
    if (column >= a->n)
        return;
    room += column - s->column0;
    LW_ROLLED
    for (int r0 = tile_first_row(t, s); r0 < t.rows; r0 += n * step) {
        lw_four v[TILE_AT_ONCE];
        tile_beside next;
        const bool more = n * step < t.rows && r0 + n * step < t.rows;
        const bool ahead = n == TILE_AT_ONCE; /* there are registers for two times of it */
        LW_UNROLL
        for (int i = 0; i < n; i++)
            v[i] = lw_four_floats(room + (r0 + i * step) * tile_pitch(t));
        if (ahead && more)
            tile_find_and_ask(a, t, s, r0 + n * step, &next);
        tile_finish_rows(a, t, column, b, v);
        if (!more)
            break;
        if (ahead)
            *b = next;
        else
            tile_find_and_ask(a, t, s, r0 + n * step, b);
    }
}

#endif
