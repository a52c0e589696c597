/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of bf16 on tensor cores, by the online softmax (Dao: FlashAttention-2, 2023).
 *
 * A block has queries of one head, 16 or 32 a warp, which stay in registers with their sums. Keys
 * and values come through shared memory in two stages: one is filled while the other is computed
 * with.
 *
 * `channels` is what the channels of a head are padded to with zeros. 64 channels come with 64 keys
 * a stage; fewer channels with as many more keys, more channels with fewer. With fewer channels
 * tokens may be aligned to 8 bytes alone, and exponentials take longer than products.
 *
 * A warp of 16 queries is bound by the bandwidth of shared memory. One of 32 queries reads half as
 * much of it, but scores only 32 keys at once: more would need too many registers for three warps
 * on a quarter of an SM.
 *
 * Rows in shared memory are swizzled, not padded: eight channels are a chunk, whose position in its
 * row is XORed with the row, so that the 8 rows that ldmatrix reads at once are in 32 banks. Blocks
 * of one head follow each other and find its keys in the cache.
 */
#include "backend/cuda/kernels/cuda_attention.h"

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
    flash_block(&a, &shared, 64, 1, 4, 32);
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
