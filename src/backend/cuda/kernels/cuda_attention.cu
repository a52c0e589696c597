/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that never stores T x T: of bf16 on tensor cores, of f32 by tiles in registers, else number by number in f32. */
#include "backend/cuda/kernels/cuda_port.h"

/* Which places a block attends: token i of them is place attention_place(.., i). */
typedef struct attention_room {
    int32_t sample, head, first, columns, queries, keys;
} attention_room;

/* which: heads of a sample or window follow each other */
LW_ON_DEVICE attention_room attention_room_of(const lw_cuda_attention *a, int32_t which)
{
    attention_room r = {which / a->heads, which % a->heads, 0, 0, a->tq, a->tk};
    if (a->window) {
        int32_t across = (a->width + a->window - 1) / a->window;
        int32_t down = (a->height + a->window - 1) / a->window;
        int32_t x = r.sample % across * a->window;
        int32_t y = r.sample / across % down * a->window;
        r.sample /= across * down;
        r.first = y * a->width + x;
        r.columns = a->width - x < a->window ? a->width - x : a->window;
        r.queries = r.keys = r.columns * (a->height - y < a->window ? a->height - y : a->window);
    }
    return r;
}

LW_ON_DEVICE int32_t attention_place(const lw_cuda_attention *a, const attention_room *r, int32_t i)
{
    return a->window ? r->first + i / r->columns * a->width + i % r->columns : i;
}

/* Where a head's channels of a token are in the result; its log-sums lie otherwise. */
LW_ON_DEVICE int64_t attention_at(const lw_cuda_attention *a, const attention_room *r,
                                  int64_t place)
{
    return ((r->sample * (int64_t)a->tq + place) * a->heads + r->head) * a->hd;
}
LW_ON_DEVICE void attention_log(const lw_cuda_attention *a, const attention_room *r, int64_t place,
                                float lse)
{
    if (a->lse)
        a->lse[(r->sample * (int64_t)a->heads + r->head) * a->tq + place] = lse;
}

LW_ON_DEVICE float attention_number(const void *from, const bool narrow, int64_t at)
{
    return narrow ? lw_bf16_to_float(((const uint16_t *)from)[at]) : ((const float *)from)[at];
}

LW_ON_DEVICE void attention_write(const lw_cuda_attention *a, const bool narrow, int64_t at,
                                  float v)
{
    if (narrow && a->store)
        ((uint16_t *)a->o)[at] = lw_bf16_bits(v);
    else
        ((float *)a->o)[at] = v;
}

/*
 * A block for 16 queries (y) of a head of a sample or window (x); keys come 16 at a time through
 * shared memory, their values behind them. Thread (r, j) scores key j for query r and gathers
 * channels j, j + 16, .. of it.
 */
