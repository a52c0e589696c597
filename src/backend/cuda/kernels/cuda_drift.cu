/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes of the drift field; formulas in kernels/drift/drift.h. Sums and affinities are in
 * cuda_drift_sums.cu, the two products in cuda_drift_mma.cu, all others here. "Halves" are f16
 * values whose sum is an f32 value (cuda_drift_mma.cu).
 *
 *   points       targets less a centre of their group, as high and low halves, along channels and across; norms, units
 *   distances    of all pairs, kept; sums of w d
 *   scale        S, and what the variant makes of it; not where each block of sums does that itself
 *   sums         of exponentials over rows, and over columns in parts of the samples, at all temperatures at once
 *   merge        the parts of columns, where there are more than one
 *   affinities   once for each pair and temperature, as high and low halves; the factors of V
 *   gather       V, as two terms
 *   moments      products of V of two temperatures
 *   output       m, lambda, F and dX; loss, the report
 *
 * These are 7 launches, and scale and merge where they are needed. Affinities and gather are
 * launched again for the next temperatures where there are more than four, or where affinities
 * would take more than 1 GiB. A pair takes 4 bytes, and 4 for each temperature at hand. Sums have a
 * fixed order that depends on shapes alone.
 *
 * What one H200 should take, an estimate by counting bytes and operations. The first kernels took
 * 4.09 and 0.134 ms there; docs/performance-h200.md has what later ones took. Tensor cores do 989
 * TFLOP/s, by mma.sync about 600, of which these loops are assumed to reach 380. 4,096 samples,
 * 8,192 targets, 768 channels and three temperatures:
 *
 *   points       25 MB read twice, 50 written              0.06 ms
 *   distances    116 GFLOP (3 products, pairs of samples   0.33
 *                once), 134 MB
 *   sums         134 MB twice                              0.15
 *   affinities   134 MB read, 403 written, 0.1 G powers    0.17
 *   gather       464 GFLOP, 403 MB                         1.25
 *   moments      150 MB                                    0.05
 *   output       90 MB                                     0.03
 *   the others   scale, merge; nine launches               0.03
 *   all                                                    2.1
 *
 * 16 slots of 64 samples, 224 targets and 192 channels: the two products have 32 and 192 blocks,
 * and 12 and at most 8 steps of the depth in turn, at 0.4 us each; 5 us for each other pass, 1 us
 * between two: 0.045 ms.
 */
#include "backend/cuda/kernels/cuda_drift.h"

enum { TAUS = LW_CUDA_TAUS, OUTPUT = 128, SHARES = 14 };

/* ---- targets, centred --------------------------------------------------------------------------- */

enum { SEEN = 16, PLACES = 32, CHANNELS = 64, ACROSS = CHANNELS + 1, KEPT = 3 };

/* A quarter of what the centre is at a channel: the mean of up to 16 targets, evenly far apart; of 64 where values are
 * rounded to bf16, which is the better the shorter they are. Any point that all vectors of the group are near to would do;
 * distances and V do not depend on it. */
LW_ON_DEVICE float drift_centre(const lw_cuda_drift *a, const drift_group *q, int32_t c)
{
    int32_t m = a->n + a->nu + a->np, seen = a->low ? 4 * SEEN : SEEN;
    seen = m < seen ? m : seen;
    int32_t apart = m / seen;
    float sum = 0.0f;
    LW_ROLLED
    for (int32_t first = LW_TID / CHANNELS; first < seen; first += SEEN) {
        LW_UNROLL
        for (int e = 0; e < SEEN; e += 256 / CHANNELS) {
            int32_t j = (first + e) * apart,
                    place = j < a->n + a->nu ? j : a->pos_at + j - a->n - a->nu;
            sum += first + e < seen && c < a->c ? drift_vector(a, q, place)[c] : 0.0f;
        }
    }
    return sum / (float)seen;
}

/* 64 channels of 32 places to shared memory, less the centre. */
LW_ON_DEVICE void drift_load(const lw_cuda_drift *a, const drift_group *q, int32_t p0, int32_t c0,
                             float *tile, float *centre)
{
    enum { STRIDE = 256 / CHANNELS };
    int32_t c = c0 + LW_TID % CHANNELS;
    int p = LW_TID / CHANNELS;
    centre[LW_TID] = drift_centre(a, q, c);
    LW_SYNC();
    float middle = centre[LW_TID % 64] + centre[64 + LW_TID % 64] + centre[128 + LW_TID % 64] +
                   centre[192 + LW_TID % 64];
    LW_UNROLL
    for (int e = 0; e < PLACES / STRIDE; e++) {
        const float *from = c < a->c ? drift_vector(a, q, p0 + p + e * STRIDE) : NULL;
        tile[(p + e * STRIDE) * ACROSS + LW_TID % CHANNELS] = from ? from[c] - middle : 0.0f;
    }
    LW_SYNC();
}

