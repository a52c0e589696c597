/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of f32 by FFMA, tiles in registers.
 *
 * A block has 64 queries of a head, a warp 16 of them. Lane 8 g + t has rows g, g + 4, ..; of them
 * the scores of keys t, t + 8, .. and the sums of channels 4 t .. 4 t + 3, and of those 32 further
 * on. Values are copied to shared memory while scores are computed, the next keys while values are
 * summed up:
 *
 *     wait for keys | copy values | scores, softmax | wait for values | copy the next keys | sums
 *
 * Shared memory holds queries, keys and values, padded with zeros to `channels` each, and the
 * exponentials of scores. Rows are swizzled, so that what a warp reads at once is in different
 * banks: piece p of 16 bytes of row r is at p xor r % 8. Piece t of a row of exponentials, which
 * are those of keys t, t + 8, t + 16 and t + 24, is at t xor 2 g. The code is short; cuda_tiles.h
 * says why.
 */
#include "backend/cuda/kernels/cuda_attention.h"

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