LW_ON_DEVICE void attention_tile(const lw_cuda_attention *a, const bool narrow, float *near,
                                 float (*score)[LW_CUDA_KEYS + 1])
{
    const int pitch = LW_CUDA_HEAD + 1;
    attention_room room = attention_room_of(a, (int32_t)LW_BX);
    int r = LW_TID / 16, lane = LW_TID % 16;
    int32_t i = (int32_t)LW_BY * LW_CUDA_QUERIES + r;
    bool asks = i < room.queries;
    int64_t place = asks ? attention_place(a, &room, i) : 0, channel = room.head * a->hd;
    int64_t q = room.sample * a->q_sample + place * a->q_pitch + channel;
    int64_t k = room.sample * a->k_sample + channel;
    int64_t v = room.sample * a->v_sample + channel;
    float top = -INFINITY, total = 0.0f, sum[LW_CUDA_HEAD / 16];
    LW_UNROLL
    for (int c = 0; c < LW_CUDA_HEAD / 16; c++)
        sum[c] = 0.0f;
    for (int32_t j0 = 0; j0 < room.keys; j0 += LW_CUDA_KEYS) {
        int32_t keys = room.keys - j0 < LW_CUDA_KEYS ? room.keys - j0 : LW_CUDA_KEYS;
        for (int e = LW_TID; e < keys * a->hd; e += 256)
            near[e / a->hd * pitch + e % a->hd] = attention_number(
                a->k, narrow,
                k + (int64_t)attention_place(a, &room, j0 + e / a->hd) * a->k_pitch + e % a->hd);
        LW_SYNC();
        float s = 0.0f;
        if (asks && lane < keys)
            for (int c = 0; c < a->hd; c++)
                s = fmaf(attention_number(a->q, narrow, q + c), near[lane * pitch + c], s);
        score[r][lane] = lane < keys ? s * a->scale : -INFINITY;
        LW_SYNC();
        for (int e = LW_TID; e < keys * a->hd; e += 256)
            near[e / a->hd * pitch + e % a->hd] = attention_number(
                a->v, narrow,
                v + (int64_t)attention_place(a, &room, j0 + e / a->hd) * a->v_pitch + e % a->hd);
        LW_SYNC();
        float up = top;
        for (int j = 0; j < keys; j++)
            up = fmaxf(up, score[r][j]);
        float down = expf(top - up);
        total *= down;
        LW_UNROLL
        for (int c = 0; c < LW_CUDA_HEAD / 16; c++)
            sum[c] *= down;
        for (int j = 0; j < keys; j++) {
            float p = expf(score[r][j] - up);
            total += p;
            LW_UNROLL
            for (int c = 0; c < LW_CUDA_HEAD / 16; c++)
                if (c * 16 + lane < a->hd)
                    sum[c] = fmaf(p, near[j * pitch + c * 16 + lane], sum[c]);
        }
        top = up;
        LW_SYNC();
    }
    if (!asks)
        return;
    int64_t o = attention_at(a, &room, place);
    LW_UNROLL
    for (int c = 0; c < LW_CUDA_HEAD / 16; c++)
        if (c * 16 + lane < a->hd)
            attention_write(a, narrow, o + c * 16 + lane, sum[c] / total);
    if (lane == 0)
        attention_log(a, &room, place, top + logf(total));
}

LW_KERNEL(attention, lw_cuda_attention, 256)
{
    LW_SHARED float near[LW_CUDA_KEYS * (LW_CUDA_HEAD + 1)];
    LW_SHARED float score[LW_CUDA_QUERIES][LW_CUDA_KEYS + 1];
    attention_tile(&a, false, near, score);
}

LW_KERNEL(attention_bf16, lw_cuda_attention, 256)
{
    LW_SHARED float near[LW_CUDA_KEYS * (LW_CUDA_HEAD + 1)];
    LW_SHARED float score[LW_CUDA_QUERIES][LW_CUDA_KEYS + 1];
    attention_tile(&a, true, near, score);
}

/* ---- bf16 on tensor cores ---------------------------------------------------------------------- */

/*
 * Online softmax (Dao: FlashAttention-2, 2023). A block has queries of one head, 16 or 32 a warp, which stay in registers with
 * their sums; keys and values come through shared memory, a stage of both being filled while the one before is computed with.
 * `channels` is what a head's are filled up to with zeros: 64 come with 64 keys a stage, others with as many less or more. With
 * less, tokens may be aligned to 8 bytes alone, and exponentials take longer than products. With 32 queries a warp
 * reads half as much of shared memory, whose speed bounds 16, but scores 32 keys at once: more need too many registers for
 * three warps on a quarter of a multiprocessor. Rows in shared memory have no gaps: eight channels are a chunk, whose place in
 * its row is XORed with the row, so that the 8 rows that ldmatrix reads at once are in 32 banks. Blocks of one head follow each
 * other and find its keys in the cache.
 */
enum {
    FLASH_TILE = 64 * 64, /* halves of keys, or of values */
    FLASH_STAGE = 2 * FLASH_TILE,
    FLASH_SETS = 2,       /* at most: of 16 queries, of a warp */
    FLASH_CHANNELS = 128, /* at most */
    FLASH_KEYS = 64       /* at most: that are scored at once */
};

typedef struct flash_shared {
    uint16_t stage[2 * FLASH_STAGE];
    attention_room room; /* what registers are too few for */
    const uint16_t *keys, *values;
    int32_t first;                    /* query */
    float total[FLASH_SETS * 2][128]; /* a lane's shares of the sums of exponentials */
} flash_shared;