/* Two neighbours of a plane, and of the one of low halves. */
LW_ON_DEVICE void drift_put(uint16_t *to, int64_t plane, const uint32_t one[2],
                            const uint32_t two[2])
{
    *(uint32_t *)to = one[0] | two[0] << 16;
    *(uint32_t *)(to + plane) = one[1] | two[1] << 16;
}

/* Points, and targets turned. by: of each place, 1 over its unit */
LW_ON_DEVICE void drift_store(const lw_cuda_drift *a, int32_t b, int32_t p0, int32_t c0,
                              const float *tile, const float *by)
{
    uint32_t one[2], two[2];
    for (int e = LW_TID; e < PLACES * CHANNELS / 2; e += 256) {
        int p = e / (CHANNELS / 2), c = e % (CHANNELS / 2) * 2;
        float x = tile[p * ACROSS + c], y = tile[p * ACROSS + c + 1];
        drift_split(x * by[p], one);
        drift_split(y * by[p], two);
        if (a->low) {
            one[0] = lw_bf16_bits(x);
            two[0] = lw_bf16_bits(y);
        }
        if (p0 + p < a->width && c0 + c < a->depth)
            drift_put(a->points + ((int64_t)b * a->width + p0 + p) * a->depth + c0 + c,
                      a->points_plane, one, two);
        c = e / (PLACES / 2);
        p = e % (PLACES / 2) * 2;
        drift_split(tile[p * ACROSS + c] * by[p], one);
        drift_split(tile[(p + 1) * ACROSS + c] * by[p + 1], two);
        if (p0 + p < a->width && c0 + c < a->c)
            drift_put(a->turned + ((int64_t)b * a->c + c0 + c) * a->width + p0 + p, a->turned_plane,
                      one, two);
    }
}

/* Squared norm and unit of a place, of whose channels eight threads have seen a share each. */
LW_ON_DEVICE void drift_norm(const lw_cuda_drift *a, int32_t b, int32_t p0, const double *norms,
                             const float *mosts, float *by)
{
    double norm = 0.0;
    float most = 0.0f, unit;
    for (int e = 0; e < 8; e++) {
        norm += norms[LW_TID * 8 + e];
        most = fmaxf(most, mosts[LW_TID * 8 + e]);
    }
    unit = drift_unit(most, &by[LW_TID]);
    if (p0 + LW_TID < a->width) {
        a->norm[(int64_t)b * a->width + p0 + LW_TID] = (float)norm;
        a->unit[(int64_t)b * a->width + p0 + LW_TID] = unit;
    }
}

/* A block for 32 places (x) of a group (y), 64 channels at a time: for norms, then for points. */
LW_KERNEL_SHARING(drift_points, lw_cuda_drift, 256, 3)
{
    LW_SHARED float tiles[KEPT * PLACES * ACROSS], centre[256], mosts[256], by[PLACES];
    LW_SHARED double norms[256];
    int32_t b = (int32_t)LW_BY, p0 = (int32_t)LW_BX * PLACES;
    bool kept = a.depth <= KEPT * CHANNELS; /* between the two */
    drift_group q = drift_group_of(&a, b);
    double norm = 0.0;
    float most = 0.0f;
    LW_ROLLED
    for (int32_t c0 = 0; c0 < a.depth; c0 += CHANNELS) {
        float *tile = tiles + (kept ? c0 / CHANNELS * PLACES * ACROSS : 0);
        drift_load(&a, &q, p0, c0, tile, centre);
        for (int e = LW_TID % 8; e < CHANNELS; e += 8) {
            float x = tile[LW_TID / 8 * ACROSS + e];
            if (a.low)
                x = lw_bf16_to_float(lw_bf16_bits(x));
            norm += (double)x * (double)x;
            most = fmaxf(most, fabsf(x));
        }
    }
    norms[LW_TID] = norm;
    mosts[LW_TID] = most;
    LW_SYNC();
    if (LW_TID < PLACES)
        drift_norm(&a, b, p0, norms, mosts, by);
    LW_SYNC();
    LW_ROLLED
    for (int32_t c0 = 0; c0 < a.depth; c0 += CHANNELS) {
        float *tile = tiles + (kept ? c0 / CHANNELS * PLACES * ACROSS : 0);
        if (!kept)
            drift_load(&a, &q, p0, c0, tile, centre);
        drift_store(&a, b, p0, c0, tile, by);
    }
}

/* ---- S --------------------------------------------------------------------------------------- */

/* S of all slots, or of slot x. */
LW_KERNEL(drift_scale, lw_cuda_drift, 256)
{
    LW_SHARED double room[256];
    drift_make_rule(&a, (int32_t)LW_BX, room, a.rule + LW_BX);
}

/* ---- F --------------------------------------------------------------------------------------- */

/* An element of V, from its two terms. */
LW_ON_DEVICE double drift_v(const lw_cuda_drift *a, int k, int64_t e)
{
    int64_t all = a->rows * a->c;
    return (double)(a->v[2 * k * all + e] + a->v[(2 * k + 1) * all + e]);
}

