/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of bf16 on tensor cores of compute capability 9.0, sums in f32. A block has one tile of the result. The depth, 64
 * at a time, goes through a ring of places in shared memory, which every thread fills by copies that go on by themselves while
 * products of an earlier place run:
 *
 *     step s      wait until place s has come | copy to place s + STAGES - 2 | begin products of s | wait for those of s - 1
 *
 * Behind the barrier of step s all threads are through the products of s - 2, so that their place can be filled again. A row
 * of a convolution is a pixel of the result: what it is multiplied with lies in its window, eight channels of a tap a copy; a
 * matrix is a picture of one pixel a row. Of a convolution's gradient to x with a stride (what is behind nearest upsampling),
 * each of the stride^2 kinds of pixels has its own taps and its own tiles: no zeros are multiplied.
 *
 * Few tiles: several blocks share one, each with a part of the depth. Their sums go to memory, and the last that comes adds
 * them up, in the order of the parts.
 */
#include "backend/cuda/kernels/cuda_gather.h"
#include "backend/cuda/kernels/cuda_warpgroup.h"

enum { DEPTH = 64, ROW = 2 * DEPTH, MOST_ROWS = 8 };

/* What a thread copies: one of eight pieces of every (threads / 8)-th row. */
typedef struct wg_left {
    int32_t at[MOST_ROWS]; /* where its window begins in x, pieces of 8 halves; may be outside */
    int16_t y[MOST_ROWS], x[MOST_ROWS];
} wg_left;

/* Where in the depth: channel c of tap (y, x) of those that there are. */
typedef struct wg_depth {
    int32_t c, y, x;
} wg_depth;

/* Which tile, and which of the kinds of pixels. */
typedef struct wg_place {
    int32_t column0, row0, split, tile;
    int32_t phase_y, phase_x, tap_y, tap_x; /* the first taps */
} wg_place;

/* Pixel (b, i, j) of row r of its kind. */
typedef struct wg_pixel {
    int32_t b, i, j;
} wg_pixel;

LW_ON_DEVICE wg_pixel wg_pixel_of(const lw_cuda_product *a, int32_t r)
{
    int32_t wide = a->ow / a->phases, high = a->oh / a->phases;
    wg_pixel p = {r / wide / high, r / wide % high, r % wide};
    return p;
}

LW_ON_DEVICE wg_place wg_place_of(const lw_cuda_product *a, const int rows, const int columns)
{
    int32_t bx = (int32_t)LW_BX, across = (a->n + columns - 1) / columns;
    int32_t rest = bx / across, m = rest / a->splits, high = (a->phase_rows + rows - 1) / rows;
    int32_t phase = m / high;
    wg_place p;
    p.column0 = bx % across * columns;
    p.split = rest % a->splits;
    p.tile = m * across + bx % across;
    p.row0 = m % high * rows;
    p.phase_y = phase / a->phases;
    p.phase_x = phase % a->phases;
    p.tap_y = a->backward ? (p.phase_y + a->pad_t) % a->phases : 0;
    p.tap_x = a->backward ? (p.phase_x + a->pad_l) % a->phases : 0;
    return p;
}

/* Rows behind the last have a window that is outside. */
LW_ON_DEVICE void wg_find_rows(const lw_cuda_product *a, const wg_place *p, const int threads,
                               const int n, wg_left *l)
{
    LW_UNROLL
    for (int i = 0; i < n; i++) {
        int32_t r = p->row0 + LW_TID / 8 + i * (threads / 8), y, x;
        wg_pixel at = wg_pixel_of(a, r);
        if (a->backward) {
            y = at.i + (p->phase_y + a->pad_t - p->tap_y) / a->phases;
            x = at.j + (p->phase_x + a->pad_l - p->tap_x) / a->phases;
        } else {
            y = at.i * a->stride - a->pad_t;
            x = at.j * a->stride - a->pad_l;
        }
        l->at[i] = ((at.b * a->h + y) * a->width + x) * (a->ldx / 8);
        l->y[i] = (int16_t)(r < a->phase_rows ? y : -0x4000);
        l->x[i] = (int16_t)x;
    }
}

LW_ON_DEVICE void wg_begin_depth(const lw_cuda_product *a, int32_t k, wg_depth *d)
{
    int32_t tap = k / a->c, wide = a->kw / a->phases;
    d->c = k % a->c;
    d->y = tap / wide;
    d->x = tap % wide;
}