/* What a warp keeps of its queries: lane 4 g + t has rows g and g + 8 of each set. */
typedef struct flash_warp {
    uint32_t left[FLASH_SETS][FLASH_CHANNELS / 16][4];
    float sum[FLASH_SETS][FLASH_CHANNELS / 8][4];
    float top[FLASH_SETS][2]; /* greatest scores */
} flash_warp;

/* Eight rows one below the other whose chunk is the same are in 32 banks. Chunks 2 k and 2 k + 1 of a row are at
 * flash_at(.., 0) ^ 16 k and flash_at(.., 1) ^ 16 k. */
LW_ON_DEVICE int flash_at(const int channels, int row, int chunk)
{
    const uint32_t beside = channels < 64 ? 64 / channels : 1;
    const uint32_t others = channels < 64 ? channels / 8 - 1 : 7;
    return row * channels + (chunk ^ (int)((uint32_t)row / beside & others)) * 8;
}

LW_ON_DEVICE void flash_copy(const int piece, uint16_t *to, const uint16_t *from, bool there)
{
    if (piece == 8)
        lw_copy_async(to, from, there);
    else
        lw_copy_async_8(to, from, there);
}

/* Tokens first .. of an operand of the head on their way to `to`, zeros for those from `end` on. */
LW_ON_DEVICE void flash_fetch(const lw_cuda_attention *a, const attention_room *room,
                              const int channels, const int rows, const int threads, uint16_t *to,
                              const uint16_t *from, int32_t pitch, int32_t first, int32_t end)
{
    const int piece = channels < 64 ? 4 : 8, pieces = channels / piece, together = threads / pieces;
    int c = LW_TID % pieces * piece, row = LW_TID / pieces;
    bool channel = c < a->hd;
    to += c % 8;
    from += c;
    if (a->window) {
        LW_ROLLED
        for (; row < rows; row += together) {
            bool there = channel && first + row < end;
            int32_t place = there ? attention_place(a, room, first + row) : 0;
            flash_copy(piece, to + flash_at(channels, row, c / 8), from + (int64_t)place * pitch,
                       there);
        }
        return;
    }
    const int turn = together % 8 * 8; /* 12 rows further, the fourth chunk from there */
    int at = flash_at(channels, row, c / 8);
    int64_t further = (int64_t)together * pitch;
    from += (int64_t)(first + row) * pitch;
    LW_UNROLL
    for (int e = 0; e < rows; e += together, from += further)
        if (e + together <= rows || row + e < rows)
            flash_copy(piece, to + e * channels + (at ^ e / together % 2 * turn), from,
                       channel && first + row + e < end);
}

/* Scores of `step` keys, that begin at half `at`, and their softmax's share of the sums. whole: all of them are there, else
 * `count` are. */
