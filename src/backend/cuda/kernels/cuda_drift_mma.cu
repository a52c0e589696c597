/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two products of the drift field, on tensor cores: distances by |x|^2 + |t|^2 - 2 x . t, and V as affinities times
 * targets. Every number is the sum of a high and a low half of f16, 22 bits in all, and a product is high high + high low +
 * low high; low low, 2^-22 of it, is left out. f16 ends at 65,504 and, below, at 2^-24: targets come over a power of two of
 * their own, `unit`, the greatest of its numbers being 2^13 or more. Distances are multiplied by units again; of V, the
 * affinities were, so that nothing of them is left for the sums.
 *
 * A block makes 128 x 128 sums, a warp 64 x 32 of them. 16 of the depth are in shared memory while the 16 behind them are
 * on their way: 4 planes of 128 rows, twice, are all of its 48 KiB, and two blocks share a multiprocessor. Tensor cores cut
 * sums off where others round them, so that a long sum would come out too small: each 16 of the depth are summed up from
 * zero, the small products first, and the rest is added as everywhere.
 */
#include "backend/cuda/kernels/cuda_drift.h"
#include "backend/cuda/kernels/cuda_fragment.h"

enum {
    SIDE = LW_CUDA_DRIFT_TILE,
    STEP = LW_CUDA_DRIFT_DEPTH,
    PITCH = STEP + 8,
    PLANE = SIDE * PITCH,
    STAGE = 4 * PLANE, /* left high, left low, right high, right low */
    FLOATS = SIDE + 1  /* between channels, where differences are taken */
};

typedef union drift_room {
    uint16_t half[2 * STAGE];
    float f[2 * STEP * FLOATS];
    double d[256];
} drift_room;

/* What products are of: halves of f16, or high halves of bf16 alone. */
typedef enum drift_halves { HALVES, HIGH_BF16 } drift_halves;

/* Rows of a tile, the depth side by side, aligned to 16 bytes. */
typedef struct drift_matrix {
    const uint16_t *high;
    int64_t plane; /* halves from the high to the low ones */
    int32_t pitch, rows;
} drift_matrix;

/* Where a thread's sums lie in the tile: sum[m][n][2 h + e]. */
LW_ON_DEVICE int drift_tile_row(int m, int h)
{
    return LW_TID / 128 * 64 + m * 16 + h * 8 + LW_TID % 32 / 4;
}
LW_ON_DEVICE int drift_tile_column(int n, int e)
{
    return LW_TID / 32 % 4 * 32 + n * 8 + LW_TID % 4 * 2 + e;
}

LW_ON_DEVICE void drift_zeros(float sum[4][4][4])
{
    LW_UNROLL
    for (int e = 0; e < 64; e++)
        sum[e / 16][e / 4 % 4][e % 4] = 0.0f;
}

LW_ON_DEVICE void drift_mma(float sum[4], const uint32_t left[4], const uint32_t right[2],
                            const drift_halves halves)
{
    if (halves == HALVES)
        lw_mma_f16(sum, left, right);
    else
        lw_mma_bf16(sum, left, right);
}

