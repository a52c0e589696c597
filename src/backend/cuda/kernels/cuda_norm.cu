/* SPDX-License-Identifier: Apache-2.0 */
/* Group normalisation, softmax, cross-entropy. */
#include "backend/cuda/kernels/cuda_port.h"

/* What normalising makes of a value: (x - middle) factor + offset, and an activation up to SiLU. */
typedef struct norm_channel {
    float factor, offset;
} norm_channel;

/* What sums about a middle say of n values: how far the mean is off it, one over the deviation. */
typedef struct norm_moments {
    float off, rstd;
} norm_moments;

/* What channels have of their own: y = normal * scale + shift. */
typedef struct norm_said {
    float scale[4], shift[4];
} norm_said;

/* Channels c, c + 1, .. of all samples. */
LW_ON_DEVICE void norm_say(const lw_cuda_norm *a, int32_t c, norm_said *s, const int wide)
{
    LW_UNROLL
    for (int k = 0; k < wide; k++) {
        s->scale[k] = 1.0f;
        s->shift[k] = 0.0f;
    }
    if (a->gamma) {
        LW_READS(a->gamma + c, wide * 4);
        lw_read(s->scale, a->gamma + c, wide);
    }
    if (a->beta) {
        LW_READS(a->beta + c, wide * 4);
        lw_read(s->shift, a->beta + c, wide);
    }
}