LW_ON_DEVICE void flash_step(flash_warp *w, flash_shared *shared, const int channels,
                             const int sets, const int step, int at, const bool whole,
                             int32_t count, float scale)
{
    const uint16_t *stage = shared->stage;
    int lane = LW_TID & 31;
    int keys = at + flash_at(channels, lane / 16 * 8 + lane % 8, lane / 8 % 2);
    int values = at + FLASH_TILE + flash_at(channels, lane % 16, lane / 16);
    float score[FLASH_SETS][FLASH_KEYS / 8][4];
    uint32_t right[4];
    LW_UNROLL
    for (int m = 0; m < sets; m++)
        LW_UNROLL
        for (int e = 0; e < step / 2; e++)
            score[m][e / 4][e % 4] = 0.0f;
    LW_UNROLL
    for (int k = 0; k < channels / 16; k++)
        LW_UNROLL
        for (int n = 0; n < step / 16; n++)
            if (whole || n * 16 < count) {
                lw_ldmatrix_x4(right, stage + (keys ^ k * 16) + n * 16 * channels);
                LW_UNROLL
                for (int m = 0; m < sets; m++) {
                    lw_mma_bf16(score[m][2 * n], w->left[m][k], right);
                    lw_mma_bf16(score[m][2 * n + 1], w->left[m][k], right + 2);
                }
            }
    LW_UNROLL
    for (int r = 0; r < sets * 2; r++) {
        const int m = r / 2, h = r % 2 * 2;
        float *top = &w->top[m][r % 2], up = *top;
        LW_UNROLL
        for (int e = 0; e < step / 4; e++) {
            float *s = &score[m][e / 2][h + e % 2];
            if (!whole && e / 2 * 8 + lane % 4 * 2 + e % 2 >= count)
                *s = -INFINITY;
            up = fmaxf(up, *s);
        }
        up = fmaxf(up, lw_shuffle_xor(up, 1));
        up = fmaxf(up, lw_shuffle_xor(up, 2));
        float down = lw_exp2((*top - up) * scale), total = 0.0f;
        *top = up;
        up *= scale;
        LW_UNROLL
        for (int e = 0; e < step / 4; e++) {
            float *s = &score[m][e / 2][h + e % 2];
            *s = lw_exp2(fmaf(*s, scale, -up));
            total += *s;
        }
        shared->total[r][LW_TID] = fmaf(shared->total[r][LW_TID], down, total);
        LW_UNROLL
        for (int e = 0; e < channels / 4; e++)
            w->sum[m][e / 2][h + e % 2] *= down;
    }
    LW_UNROLL
    for (int k = 0; k < step / 16; k++)
        if (whole || k * 16 < count) {
            uint32_t p[FLASH_SETS][4];
            LW_UNROLL
            for (int e = 0; e < sets * 4; e++) {
                const float *s = score[e / 4][2 * k + e % 4 / 2] + e % 2 * 2;
                p[e / 4][e % 4] = lw_two_bf16(s[0], s[1]);
            }
            LW_UNROLL
            for (int n = 0; n < channels / 16; n++) {
                lw_ldmatrix_x4_trans(right, stage + (values ^ n * 16) + k * 16 * channels);
                LW_UNROLL
                for (int m = 0; m < sets; m++) {
                    lw_mma_bf16(w->sum[m][2 * n], p[m], right);
                    lw_mma_bf16(w->sum[m][2 * n + 1], p[m], right + 2);
                }
            }
        }
}

/* A row's sums over their total, by the four lanes that have it: 16 channels of bf16 are 32 bytes, a lane's 8 of them side by
 * side when every second lane has given half of its to the lane beside it. */
LW_ON_DEVICE void flash_write(const lw_cuda_attention *a, const attention_room *room,
                              const int channels, float (*sum)[4], const int half, float total,
                              float top, int32_t i)
{
    int part = LW_TID % 4, odd = part % 2;
    total += lw_shuffle_xor(total, 1);
    total += lw_shuffle_xor(total, 2);
    bool there = i < room->queries;
    int32_t place = there ? attention_place(a, room, i) : 0;
    int64_t o = attention_at(a, room, place);
    float by = 1.0f / total;
    LW_UNROLL
    for (int n = 0; n < channels / 8; n += 2) {
        const float *x = sum[n] + 2 * half, *y = sum[n + 1] + 2 * half;
        if (a->store) {
            uint32_t low = lw_two_bf16(x[0] * by, x[1] * by);
            uint32_t high = lw_two_bf16(y[0] * by, y[1] * by);
            uint32_t got = lw_shuffle_xor_bits(odd ? low : high, 1);
            int c = (n + odd) * 8 + part / 2 * 4;
            if (there && c < a->hd)
                lw_put_two((uint16_t *)a->o + o + c, odd ? got : low, odd ? high : got);
        } else if (there) {
            int c = n * 8 + part * 2;
            float *to = (float *)a->o + o + c;
            if (c < a->hd)
                lw_put_two(to, lw_float_to_bits(x[0] * by), lw_float_to_bits(x[1] * by));
            if (c + 8 < a->hd)
                lw_put_two(to + 8, lw_float_to_bits(y[0] * by), lw_float_to_bits(y[1] * by));
        }
    }
    if (there && part == 0)
        attention_log(a, room, place, top * a->scale + logf(total));
}

