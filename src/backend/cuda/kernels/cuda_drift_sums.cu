/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of exponentials over rows and columns of the drift field's distances, and affinities. */
#include "backend/cuda/kernels/cuda_drift.h"

enum { TAUS = LW_CUDA_TAUS };

/* ---- sums of exponentials over rows and columns ------------------------------------------------- */

/* The least distance so far and sums of e^(least - d) at all temperatures. Exponents are differences that are rounded less
 * than the distances behind them, so f32 does; what is summed up is double beyond 8 terms. */
typedef struct drift_run {
    float least;
    double sum[TAUS];
} drift_run;

LW_ON_DEVICE void drift_run_begin(drift_run *r)
{
    r->least = INFINITY;
    LW_UNROLL
    for (int k = 0; k < TAUS; k++)
        r->sum[k] = 0.0;
}

/* Eight more; those that are not there are infinite. */
LW_ON_DEVICE void drift_run_add(const lw_cuda_drift *a, const float *by, drift_run *r,
                                const float d[8])
{
    float least = r->least;
    LW_UNROLL
    for (int i = 0; i < 8; i++)
        least = fminf(least, d[i]);
    if (isinf(least)) /* none so far */
        return;
    LW_UNROLL
    for (int k = 0; k < TAUS; k++)
        if (k < a->k) {
            float sum = 0.0f, scale = by[k];
            LW_UNROLL
            for (int i = 0; i < 8; i++)
                sum += lw_exp2((least - d[i]) * scale);
            r->sum[k] = r->sum[k] * (double)exp2f((least - r->least) * scale) + (double)sum;
        }
    r->least = least;
}

typedef struct drift_runs {
    double sum[TAUS][256];
    float least[256];
} drift_runs;

LW_ON_DEVICE void drift_run_put(const lw_cuda_drift *a, drift_runs *all, const drift_run *r)
{
    all->least[LW_TID] = r->least;
    LW_UNROLL
    for (int k = 0; k < TAUS; k++)
        if (k < a->k)
            all->sum[k][LW_TID] = r->sum[k];
}

/* The runs of so many threads, `step` apart, as one. */
LW_ON_DEVICE double drift_run_join(const drift_runs *all, int first, int step, int count, int k,
                                   float by, float *least)
{
    double sum = 0.0;
    *least = INFINITY;
    for (int i = 0; i < count; i++)
        *least = fminf(*least, all->least[first + i * step]);
    for (int i = 0; i < count; i++)
        sum += all->sum[k][first + i * step] *
               (double)exp2f((*least - all->least[first + i * step]) * by);
    return sum;
}

/* A sample's distance to itself is a mask. */
LW_ON_DEVICE float drift_masked(const lw_cuda_drift *a, const lw_cuda_drift_rule *r, int64_t row,
                                int32_t i, int32_t place)
{
    return a->d[row * a->width + place] + (i == place ? r->mask : 0.0f);
}

/* A warp for each of 8 rows. */
LW_ON_DEVICE void drift_row_sums(const lw_cuda_drift *a, const lw_cuda_drift_rule *one,
                                 drift_runs *all, int64_t block)
{
    int64_t row = block * LW_CUDA_DRIFT_ROWS + LW_TID / 32;
    drift_run run;
    drift_run_begin(&run);
    if (row < a->rows) {
        const lw_cuda_drift_rule *r = one ? one : drift_rule_of(a, (int32_t)(row / a->n));
        int32_t i = (int32_t)(row % a->n);
        LW_ROLLED
        for (int32_t place = LW_TID % 32; place < a->width; place += 256) {
            float d[8];
            LW_UNROLL
            for (int e = 0; e < 8; e++)
                d[e] = place + e * 32 < a->width ? drift_masked(a, r, row, i, place + e * 32)
                                                 : INFINITY;
            drift_run_add(a, r->by, &run, d);
        }
    }
    drift_run_put(a, all, &run);
    LW_SYNC();
    row = block * LW_CUDA_DRIFT_ROWS + LW_TID % 8;
    if (LW_TID / 8 < a->k && row < a->rows) {
        int k = LW_TID / 8;
        float least, by = (one ? one : drift_rule_of(a, (int32_t)(row / a->n)))->by[k];
        double sum = drift_run_join(all, LW_TID % 8 * 32, 1, 32, k, by, &least);
        a->row_least[row] = least;
        a->row[k * a->rows + row] = (float)(0.5 * log2(sum));
    }
}

