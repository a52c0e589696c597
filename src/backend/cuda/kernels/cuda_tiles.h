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
 * `apart`: each has a block of its own, sums go to memory, and the last block that comes adds them up; else one block makes
 * them one after the other. That is the same number either way, so that bits do not depend on how many pictures there are.
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
    bool half; /* of a matrix whose rows are so many halves of pieces */
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
    int32_t high = (a->phase_rows + t.rows - 1) / t.rows, rest = bx / across;
    int32_t shares = a->apart ? a->parts : 1, down = rest / shares, phase = down / high;
    s->column0 = bx % across * t.columns;
    s->row0 = down % high * t.rows;
    s->part = rest % shares;
    s->tile = down * across + bx % across;
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
    return steps * part / a->parts;
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
    s->c = k % a->c;
    s->ty = k / a->c / wide;
    s->tx = k / a->c % wide;
}

/* This thread's pieces of the next place, if there is one. */
LW_ON_DEVICE void tile_copy(const lw_cuda_product *a, const tile_shape t, tile_state *s,
                            bool another, unsigned char *place)
{
    const int apart = t.threads / TILE_PIECES;
    int row = LW_TID / TILE_PIECES, q = LW_TID % TILE_PIECES;
    unsigned char *to = place + row * TILE_ROW + (q ^ row % 8) * 16;
    bool there = s->ty < a->kh / a->phases;
    int32_t dy = a->backward ? -s->ty : s->ty, dx = a->backward ? -s->tx : s->tx;
    int32_t off = (dy * a->width + dx) * (a->ldx / tile_unit(t)) + s->c / tile_unit(t);
    int32_t tap = (s->tap_y + s->ty * a->phases) * a->kw + s->tap_x + s->tx * a->phases;
    const unsigned char *x = (const unsigned char *)a->x;
    const unsigned char *w = (const unsigned char *)a->w;
    int64_t column = (int64_t)(s->column0 + row) * (a->w_pitch / t.piece) +
                     (int64_t)tap * (a->c / t.piece) + s->c / t.piece;
    if (another) {
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
                lw_copy_async(to + i * apart * TILE_ROW,
                              x + (in ? (int64_t)(s->at[i] + off) * 16 : 0), in);
            }
        }
        to += t.rows * TILE_ROW;
        LW_UNROLL
        for (int i = 0; i < t.columns / apart; i++) {
            bool in = there && s->column0 + row + i * apart < a->n;
            int64_t at = column + (int64_t)i * apart * (a->w_pitch / t.piece);
            lw_copy_async(to + i * apart * TILE_ROW, w + (in ? at * 16 : 0), in);
        }
    }
    LW_COPY_COMMIT();
    s->c += TILE_PIECES * t.piece;
    while (s->c >= a->c) {
        s->c -= a->c;
        if (++s->tx == a->kw / a->phases) {
            s->tx = 0;
            s->ty++;
        }
    }
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

