/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two products of the drift field, on tensor cores (mma.sync): distances by
 * |x|^2 + |t|^2 - 2 x . t, and V as affinities times targets.
 *
 * Precision. Every f32 value is split into a high and a low half, f16 values whose sum it is, 22
 * bits in all. A product is high high + high low + low high; low low, 2^-22 of it, is left out. The
 * largest f16 is 65,504, the smallest 2^-24. So each target is divided by a power of two of its
 * own, `unit`, such that its largest element is 2^13 or more. Distances are multiplied by the units
 * afterwards; for V the affinities were multiplied before, so that the sums need no correction.
 *
 * Tiles. A block computes 128 x 128 sums, a warp 64 x 32 of them. Shared memory is three stages of
 * 16 of the depth: one is multiplied while two are being copied. A stage has 4 planes of 128 rows;
 * the three are all of the block's 48 KiB, and two blocks share an SM. Rows are not padded. To
 * avoid bank conflicts between the eight rows that are read or written at a time, the two chunks of
 * 16 bytes of a row are swapped in every other group of four rows.
 *
 * Rounding. Tensor cores truncate sums where the FPU rounds them, so that a long sum would come out
 * too small. Hence each 16 of the depth are summed from zero, the small products first, and these
 * partial sums are added in ordinary f32.
 */
#include "backend/cuda/kernels/cuda_drift.h"

enum {
    SIDE = LW_CUDA_DRIFT_TILE,
    STEP = LW_CUDA_DRIFT_DEPTH,
    PLANE = SIDE * STEP,
    STAGE = 4 * PLANE, /* left high, left low, right high, right low */
    STAGES = 3,
    FLOATS = SIDE + 1, /* between channels, where differences are taken */
    NORMS = 2 * STEP * FLOATS /* behind them: norms, units, weights */
};