LW_ON_DEVICE void wg_advance(const lw_cuda_product *a, wg_depth *d)
{
    d->c += DEPTH;
    while (d->c >= a->c) {
        d->c -= a->c;
        if (++d->x == a->kw / a->phases) {
            d->x = 0;
            d->y++;
        }
    }
}

/* This thread's pieces of the next 64 of the depth; left, right: the place. */
LW_ON_DEVICE void wg_copy(const lw_cuda_product *a, const wg_place *p, const wg_left *l,
                          const wg_depth *d, const int threads, const int rows, const int columns,
                          unsigned char *left, unsigned char *right)
{
    const int apart = threads / 8;
    int row = LW_TID / 8, to = row * ROW + ((LW_TID % 8 ^ row % 8) * 16);
    bool there = d->y < a->kh / a->phases;
    int32_t dy = a->backward ? -d->y : d->y, dx = a->backward ? -d->x : d->x;
    int32_t off = (dy * a->width + dx) * (a->ldx / 8) + d->c / 8;
    int32_t tap = (p->tap_y + d->y * a->phases) * a->kw + p->tap_x + d->x * a->phases;
    const uint16_t *x = (const uint16_t *)a->x;
    const uint16_t *w = (const uint16_t *)a->w + (int64_t)(p->column0 + row) * a->w_pitch +
                        (int64_t)tap * a->c + d->c;
    LW_UNROLL
    for (int i = 0; i < rows / apart; i++) {
        int32_t y = l->y[i] + dy, at_x = l->x[i] + dx;
        bool in = there && y >= 0 && y < a->h && at_x >= 0 && at_x < a->width;
        lw_copy_async(left + to + i * apart * ROW, x + (in ? (int64_t)(l->at[i] + off) * 8 : 0), in);
    }
    LW_UNROLL
    for (int i = 0; i < columns / apart; i++) {
        bool in = there && p->column0 + row + i * apart < a->n;
        lw_copy_async(right + to + i * apart * ROW,
                      in ? w + (int64_t)i * apart * a->w_pitch : (const uint16_t *)a->w, in);
    }
}

/* Sums of all parts of a tile's depth, for the last block that has its own; others get false. */
LW_ON_DEVICE bool wg_join(const lw_cuda_product *a, const wg_place *p, const int threads,
                          const int numbers, float *sum, unsigned char *shared)
{
    uint32_t *last = (uint32_t *)(void *)shared;
    float *part = a->part + (int64_t)p->tile * a->splits * numbers * threads + LW_TID;
    float *own = part + (int64_t)p->split * numbers * threads;
    LW_UNROLL
    for (int i = 0; i < numbers; i++)
        own[i * threads] = sum[i];
    LW_FENCE();
    LW_SYNC();
    if (LW_TID == 0)
        *last = lw_count_up(a->arrived + p->tile) == (uint32_t)a->splits - 1;
    LW_SYNC();
    bool mine = *last;
    LW_SYNC();
    if (!mine)
        return false;
    LW_FENCE();
    LW_UNROLL
    for (int i = 0; i < numbers; i++)
        sum[i] = 0.0f;
    LW_ROLLED
    for (int s = 0; s < a->splits; s++)
        LW_UNROLL
        for (int i = 0; i < numbers; i++)
            sum[i] += lw_load_far(part + ((int64_t)s * numbers + i) * threads);
    if (LW_TID == 0)
        a->arrived[p->tile] = 0;
    return true;
}

/* Sums go through shared memory, so that what is read and written beside them is a row's neighbours. */
LW_ON_DEVICE void wg_finish(const lw_cuda_product *a, const wg_place *p, const int threads,
                            const int rows, const int blocks, const int columns, const float *sum,
                            float *room)
{
    const int pitch = columns + 8; /* eight lanes' rows are in different banks */
    int warp = LW_TID / 32, lane = LW_TID % 32, group = warp / 4;
    LW_UNROLL
    for (int i = 0; i < blocks; i++)
        LW_UNROLL
        for (int j = 0; j < columns / 4; j++) {
            int r = (group * blocks + i) * 64 + warp % 4 * 16 + lane / 4 + j % 2 * 8;
            const float *from = sum + i * columns / 2 + j * 2;
            lw_two two = {from[0], from[1]};
            *(lw_two *)(void *)(room + r * pitch + j / 2 * 8 + lane % 4 * 2) = two;
        }
    LW_SYNC();
    LW_ROLLED
    for (int e = LW_TID; e < rows * columns / 4; e += threads) {
        int32_t r = p->row0 + e / (columns / 4), column = p->column0 + e % (columns / 4) * 4;
        if (r >= a->phase_rows || column >= a->n)
            continue;
        int64_t row = r, image = 0;
        if (a->phases > 1) {
            wg_pixel at = wg_pixel_of(a, r);
            row = ((int64_t)at.b * a->oh + at.i * a->phases + p->phase_y) * a->ow +
                  at.j * a->phases + p->phase_x;
        }
        if (a->image_bias)
            image = row / (a->oh * a->ow);
        product_finish_four(a, row, image, column,
                            room + e / (columns / 4) * pitch + e % (columns / 4) * 4);
    }
}