/* And what sample b has of them. */
LW_ON_DEVICE void norm_say_more(const lw_cuda_norm *a, int64_t b, int32_t c, norm_said *s,
                                const int wide)
{
    float scale[4] = {0.0f, 0.0f, 0.0f, 0.0f}, shift[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (!a->scale && !a->shift)
        return;
    if (a->scale)
        lw_read(scale, a->scale + b * a->scale_pitch + c, wide);
    if (a->shift)
        lw_read(shift, a->shift + b * a->shift_pitch + c, wide);
    LW_UNROLL
    for (int k = 0; k < wide; k++) {
        s->scale[k] *= 1.0f + scale[k];
        s->shift[k] = fmaf(s->shift[k], 1.0f + scale[k], shift[k]);
    }
}

LW_ON_DEVICE void norm_channels(const norm_said *s, norm_moments m, norm_channel *n, const int wide)
{
    LW_UNROLL
    for (int k = 0; k < wide; k++) {
        n[k].factor = m.rstd * s->scale[k];
        n[k].offset = fmaf(-m.off, n[k].factor, s->shift[k]);
    }
}

/* Of neighbours' distances from the middle. */
LW_ON_DEVICE void norm_results(const lw_cuda_norm *a, float *v, const norm_channel *n, const int wide)
{
    LW_UNROLL
    for (int k = 0; k < wide; k++)
        v[k] = fmaf(v[k], n[k].factor, n[k].offset);
    if (a->act == 2) {
        LW_UNROLL
        for (int k = 0; k < wide; k++)
            v[k] = lw_gate(v[k], v[k]);
    } else if (a->act == 1) {
        LW_UNROLL
        for (int k = 0; k < wide; k++)
            v[k] = v[k] < 0.0f ? 0.0f : v[k];
    }
}

LW_ON_DEVICE void norm_write(const lw_cuda_norm *a, int64_t at, const float *v, const int wide)
{
    if (a->store)
        lw_write_bf16((uint16_t *)a->y + at, v, wide);
    else if (a->y)
        lw_write((float *)a->y + at, v, wide);
    if (a->also)
        lw_write_bf16((uint16_t *)a->also + at, v, wide);
}

/* Of sums over values, `share` of which is one of them. */
LW_ON_DEVICE norm_moments norm_moments_of(const lw_cuda_norm *a, float sum, float square, float share)
{
    float off = a->rms ? 0.0f : sum * share;
    float variance = fmaf(-off, off, square * share);
    return (norm_moments){off, lw_over_root((variance < 0.0f ? 0.0f : variance) + a->eps)};
}

LW_ON_DEVICE void norm_tell(const lw_cuda_norm *a, int64_t group, float mean, float rstd)
{
    if (a->mean)
        a->mean[group] = mean;
    if (a->rstd)
        a->rstd[group] = rstd;
}

/* Elements of x from `at` on. */
LW_ON_DEVICE void norm_take(const lw_cuda_norm *a, float *v, int64_t at, const int wide,
                            const int narrow)
{
    if (narrow)
        lw_read_bf16(v, (const uint16_t *)a->x + at, wide);
    else
        lw_read(v, (const float *)a->x + at, wide);
}

LW_ON_DEVICE float norm_number(const lw_cuda_norm *a, int64_t at)
{
    float v;
    norm_take(a, &v, at, 1, a->narrow);
    return v;
}

/* Any width: a block for each group (x) of each sample (y), whose elements come three times. */
LW_KERNEL(group_norm, lw_cuda_norm, 256)
{
    LW_SHARED double room[256];
    int64_t g = LW_BX, b = LW_BY;
    int32_t width = a.c / a.groups, c0 = (int32_t)g * width;
    int64_t n = a.hw * width, begin = b * a.hw * a.c + c0, x = b * a.hw * a.x_pitch + c0;
    float sum = 0.0f, square = 0.0f;
    for (int64_t i = LW_TID; i < n; i += 256)
        sum += norm_number(&a, x + i / width * a.x_pitch + i % width);
    float middle = (float)(lw_block_sum(room, (double)sum) / (double)n);
    middle = a.rms ? 0.0f : middle;
    sum = 0.0f;
    for (int64_t i = LW_TID; i < n; i += 256) {
        float d = norm_number(&a, x + i / width * a.x_pitch + i % width) - middle;
        sum += d;
        square = fmaf(d, d, square);
    }
    double all = lw_block_sum(room, (double)sum);
    norm_moments m = norm_moments_of(&a, (float)all, (float)lw_block_sum(room, (double)square),
                                     1.0f / (float)n);
    for (int64_t i = LW_TID; i < n; i += 256) {
        int64_t row = i / width;
        norm_channel channel;
        norm_said said;
        norm_say(&a, c0 + (int32_t)(i % width), &said, 1);
        norm_say_more(&a, b, c0 + (int32_t)(i % width), &said, 1);
        norm_channels(&said, m, &channel, 1);
        float v = norm_number(&a, x + row * a.x_pitch + i % width) - middle;
        norm_results(&a, &v, &channel, 1);
        norm_write(&a, begin + row * a.c + i % width, &v, 1);
    }
    if (LW_TID == 0)
        norm_tell(&a, b * a.groups + g, middle + m.off, m.rstd);
}

/* Vectors of a thread of a block of groups. */
#define NORM_VECTORS(wide, parts) (((wide) == 1 ? 16 : LW_CUDA_NORM_KEPT / (wide)) / (parts))

/* A thread's elements, as they came: f32, or bf16 two by two. */
typedef union norm_kept {
    float f32[LW_CUDA_NORM_KEPT];
    uint32_t bf16[LW_CUDA_NORM_KEPT / 2];
} norm_kept;

enum { NORM_NOWHERE = INT32_MAX / 2 }; /* a row behind all */

/* The vectors of a block's groups: `across` in a row, `of_group` of each; rows come `rows` at a time. Sums of a group are
 * added up by `warps` warps, 32 each. */
typedef struct norm_tile {
    int across, of_group, rows, span, warps;
    int column, row; /* the thread's own */
    int group, place; /* its group; where it leaves sums */
    bool alone;       /* each group has a warp of its own */
} norm_tile;

/*
 * The order of sums is that of blocks of many groups (parts: 1), whose threads have every `rows`-th row: of those that come at
 * once, a thread's rows 0, 4, 8, .. are added up in one sum, 1, 5, 9, .. in another, and so on, and then the four. Where there
 * are few pictures the same groups are spread over four times as many blocks (parts: 4), whose threads have one of the four
 * sums each: the same bits.
 */
LW_ON_DEVICE norm_tile norm_find(const lw_cuda_norm *a, const int threads, const int wide,
                                 const int parts)
{
    norm_tile t = {.span = a->span};
    t.of_group = a->c / a->groups / wide;
    t.across = t.of_group * t.span;
    const int rows = threads / (t.across * parts);
    t.rows = rows * parts;
    t.warps = (rows * t.of_group + 31) / 32;
    t.row = LW_TID / t.across;
    t.column = LW_TID % t.across;
    t.group = t.column / t.of_group;
    t.place = (t.row / rows * t.span + t.group) * t.warps * 32 + t.row % rows * t.of_group +
              t.column % t.of_group;
    t.alone = parts > 1 && (int32_t)a->hw * t.of_group <= 32 && (int32_t)a->hw <= rows;
    if (t.alone) {
        t.group = LW_TID / 32;
        t.row = t.group < t.span ? LW_TID % 32 / t.of_group : NORM_NOWHERE;
        t.column = (t.group < t.span ? t.group : 0) * t.of_group + LW_TID % 32 % t.of_group;
    }
    if (t.row >= t.rows)
        t.row = NORM_NOWHERE;
    return t;
}

/* Places that no thread has: zeros. */
LW_ON_DEVICE void norm_clear(const norm_tile *t, const int threads, const int parts, lw_two *room)
{
    if (t->rows / parts * t->of_group % 32 == 0)
        return;
    LW_ROLLED
    for (int i = LW_TID; i < LW_CUDA_NORM_PLACES; i += threads)
        room[i] = (lw_two){{0.0f, 0.0f}};
    LW_SYNC();
}

/* Both sums of each thread over the threads of its group. */
LW_ON_DEVICE void norm_sum(const norm_tile *t, const int threads, const int parts, lw_two *room,
                           lw_two *sums, float *v)
{
    const int all = t->span * t->warps;
    if (t->alone) {
        v[0] = lw_warp_sum(v[0]);
        v[1] = lw_warp_sum(v[1]);
        return;
    }
    if (t->row < NORM_NOWHERE)
        room[t->place] = (lw_two){{v[0], v[1]}};
    LW_SYNC();
    LW_ROLLED
    for (int w = LW_TID / 32; w < all; w += threads / 32) {
        lw_two of[LW_CUDA_NORM_PARTS];
        LW_UNROLL
        for (int j = 0; j < parts; j++)
            of[j] = room[(j * all + w) * 32 + LW_TID % 32];
        LW_UNROLL
        for (int k = 0; k < 2; k++) {
            LW_UNROLL
            for (int j = 1; j < parts; j++)
                of[0].v[k] += of[j].v[k];
            of[0].v[k] = lw_warp_sum(of[0].v[k]);
        }
        if (LW_TID % 32 == 0)
            sums[w] = of[0];
    }
    LW_SYNC();
    v[0] = v[1] = 0.0f;
    sums += t->group * t->warps;
    LW_UNROLL_BY(4)
    for (int w = 0; w < t->warps; w++) {
        v[0] += sums[w].v[0];
        v[1] += sums[w].v[1];
    }
}

/* A thread's elements of rows from `first` on, zeros where there is none; x: its first. */
LW_ON_DEVICE void norm_read(const lw_cuda_norm *a, const norm_tile *t, int64_t x, int32_t first,
                            norm_kept *kept, const int wide, const int narrow, const int parts)
{
    LW_UNROLL
    for (int i = 0; i < NORM_VECTORS(wide, parts); i++) {
        int32_t row = first + t->row + i * t->rows;
        int64_t at = x + (uint32_t)row * (uint32_t)a->x_pitch;
        bool there = row < (int32_t)a->hw;
        if (there)
            LW_READS((const char *)a->x + at * (narrow ? 2 : 4), wide * (narrow ? 2 : 4));
        if (!narrow) {
            float *v = kept->f32 + i * wide;
            LW_UNROLL
            for (int k = 0; k < wide; k++)
                v[k] = 0.0f;
            if (there)
                lw_read(v, (const float *)a->x + at, wide);
        } else if (wide == 4) {
            const lw_words none = {{0, 0}};
            lw_words w = there ? *(const lw_words *)(const void *)((const uint16_t *)a->x + at) : none;
            kept->bf16[2 * i] = w.v[0];
            kept->bf16[2 * i + 1] = w.v[1];
        } else {
            const uint16_t *from = (const uint16_t *)a->x + at;
            kept->bf16[i] = !there ? 0 : wide == 2 ? lw_two_halves(from) : *from;
        }
    }
}

/* Vector i. */
LW_ON_DEVICE void norm_vector(const norm_kept *kept, const int i, float *v, const int wide,
                              const int narrow)
{
    LW_UNROLL
    for (int k = 0; k < wide; k++) {
        const int at = i * wide + k;
        if (!narrow) {
            v[k] = kept->f32[at];
        } else {
            uint32_t two = kept->bf16[wide == 1 ? i : at / 2];
            v[k] = lw_bits_to_float(wide > 1 && k % 2 ? two & 0xffff0000u : two << 16);
        }
    }
}

/* Distances from the middle, and their squares, are added to a thread's sums. */
LW_ON_DEVICE void norm_add(const lw_cuda_norm *a, const norm_tile *t, int32_t first,
                           const norm_kept *kept, float middle, float *sum, const int wide,
                           const int narrow, const int parts)
{
    LW_UNROLL
    for (int j = 0; j < LW_CUDA_NORM_PARTS / parts; j++) {
        float part[2] = {0.0f, 0.0f};
        LW_UNROLL
        for (int i = j; i < NORM_VECTORS(wide, parts); i += LW_CUDA_NORM_PARTS / parts) {
            float v[4];
            if (first + i * t->rows >= (int32_t)a->hw) /* of all threads: short code for little */
                break;
            float off = first + t->row + i * t->rows < (int32_t)a->hw ? middle : 0.0f;
            norm_vector(kept, i, v, wide, narrow);
            LW_UNROLL
            for (int k = 0; k < wide; k++) {
                float d = v[k] - off;
                part[0] += d;
                part[1] = fmaf(d, d, part[1]);
            }
        }
        sum[0] += part[0];
        sum[1] += part[1];
    }
}

LW_ON_DEVICE void norm_finish(const lw_cuda_norm *a, const norm_tile *t, int64_t begin,
                              int32_t first, const norm_kept *kept, float middle,
                              const norm_channel *channel, const int wide, const int narrow,
                              const int parts)
{
    LW_UNROLL
    for (int i = 0; i < NORM_VECTORS(wide, parts); i++) {
        float v[4];
        int32_t row = first + t->row + i * t->rows;
        if (first + i * t->rows >= (int32_t)a->hw)
            break;
        norm_vector(kept, i, v, wide, narrow);
        LW_UNROLL
        for (int k = 0; k < wide; k++)
            v[k] -= middle;
        norm_results(a, v, channel, wide);
        if (row < (int32_t)a->hw)
            norm_write(a, begin + (uint32_t)row * (uint32_t)a->c, v, wide);
    }
}

/*
 * A block for `span` neighbouring groups (x) of a sample (y), so that whole sectors of memory are read. A thread has the same
 * channels in every row; its elements stay in registers, or come again where they are too many. The mean's sums and those about
 * it go through the same code, which is fetched once.
 *
 * Where there are few pictures, fetching the code takes as long as what it does. Blocks then go through it before they wait for
 * the kernels before, with threads that have no rows.
 */
LW_ON_DEVICE void norm_near(const lw_cuda_norm *a, const int threads, const int wide,
                            const int narrow, const int parts, lw_two *room, lw_two *sums)
{
    norm_tile t = norm_find(a, threads, wide, parts);
    const int32_t row = t.row, turn = parts == 1 ? t.rows * NORM_VECTORS(wide, 1) : 1;
    const int32_t end = parts == 1 ? (int32_t)a->hw : 1; /* spread, all rows come at once */
    const bool again = end > turn;
    const float share = 1.0f / ((float)a->hw * (float)(t.of_group * wide));
    const int first_pass = a->rms ? 1 : 0;
    int32_t group = (int32_t)LW_BX * t.span, c = group * t.of_group * wide + t.column * wide;
    int64_t b = LW_BY, x = b * (int32_t)a->hw * a->x_pitch + c;
    norm_kept kept;
    norm_said said;
    norm_clear(&t, threads, parts, room);
    if (!a->fixed)
        LW_AWAIT_BEFORE();
    norm_say(a, c, &said, wide);
    LW_ROLLED
    for (int round = parts == 1; round < 2; round++) {
        norm_moments m = {0.0f, 0.0f};
        float middle = 0.0f;
        t.row = round ? row : NORM_NOWHERE;
        if (round)
            LW_AWAIT_BEFORE();
        LW_ROLLED
        for (int pass = first_pass; pass < 2; pass++) {
            float sum[2] = {0.0f, 0.0f};
            LW_ROLLED
            for (int32_t first = 0; first < end; first += turn) {
                if (again || pass == first_pass)
                    norm_read(a, &t, x, first, &kept, wide, narrow, parts);
                if (pass == first_pass && first == 0 && t.row < NORM_NOWHERE)
                    norm_say_more(a, b, c, &said, wide);
                norm_add(a, &t, first, &kept, middle, sum, wide, narrow, parts);
            }
            norm_sum(&t, threads, parts, room, sums, sum);
            m = norm_moments_of(a, sum[0], sum[1], share);
            middle += pass == 0 ? m.off : 0.0f;
        }
        norm_channel channel[4];
        norm_channels(&said, m, channel, wide);
        LW_ROLLED
        for (int32_t first = 0; first < end; first += turn) {
            if (again)
                norm_read(a, &t, x, first, &kept, wide, narrow, parts);
            norm_finish(a, &t, b * (int32_t)a->hw * a->c + c, first, &kept, middle, channel, wide, narrow, parts);
        }
        if ((a->mean || a->rstd) && t.row == 0 && t.column % t.of_group == 0)
            norm_tell(a, b * a->groups + group + t.group, middle + m.off, m.rstd);
    }
}

#define GROUP_NORM(name, threads, blocks, wide, narrow, parts)         \
    LW_KERNEL_EARLY(group_norm_##name, lw_cuda_norm, threads, blocks)  \
    {                                                                  \
        LW_SHARED lw_two room[LW_CUDA_NORM_PLACES], sums[LW_CUDA_SPAN];\
        norm_near(&a, threads, wide, narrow, parts, room, sums);       \
    }
GROUP_NORM(4, 256, 3, 4, 0, 1)
GROUP_NORM(4_spread, 256, 3, 4, 0, LW_CUDA_NORM_PARTS)
GROUP_NORM(2, 256, 3, 2, 0, 1)
GROUP_NORM(1, 256, 3, 1, 0, 1)
GROUP_NORM(4_bf16, 512, 2, 4, 1, 1)
GROUP_NORM(4_bf16_spread, 512, 2, 4, 1, LW_CUDA_NORM_PARTS)
GROUP_NORM(2_bf16, 512, 2, 2, 1, 1)
GROUP_NORM(1_bf16, 512, 2, 1, 1, 1)

enum { LAYER_KEPT = 24 }; /* elements of a lane: with 32 there would be room for two blocks alone */

/* A lane's vectors of a row from `first` on. */
LW_ON_DEVICE void norm_lane(const float *x, int32_t width, int32_t first, float *kept)
{
    LW_UNROLL
    for (int i = 0; i < LAYER_KEPT; i += 4) {
        int32_t c = first + (i / 4 * 32 + LW_TID % 32) * 4;
        if (c < width)
            lw_read(kept + i, x + c, 4);
        else
            LW_UNROLL
        for (int k = 0; k < 4; k++)
            kept[i + k] = 0.0f;
    }
}

/* Of pictures of one pixel a warp does a group, whose channels lie side by side, a multiple of four. */
LW_KERNEL(layer_norm, lw_cuda_norm, 256)
{
    const int32_t turn = LAYER_KEPT * 32, width = a.c / a.groups;
    int64_t group = LW_BX * 8 + LW_TID / 32, b = group / a.groups;
    int32_t c0 = (int32_t)(group % a.groups) * width;
    if (group >= a.rows)
        return;
    const float *x = (const float *)a.x + group * width;
    float kept[LAYER_KEPT], middle = 0.0f, sum = 0.0f, square = 0.0f;
    for (int32_t first = 0; first < width; first += turn) {
        norm_lane(x, width, first, kept);
        LW_UNROLL
        for (int i = 0; i < LAYER_KEPT; i++)
            sum += kept[i];
    }
    if (!a.rms)
        middle = lw_warp_sum(sum) / (float)width;
    sum = 0.0f;
    for (int32_t first = 0; first < width; first += turn) {
        if (width > turn)
            norm_lane(x, width, first, kept);
        LW_UNROLL
        for (int i = 0; i < LAYER_KEPT; i++) {
            bool there = first + (i / 4 * 32 + LW_TID % 32) * 4 < width;
            float d = there ? kept[i] - middle : 0.0f;
            sum += d;
            square = fmaf(d, d, square);
        }
    }
    sum = lw_warp_sum(sum);
    norm_moments m = norm_moments_of(&a, sum, lw_warp_sum(square), 1.0f / (float)width);
    for (int32_t first = 0; first < width; first += turn) {
        if (width > turn)
            norm_lane(x, width, first, kept);
        LW_UNROLL
        for (int i = 0; i < LAYER_KEPT; i += 4) {
            int32_t c = first + (i / 4 * 32 + LW_TID % 32) * 4;
            if (c < width) {
                float v[4];
                norm_channel channel[4];
                norm_said said;
                norm_say(&a, c0 + c, &said, 4);
                norm_say_more(&a, b, c0 + c, &said, 4);
                norm_channels(&said, m, channel, 4);
                LW_UNROLL
                for (int k = 0; k < 4; k++)
                    v[k] = kept[i + k] - middle;
                norm_results(&a, v, channel, 4);
                norm_write(&a, group * width + c, v, 4);
            }
        }
    }
    if (LW_TID % 32 == 0)
        norm_tell(&a, group, middle + m.off, m.rstd);
}

/* The log of a row's sum of exponentials, by its block. */
LW_ON_DEVICE double row_lse(double *room, const float *x, int64_t n)
{
    double top = -INFINITY, sum = 0.0;
    for (int64_t i = LW_TID; i < n; i += 256)
        top = fmax(top, (double)x[i]);
    top = lw_block_max(room, top);
    LW_ROLLED
    for (int64_t i = LW_TID; i < n; i += 256)
        sum += exp((double)x[i] - top);
    return top + log(lw_block_sum(room, sum));
}

/* A block for each row. */
LW_KERNEL(softmax, lw_cuda_softmax, 256)
{
    LW_SHARED double room[256];
    const float *x = a.x + LW_BX * a.n;
    double lse = row_lse(room, x, a.n);
    LW_ROLLED
    for (int64_t i = LW_TID; i < a.n; i += 256)
        a.y[LW_BX * a.n + i] = (float)exp((double)x[i] - lse);
}

/* A negative label: the row is skipped. One behind the row has no loss that is a number. */
LW_KERNEL(cross_entropy, lw_cuda_cross_entropy, 256)
{
    LW_SHARED double room[256];
    const float *x = a.x + LW_BX * a.n;
    double lse = row_lse(room, x, a.n);
    int32_t label = a.label[LW_BX];
    if (LW_TID != 0)
        return;
    if (a.loss)
        a.loss[LW_BX] = label < 0      ? 0.0f
                        : label >= a.n ? NAN
                                       : (float)(lse - (double)x[label]);
    if (a.lse)
        a.lse[LW_BX] = (float)lse;
}