/* One stage's products. */
LW_ON_DEVICE void drift_multiply_stage(float sum[4][4][4], const uint16_t *stage,
                                       const drift_halves halves)
{
    const bool low = halves != HIGH_BF16;
    const uint16_t *l = stage + drift_tile_row(0, 0) * PITCH + LW_TID % 4 * 2;
    const uint16_t *r = stage + 2 * PLANE + LW_TID / 32 % 4 * 32 * PITCH + lw_fragment_lane(PITCH);
    uint32_t right[4][2], right_low[4][2], left[4], left_low[4];
    LW_UNROLL
    for (int n = 0; n < 4; n++) {
        lw_right_fragment(right[n], r + n * 8 * PITCH);
        if (low)
            lw_right_fragment(right_low[n], r + PLANE + n * 8 * PITCH);
    }
    LW_UNROLL
    for (int m = 0; m < 4; m++) {
        float part[4][4] = {{0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f},
                            {0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f}};
        lw_left_fragment(left, l + m * 16 * PITCH, PITCH);
        if (low)
            lw_left_fragment(left_low, l + PLANE + m * 16 * PITCH, PITCH);
        LW_UNROLL
        for (int n = 0; low && n < 4; n++)
            drift_mma(part[n], left_low, right[n], halves);
        LW_UNROLL
        for (int n = 0; low && n < 4; n++)
            drift_mma(part[n], left, right_low[n], halves);
        LW_UNROLL
        for (int n = 0; n < 4; n++)
            drift_mma(part[n], left, right[n], halves);
        LW_UNROLL
        for (int n = 0; n < 4; n++)
            LW_UNROLL
            for (int i = 0; i < 4; i++)
                sum[m][n][i] += part[n][i];
    }
}

/* Multiplies the rows of all sums so far. */
LW_ON_DEVICE void drift_turn(float sum[4][4][4], const float *by, int32_t rows)
{
    LW_UNROLL
    for (int m = 0; m < 8; m++) {
        int row = drift_tile_row(m / 2, m % 2);
        float f = row < rows ? by[row] : 0.0f;
        LW_UNROLL
        for (int p = 0; p < 8; p++)
            sum[m / 2][p / 2][m % 2 * 2 + p % 2] *= f;
    }
}

/* sum = left right^T over the depth, a multiple of 16. At `turn` of the depth the rows
 * of what was summed up are multiplied by ratio, if there is one. Warps that have no rows or no columns rest. */
LW_ON_DEVICE void drift_multiply(float sum[4][4][4], uint16_t *room, drift_matrix left,
                                 drift_matrix right, int32_t depth, const drift_halves halves,
                                 const float *ratio, int32_t turn)
{
    int row = LW_TID / 2, part = LW_TID % 2 * 8;
    bool l = row < left.rows, r = row < right.rows;
    bool busy = LW_TID / 128 * 64 < left.rows && LW_TID / 32 % 4 * 32 < right.rows;
    drift_zeros(sum);
    uint32_t from_left = l ? (uint32_t)(row * left.pitch + part) : 0;
    uint32_t from_right = r ? (uint32_t)(row * right.pitch + part) : 0;
    LW_ROLLED
    for (int32_t k0 = -STEP, at = STAGE; k0 < depth; k0 += STEP, at = STAGE - at) {
        LW_COPY_WAIT();
        LW_SYNC();
        if (k0 + STEP < depth) {
            uint16_t *to = room + (STAGE - at) + row * PITCH + part;
            lw_copy_async(to, left.high + from_left, l);
            lw_copy_async(to + 2 * PLANE, right.high + from_right, r);
            if (halves != HIGH_BF16) {
                lw_copy_async(to + PLANE, left.high + left.plane + from_left, l);
                lw_copy_async(to + 3 * PLANE, right.high + right.plane + from_right, r);
            }
            from_left += STEP;
            from_right += STEP;
        }
        if (ratio && k0 == turn)
            drift_turn(sum, ratio, left.rows);
        if (k0 >= 0 && busy)
            drift_multiply_stage(sum, room + at, halves);
    }
}

/* ---- distances ------------------------------------------------------------------------------- */

/* Products to squared distances. True: one is so small beside the norms that little of it is left: below 1/64, f32's
 * rounding of these is 2^-18 of it. A sample has no distance to itself. */
