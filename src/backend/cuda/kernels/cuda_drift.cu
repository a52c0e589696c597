/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes of the drift field; formulas in kernels/drift/drift.h. Here are all but those of sums and affinities
 * (cuda_drift_sums.cu) and the two products (cuda_drift_mma.cu).
 *
 *   points       targets less a centre of their group, as high and low halves, along channels and across; norms, units
 *   distances    of all pairs, kept; sums of w d
 *   scale        S, and what the variant makes of it
 *   sums         of exponentials over rows, and over columns in parts of the samples, at all temperatures at once
 *   merge        the parts of columns, where there are more than one
 *   affinities   once for each pair and temperature, as high and low halves; the factors of V
 *   gather       V
 *   moments      products of V of two temperatures
 *   finish       m, lambda, loss, the report
 *   output       F and dX
 *
 * These are 9 launches and merge; where there are more than four temperatures, or their affinities take more than 1 GiB,
 * affinities and gather come again for the next of them. A pair takes 4 bytes and 4 for each temperature at hand. Sums have a
 * fixed order that depends on shapes alone.
 *
 * What one H200 should take, by counting; nothing of it was measured. Tensor cores do 989 TFLOP/s, by mma.sync about 600,
 * of which these loops are taken to reach 350: two blocks on a multiprocessor then need 700 of 1,230 issue slots, 62 % of
 * shared memory's time and, at that rate, two thirds of the second cache's. 4,096 samples, 8,192 targets, 768 channels and three
 * temperatures:
 *
 *   points       25 MB read twice, 50 written              0.05 ms
 *   distances    155 GFLOP (3 products), 134 MB            0.44
 *   sums         134 MB twice                              0.07
 *   affinities   134 MB read, 403 written, 0.1 G powers    0.14
 *   gather       464 GFLOP, 403 MB                         1.33
 *   moments      75 MB                                     0.02
 *   output       63 MB                                     0.02
 *   the others   scale, merge, finish; ten launches        0.03
 *   all                                                    2.1
 *
 * 16 slots of 64 samples, 224 targets and 192 channels: 32 and 96 blocks of products, 12 and 14 of the depth one after the
 * other at 0.5 us each, 4 us for each other pass and 1 us between two: 0.05 ms.
 */
#include "backend/cuda/kernels/cuda_drift.h"

enum { TAUS = LW_CUDA_TAUS };

/* ---- targets, centred --------------------------------------------------------------------------- */

enum { SEEN = 64, PLACES = 32, CHANNELS = 64, ACROSS = CHANNELS + 1 };

/* A quarter of what the centre is at a channel: the mean of up to 64 targets, evenly far apart. Any point that all vectors of
 * the group are near to would do; distances and V do not depend on it. */
LW_ON_DEVICE float drift_centre(const lw_cuda_drift *a, const drift_group *q, int32_t c)
{
    int32_t m = a->n + a->nu + a->np, seen = m < SEEN ? m : SEEN;
    float sum = 0.0f, share = 1.0f / (float)seen;
    for (int32_t s = LW_TID / CHANNELS; s < seen; s += 256 / CHANNELS) {
        int32_t j = (int32_t)((int64_t)s * m / seen);
        int32_t place = j < a->n + a->nu ? j : a->pos_at + j - a->n - a->nu;
        sum += c < a->c ? drift_vector(a, q, place)[c] * share : 0.0f;
    }
    return sum;
}