/* Four threads for each of 64 columns, over the samples of a part. */
LW_ON_DEVICE void drift_column_sums(const lw_cuda_drift *a, const lw_cuda_drift_rule *one,
                                    drift_runs *all, int64_t block)
{
    int32_t across = (a->width + LW_CUDA_DRIFT_COLUMNS - 1) / LW_CUDA_DRIFT_COLUMNS;
    int32_t first = (int32_t)(block % across) * LW_CUDA_DRIFT_COLUMNS;
    int32_t part = (int32_t)(block / across) % a->parts, b = (int32_t)(block / across) / a->parts;
    int32_t span = (a->n + a->parts - 1) / a->parts, end = (part + 1) * span;
    const lw_cuda_drift_rule *r = one ? one : drift_rule_of(a, b);
    int64_t columns = (int64_t)a->g * a->t * a->width;
    int32_t place = first + LW_TID % 64;
    drift_run run;
    drift_run_begin(&run);
    end = end < a->n ? end : a->n;
    LW_ROLLED
    for (int32_t i = part * span + LW_TID / 64 * 8; place < a->width && i < end; i += 32) {
        float d[8];
        LW_UNROLL
        for (int e = 0; e < 8; e++)
            d[e] = i + e < end ? drift_masked(a, r, (int64_t)b * a->n + i + e, i + e, place)
                               : INFINITY;
        drift_run_add(a, r->by, &run, d);
    }
    drift_run_put(a, all, &run);
    LW_SYNC();
    for (int e = LW_TID; e < 64 * a->k; e += 256) {
        int k = e / 64;
        int64_t at = (int64_t)b * a->width + first + e % 64;
        float least;
        double sum = drift_run_join(all, e % 64, 64, 4, k, r->by[k], &least);
        if (first + e % 64 >= a->width)
            continue;
        if (a->parts == 1) {
            a->column_least[at] = least;
            a->column[k * columns + at] = (float)(0.5 * log2(sum));
        } else {
            a->part_least[part * columns + at] = least;
            a->part_sum[((int64_t)part * a->k + k) * columns + at] = sum;
        }
    }
}

/* Rows first, then columns. Where few blocks summed up distances, each makes S of them itself. */
LW_KERNEL(drift_sums, lw_cuda_drift, 256)
{
    LW_SHARED drift_runs all;
    LW_SHARED lw_cuda_drift_rule rule;
    const lw_cuda_drift_rule *one = NULL;
    if (a.s_in_sums) {
        drift_make_rule(&a, 0, all.sum[0], &rule);
        LW_SYNC();
        if (LW_TID == 0 && LW_BX == 0)
            a.rule[0] = rule;
        one = &rule;
    }
    int64_t rows = (a.rows + LW_CUDA_DRIFT_ROWS - 1) / LW_CUDA_DRIFT_ROWS;
    if (LW_BX < rows)
        drift_row_sums(&a, one, &all, LW_BX);
    else
        drift_column_sums(&a, one, &all, LW_BX - rows);
}

/* The parts of a column (x) at a temperature (y), one after the other. */
LW_KERNEL(drift_merge, lw_cuda_drift, 128)
{
    int64_t columns = (int64_t)a.g * a.t * a.width;
    int k = (int)LW_BY;
    LW_EACH(at, columns)
    {
        float least = INFINITY, by = drift_rule_of(&a, (int32_t)(at / a.width))->by[k];
        double sum = 0.0;
        for (int p = 0; p < a.parts; p++)
            least = fminf(least, a.part_least[p * columns + at]);
        for (int p = 0; p < a.parts; p++)
            sum += a.part_sum[((int64_t)p * a.k + k) * columns + at] *
                   (double)exp2f((least - a.part_least[p * columns + at]) * by);
        if (k == 0)
            a.column_least[at] = least;
        a.column[k * columns + at] = (float)(0.5 * log2(sum));
    }
}

/* ---- affinities ------------------------------------------------------------------------------ */

/* From the distance, the least ones of its row and column, and halves of their logarithms. Exponents are at most 0 but for
 * rounding: where they are far below it, f32's rounding of them is nothing beside the greatest affinity. */
LW_ON_DEVICE float drift_affinity(const lw_cuda_drift *a, const lw_cuda_drift_rule *r, int k,
                                  float d, float row_least, float row, float column_least,
                                  float column)
{
    float least = a->rows_only ? row_least : 0.5f * (row_least + column_least);
    float l = (least - d) * r->by[k] - (a->rows_only ? 2.0f * row : row + column);
    float p = r->inside > 0.0f ? sqrtf(lw_exp2(2.0f * l) + r->inside) : lw_exp2(l);
    return fmaxf(p, r->floor);
}

/* Two places of a row at all temperatures at hand: to this thread's sums, and to memory, times their units and `by` of the
 * row. */