LW_ON_DEVICE bool drift_squares(const lw_cuda_drift *a, int32_t b, int32_t i0, int32_t j0,
                                float sum[4][4][4])
{
    const float *norm = a->norm + (int64_t)b * a->width, *unit = a->unit + (int64_t)b * a->width;
    bool close = false;
    int32_t j = j0 + drift_tile_column(0, 0), last = a->width - 1;
    float to[8], by[8];
    LW_UNROLL
    for (int p = 0; p < 8; p++) {
        int32_t place = j + p / 2 * 8 + p % 2, at = place < last ? place : last;
        to[p] = norm[at];
        by[p] = a->low ? -2.0f : -2.0f * unit[at];
    }
    LW_UNROLL
    for (int m = 0; m < 8; m++) {
        int32_t i = i0 + drift_tile_row(m / 2, m % 2), at = i < last ? i : last;
        float from = norm[at], of = a->low ? 1.0f : unit[at];
        LW_UNROLL
        for (int p = 0; p < 8; p++) {
            float *d = &sum[m / 2][p / 2][m % 2 * 2 + p % 2], both = from + to[p];
            int32_t place = j + p / 2 * 8 + p % 2;
            *d = i == place ? both - both : both + *d * of * by[p];
            close |= *d < 0.015625f * both && i < a->n && i != place && drift_there(a, place);
        }
    }
    return close;
}

/* The same by differences of the vectors as they are given, 16 channels at a time. room: two of [16][FLOATS] */
LW_ON_DEVICE void drift_differences(const lw_cuda_drift *a, int32_t b, int32_t i0, int32_t j0,
                                    float *room, float sum[4][4][4])
{
    drift_group q = drift_group_of(a, b);
    float *other = room + STEP * FLOATS;
    drift_zeros(sum);
    LW_ROLLED
    for (int32_t c0 = 0; c0 < a->c; c0 += STEP) {
        LW_ROLLED
        for (int e = LW_TID; e < STEP * SIDE; e += 256) {
            int32_t c = c0 + e % STEP, i = i0 + e / STEP, j = j0 + e / STEP;
            const float *t = c < a->c && j < a->width ? drift_vector(a, &q, j) : NULL;
            room[e % STEP * FLOATS + e / STEP] = c < a->c && i < a->n ? q.x[i * q.row + c] : 0.0f;
            other[e % STEP * FLOATS + e / STEP] = t ? t[c] : 0.0f;
        }
        LW_SYNC();
        LW_ROLLED
        for (int c = 0; c < STEP; c++) {
            float x[8];
            LW_UNROLL
            for (int m = 0; m < 8; m++)
                x[m] = room[c * FLOATS + drift_tile_row(m / 2, m % 2)];
            LW_UNROLL
            for (int p = 0; p < 8; p++) {
                float t = other[c * FLOATS + drift_tile_column(p / 2, p % 2)];
                LW_UNROLL
                for (int m = 0; m < 8; m++) {
                    float *to = &sum[m / 2][p / 2][m % 2 * 2 + p % 2], d = x[m] - t;
                    *to = fmaf(d, d, *to);
                }
            }
        }
        LW_SYNC();
    }
}

/* Roots to memory, infinite where there is no target; this thread's share of the sum of w d. */
LW_ON_DEVICE double drift_roots(const lw_cuda_drift *a, int32_t b, int32_t i0, int32_t j0,
                                float sum[4][4][4])
{
    float uncond = a->nu ? a->w_u[b / a->t] : 0.0f;
    int32_t j = j0 + drift_tile_column(0, 0);
    double all = 0.0;
    LW_UNROLL
    for (int m = 0; m < 8; m++) {
        int32_t i = i0 + drift_tile_row(m / 2, m % 2);
        float *row = a->d + ((int64_t)b * a->n + i) * a->width + j;
        LW_UNROLL
        for (int p = 0; p < 8; p++) {
            int32_t place = j + p / 2 * 8 + p % 2;
            float d = sum[m / 2][p / 2][m % 2 * 2 + p % 2];
            d = !(d <= 1e34f) ? NAN : sqrtf(d < 1e-8f ? 1e-8f : d);
            if (i >= a->n || place >= a->width)
                continue;
            if (drift_there(a, place))
                all += (double)(d * drift_weight(a, uncond, place));
            row[p / 2 * 8 + p % 2] = drift_there(a, place) ? d : INFINITY;
        }
    }
    return all;
}

