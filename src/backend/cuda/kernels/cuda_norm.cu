/* SPDX-License-Identifier: Apache-2.0 */
/* Group normalisation, softmax, cross-entropy. */
#include "backend/cuda/kernels/cuda_port.h"

/* What normalising makes of a number: (x - middle) factor + offset, and an activation up to SiLU. */
typedef struct norm_channel {
    float factor, offset;
} norm_channel;

/* What sums about a middle say of n numbers: how far the mean is off it, one over the deviation. */
typedef struct norm_moments {
    float off, rstd;
} norm_moments;

/* What channels have of their own: y = normal * scale + shift. */
typedef struct norm_said {
    float scale[4], shift[4];
} norm_said;

/* Channels c, c + 1, .. of sample b. */
LW_ON_DEVICE norm_said norm_say(const lw_cuda_norm *a, int64_t b, int32_t c, const int wide)
{
    float gamma[4] = {1.0f, 1.0f, 1.0f, 1.0f}, beta[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    float scale[4] = {0.0f, 0.0f, 0.0f, 0.0f}, shift[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    norm_said s;
    if (a->gamma)
        lw_read(gamma, a->gamma + c, wide);
    if (a->beta)
        lw_read(beta, a->beta + c, wide);
    if (a->scale)
        lw_read(scale, a->scale + b * a->scale_pitch + c, wide);
    if (a->shift)
        lw_read(shift, a->shift + b * a->shift_pitch + c, wide);
    LW_UNROLL
    for (int k = 0; k < wide; k++) {
        s.scale[k] = gamma[k] * (1.0f + scale[k]);
        s.shift[k] = fmaf(beta[k], 1.0f + scale[k], shift[k]);
    }
    return s;
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

LW_ON_DEVICE norm_moments norm_moments_of(const lw_cuda_norm *a, float sum, float square, float n)
{
    float off = a->rms ? 0.0f : sum / n;
    float variance = fmaf(-off, off, square / n);
    return (norm_moments){off, 1.0f / sqrtf((variance > 0.0f ? variance : 0.0f) + a->eps)};
}

LW_ON_DEVICE void norm_tell(const lw_cuda_norm *a, int64_t group, float mean, float rstd)
{
    if (a->mean)
        a->mean[group] = mean;
    if (a->rstd)
        a->rstd[group] = rstd;
}

/* Numbers of x from `at` on. */
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

/* Any width: a block for each group (x) of each sample (y), whose numbers come three times. */
LW_KERNEL(group_norm, lw_cuda_norm, 256)
{
    LW_SHARED double room[256];
    int64_t g = LW_BX, b = LW_BY;
    int32_t width = a.c / a.groups, c0 = (int32_t)g * width;
    int64_t n = a.hw * width, begin = b * a.hw * a.c + c0;
    float sum = 0.0f, square = 0.0f;
    for (int64_t i = LW_TID; i < n; i += 256)
        sum += norm_number(&a, begin + i / width * a.c + i % width);
    float middle = (float)(lw_block_sum(room, (double)sum) / (double)n);
    middle = a.rms ? 0.0f : middle;
    sum = 0.0f;
    for (int64_t i = LW_TID; i < n; i += 256) {
        float d = norm_number(&a, begin + i / width * a.c + i % width) - middle;
        sum += d;
        square = fmaf(d, d, square);
    }
    double all = lw_block_sum(room, (double)sum);
    norm_moments m = norm_moments_of(&a, (float)all, (float)lw_block_sum(room, (double)square),
                                     (float)n);
    for (int64_t i = LW_TID; i < n; i += 256) {
        int64_t at = i / width * a.c + i % width;
        norm_channel channel;
        norm_said said = norm_say(&a, b, c0 + (int32_t)(i % width), 1);
        norm_channels(&said, m, &channel, 1);
        float v = norm_number(&a, begin + at) - middle;
        norm_results(&a, &v, &channel, 1);
        norm_write(&a, begin + at, &v, 1);
    }
    if (LW_TID == 0)
        norm_tell(&a, b * a.groups + g, middle + m.off, m.rstd);
}

/* Vectors of a thread of a block of groups. */
#define NORM_VECTORS(wide) ((wide) == 1 ? 16 : LW_CUDA_NORM_KEPT / (wide))

/* A thread's numbers, as they came: f32, or bf16 two by two. */
typedef union norm_kept {
    float f32[LW_CUDA_NORM_KEPT];
    uint32_t bf16[LW_CUDA_NORM_KEPT / 2];
} norm_kept;

/* The vectors of a block's groups: `across` in a row, `of_group` of each; rows come `rows` at a time. */
typedef struct norm_tile {
    int threads, across, of_group, rows, span;
    int column, row; /* the thread's own */
    int group, place; /* its group; where it leaves sums, those of a group side by side */
} norm_tile;

/* Sums of n numbers of each thread over the threads of its group: a warp adds up a group. */
LW_ON_DEVICE void norm_sum(const norm_tile *t, float (*room)[LW_CUDA_NORM_MOST],
                           float (*sums)[LW_CUDA_SPAN], float *v, const int n)
{
    const int each = t->rows * t->of_group;
    LW_UNROLL
    for (int k = 0; k < n; k++)
        if (t->row < t->rows)
            room[k][t->place] = v[k];
    LW_SYNC();
    LW_ROLLED
    for (int g = LW_TID / 32; g < t->span; g += t->threads / 32)
        LW_UNROLL
    for (int k = 0; k < n; k++) {
        float sum = 0.0f;
        LW_UNROLL_BY(4)
        for (int m = LW_TID % 32; m < each; m += 32)
            sum += room[k][g * each + m];
        sum = lw_warp_sum(sum);
        if (LW_TID % 32 == 0)
            sums[k][g] = sum;
    }
    LW_SYNC();
    LW_UNROLL
    for (int k = 0; k < n; k++)
        v[k] = sums[k][t->group];
}

/* A thread's numbers of rows from `first` on, zeros where there is none; x: its first. */
LW_ON_DEVICE void norm_read(const lw_cuda_norm *a, const norm_tile *t, int64_t x, int32_t first,
                            norm_kept *kept, const int wide, const int narrow)
{
    LW_UNROLL
    for (int i = 0; i < NORM_VECTORS(wide); i++) {
        int32_t row = first + t->row + i * t->rows;
        int64_t at = x + (int64_t)row * a->c;
        bool there = t->row < t->rows && row < a->hw;
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

/*
 * A block for `span` neighbouring groups (x) of a sample (y), so that whole sectors of memory are read. A thread has the same
 * channels in every row; its numbers stay in registers, or come again where they are too many.
 */
LW_ON_DEVICE void norm_near(const lw_cuda_norm *a, const int threads, const int wide,
                            const int narrow, float (*room)[LW_CUDA_NORM_MOST],
                            float (*sums)[LW_CUDA_SPAN])
{
    int32_t width = a->c / a->groups, hw = (int32_t)a->hw;
    norm_tile t = {.threads = threads, .of_group = width / wide, .span = a->span};
    t.across = t.of_group * t.span;
    t.rows = threads / t.across;
    t.column = LW_TID % t.across;
    t.row = LW_TID / t.across;
    t.group = t.column / t.of_group;
    t.place = t.group * t.rows * t.of_group + t.row * t.of_group + t.column % t.of_group;
    int32_t c = (int32_t)LW_BX * t.span * width + t.column * wide;
    int64_t b = LW_BY, begin = b * a->hw * a->c + c;
    const float n = (float)hw * (float)width;
    const int32_t turn = t.rows * NORM_VECTORS(wide);
    norm_kept kept;
    float v[4], middle = 0.0f, sum[2] = {0.0f, 0.0f};
    LW_AWAIT_BEFORE();
    const norm_said said = norm_say(a, b, c, wide); /* on its way with the first numbers */
    for (int32_t first = 0; first < hw && !(a->rms && hw > turn); first += turn) {
        norm_read(a, &t, begin, first, &kept, wide, narrow);
        LW_UNROLL
        for (int i = 0; i < NORM_VECTORS(wide); i++) {
            norm_vector(&kept, i, v, wide, narrow);
            LW_UNROLL
            for (int k = 0; k < wide; k++)
                sum[0] += v[k];
        }
    }
    if (!a->rms) {
        norm_sum(&t, room, sums, sum, 1);
        middle = sum[0] / n;
    }
    sum[0] = 0.0f;
    for (int32_t first = 0; first < hw; first += turn) {
        if (hw > turn)
            norm_read(a, &t, begin, first, &kept, wide, narrow);
        LW_UNROLL
        for (int i = 0; i < NORM_VECTORS(wide); i++) {
            if (first + i * t.rows >= hw) /* of all threads: short code for what is small */
                break;
            bool there = t.row < t.rows && first + t.row + i * t.rows < hw;
            norm_vector(&kept, i, v, wide, narrow);
            LW_UNROLL
            for (int k = 0; k < wide; k++) {
                float d = there ? v[k] - middle : 0.0f;
                sum[0] += d;
                sum[1] = fmaf(d, d, sum[1]);
            }
        }
    }
    norm_sum(&t, room, sums, sum, 2);
    norm_moments m = norm_moments_of(a, sum[0], sum[1], n);
    norm_channel channel[4];
    norm_channels(&said, m, channel, wide);
    for (int32_t first = 0; first < hw; first += turn) {
        if (hw > turn)
            norm_read(a, &t, begin, first, &kept, wide, narrow);
        LW_UNROLL
        for (int i = 0; i < NORM_VECTORS(wide); i++) {
            int32_t row = first + t.row + i * t.rows;
            if (first + i * t.rows >= hw)
                break;
            norm_vector(&kept, i, v, wide, narrow);
            LW_UNROLL
            for (int k = 0; k < wide; k++)
                v[k] -= middle;
            norm_results(a, v, channel, wide);
            if (t.row < t.rows && row < hw)
                norm_write(a, begin + (int64_t)row * a->c, v, wide);
        }
    }
    if (t.row == 0 && t.column % t.of_group == 0)
        norm_tell(a, b * a->groups + c / width, middle + m.off, m.rstd);
}

#define GROUP_NORM(name, threads, blocks, wide, narrow)                \
    LW_KERNEL_EARLY(group_norm_##name, lw_cuda_norm, threads, blocks)  \
    {                                                                  \
        LW_SHARED float room[2][LW_CUDA_NORM_MOST];                    \
        LW_SHARED float sums[2][LW_CUDA_SPAN];                         \
        norm_near(&a, threads, wide, narrow, room, sums);              \
    }
GROUP_NORM(4, 256, 3, 4, 0)
GROUP_NORM(2, 256, 3, 2, 0)
GROUP_NORM(1, 256, 3, 1, 0)
GROUP_NORM(4_bf16, 512, 2, 4, 1)
GROUP_NORM(2_bf16, 512, 2, 2, 1)
GROUP_NORM(1_bf16, 512, 2, 1, 1)

enum { LAYER_KEPT = 24 }; /* numbers of a lane: with 32 there would be room for two blocks alone */

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
    norm_moments m = norm_moments_of(&a, sum, lw_warp_sum(square), (float)width);
    for (int32_t first = 0; first < width; first += turn) {
        if (width > turn)
            norm_lane(x, width, first, kept);
        LW_UNROLL
        for (int i = 0; i < LAYER_KEPT; i += 4) {
            int32_t c = first + (i / 4 * 32 + LW_TID % 32) * 4;
            if (c < width) {
                float v[4];
                norm_channel channel[4];
                norm_said said = norm_say(&a, b, c0 + c, 4);
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
