/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drift field of one key; formulas in kernels/drift/drift.h. Distances are kept (N x M of each
 * group), sums of many are double and in a fixed order. One kernel for each of its passes.
 */
#include "backend/cuda/kernels/cuda_port.h"

/* lw_drift_rule, from S. */
typedef struct drift_rule {
    double unit, mask, factor, floor, inside, sigma, v_unit;
    int lambda;
} drift_rule;

LW_ON_DEVICE drift_rule drift_rule_of(const lw_cuda_drift *a)
{
    double scale = a->total[0], root = sqrt((double)a->c);
    drift_rule r;
    r.unit = fmax(scale, 1e-3);
    r.mask = 100.0 * r.unit;
    r.factor = 1.0;
    r.floor = 1e-3;
    r.inside = 0.0;
    r.sigma = r.v_unit = fmax(scale / root, 1e-3);
    r.lambda = 1;
    if (a->variant == 1) {
        r.unit = r.sigma = r.v_unit = 1.0;
        r.mask = 1e6;
        r.floor = 0.0;
        r.lambda = 0;
    } else if (a->variant == 2) {
        r.mask = 1e6 * r.unit;
        r.factor = root;
        r.floor = 0.0;
        r.inside = 1e-30;
        r.v_unit = 1.0;
    }
    if (a->rows_only)
        r.floor = r.inside = 0.0;
    if (isnan(scale)) /* then all results are */
        r.v_unit = scale;
    return r;
}

LW_ON_DEVICE int32_t drift_targets(const lw_cuda_drift *a)
{
    return a->n + a->nu + a->np;
}

/* Target j of group b: gen | uncond | pos. */
LW_ON_DEVICE const float *drift_target(const lw_cuda_drift *a, int64_t b, int32_t j)
{
    int64_t g = b / a->t, t = b % a->t, row = (int64_t)a->t * a->c;
    if (j < a->n)
        return a->x + (g * a->n + j) * row + t * a->c;
    j -= a->n;
    if (j < a->nu)
        return a->unc + (g * a->nu + j) * row + t * a->c;
    return a->pos + (g * a->np + j - a->nu) * row + t * a->c;
}

LW_ON_DEVICE double drift_weight(const lw_cuda_drift *a, int64_t b, int32_t j)
{
    return j >= a->n && j < a->n + a->nu ? (double)a->w_u[b / a->t] : 1.0;
}

LW_ON_DEVICE double drift_logit(const lw_cuda_drift *a, const drift_rule *r, int64_t b, int32_t i,
                                int32_t j, int k)
{
    double d = (double)a->d[(b * a->n + i) * drift_targets(a) + j] + (i == j ? r->mask : 0.0);
    return -d / (r->unit * a->tau[k] * r->factor);
}

/* Distances, not a number where vectors are not or lie out of the reach of kernels/drift/drift.h: a
 * block for 32 samples x 32 targets of a group, 16 channels at a time. x counts tiles, y groups. */