/* Distances, not a number where vectors are not or lie out of the reach of kernels/drift/drift.h. x counts tiles, y
 * groups. */
LW_ON_DEVICE void drift_measure(const lw_cuda_drift *a, drift_room *room, const drift_halves halves)
{
    int32_t across = (a->width + SIDE - 1) / SIDE, b = (int32_t)LW_BY;
    int32_t i0 = (int32_t)LW_BX / across * SIDE, j0 = (int32_t)LW_BX % across * SIDE;
    const uint16_t *points = a->points + (int64_t)b * a->width * a->depth;
    drift_matrix left = {points + (int64_t)i0 * a->depth, a->points_plane, a->depth, a->n - i0};
    drift_matrix right = {points + (int64_t)j0 * a->depth, a->points_plane, a->depth, a->width - j0};
    float sum[4][4][4];
    drift_multiply(sum, room->half, left, right, a->depth, halves, NULL, 0);
    LW_SYNC();
    bool close = drift_squares(a, b, i0, j0, sum);
    if (lw_block_max(room->d, close ? 1.0 : 0.0) > 0.0)
        drift_differences(a, b, i0, j0, room->f, sum);
    double all = lw_block_sum(room->d, drift_roots(a, b, i0, j0, sum));
    if (LW_TID == 0)
        a->part[(int64_t)b * LW_BLOCKS + LW_BX] = all;
}

LW_KERNEL_SHARING(drift_distances, lw_cuda_drift, 256, 2)
{
    LW_SHARED LW_ALIGNED16 drift_room room;
    drift_measure(&a, &room, HALVES);
}

LW_KERNEL_SHARING(drift_distances_bf16, lw_cuda_drift, 256, 2)
{
    LW_SHARED LW_ALIGNED16 drift_room room;
    drift_measure(&a, &room, HIGH_BF16);
}

/* ---- V --------------------------------------------------------------------------------------- */

/* V = sum_{neg} A * sum_{pos} A_ij t_j - sum_{pos} A * sum_{neg} A_ij t_j: a row of what was summed up over negatives is
 * multiplied by what makes it right when all is multiplied by the first factor. x counts tiles of samples and channels, y
 * groups and the temperatures at hand. */
LW_KERNEL_SHARING(drift_gather, lw_cuda_drift, 256, 2)
{
    LW_SHARED LW_ALIGNED16 drift_room room;
    int32_t across = (a.c + SIDE - 1) / SIDE, groups = a.g * a.t;
    int32_t b = (int32_t)LW_BY % groups, k = (int32_t)LW_BY / groups;
    int32_t i0 = (int32_t)LW_BX / across * SIDE, c0 = (int32_t)LW_BX % across * SIDE;
    int64_t row0 = (int64_t)b * a.n + i0;
    const float *ratio = a.side + 2 * k * a.rows + row0;
    drift_matrix left = {a.affinity + (k * a.rows + row0) * a.width, a.affinity_plane, a.width,
                         a.n - i0};
    drift_matrix right = {a.turned + ((int64_t)b * a.c + c0) * a.width, a.turned_plane, a.width,
                          a.c - c0};
    float sum[4][4][4];
    drift_multiply(sum, room.half, left, right, a.width, HALVES, ratio, a.pos_at);
    drift_turn(sum, ratio + a.rows, a.n - i0);
    LW_UNROLL
    for (int m = 0; m < 8; m++) {
        int row = drift_tile_row(m / 2, m % 2);
        int32_t c = c0 + drift_tile_column(0, 0);
        float *v = a.v + ((a.k_first + k) * a.rows + row0 + row) * a.c + c;
        LW_UNROLL
        for (int p = 0; p < 8; p++)
            if (row < a.n - i0 && c + p / 2 * 8 + p % 2 < a.c)
                v[p / 2 * 8 + p % 2] = sum[m / 2][p / 2][m % 2 * 2 + p % 2];
    }
}
