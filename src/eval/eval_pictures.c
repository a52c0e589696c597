/* SPDX-License-Identifier: Apache-2.0 */
/* Do pictures differ from each other as real ones do, and have they their colours? */
#include <math.h>
#include <string.h>

#include "eval/eval.h"
#include "eval/eval_block.h"

typedef struct spread_job {
    const float *x;
    int64_t n;
    int32_t dim;
    const int32_t *labels; /* NULL: one class */
    double *sum;           /* [n] distances to later rows of the class */
} spread_job;

static void spread_task(void *arg, int64_t i, int worker)
{
    const spread_job *job = arg;
    (void)worker;
    for (int64_t j = i + 1; j < job->n; j++)
        if (!job->labels || job->labels[i] == job->labels[j])
            job->sum[i] +=
                sqrt(lw_square_distance(job->x + i * job->dim, job->x + j * job->dim, job->dim));
}

int lw_spread(lw_pool *pool, const float *x, int64_t n, int32_t dim, const int32_t *labels,
              int32_t classes, double *out)
{
    size_t c = labels && classes > 0 ? (size_t)classes : 1;
    if (classes <= 0)
        labels = NULL;
    LW_CLEANUP(lw_free) double *sum = lw_calloc((size_t)LW_MAX(n, 1), sizeof *sum);
    LW_CLEANUP(lw_free) double *total = lw_calloc(c, sizeof *total);
    LW_CLEANUP(lw_free) int64_t *count = lw_calloc(c, sizeof *count);
    if (!sum || !total || !count)
        return LW_ENOMEM;
    for (int64_t i = 0; labels && i < n; i++)
        if (labels[i] < 0 || labels[i] >= classes)
            return lw_fail(LW_EUSAGE, "spread: label %d of row %lld is not within 0..%d", labels[i],
                           (long long)i, classes - 1);
    spread_job job = {x, n, dim, labels, sum};
    LW_TRY(lw_pool_run_asking(pool, n, spread_task, &job));
    for (int64_t i = 0; i < n; i++) {
        total[labels ? labels[i] : 0] += sum[i];
        count[labels ? labels[i] : 0]++;
    }
    double mean = 0;
    int32_t used = 0;
    for (size_t k = 0; k < c; k++) {
        if (count[k] < 2)
            continue;
        mean += total[k] / ((double)count[k] * (double)(count[k] - 1) / 2);
        used++;
    }
    if (used == 0)
        return lw_fail(LW_EUSAGE, "spread: no class has two of the %lld rows", (long long)n);
    *out = mean / used;
    return 0;
}

int lw_diversity(lw_pool *pool, const float *gen, int64_t m, const int32_t *gen_labels,
                 const float *real, int64_t n, const int32_t *real_labels, int32_t dim,
                 int32_t classes, double *out)
{
    double g, r;
    LW_TRY(lw_spread(pool, gen, m, dim, gen_labels, classes, &g));
    LW_TRY(lw_spread(pool, real, n, dim, real_labels, classes, &r));
    if (!(r > 0))
        return lw_fail(LW_ENUMERIC, "diversity: the real pictures of each class are all equal");
    *out = g / r;
    return 0;
}

void lw_colour_numbers(const float *picture, int64_t pixels, int32_t channels, double *out)
{
    for (int32_t c = 0; c < channels; c++) {
        double sum = 0, square = 0;
        for (int64_t i = 0; i < pixels; i++)
            sum += (double)picture[channels * i + c];
        double mean = sum / (double)pixels;
        for (int64_t i = 0; i < pixels; i++)
            square += ((double)picture[channels * i + c] - mean) *
                      ((double)picture[channels * i + c] - mean);
        out[c] = mean;
        out[channels + c] = sqrt(square / (double)pixels);
    }
}

static int colour_stats(const float *pictures, int64_t n, int64_t pixels, lw_stats **out)
{
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_TRY(lw_stats_new(6, &s));
    for (int64_t i = 0; i < n; i++) {
        double six[6];
        lw_colour_numbers(pictures + 3 * i * pixels, pixels, 3, six);
        LW_TRY(lw_stats_add_f64(s, six, 1));
    }
    *out = lw_steal(&s);
    return 0;
}

int lw_colour_distance(const float *gen, int64_t m, const float *real, int64_t n, int64_t pixels,
                       double *out)
{
    LW_CLEANUP(lw_stats_free) lw_stats *g = NULL;
    LW_CLEANUP(lw_stats_free) lw_stats *r = NULL;
    double d, trace;
    LW_TRY(colour_stats(gen, m, pixels, &g));
    LW_TRY(colour_stats(real, n, pixels, &r));
    LW_TRY(lw_frechet(NULL, g, r, &d));
    LW_TRY(lw_stats_trace(r, &trace));
    if (!(trace > 0))
        return lw_fail(LW_ENUMERIC, "colour distance: the real pictures all have the same colours");
    *out = d / trace;
    return 0;
}