LW_ON_DEVICE void flash_block(const lw_cuda_attention *a, flash_shared *shared, const int channels,
                              const int sets, const int warps, const int step)
{
    const int keys = FLASH_TILE / channels, threads = warps * 32;
    uint16_t *stage = shared->stage;
    attention_room room = attention_room_of(a, (int32_t)LW_BX / a->tiles);
    int32_t first = (int32_t)LW_BX % a->tiles * warps * sets * 16, end = room.keys;
    if (first >= room.queries) /* a window that is cut off */
        return;
    const uint16_t *q = (const uint16_t *)a->q + room.sample * a->q_sample + room.head * a->hd;
    const uint16_t *k = (const uint16_t *)a->k + room.sample * a->k_sample + room.head * a->hd;
    const uint16_t *v = (const uint16_t *)a->v + room.sample * a->v_sample + room.head * a->hd;
    if (LW_TID == 0) {
        shared->room = room;
        shared->keys = k;
        shared->values = v;
        shared->first = first;
    }
    /* queries through the second stage */
    flash_fetch(a, &room, channels, warps * sets * 16, threads, stage + FLASH_STAGE, q, a->q_pitch,
                first, room.queries);
    flash_fetch(a, &room, channels, keys, threads, stage, k, a->k_pitch, 0, end);
    flash_fetch(a, &room, channels, keys, threads, stage + FLASH_TILE, v, a->v_pitch, 0, end);
    int row = lw_same_in_warp(LW_TID / 32) * sets * 16, lane = LW_TID % 32;
    bool busy = first + row < room.queries;
    LW_COPY_WAIT();
    LW_SYNC();
    flash_warp w;
    LW_UNROLL
    for (int m = 0; m < sets; m++) {
        LW_UNROLL
        for (int c = 0; c < channels / 16; c++)
            lw_ldmatrix_x4(w.left[m][c],
                           stage + FLASH_STAGE +
                               (flash_at(channels, row + m * 16 + lane % 16, lane / 16) ^ c * 16));
        LW_UNROLL
        for (int e = 0; e < channels / 2; e++)
            w.sum[m][e / 4][e % 4] = 0.0f;
        w.top[m][0] = w.top[m][1] = -INFINITY;
        shared->total[2 * m][LW_TID] = shared->total[2 * m + 1][LW_TID] = 0.0f;
    }
    LW_ROLLED
    for (int32_t j = 0; j < end; j += step) {
        int at = (j / keys & 1) * FLASH_STAGE;
        if ((j & (keys - 1)) == 0) {
            LW_COPY_WAIT();
            LW_SYNC();
            if (j + keys < end) {
                uint16_t *to = stage + FLASH_STAGE - at;
                flash_fetch(a, &shared->room, channels, keys, threads, to, shared->keys, a->k_pitch,
                            j + keys, end);
                flash_fetch(a, &shared->room, channels, keys, threads, to + FLASH_TILE,
                            shared->values, a->v_pitch, j + keys, end);
            }
        }
        at += (j & (keys - 1)) * channels;
        end = shared->room.keys; /* rather than a register through a step */
        if (busy && j + step <= end)
            flash_step(&w, shared, channels, sets, step, at, true, step, a->scale_2);
        else if (busy)
            flash_step(&w, shared, channels, sets, step, at, false, end - j, a->scale_2);
    }
    if (!busy)
        return;
    room = shared->room;
    LW_UNROLL
    for (int r = 0; r < sets * 2; r++)
        flash_write(a, &room, channels, w.sum[r / 2], r % 2, shared->total[r][LW_TID],
                    w.top[r / 2][r % 2],
                    shared->first + LW_TID / 32 * sets * 16 + r * 8 + LW_TID % 32 / 4);
}