/* Sums of V_p V_q, q >= p, of a temperature p (y): a share of all elements for each block. */
LW_KERNEL(drift_moments, lw_cuda_drift, 256)
{
    LW_SHARED double room[256];
    int64_t all = a.rows * a.c;
    int p = (int)LW_BY;
    double sum[TAUS] = {0.0};
    LW_EACH(e, all)
    {
        double v = drift_v(&a, p, e);
        LW_UNROLL
        for (int q = 0; q < TAUS; q++)
            if (q >= p && q < a.k)
                sum[q] += v * drift_v(&a, q, e);
    }
    LW_UNROLL
    for (int q = 0; q < TAUS; q++)
        if (q >= p && q < a.k) {
            double total = lw_block_sum(room, sum[q]);
            if (LW_TID == 0)
                a.part[(int64_t)(p * a.k + q) * a.moments + LW_BX] = total;
        }
}

/* What ends the field: a block's own copy. */
typedef struct drift_end {
    double room[TAUS * TAUS * SHARES], moment[TAUS * TAUS], lambda[TAUS];
    double by[TAUS], down; /* 1 over lambda; what dX is of F, times v_unit */
} drift_end;

/* Means of products of V and lambda, in each block of drift_output: that is shorter than another launch. */
LW_ON_DEVICE void drift_lambda(const lw_cuda_drift *a, drift_end *z)
{
    int pairs = a->k * a->k;
    for (int e = LW_TID; e < pairs * SHARES; e += OUTPUT) {
        int pair = e / SHARES;
        double sum = 0.0;
        for (int i = e % SHARES; pair / a->k <= pair % a->k && i < a->moments; i += SHARES)
            sum += a->part[(int64_t)pair * a->moments + i];
        z->room[e] = sum;
    }
    LW_SYNC();
    for (int e = LW_TID; e < pairs; e += OUTPUT) {
        double sum = 0.0;
        for (int i = 0; i < SHARES; i++)
            sum += z->room[e * SHARES + i];
        z->moment[e] = sum / ((double)a->rows * (double)a->c);
    }
    if (LW_TID == 0)
        z->down = -2.0 / ((double)a->rows * (double)a->c);
    LW_SYNC();
    if (LW_TID < a->k) {
        const double m = z->moment[LW_TID * a->k + LW_TID];
        double l = a->variant == 1 ? 1.0 : sqrt(m < 1e-8 ? 1e-8 : m);
        if (isnan(m)) /* of one slot: all results are */
            l = m;
        z->lambda[LW_TID] = l;
        z->by[LW_TID] = 1.0 / l;
    }
    LW_SYNC();
}

/* The statistics. */
LW_ON_DEVICE void drift_report(const lw_cuda_drift *a, drift_end *z)
{
    double loss = 0.0, scale = 0.0;
    for (int t = LW_TID; t < a->scales; t += OUTPUT)
        scale += a->rule[t].scale;
    scale = lw_block_sum(z->room, scale) / (double)a->scales;
    if (LW_TID != 0)
        return;
    LW_ROLLED
    for (int p = 0; p < a->k; p++)
        LW_ROLLED
    for (int q = p; q < a->k; q++)
        loss += (p == q ? 1.0 : 2.0) * z->moment[p * a->k + q] * z->by[p] * z->by[q];
    if (a->loss)
        a->loss[0] = (float)loss;
    if (!a->report)
        return;
    a->report[0] = (float)scale;
    a->report[1] = (float)drift_sigma(a, scale);
    a->report[2] = (float)loss;
    for (int p = 0; p < a->k; p++) {
        a->report[3 + p] = (float)z->lambda[p];
        a->report[3 + a->k + p] = (float)z->moment[p * a->k + p];
    }
}

/* F and dX of rows (x and so on), the statistics. */
LW_KERNEL(drift_output, lw_cuda_drift, 128)
{
    LW_SHARED drift_end z;
    drift_lambda(&a, &z);
    if (LW_BX == 0)
        drift_report(&a, &z);
    LW_ROLLED
    for (int64_t row = LW_BX; (a.f || a.dx) && row < a.rows; row += LW_BLOCKS) {
        uint32_t b = (uint32_t)row / (uint32_t)a.n, i = (uint32_t)row % (uint32_t)a.n;
        uint32_t g = b / (uint32_t)a.t, slot = b % (uint32_t)a.t;
        double down = z.down / drift_rule_of(&a, (int32_t)b)->v_unit;
        int64_t to = (((int64_t)g * a.n + i) * a.t + slot) * a.c;
        LW_ROLLED
        for (int32_t c = LW_TID; c < a.c; c += OUTPUT) {
            double f = 0.0;
            LW_UNROLL
            for (int k = 0; k < TAUS; k++)
                if (k < a.k)
                    f += drift_v(&a, k, row * a.c + c) * z.by[k];
            if (a.dx)
                a.dx[to + c] = (float)(down * f);
            if (a.f)
                a.f[to + c] = (float)f;
        }
    }
}