typedef union drift_room {
    uint16_t half[STAGES * STAGE];
    float f[NORMS + 5 * SIDE];
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

LW_ON_DEVICE void drift_mma(float sum[4], const uint32_t left[4], const uint32_t right[2])
{
    lw_mma_f16(sum, left, right);
}

/* The same from zero. */
LW_ON_DEVICE void drift_mma_first(float sum[4], const uint32_t left[4], const uint32_t right[2],
                                  const drift_halves halves)
{
    if (halves == HALVES)
        lw_mma_first_f16(sum, left, right);
    else
        lw_mma_first_bf16(sum, left, right);
}

/* Where the first (0) or second eight of a row's depth are. */
LW_ON_DEVICE int drift_chunk(int row, int second)
{
    return row * STEP + (second ^ (row / 4 & 1)) * 8;
}

/* One stage's products. */
LW_ON_DEVICE void drift_multiply_stage(float sum[4][4][4], const uint16_t *stage,
                                       const drift_halves halves)
{
    const bool low = halves != HIGH_BF16;
    int lane = LW_TID % 32;
    const uint16_t *l = stage + LW_TID / 128 * 64 * STEP + drift_chunk(lane % 16, lane / 16);
    const uint16_t *r = stage + 2 * PLANE + LW_TID / 32 % 4 * 32 * STEP +
                        drift_chunk(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    uint32_t right[2][4], right_low[2][4], left[4], left_low[4]; /* right: of two n each */
    LW_UNROLL
    for (int n = 0; n < 2; n++) {
        lw_ldmatrix_x4(right[n], r + n * 16 * STEP);
        if (low)
            lw_ldmatrix_x4(right_low[n], r + PLANE + n * 16 * STEP);
    }
    LW_UNROLL
    for (int m = 0; m < 4; m++) {
        lw_ldmatrix_x4(left, l + m * 16 * STEP);
        if (low)
            lw_ldmatrix_x4(left_low, l + PLANE + m * 16 * STEP);
        LW_UNROLL
        for (int two = 0; two < 2; two++) { /* of the four n */
            float part[2][4];
            LW_UNROLL
            for (int n = 0; low && n < 2; n++)
                drift_mma_first(part[n], left_low, right[two] + n * 2, halves);
            LW_UNROLL
            for (int n = 0; low && n < 2; n++)
                drift_mma(part[n], left, right_low[two] + n * 2);
            LW_UNROLL
            for (int n = 0; n < 2; n++)
                if (low)
                    drift_mma(part[n], left, right[two] + n * 2);
                else
                    drift_mma_first(part[n], left, right[two] + n * 2, halves);
            LW_UNROLL
            for (int e = 0; e < 8; e++)
                sum[m][two * 2 + e / 4][e % 4] += part[e / 4][e % 4];
        }
    }
}

/* What a thread copies: eight of the depth of a row on either side, high and low, of one stage after the other. */
typedef struct drift_copy {
    const uint16_t *left, *right;
    int to;
} drift_copy;

LW_ON_DEVICE void drift_copy_stage(drift_copy *q, uint16_t *room, int64_t left_plane,
                                   int64_t right_plane, const drift_halves halves)
{
    uint16_t *to = room + q->to;
    lw_copy_async(to, q->left, true);
    lw_copy_async(to + 2 * PLANE, q->right, true);
    if (halves != HIGH_BF16) {
        lw_copy_async(to + PLANE, q->left + left_plane, true);
        lw_copy_async(to + 3 * PLANE, q->right + right_plane, true);
    }
    q->left += STEP;
    q->right += STEP;
}

LW_ON_DEVICE int drift_next(int stage)
{
    return stage < (STAGES - 1) * STAGE ? stage + STAGE : stage - (STAGES - 1) * STAGE;
}

/* sum = left right^T over the depth, a multiple of 16. What is behind the rows of left or right is not to
 * be used. Warps that have nothing but that rest. */
LW_ON_DEVICE void drift_multiply(float sum[4][4][4], uint16_t *room, drift_matrix left,
                                 drift_matrix right, int32_t depth, const drift_halves halves)
{
    int row = LW_TID / 2, chunk = drift_chunk(row, LW_TID % 2);
    bool busy = LW_TID / 128 * 64 < left.rows && LW_TID / 32 % 4 * 32 < right.rows;
    drift_copy copy = {left.high + (row < left.rows ? row * left.pitch : 0) + LW_TID % 2 * 8,
                       right.high + (row < right.rows ? row * right.pitch : 0) + LW_TID % 2 * 8,
                       chunk};
    drift_zeros(sum);
    drift_copy_stage(&copy, room, left.plane, right.plane, halves);
    LW_COPY_COMMIT();
    copy.to += STAGE;
    if (depth > STEP)
        drift_copy_stage(&copy, room, left.plane, right.plane, halves);
    LW_COPY_COMMIT();
    LW_ROLLED
    for (int32_t rest = depth; rest > 0; rest -= STEP) {
        lw_copy_wait_for(1);
        LW_SYNC();
        copy.to = drift_next(copy.to);
        if (rest > 2 * STEP)
            drift_copy_stage(&copy, room, left.plane, right.plane, halves);
        LW_COPY_COMMIT();
        if (busy)
            drift_multiply_stage(sum, room + drift_next(copy.to) - chunk, halves);
    }
}

/* ---- distances ------------------------------------------------------------------------------- */

/* Norms and units of 128 places to shared memory: [SIDE] each. Norms of what is not there, places behind `end` among it, are
 * infinite: so are its distances, and none is close. */
LW_ON_DEVICE void drift_norms(const lw_cuda_drift *a, int32_t b, int32_t p0, int32_t end, float *to)
{
    int64_t at = (int64_t)b * a->width;
    int32_t place = p0 + LW_TID % SIDE;
    at += place < a->width ? place : a->width - 1;
    float v = LW_TID < SIDE ? a->norm[at] : a->low ? 1.0f : a->unit[at];
    to[LW_TID] = LW_TID < SIDE && !(place < end && drift_there(a, place)) ? INFINITY : v;
}

/* Products to squared distances. True: one is so small beside the norms that little of it is left: below 1/64, f32's
 * rounding of these is 2^-18 of it. A sample has no distance to itself. */
LW_ON_DEVICE bool drift_squares(int32_t i0, int32_t j0, const float *norm, float sum[4][4][4])
{
    bool close = false;
    const float *other = norm + 2 * SIDE + drift_tile_column(0, 0);
    norm += drift_tile_row(0, 0);
    LW_UNROLL
    for (int m = 0; m < 8; m++) {
        int row = m / 2 * 16 + m % 2 * 8;
        int32_t i = i0 + drift_tile_row(0, 0) + row - j0 - drift_tile_column(0, 0);
        float from = norm[row], of = -2.0f * norm[SIDE + row];
        LW_UNROLL
        for (int p = 0; p < 8; p++) {
            int place = p / 2 * 8 + p % 2;
            float *d = &sum[m / 2][p / 2][m % 2 * 2 + p % 2], both = from + other[place];
            float apart = both + *d * of * other[SIDE + place];
            *d = i == place ? both - both : apart;
            close |= apart < 0.015625f * both && i != place;
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
            LW_UNROLL
            for (int half = 0; half < 2; half++) { /* of this thread's rows */
                float x[4];
                LW_UNROLL
                for (int m = 0; m < 4; m++)
                    x[m] = room[c * FLOATS + drift_tile_row(half * 2 + m / 2, m % 2)];
                LW_UNROLL
                for (int p = 0; p < 8; p++) {
                    float t = other[c * FLOATS + drift_tile_column(p / 2, p % 2)];
                    LW_UNROLL
                    for (int m = 0; m < 4; m++) {
                        float *to = &sum[half * 2 + m / 2][p / 2][m % 2 * 2 + p % 2], d = x[m] - t;
                        *to = fmaf(d, d, *to);
                    }
                }
            }
        }
        LW_SYNC();
    }
}

/* The root of a value from 1e-8 to 1e34, and of what is none. */
LW_ON_DEVICE float drift_root(float d)
{
#ifdef __CUDACC__
    float by;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(by) : "f"(d));
    float root = d * by;
    return fmaf(fmaf(-root, root, d), 0.5f * by, root);
#else
    return sqrtf(d);
#endif
}

/* Weights of 128 places to shared memory, -infinity of those that are not there. */
LW_ON_DEVICE void drift_weights(const lw_cuda_drift *a, int32_t b, int32_t j0, float *to)
{
    float uncond = a->nu ? a->w_u[b / a->t] : 0.0f;
    if (LW_TID < SIDE)
        to[LW_TID] = drift_there(a, j0 + LW_TID) ? drift_weight(a, uncond, j0 + LW_TID) : -INFINITY;
}

/* Roots to memory, infinite where there is no target; this thread's share of the sum of w d, in f32 up to eight of a row.
 * Those between samples, from a tile above the diagonal (twice), come to the one below it, too, in whose eight rows a warp
 * writes 32 bytes each. */
LW_ON_DEVICE double drift_roots(const lw_cuda_drift *a, int32_t b, int32_t i0, int32_t j0,
                                const float *weights, float sum[4][4][4])
{
    int32_t i = i0 + drift_tile_row(0, 0), j = j0 + drift_tile_column(0, 0);
    int32_t across = j0 >= i0 + SIDE ? a->n - j : 0, width = a->width;
    float *row = a->d + ((int64_t)b * a->n + i) * width + j;
    float *turned = a->d + ((int64_t)b * a->n + j) * width + i;
    double all = 0.0;
    weights += drift_tile_column(0, 0);
    LW_UNROLL
    for (int m = 0; m < 8; m++) {
        float some = 0.0f, twice = 0.0f;
        int down = m / 2 * 16 + m % 2 * 8;
        LW_UNROLL
        for (int p = 0; p < 8; p++) {
            int place = p / 2 * 8 + p % 2;
            float *at = &sum[m / 2][p / 2][m % 2 * 2 + p % 2], d = *at, weight = weights[place];
            d = !(d <= 1e34f) ? NAN : drift_root(d < 1e-8f ? 1e-8f : d);
            some += weight != -INFINITY ? d * weight : 0.0f;
            *at = weight != -INFINITY ? d : INFINITY;
            if (place < across) {
                twice += d;
                turned[place * (int64_t)width + down] = d;
            }
        }
        LW_UNROLL
        for (int n = 0; n < 4; n++)
            if (i + down < a->n && j + n * 8 < width)
                *(lw_two *)(row + n * 8) =
                    (lw_two){{sum[m / 2][n][m % 2 * 2], sum[m / 2][n][m % 2 * 2 + 1]}};
        all += i + down < a->n ? (double)(some + twice) : 0.0;
        row += (int64_t)8 * width;
    }
    return all;
}

/* Distances, not a number where vectors are not or lie out of the reach of kernels/drift/drift.h. x counts tiles, y
 * groups. Tiles below the diagonal that are all between samples are written by those above it. */
LW_ON_DEVICE void drift_measure(const lw_cuda_drift *a, drift_room *room, const drift_halves halves)
{
    int32_t across = (a->width + SIDE - 1) / SIDE, b = (int32_t)LW_BY;
    int32_t i0 = (int32_t)LW_BX / across * SIDE, j0 = (int32_t)LW_BX % across * SIDE;
    if (j0 + SIDE <= i0) {
        if (LW_TID == 0)
            a->part[(int64_t)b * LW_BLOCKS + LW_BX] = 0.0;
        return;
    }
    const uint16_t *points = a->points + (int64_t)b * a->width * a->depth;
    drift_matrix left = {points + (int64_t)i0 * a->depth, a->points_plane, a->depth, a->n - i0};
    drift_matrix right = {points + (int64_t)j0 * a->depth, a->points_plane, a->depth,
                          a->width - j0};
    float sum[4][4][4];
    drift_multiply(sum, room->half, left, right, a->depth, halves);
    LW_SYNC();
    drift_norms(a, b, i0, a->n, room->f + NORMS);
    drift_norms(a, b, j0, a->width, room->f + NORMS + 2 * SIDE);
    drift_weights(a, b, j0, room->f + NORMS + 4 * SIDE);
    LW_SYNC();
    bool close = drift_squares(i0, j0, room->f + NORMS, sum);
    if (lw_block_max(room->d, close ? 1.0 : 0.0) > 0.0)
        drift_differences(a, b, i0, j0, room->f, sum);
    double all = drift_roots(a, b, i0, j0, room->f + NORMS + 4 * SIDE, sum);
    all = lw_block_sum(room->d, all);
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

/* V = sum_{neg} A * sum_{pos} A_ij t_j - sum_{pos} A * sum_{neg} A_ij t_j, in two terms, that of the negatives first. x
 * counts tiles of samples and channels and terms, y groups and the temperatures at hand. */
LW_KERNEL_SHARING(drift_gather, lw_cuda_drift, 256, 2)
{
    LW_SHARED LW_ALIGNED16 drift_room room;
    int32_t across = (a.c + SIDE - 1) / SIDE, groups = a.g * a.t;
    int32_t b = (int32_t)LW_BY % groups, k = (int32_t)LW_BY / groups, term = (int32_t)LW_BX % 2;
    int32_t i0 = (int32_t)LW_BX / 2 / across * SIDE, c0 = (int32_t)LW_BX / 2 % across * SIDE;
    int32_t first = term ? a.pos_at : 0, depth = term ? a.width - a.pos_at : a.pos_at;
    int64_t row = (int64_t)b * a.n + i0;
    drift_matrix left = {a.affinity + (k * a.rows + row) * a.width + first, a.affinity_plane,
                         a.width, a.n - i0};
    drift_matrix right = {a.turned + ((int64_t)b * a.c + c0) * a.width + first, a.turned_plane,
                          a.width, a.c - c0};
    float sum[4][4][4];
    drift_multiply(sum, room.half, left, right, depth, HALVES);
    row += drift_tile_row(0, 0);
    c0 += drift_tile_column(0, 0);
    const float *by = a.side + (2 * k + term) * a.rows + row;
    float *v = a.v + ((2 * (a.k_first + k) + term) * a.rows + row) * a.c + c0;
    int32_t rows = a.n - i0 - drift_tile_row(0, 0), columns = a.c - c0;
    LW_UNROLL
    for (int m = 0; m < 8; m++) {
        float f = m * 8 < rows ? by[m * 8] : 0.0f;
        LW_UNROLL
        for (int p = 0; p < 8; p++)
            if (m * 8 < rows && p / 2 * 8 + p % 2 < columns)
                v[p / 2 * 8 + p % 2] = sum[m / 2][p / 2][m % 2 * 2 + p % 2] * f;
        v += 8 * (int64_t)a.c;
    }
}