/* flash_<queries>x<channels> */
LW_KERNEL_SHARING(flash_64x16, lw_cuda_attention, 128, 6)
{
    LW_SHARED LW_ALIGNED16 flash_shared shared;
    flash_block(&a, &shared, 16, 1, 4, 64);
}
LW_KERNEL_SHARING(flash_64x32, lw_cuda_attention, 128, 5)
{
    LW_SHARED LW_ALIGNED16 flash_shared shared;
    flash_block(&a, &shared, 32, 1, 4, 64);
}
LW_KERNEL_SHARING(flash_64x64, lw_cuda_attention, 128, 4)
{
    LW_SHARED LW_ALIGNED16 flash_shared shared;
    flash_block(&a, &shared, 64, 1, 4, 64);
}
LW_KERNEL_SHARING(flash_96x64, lw_cuda_attention, 96, 4)
{
    LW_SHARED LW_ALIGNED16 flash_shared shared;
    flash_block(&a, &shared, 64, 2, 3, 32);
}
LW_KERNEL_SHARING(flash_128x64, lw_cuda_attention, 128, 3)
{
    LW_SHARED LW_ALIGNED16 flash_shared shared;
    flash_block(&a, &shared, 64, 2, 4, 32);
}
LW_KERNEL_SHARING(flash_64x128, lw_cuda_attention, 128, 3)
{
    LW_SHARED LW_ALIGNED16 flash_shared shared;
    flash_block(&a, &shared, 128, 1, 4, 32);
}

/* ---- f32 ----------------------------------------------------------------------------------------- */

/*
 * A block has 64 queries of a head, a warp 16 of them; lane 8 g + t has rows g, g + 4, .., scores of keys t, t + 8, .. and sums
 * of channels 4 t .. 4 t + 3, and of those 32 behind. Keys on their way are what the values before are multiplied for, and values
 * what scores are made for:
 *
 *     wait for keys | copy values | scores, softmax | wait for values | copy the next keys | sums
 *
 * In shared memory lie queries, keys, values, `channels` of each, filled up with zeros, and the exponentials of scores. Piece
 * p of 16 bytes of row r is at p xor r % 8, and piece t of a row of exponentials, which are those of keys t, t + 8, t + 16 and
 * t + 24, at t xor 2 g: what a warp reads at once is in different banks. It is short code (cuda_tiles.h says why).
 */
enum { FULL_THREADS = 128, FULL_QUERIES = 64, FULL_ROWS = 4 };

/* A token's place, and its column of the window: of no window all tokens are one line. */
typedef struct full_walk {
    int32_t token, place, x;
} full_walk;

LW_ON_DEVICE full_walk full_walk_from(const lw_cuda_attention *a, const attention_room *room,
                                      int32_t token)
{
    full_walk w = {token, token, token};
    if (a->window) {
        int32_t y = token / room->columns;
        w.x -= y * room->columns;
        w.place = room->first + y * a->width + w.x;
    }
    return w;
}
LW_ON_DEVICE void full_go_on(const lw_cuda_attention *a, const attention_room *room, full_walk *w,
                             const int tokens)
{
    w->token += tokens;
    w->place += tokens;
    if (!a->window)
        return;
    w->x += tokens;
    LW_ROLLED
    while (w->x >= room->columns) {
        w->x -= room->columns;
        w->place += a->width - room->columns;
    }
}

/* This thread's pieces of `keys` tokens of an operand of the head, its first of which is the walk's, on their way to `to`,
 * zeros for those from `end` on. */
LW_ON_DEVICE void full_fetch(const lw_cuda_attention *a, const attention_room *room,
                             const int channels, const int keys, float *to, const float *from,
                             int32_t pitch, full_walk *w, int32_t end)
{
    const int pieces = channels / 4, together = FULL_THREADS / pieces;
    int p = LW_TID % pieces, row = LW_TID / pieces;
    end = p * 4 < a->hd ? end : 0;
    from += p * 4;
    LW_UNROLL_BY(2)
    for (int e = 0; e < keys; e += together) {
        lw_copy_async(to + (row + e) * channels + (p ^ (row + e) % 8) * 4,
                      from + (int64_t)w->place * pitch, w->token < end);
        full_go_on(a, room, w, together);
    }
}

