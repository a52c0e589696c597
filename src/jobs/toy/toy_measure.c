/* SPDX-License-Identifier: Apache-2.0 */
/* How near points are to a distribution. */
#include "jobs/toy/toy_parts.h"

#include <math.h>

#include "eval/eval.h"

enum { NEIGHBOURS = 3 };

static void blobs(const float *x, int64_t n, lw_toy_measure *m)
{
    double sum[2][2] = {{0}};
    int64_t near[2] = {0}, inside[2] = {0};
    for (int64_t i = 0; i < n; i++) {
        const double at[2] = {(double)x[2 * i], (double)x[2 * i + 1]};
        int k = at[0] > 0.0;
        near[k]++;
        sum[k][0] += at[0];
        sum[k][1] += at[1];
        inside[k] += hypot(at[0] - (k ? 2.5 : -2.5), at[1]) <= 3 * 0.35;
    }
    m->coverage_a = (double)inside[0] / (double)n;
    m->coverage_b = (double)inside[1] / (double)n;
    m->mode_balance_error = fabs((double)(near[0] - near[1])) / (double)n;
    m->center_distance = 0.0; /* NAN when a mode has no point */
    for (int k = 0; k < 2; k++)
        m->center_distance += 0.5 * hypot(sum[k][0] / (double)near[k] - (k ? 2.5 : -2.5),
                                          sum[k][1] / (double)near[k]);
}

int lw_toy_measure_points(lw_pool *pool, lw_toy_points data, const float *x, const float *y,
                          const float *z, int64_t n, lw_toy_measure *out)
{
    const double no = (double)NAN;
    lw_manifold m;
    LW_CLEANUP(lw_free) double *distance = lw_calloc((size_t)n, sizeof *distance);
    if (!distance)
        return LW_ENOMEM;
    *out = (lw_toy_measure){
        .coverage_a = no, .coverage_b = no, .center_distance = no, .mode_balance_error = no};
    LW_TRY(lw_sliced_wasserstein(pool, x, n, y, n, 2, LW_SLICED_DIRECTIONS, 0, &out->sliced));
    LW_TRY(lw_sliced_wasserstein(pool, z, n, y, n, 2, LW_SLICED_DIRECTIONS, 0, &out->chance));
    LW_TRY(lw_nearest(pool, x, n, y, n, 2, 1, false, distance, NULL));
    for (int64_t i = 0; i < n; i++)
        out->distance += distance[i] / (double)n;
    LW_TRY(lw_precision_recall(pool, x, n, y, n, 2, NEIGHBOURS, &m));
    out->precision = m.precision;
    out->coverage = m.coverage;
    if (data == LW_TOY_TWO_BLOBS)
        blobs(x, n, out);
    return 0;
}