/* 64 channels of 32 places to shared memory, less the centre. */
LW_ON_DEVICE void drift_load(const lw_cuda_drift *a, const drift_group *q, int32_t p0, int32_t c0,
                             float *tile, float *centre)
{
    int32_t c = c0 + LW_TID % CHANNELS;
    centre[LW_TID] = drift_centre(a, q, c);
    LW_SYNC();
    float middle = centre[LW_TID % 64] + centre[64 + LW_TID % 64] + centre[128 + LW_TID % 64] +
                   centre[192 + LW_TID % 64];
    for (int p = LW_TID / CHANNELS; p < PLACES; p += 256 / CHANNELS) {
        const float *from = c < a->c ? drift_vector(a, q, p0 + p) : NULL;
        tile[p * ACROSS + LW_TID % CHANNELS] = from ? from[c] - middle : 0.0f;
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
LW_KERNEL(drift_points, lw_cuda_drift, 256)
{
    LW_SHARED float tile[PLACES * ACROSS], centre[256], mosts[256], by[PLACES];
    LW_SHARED double norms[256];
    int32_t b = (int32_t)LW_BY, p0 = (int32_t)LW_BX * PLACES;
    drift_group q = drift_group_of(&a, b);
    double norm = 0.0;
    float most = 0.0f;
    LW_ROLLED
    for (int32_t c0 = 0; c0 < a.depth; c0 += CHANNELS) {
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
        if (a.depth > CHANNELS) /* else it is still there */
            drift_load(&a, &q, p0, c0, tile, centre);
        drift_store(&a, b, p0, c0, tile, by);
    }
}

/* ---- S --------------------------------------------------------------------------------------- */

LW_ON_DEVICE double drift_sigma(const lw_cuda_drift *a, double scale)
{
    return a->variant == 1 ? 1.0 : fmax(scale / sqrt((double)a->c), 1e-3);
}

/* lw_drift_rule_of. Logits are multiplied by log2 e, so that exponentials are powers of two. */
LW_ON_DEVICE void drift_write_rule(const lw_cuda_drift *a, double scale, lw_cuda_drift_rule *r)
{
    double unit = a->variant == 1 ? 1.0 : fmax(scale, 1e-3), factor = 1.0;
    double mask = 100.0 * unit;
    r->scale = scale;
    r->v_unit = drift_sigma(a, scale);
    r->floor = a->rows_only || a->variant ? 0.0f : 1e-3f;
    r->inside = a->rows_only || a->variant != 2 ? 0.0f : 1e-30f;
    if (a->variant)
        mask = 1e6 * unit;
    if (a->variant == 2) {
        factor = sqrt((double)a->c);
        r->v_unit = 1.0;
    }
    if (isnan(scale)) /* then all results are */
        r->v_unit = scale;
    r->mask = (float)mask;
    for (int k = 0; k < a->k; k++)
        r->by[k] = (float)fmin(1.4426950408889634 / (unit * a->tau[k] * factor), 1e38);
}

/* S of all slots, or of slot x. */
LW_KERNEL(drift_scale, lw_cuda_drift, 256)
{
    LW_SHARED double room[256];
    int32_t groups = a.g * a.t / a.scales, slots = a.t / a.scales;
    int64_t tiles = (int64_t)((a.n + LW_CUDA_DRIFT_TILE - 1) / LW_CUDA_DRIFT_TILE) *
                    ((a.width + LW_CUDA_DRIFT_TILE - 1) / LW_CUDA_DRIFT_TILE);
    double sum = 0.0, wu = 0.0;
    for (int64_t e = LW_TID; e < groups * tiles; e += 256)
        sum += a.part[(e / tiles * a.scales + LW_BX) * tiles + e % tiles];
    for (int32_t g = LW_TID; a.nu && g < a.g; g += 256)
        wu += (double)a.w_u[g];
    sum = lw_block_sum(room, sum);
    wu = lw_block_sum(room, wu);
    if (LW_TID == 0)
        drift_write_rule(&a,
                         sum / ((double)a.n * (double)slots *
                                ((double)a.g * (double)(a.n + a.np) + (double)a.nu * wu)),
                         a.rule + LW_BX);
}

/* ---- F --------------------------------------------------------------------------------------- */

/* A number of V, from its two terms. */
LW_ON_DEVICE double drift_v(const lw_cuda_drift *a, int k, int64_t e)
{
    int64_t all = a->rows * a->c;
    return (double)(a->v[2 * k * all + e] + a->v[(2 * k + 1) * all + e]);
}

/* Sums of V_p V_q, q >= p, of a temperature p (y): a share of all numbers for each block. */
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

/* The statistics and lambda, in one block. */
LW_KERNEL(drift_finish, lw_cuda_drift, 256)
{
    LW_SHARED double room[256];
    LW_SHARED double moment[TAUS * TAUS];
    double count = (double)a.rows * (double)a.c, loss = 0.0, scale = 0.0;
    for (int e = 0; e < a.k * a.k; e++) {
        double sum = 0.0;
        for (int i = LW_TID; e / a.k <= e % a.k && i < a.moments; i += 256)
            sum += a.part[(int64_t)e * a.moments + i];
        sum = lw_block_sum(room, sum);
        if (LW_TID == 0)
            moment[e] = sum;
    }
    for (int t = LW_TID; t < a.scales; t += 256)
        scale += a.rule[t].scale;
    scale = lw_block_sum(room, scale) / (double)a.scales;
    if (LW_TID != 0)
        return;
    for (int p = 0; p < a.k; p++) {
        double mean = moment[p * a.k + p] / count;
        a.lambda[p] = a.variant == 1 ? 1.0 : sqrt(fmax(mean, 1e-8));
        if (a.report) {
            a.report[3 + p] = (float)a.lambda[p];
            a.report[3 + a.k + p] = (float)mean;
        }
    }
    for (int p = 0; p < a.k; p++)
        for (int q = p; q < a.k; q++)
            loss += (p == q ? 1.0 : 2.0) * moment[p * a.k + q] /
                    (count * a.lambda[p] * a.lambda[q]);
    if (a.loss)
        a.loss[0] = (float)loss;
    if (a.report) {
        a.report[0] = (float)scale;
        a.report[1] = (float)drift_sigma(&a, scale);
        a.report[2] = (float)loss;
    }
}

/* F and dX of a row (x). */
LW_KERNEL(drift_output, lw_cuda_drift, 128)
{
    int64_t all = a.rows * a.c, b = LW_BX / a.n, g = b / a.t, i = LW_BX % a.n;
    double down = -2.0 / ((double)all * drift_rule_of(&a, (int32_t)b)->v_unit), by[TAUS];
    int64_t to = ((g * a.n + i) * a.t + b % a.t) * a.c;
    LW_UNROLL
    for (int k = 0; k < TAUS; k++)
        by[k] = k < a.k ? 1.0 / a.lambda[k] : 0.0;
    for (int32_t c = LW_TID; c < a.c; c += 128) {
        double f = 0.0;
        LW_UNROLL
        for (int k = 0; k < TAUS; k++)
            if (k < a.k)
                f += drift_v(&a, k, LW_BX * a.c + c) * by[k];
        if (a.dx)
            a.dx[to + c] = (float)(down * f);
        if (a.f)
            a.f[to + c] = (float)f;
    }
}