LW_ON_DEVICE void drift_two(const lw_cuda_drift *a, const lw_cuda_drift_rule *r, float uncond,
                            float by, int32_t b, int64_t row, float row_least, const float *rows,
                            int32_t place, float (*sum)[256])
{
    int64_t columns = (int64_t)a->g * a->t * a->width, at = (int64_t)b * a->width + place;
    int32_t i = (int32_t)(row - (int64_t)b * a->n);
    uint16_t *to = a->affinity + row * a->width + place;
    float d[2], weight[2], least[2], unit[2], column[LW_CUDA_DRIFT_AT_ONCE][2];
    LW_UNROLL
    for (int e = 0; e < 2; e++) {
        d[e] = drift_masked(a, r, row, i, place + e);
        weight[e] = drift_weight(a, uncond, place + e);
        least[e] = a->rows_only ? 0.0f : a->column_least[at + e];
        unit[e] = a->unit[at + e] * by;
    }
    /* what all temperatures read is on its way at the same time */
    LW_UNROLL
    for (int k = 0; k < LW_CUDA_DRIFT_AT_ONCE; k++)
        LW_UNROLL
    for (int e = 0; e < 2; e++)
        column[k][e] = k < a->k_count && !a->rows_only
                           ? a->column[(a->k_first + k) * columns + at + e]
                           : 0.0f;
    LW_UNROLL
    for (int k = 0; k < LW_CUDA_DRIFT_AT_ONCE; k++) {
        int t = a->k_first + k;
        float all = 0.0f;
        uint32_t word[2] = {0, 0};
        if (k >= a->k_count)
            continue;
        LW_UNROLL
        for (int e = 0; e < 2; e++) {
            uint32_t half[2];
            float p = weight[e] *
                      drift_affinity(a, r, t, d[e], row_least, rows[k], least[e], column[k][e]);
            p = drift_there(a, place + e) ? p : 0.0f;
            all += p;
            drift_split(p * unit[e], half);
            word[0] |= half[0] << 16 * e;
            word[1] |= half[1] << 16 * e;
        }
        *(uint32_t *)to = word[0];
        *(uint32_t *)(to + a->affinity_plane) = word[1];
        sum[2 * k + (place >= a->pos_at)][LW_TID] += all;
        to += a->rows * a->width;
    }
}

/* What makes V's two terms of a row of sums; unit: theirs. */
LW_ON_DEVICE void drift_factors(const lw_cuda_drift *a, float (*sum)[256], float unit, int64_t row,
                                int k)
{
    double all[2] = {0.0, 0.0};
    for (int e = 0; e < 64; e++)
        all[e / 32] += (double)sum[2 * k + e / 32][LW_TID % 8 * 32 + e % 32];
    double by = (double)unit / drift_rule_of(a, (int32_t)(row / a->n))->v_unit;
    a->side[2 * k * a->rows + row] = (float)(-all[1] * by);
    a->side[(2 * k + 1) * a->rows + row] = (float)(all[0] * by);
}

/* No affinity times its target's unit is greater: affinities are at most 1, but for weights. most: a place in shared memory
 * for each thread. */
LW_ON_DEVICE float drift_most(const lw_cuda_drift *a, int64_t row, float *most)
{
    int32_t b = (int32_t)(row / a->n);
    float m = 0.0f;
    for (int32_t place = LW_TID % 32; row < a->rows && place < a->width; place += 32)
        m = fmaxf(m, a->unit[(int64_t)b * a->width + place]);
    most[LW_TID] = m;
    LW_SYNC();
    for (int e = 0; e < 32; e++)
        m = fmaxf(m, most[LW_TID / 32 * 32 + e]);
    return row < a->rows && a->nu ? m * fmaxf(1.0f, a->w_u[b / a->t]) : m;
}

/* A warp for each of 8 rows. */
LW_KERNEL(drift_affinities, lw_cuda_drift, 256)
{
    LW_SHARED float sum[2 * TAUS][256], most[256], units[LW_CUDA_DRIFT_ROWS];
    int64_t row = LW_BX * LW_CUDA_DRIFT_ROWS + LW_TID / 32;
    float by, unit = drift_unit(drift_most(&a, row, most), &by);
    for (int s = 0; s < 2 * a.k_count; s++)
        sum[s][LW_TID] = 0.0f;
    if (LW_TID % 32 == 0)
        units[LW_TID / 32] = unit;
    if (row < a.rows) {
        int32_t b = (int32_t)(row / a.n);
        const lw_cuda_drift_rule *r = drift_rule_of(&a, b);
        float uncond = a.nu ? a.w_u[b / a.t] : 0.0f;
        float rows[LW_CUDA_DRIFT_AT_ONCE], least = a.row_least[row];
        LW_UNROLL
        for (int k = 0; k < LW_CUDA_DRIFT_AT_ONCE; k++)
            rows[k] = k < a.k_count ? a.row[(a.k_first + k) * a.rows + row] : 0.0f;
        LW_ROLLED
        for (int32_t place = LW_TID % 32 * 2; place < a.width; place += 64)
            drift_two(&a, r, uncond, by, b, row, least, rows, place, sum);
    }
    LW_SYNC();
    row = LW_BX * LW_CUDA_DRIFT_ROWS + LW_TID % 8;
    if (row < a.rows && LW_TID / 8 < a.k_count)
        drift_factors(&a, sum, units[LW_TID % 8], row, LW_TID / 8);
}