/* groups of four warps with so many blocks of 64 rows each */
LW_ON_DEVICE void wg_tile(const lw_cuda_product *a, const int groups, const int blocks,
                          const int columns, const int stages, unsigned char *shared)
{
    const int threads = groups * 128, rows = groups * blocks * 64, numbers = blocks * columns / 2;
    const int place = (rows + columns) * ROW;
    wg_place p = wg_place_of(a, rows, columns);
    int32_t taps = (a->kh / a->phases) * (a->kw / a->phases);
    int32_t steps = (taps * a->c + DEPTH - 1) / DEPTH;
    int32_t first = (int32_t)((int64_t)steps * p.split / a->splits);
    int32_t n = (int32_t)((int64_t)steps * (p.split + 1) / a->splits) - first;
    int group = LW_TID / 128;
    float sum[128];
    wg_left l;
    wg_depth d;
    wg_find_rows(a, &p, threads, rows * 8 / threads, &l);
    wg_begin_depth(a, first * DEPTH + LW_TID % 8 * 8, &d);
    LW_UNROLL
    for (int i = 0; i < numbers; i++)
        sum[i] = 0.0f;
    LW_UNROLL
    for (int s = 0; s < stages - 2; s++) {
        if (s < n)
            wg_copy(a, &p, &l, &d, threads, rows, columns, shared + s * place,
                    shared + s * place + rows * ROW);
        wg_advance(a, &d);
        LW_COPY_COMMIT();
    }
    LW_ROLLED
    for (int32_t s = 0, at = 0, next = stages - 2; s < n; s++) {
        lw_copy_wait_for(stages - 3);
        LW_FENCE_FOR_CORES();
        LW_SYNC();
        if (s + stages - 2 < n)
            wg_copy(a, &p, &l, &d, threads, rows, columns, shared + next * place,
                    shared + next * place + rows * ROW);
        wg_advance(a, &d);
        LW_COPY_COMMIT();
        LW_GROUP_BEGIN();
        LW_UNROLL
        for (int k = 0; k < DEPTH / 16; k++)
            LW_UNROLL
            for (int i = 0; i < blocks; i++) {
                const unsigned char *left =
                    shared + at * place + (group * blocks + i) * 64 * ROW + k * 32;
                const unsigned char *right = shared + at * place + rows * ROW + k * 32;
                if (columns == 128)
                    lw_group_product_128(sum + i * 64, left, right);
                else
                    lw_group_product_64(sum + i * 32, left, right);
            }
        LW_GROUP_COMMIT();
        LW_GROUP_WAIT_FOR(1);
        at = at + 1 == stages ? 0 : at + 1;
        next = next + 1 == stages ? 0 : next + 1;
    }
    LW_GROUP_WAIT_FOR(0);
    LW_COPY_WAIT();
    LW_SYNC();
    if (a->splits > 1 && !wg_join(a, &p, threads, numbers, sum, shared))
        return;
    wg_finish(a, &p, threads, rows, blocks, columns, sum, (float *)(void *)shared);
}

LW_KERNEL_SHARING(wgmma_256x128, lw_cuda_product, 256, 1)
{
    LW_SHARED_AT_LAUNCH(shared);
    wg_tile(&a, 2, 2, 128, 4, shared);
}

LW_KERNEL_SHARING(wgmma_128x128, lw_cuda_product, 256, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    wg_tile(&a, 2, 1, 128, 3, shared);
}

LW_KERNEL_SHARING(wgmma_64x64, lw_cuda_product, 128, 2)
{
    LW_SHARED_AT_LAUNCH(shared);
    wg_tile(&a, 1, 1, 64, 6, shared);
}