LW_KERNEL(drift_distances, lw_cuda_drift, 256)
{
    LW_SHARED float left[16][33], right[16][33];
    int32_t m = drift_targets(&a), across = (m + 31) / 32;
    int64_t b = LW_BY;
    int32_t i0 = (int32_t)(LW_BX / across) * 32, j0 = (int32_t)(LW_BX % across) * 32;
    int ty = LW_TID / 16, tx = LW_TID % 16;
    float sum[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    for (int32_t c0 = 0; c0 < a.c; c0 += 16) {
        for (int e = LW_TID; e < 512; e += 256) {
            int32_t c = c0 + e % 16, i = i0 + e / 16, j = j0 + e / 16;
            left[e % 16][e / 16] = c < a.c && i < a.n ? drift_target(&a, b, i)[c] : 0.0f;
            right[e % 16][e / 16] = c < a.c && j < m ? drift_target(&a, b, j)[c] : 0.0f;
        }
        LW_SYNC();
        for (int c = 0; c < 16; c++)
            LW_UNROLL
            for (int p = 0; p < 2; p++)
                LW_UNROLL
                for (int q = 0; q < 2; q++) {
                    float d = left[c][ty + 16 * p] - right[c][tx + 16 * q];
                    sum[p][q] = fmaf(d, d, sum[p][q]);
                }
        LW_SYNC();
    }
    LW_UNROLL
    for (int p = 0; p < 2; p++)
        LW_UNROLL
        for (int q = 0; q < 2; q++) {
            int32_t i = i0 + ty + 16 * p, j = j0 + tx + 16 * q;
            float far = sum[p][q] > 1e34f ? NAN : sum[p][q];
            if (i < a.n && j < m)
                a.d[(b * a.n + i) * m + j] = sqrtf(far < 1e-8f ? 1e-8f : far);
        }
}

/* Weighted distances of a row, a block each. */
LW_KERNEL(drift_scale_rows, lw_cuda_drift, 128)
{
    LW_SHARED double room[128];
    int32_t m = drift_targets(&a);
    double sum = 0.0;
    for (int32_t j = LW_TID; j < m; j += 128)
        sum += (double)a.d[LW_BX * m + j] * drift_weight(&a, LW_BX / a.n, j);
    sum = lw_block_sum(room, sum);
    if (LW_TID == 0)
        a.part[LW_BX] = sum;
}

/* S, in one block. */
LW_KERNEL(drift_scale, lw_cuda_drift, 256)
{
    LW_SHARED double room[256];
    double sum = 0.0, wu = 0.0;
    for (int64_t i = LW_TID; i < a.rows; i += 256)
        sum += a.part[i];
    for (int32_t g = LW_TID; a.nu && g < a.g; g += 256)
        wu += (double)a.w_u[g];
    sum = lw_block_sum(room, sum);
    wu = lw_block_sum(room, wu);
    if (LW_TID == 0)
        a.total[0] = sum / ((double)a.n * (double)a.t *
                            ((double)a.g * (double)(a.n + a.np) + (double)a.nu * wu));
}

/* Log-sum-exps over a row (x) at a temperature (y). */
LW_KERNEL(drift_rows, lw_cuda_drift, 128)
{
    LW_SHARED double room[128];
    drift_rule r = drift_rule_of(&a);
    int32_t m = drift_targets(&a), i = (int32_t)(LW_BX % a.n);
    int64_t b = LW_BX / a.n;
    int k = (int)LW_BY;
    double top = -INFINITY, sum = 0.0;
    for (int32_t j = LW_TID; j < m; j += 128)
        top = fmax(top, drift_logit(&a, &r, b, i, j, k));
    top = lw_block_max(room, top);
    for (int32_t j = LW_TID; j < m; j += 128)
        sum += exp(drift_logit(&a, &r, b, i, j, k) - top);
    sum = lw_block_sum(room, sum);
    if (LW_TID == 0)
        a.row[k * a.rows + LW_BX] = (float)(top + log(sum));
}

/* The same over the samples, a thread for each target: neighbours read neighbours. */
LW_KERNEL(drift_columns, lw_cuda_drift, 128)
{
    drift_rule r = drift_rule_of(&a);
    int32_t m = drift_targets(&a);
    int64_t all = (int64_t)a.g * a.t * m;
    int k = (int)LW_BY;
    LW_EACH(e, all)
    {
        double top = -INFINITY, sum = 0.0;
        for (int32_t i = 0; i < a.n; i++)
            top = fmax(top, drift_logit(&a, &r, e / m, i, (int32_t)(e % m), k));
        for (int32_t i = 0; i < a.n; i++)
            sum += exp(drift_logit(&a, &r, e / m, i, (int32_t)(e % m), k) - top);
        a.column[k * all + e] = (float)(top + log(sum));
    }
}

LW_ON_DEVICE float drift_affinity(const lw_cuda_drift *a, const drift_rule *r, int64_t b, int32_t i,
                                  int32_t j, int k)
{
    int32_t m = drift_targets(a);
    double l = drift_logit(a, r, b, i, j, k), lr = (double)a->row[k * a->rows + b * a->n + i];
    double lc = (double)a->column[((int64_t)k * a->g * a->t + b) * m + j];
    double p = a->rows_only ? exp(l - lr) : sqrt(exp(2.0 * l - lr - lc) + r->inside);
    return (float)(fmax(p, r->floor) * drift_weight(a, b, j));
}

/*
 * V: a block for 16 samples x 64 channels of a group at one temperature; 32 targets at a time, as
 * differences to the sample's own vector (the coefficients' sum is 0). x counts tiles, y groups and
 * temperatures.
 */
LW_KERNEL(drift_gather, lw_cuda_drift, 256)
{
    LW_SHARED float weight[16][33], near[32][65];
    drift_rule r = drift_rule_of(&a);
    int32_t m = drift_targets(&a), across = (a.c + 63) / 64, groups = a.g * a.t;
    int64_t b = LW_BY % groups;
    int k = (int)(LW_BY / groups), row = LW_TID / 16, lane = LW_TID % 16;
    int32_t i0 = (int32_t)(LW_BX / across) * 16, c0 = (int32_t)(LW_BX % across) * 64, i = i0 + row;
    float own[4], sum[2][4] = {{0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f}};
    double all[2] = {0.0, 0.0};
    LW_UNROLL
    for (int q = 0; q < 4; q++) {
        int32_t c = c0 + lane + 16 * q;
        own[q] = i < a.n && c < a.c ? drift_target(&a, b, i)[c] : 0.0f;
    }
    for (int32_t j0 = 0; j0 < m; j0 += 32) {
        for (int e = LW_TID; e < 512; e += 256) {
            int32_t s = i0 + e / 32, j = j0 + e % 32;
            weight[e / 32][e % 32] = s < a.n && j < m ? drift_affinity(&a, &r, b, s, j, k) : 0.0f;
        }
        for (int e = LW_TID; e < 2048; e += 256) {
            int32_t j = j0 + e / 64, c = c0 + e % 64;
            near[e / 64][e % 64] = j < m && c < a.c ? drift_target(&a, b, j)[c] : 0.0f;
        }
        LW_SYNC();
        for (int e = 0; e < 32 && j0 + e < m; e++) {
            float w = weight[row][e];
            bool pos = j0 + e >= a.n + a.nu;
            all[0] += pos ? 0.0 : (double)w;
            all[1] += pos ? (double)w : 0.0;
            LW_UNROLL
            for (int q = 0; q < 4; q++) {
                float d = near[e][lane + 16 * q] - own[q];
                sum[0][q] = fmaf(pos ? 0.0f : w, d, sum[0][q]);
                sum[1][q] = fmaf(pos ? w : 0.0f, d, sum[1][q]);
            }
        }
        LW_SYNC();
    }
    LW_UNROLL
    for (int q = 0; q < 4; q++) {
        int32_t c = c0 + lane + 16 * q;
        if (i < a.n && c < a.c)
            a.v[((k * a.rows) + b * a.n + i) * a.c + c] =
                (float)((all[0] * (double)sum[1][q] - all[1] * (double)sum[0][q]) / r.v_unit);
    }
}

/* Sums of V_p V_q of a row (x), a pair of temperatures (y), a block each. */
LW_KERNEL(drift_moments, lw_cuda_drift, 128)
{
    LW_SHARED double room[128];
    int p = (int)LW_BY / a.k, q = (int)LW_BY % a.k;
    double sum = 0.0;
    if (p > q)
        return;
    for (int32_t c = LW_TID; c < a.c; c += 128)
        sum += (double)a.v[(p * a.rows + LW_BX) * a.c + c] *
               (double)a.v[(q * a.rows + LW_BX) * a.c + c];
    sum = lw_block_sum(room, sum);
    if (LW_TID == 0)
        a.part[LW_BY * a.rows + LW_BX] = sum;
}

/* The statistics and lambda, in one block. total: S, then lambda. */
LW_KERNEL(drift_finish, lw_cuda_drift, 256)
{
    LW_SHARED double room[256];
    LW_SHARED double moment[LW_CUDA_TAUS * LW_CUDA_TAUS];
    drift_rule r = drift_rule_of(&a);
    double count = (double)a.rows * (double)a.c, loss = 0.0;
    for (int e = 0; e < a.k * a.k; e++) {
        double sum = 0.0;
        for (int64_t i = LW_TID; e / a.k <= e % a.k && i < a.rows; i += 256)
            sum += a.part[e * a.rows + i];
        sum = lw_block_sum(room, sum);
        if (LW_TID == 0)
            moment[e] = sum;
    }
    if (LW_TID != 0)
        return;
    for (int p = 0; p < a.k; p++) {
        double mean = moment[p * a.k + p] / count;
        a.total[1 + p] = r.lambda ? sqrt(fmax(mean, 1e-8)) : 1.0;
        if (a.report) {
            a.report[3 + p] = (float)a.total[1 + p];
            a.report[3 + a.k + p] = (float)mean;
        }
    }
    for (int p = 0; p < a.k; p++)
        for (int q = p; q < a.k; q++)
            loss += (p == q ? 1.0 : 2.0) * moment[p * a.k + q] /
                    (count * a.total[1 + p] * a.total[1 + q]);
    if (a.loss)
        a.loss[0] = (float)loss;
    if (a.report) {
        a.report[0] = (float)a.total[0];
        a.report[1] = (float)r.sigma;
        a.report[2] = (float)loss;
    }
}

LW_KERNEL(drift_output, lw_cuda_drift, 256)
{
    drift_rule r = drift_rule_of(&a);
    int64_t all = a.rows * a.c;
    double down = -2.0 / ((double)all * r.v_unit);
    LW_EACH(e, all)
    {
        int64_t b = e / a.c / a.n, i = e / a.c % a.n, c = e % a.c;
        double f = 0.0;
        for (int k = 0; k < a.k; k++)
            f += (double)a.v[k * all + e] / a.total[1 + k];
        int64_t at = ((b / a.t * a.n + i) * a.t + b % a.t) * a.c + c;
        if (a.dx)
            a.dx[at] = (float)(down * f);
        if (a.f)
            a.f[at] = (float)f;
    }
}
