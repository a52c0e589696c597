/* SPDX-License-Identifier: Apache-2.0 */
/* Inception score: how sure a classifier is of each picture, and how many classes they are. */
#include <math.h>
#include <string.h>

#include "eval/eval.h"

/* log p of a row. */
static int read_row(const float *logits, int32_t classes, int64_t row, double *out)
{
    for (int32_t c = 0; c < classes; c++) {
        if (!isfinite(logits[c]))
            return lw_fail(LW_ENUMERIC, "inception score: logit %d of row %lld is not finite", c,
                           (long long)row);
        out[c] = (double)logits[c];
    }
    lw_log_softmax_of(out, classes, out);
    return 0;
}

/* exp of the mean of KL(p(y|x) || p(y)) of rows from .. to - 1: the mean of sum p log p, less the
 * same of the mean p. */
static int score_of(const float *logits, int64_t from, int64_t to, int32_t classes, double *mean,
                    double *log_p, double *out)
{
    double own = 0, all = 0, n = (double)(to - from);
    memset(mean, 0, (size_t)classes * sizeof *mean);
    for (int64_t i = from; i < to; i++) {
        LW_TRY(read_row(logits + i * classes, classes, i, log_p));
        for (int32_t c = 0; c < classes; c++) {
            double p = exp(log_p[c]);
            mean[c] += p;
            own += p * log_p[c];
        }
    }
    for (int32_t c = 0; c < classes; c++)
        all += mean[c] > 0 ? mean[c] / n * log(mean[c] / n) : 0;
    *out = exp(own / n - all);
    return 0;
}

int lw_inception_score(const float *logits, int64_t n, int32_t classes, int32_t splits,
                       double *mean, double *sd)
{
    if (classes < 1 || splits < 1 || n < splits)
        return lw_fail(
            LW_EUSAGE,
            "inception score of %lld rows of %d classes in %d splits: --is wants at least "
            "as many pictures as splits",
            (long long)n, classes, splits);
    LW_CLEANUP(lw_free) double *scratch = lw_calloc(2 * (size_t)classes, sizeof *scratch);
    LW_CLEANUP(lw_free) double *score = lw_calloc((size_t)splits, sizeof *score);
    if (!scratch || !score)
        return LW_ENOMEM;
    double sum = 0, square = 0;
    for (int64_t i = 0; i < splits; i++) {
        LW_TRY(score_of(logits, i * n / splits, (i + 1) * n / splits, classes, scratch,
                        scratch + classes, &score[i]));
        sum += score[i];
    }
    for (int64_t i = 0; i < splits; i++)
        square += (score[i] - sum / splits) * (score[i] - sum / splits);
    *mean = sum / splits;
    *sd = sqrt(square / splits);
    return 0;
}
