/* SPDX-License-Identifier: Apache-2.0 */
/* Whether scores come out the same again: variances within and between, ranks. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "eval/eval_ranks.h"

/* Of every pair of trials. */
static int rank_correlations(const double *s, int32_t trials, int64_t n, lw_reliability *r)
{
    int64_t pairs = (int64_t)trials * (trials - 1) / 2, k = 0;
    bool bad = false;
    LW_CLEANUP(lw_free) double *rho = lw_calloc((size_t)pairs + 1, sizeof *rho);
    LW_CLEANUP(lw_free) double *rank = lw_calloc((size_t)(trials * n) + 1, sizeof *rank);
    if (!rho || !rank)
        return LW_ENOMEM;
    for (int32_t i = 0; i < trials; i++) {
        LW_CLEANUP(lw_ranking_clear) lw_ranking order = {0};
        LW_TRY(lw_ranking_init(&order, s + i * n, n));
        lw_ranking_ranks(&order, NULL, rank + i * n);
    }
    for (int32_t i = 0; i < trials; i++)
        for (int32_t j = i + 1; j < trials; j++, k++) {
            rho[k] = lw_correlation(rank + i * n, rank + j * n, NULL, n);
            bad = bad || isnan(rho[k]);
        }
    if (pairs == 0 || bad)
        return 0; /* not numbers, as they were set */
    lw_sort(rho, (size_t)pairs);
    r->rho_median = lw_quantile(rho, (size_t)pairs, 0.5);
    r->rho_q25 = lw_quantile(rho, (size_t)pairs, 0.25);
    r->rho_q75 = lw_quantile(rho, (size_t)pairs, 0.75);
    r->rho_iqr = r->rho_q75 - r->rho_q25;
    return 0;
}

int lw_reliability_of(const double *s, int32_t trials, int64_t n, lw_reliability *out)
{
    double k = trials, middle = 0, between = 0, within = 0;
    LW_CLEANUP(lw_free) double *mean = lw_calloc((size_t)n + 1, sizeof *mean);
    if (!mean)
        return LW_ENOMEM;
    *out = (lw_reliability){.trials = trials,
                            .n = n,
                            .rho_median = (double)NAN,
                            .rho_iqr = (double)NAN,
                            .rho_q25 = (double)NAN,
                            .rho_q75 = (double)NAN};
    /* means are counted from one of the scores: equal scores then vary by nothing, not by a rounding */
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int32_t t = 0; t < trials; t++)
            mean[i] += (s[t * n + i] - s[i]) / k;
        mean[i] += s[i];
        for (int32_t t = 0; t < trials; t++)
            sum += (s[t * n + i] - mean[i]) * (s[t * n + i] - mean[i]);
        within += sum / (k - 1) / (double)n;
        middle += (mean[i] - mean[0]) / (double)n;
    }
    middle += mean[0];
    for (int64_t i = 0; i < n; i++)
        between += (mean[i] - middle) * (mean[i] - middle) / (double)(n - 1);
    out->signal = n > 1 ? between : (double)NAN;
    out->noise = trials > 1 ? within : (double)NAN;
    out->snr = out->noise > 0 ? out->signal / out->noise : (double)NAN;
    double msb = k * out->signal, down = msb + (k - 1) * out->noise;
    out->icc = down > 0 ? (msb - out->noise) / down : (double)NAN;
    return rank_correlations(s, trials, n, out);
}

const char *lw_reliability_status(const lw_reliability *r)
{
    if (isnan(r->rho_median) || isnan(r->snr) || isnan(r->icc))
        return "insufficient_trials";
    if (r->rho_median >= 0.8 && r->snr >= 2 && r->icc >= 0.75)
        return "usable";
    return r->rho_median < 0.6 || r->snr < 1 ? "failed" : "marginal";
}