/* Finds where everything is and fills the first places. */
LW_ON_DEVICE void tile_begin(const lw_cuda_product *a, const tile_shape t, tile_state *s,
                             unsigned char *ring)
{
    const int place = (t.rows + t.columns) * TILE_ROW;
    tile_find_block(a, t, s);
    tile_find_depth(a, t, s);
    tile_prefetch(a, t, s);
    tile_find_rows(a, t, s);
    s->step = 0;
    s->now = t.places - 1;
    s->next = t.ahead;
    LW_AWAIT_BEFORE();
    LW_ROLLED
    for (int i = 0; i < t.ahead; i++)
        tile_copy(a, t, s, i < s->n, ring + i * place);
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

/* Sums of all parts of a tile's depth, for the last block that has its own; others get false. */
LW_ON_DEVICE bool tile_join(const lw_cuda_product *a, const tile_shape t, const tile_state *s,
                            float *sum, unsigned char *shared)
{
    enum { AT_ONCE = 4 }; /* parts: they are far, and are asked for together */
    const int numbers = t.rows * t.columns / t.threads, apart = t.threads * 4;
    uint32_t *last = (uint32_t *)(void *)shared;
    float *far = a->part + (int64_t)s->tile * a->parts * numbers * t.threads + LW_TID * 4;
    float *own = far + (int64_t)s->part * numbers * t.threads;
    LW_UNROLL
    for (int i = 0; i < numbers; i += 4)
        lw_write(own + i / 4 * apart, sum + i, 4);
    LW_SYNC();
    if (LW_TID == 0)
        *last = lw_count_up(a->arrived + s->tile) == (uint32_t)a->parts - 1;
    LW_SYNC();
    bool mine = *last != 0;
    LW_SYNC();
    if (!mine)
        return false;
    LW_UNROLL
    for (int i = 0; i < numbers; i++)
        sum[i] = 0.0f;
    LW_ROLLED
    for (int k = 0; k < a->parts; k += AT_ONCE, far += AT_ONCE * numbers * t.threads) {
        LW_UNROLL
        for (int i = 0; i < numbers; i += 4) {
            lw_four v[AT_ONCE];
            LW_UNROLL
            for (int m = 0; m < AT_ONCE; m++)
                v[m] = k + m < a->parts ? lw_load_far(far + m * numbers * t.threads + i / 4 * apart)
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

/* Rows of a thread that are finished at once: what is beside their sums is far, and asked for together. */
enum { TILE_AT_ONCE = 8 };

/* What is beside the sums of these rows and four columns is added to them; of rows that are none, anything. */
LW_ON_DEVICE void tile_add(lw_four *v, const int32_t *row, const void *beside, int64_t pitch,
                           int32_t column, const int narrow)
{
    lw_words raw[TILE_AT_ONCE];
    lw_four w[TILE_AT_ONCE];
    LW_UNROLL
    for (int i = 0; i < TILE_AT_ONCE; i++) {
        int64_t at = (row[i] < 0 ? 0 : row[i]) * pitch + column;
        if (narrow)
            raw[i] = *(const lw_words *)(const void *)((const uint16_t *)beside + at);
        else
            w[i] = lw_four_floats((const float *)beside + at);
    }
    LW_UNROLL
    for (int i = 0; i < TILE_AT_ONCE; i++) {
        if (narrow)
            lw_read_bf16(w[i].v, (const uint16_t *)(const void *)&raw[i], 4);
        lw_four_add(&v[i], w[i]);
    }
}

/* The same of what each picture has a row of. */
LW_ON_DEVICE void tile_add_of_image(const lw_cuda_product *a, lw_four *v, const int32_t *row,
                                    int32_t column)
{
    int32_t image[TILE_AT_ONCE];
    LW_UNROLL
    for (int i = 0; i < TILE_AT_ONCE; i++)
        image[i] = lw_divide(row[i] < 0 ? 0 : row[i], &a->pixels);
    tile_add(v, image, a->image_bias, a->n, column, 0);
}

/* What is behind the sums, from shared memory: a thread has four columns of every so many rows. */
LW_ON_DEVICE void tile_finish(const lw_cuda_product *a, const tile_shape t, const tile_state *s,
                              const float *room)
{
    const int across = t.columns / 4, apart = t.threads / across;
    int32_t column = s->column0 + LW_TID % across * 4;
    if (column >= a->n)
        return;
    lw_four bias = {{0.0f, 0.0f, 0.0f, 0.0f}};
    if (a->bias)
        bias = lw_four_floats(a->bias + column);
    room += LW_TID % across * 4;
    LW_ROLLED
    for (int r0 = LW_TID / across; r0 < t.rows; r0 += TILE_AT_ONCE * apart) {
        lw_four v[TILE_AT_ONCE];
        int32_t row[TILE_AT_ONCE];
        LW_UNROLL
        for (int i = 0; i < TILE_AT_ONCE; i++) {
            row[i] = tile_row_of(a, t, s, s->row0 + r0 + i * apart);
            v[i] = lw_four_floats(room + (r0 + i * apart) * tile_pitch(t));
            lw_four_add(&v[i], bias);
        }
        if (a->image_bias)
            tile_add_of_image(a, v, row, column);
        if (a->residual && !a->drop_rows) {
            if (a->residual_narrow)
                tile_add(v, row, a->residual, a->ld_residual, column, 1);
            else
                tile_add(v, row, a->residual, a->ld_residual, column, 0);
        }
        product_write_fours(a, row, column, v, TILE_AT_ONCE);
    }
}

#endif