LW_ON_DEVICE void full_block(const lw_cuda_attention *a, const int channels, const int keys,
                             float *shared)
{
    const int tile = keys * channels, before = FULL_QUERIES / keys, wide = keys / 8,
              across = channels / 32;
    attention_room room = attention_room_of(a, (int32_t)LW_BX / a->tiles);
    int32_t first = (int32_t)LW_BX % a->tiles * FULL_QUERIES, end = room.keys;
    if (first >= room.queries) /* a window that is cut off */
        return;
    const float *q = (const float *)a->q + room.sample * a->q_sample + room.head * a->hd;
    const float *k = (const float *)a->k + room.sample * a->k_sample + room.head * a->hd;
    const float *v = (const float *)a->v + room.sample * a->v_sample + room.head * a->hd;
    float *near_k = shared + before * tile, *near_v = near_k + tile, *near_p = near_v + tile;
    full_walk walk, ahead;
    LW_ROLLED
    for (int i = 0; i <= before; i++) {
        bool asks = i < before;
        walk = full_walk_from(a, &room, LW_TID / (channels / 4) + (asks ? first + i * keys : 0));
        ahead = walk;
        full_fetch(a, &room, channels, keys, shared + i * tile, asks ? q : k,
                   asks ? a->q_pitch : a->k_pitch, &ahead, asks ? room.queries : end);
    }
    int warp = lw_same_in_warp(LW_TID / 32), g = LW_TID % 32 / 8, t = LW_TID % 8;
    int row = warp * 16 + g;
    bool busy = first + warp * 16 < room.queries;
    const float *left_q = shared + row * channels, *right_k = near_k + t * channels;
    float *left_p = near_p + row * keys;
    float sum[FULL_ROWS][4][4], top[FULL_ROWS], total[FULL_ROWS];
    LW_UNROLL
    for (int i = 0; i < FULL_ROWS; i++) {
        top[i] = -INFINITY;
        total[i] = 0.0f;
        LW_UNROLL
        for (int c = 0; c < channels / 8; c++)
            sum[i][c / 4][c % 4] = 0.0f;
    }
    LW_ROLLED
    for (int32_t j0 = 0; j0 < end; j0 += keys) {
        int32_t count = end - j0;
        LW_COPY_WAIT();
        LW_SYNC();
        full_fetch(a, &room, channels, keys, near_v, v, a->v_pitch, &walk, end);
        if (busy) {
            float score[FULL_ROWS][8];
            LW_UNROLL
            for (int i = 0; i < FULL_ROWS; i++)
                LW_UNROLL
                for (int j = 0; j < wide; j++)
                    score[i][j] = 0.0f;
            LW_ROLLED
            for (int p = 0; p < a->hd / 4; p++) {
                lw_four right[8];
                LW_UNROLL
                for (int j = 0; j < wide; j++)
                    right[j] = lw_four_floats(right_k + j * 8 * channels + (p ^ t) * 4);
                LW_UNROLL
                for (int i = 0; i < FULL_ROWS; i++) {
                    lw_four left =
                        lw_four_floats(left_q + i * 4 * channels + (p ^ g ^ i % 2 * 4) * 4);
                    LW_UNROLL
                    for (int c = 0; c < 4; c++)
                        LW_UNROLL
                        for (int j = 0; j < wide; j++)
                            score[i][j] = fmaf(left.v[c], right[j].v[c], score[i][j]);
                }
            }
            if (count < keys) {
                LW_UNROLL
                for (int j = 0; j < wide; j++)
                    LW_UNROLL
                    for (int i = 0; i < FULL_ROWS; i++)
                        score[i][j] = t + j * 8 < count ? score[i][j] : -INFINITY;
            }
            LW_UNROLL
            for (int i = 0; i < FULL_ROWS; i++) {
                float up = top[i], own = 0.0f;
                LW_UNROLL
                for (int j = 0; j < wide; j++)
                    up = fmaxf(up, score[i][j]);
                LW_UNROLL
                for (int mask = 1; mask < 8; mask *= 2)
                    up = fmaxf(up, lw_shuffle_xor(up, mask));
                float down = lw_exp2((top[i] - up) * a->scale_2), most = up * a->scale_2;
                top[i] = up;
                LW_UNROLL
                for (int j = 0; j < wide; j++) {
                    score[i][j] = lw_exp2(fmaf(score[i][j], a->scale_2, -most));
                    own += score[i][j];
                }
                total[i] = fmaf(total[i], down, own);
                LW_UNROLL
                for (int c = 0; c < channels / 8; c++)
                    sum[i][c / 4][c % 4] *= down;
                LW_UNROLL
                for (int h = 0; h < wide; h += 4)
                    lw_write(left_p + i * 4 * keys + h * 8 + (t ^ 2 * g) * 4, score[i] + h, 4);
            }
        }
        LW_COPY_WAIT();
        LW_SYNC();
        if (count > keys) {
            ahead = walk;
            full_fetch(a, &room, channels, keys, near_k, k, a->k_pitch, &ahead, end);
        }
        if (!busy)
            continue;
        LW_ROLLED
        for (int e = 0; e < 8 && e < count; e++)
            LW_ROLLED
            for (int h = 0; h < wide; h += 4) {
                lw_four left[FULL_ROWS];
                LW_UNROLL
                for (int i = 0; i < FULL_ROWS; i++)
                    left[i] =
                        lw_four_floats(left_p + i * 4 * keys + h * 8 + (e ^ 2 * g) * 4);
                LW_UNROLL
                for (int j = 0; j < 4; j++)
                    LW_UNROLL
                    for (int n = 0; n < across; n++) {
                        lw_four right = lw_four_floats(near_v + ((h + j) * 8 + e) * channels +
                                                       n * 32 + (t ^ e) * 4);
                        LW_UNROLL
                        for (int i = 0; i < FULL_ROWS; i++)
                            LW_UNROLL
                            for (int c = 0; c < 4; c++)
                                sum[i][n][c] = fmaf(left[i].v[j], right.v[c], sum[i][n][c]);
                    }
            }
    }
    /* results where this warp's queries were */
    float own_total = 1.0f, own_top = 0.0f; /* lane t's, of row t */
    LW_UNROLL
    for (int i = 0; i < FULL_ROWS; i++) {
        LW_UNROLL
        for (int mask = 1; mask < 8; mask *= 2)
            total[i] += lw_shuffle_xor(total[i], mask);
        own_total = t == i ? total[i] : own_total;
        own_top = t == i ? top[i] : own_top;
        float by = lw_over(1.0f, total[i]);
        LW_UNROLL
        for (int n = 0; n < across; n++) {
            LW_UNROLL
            for (int c = 0; c < 4; c++)
                sum[i][n][c] *= by;
            lw_write(shared + (row + i * 4) * channels + n * 32 + t * 4, sum[i][n], 4);
        }
    }
    if (t < FULL_ROWS) /* log-sums where keys were */
        near_k[row + t * 4] = fmaf(own_top, a->scale, logf(own_total));
    LW_SYNC();
    const int together = FULL_THREADS * 4 / channels;
    int c = LW_TID % (channels / 4) * 4, r = LW_TID / (channels / 4);
    walk = full_walk_from(a, &room, first + r);
    LW_ROLLED
    for (; r < FULL_QUERIES && walk.token < room.queries; r += together) {
        lw_four four = lw_four_floats(shared + r * channels + c);
        int64_t o = attention_at(a, &room, walk.place);
        if (c < a->hd)
            lw_write((float *)a->o + o + c, four.v, 4);
        if (c == 0)
            attention_log(a, &room, walk.place, near_k[r]);
        full_go_on(a, &room, &walk, together);
    }
}

/* flash_f32_<channels> */
LW_KERNEL_SHARING(flash_f32_32, lw_cuda_attention, FULL_THREADS, 3)
{
    LW_SHARED_AT_LAUNCH(shared);
    full_block(&a, 32, 64, (float *)(void *)shared);
}
LW_KERNEL_SHARING(flash_f32_64, lw_cuda_attention, FULL_THREADS, 3)
{
    LW_SHARED_AT_LAUNCH(shared);
    full_block(&a, 64, 64, (float *)(void *)shared);
}
LW_KERNEL_SHARING(flash_f32_128, lw_cuda_attention, FULL_THREADS, 3)
{
    LW_SHARED_AT_LAUNCH(shared);
    full_block(&a, 128, 32, (float *)(void *)shared);
}
