/* SPDX-License-Identifier: Apache-2.0 */
/* Counting a judge's answers. */
#include <math.h>
#include <string.h>

#include "eval/eval.h"

static int check_row(const float *p, int32_t outputs, int64_t row)
{
    double sum = 0;
    bool sound = true;
    for (int32_t k = 0; k < outputs; k++) {
        sum += (double)p[k];
        sound &= p[k] >= 0;
    }
    if (!sound || !(fabs(sum - 1) <= 1e-3))
        return lw_fail(LW_ENUMERIC, "judge: row %lld is no distribution (sum %g)", (long long)row,
                       sum);
    return 0;
}

typedef struct tally {
    int64_t own, any, agree, junk;
} tally;

static void count_row(const float *p, int32_t outputs, int32_t classes, int32_t asked,
                      double threshold, tally *t, int64_t *histogram)
{
    int32_t real = lw_argmax(p, classes), top = lw_argmax(p, outputs);
    double limit = threshold - 1e-6; /* 0.9f is below 0.9 */
    histogram[real]++;
    t->junk += top >= classes;
    t->any += (double)p[real] >= limit;
    t->own += (double)p[asked >= 0 ? asked : real] >= limit;
    t->agree += asked >= 0 ? top == asked : top < classes;
}

int lw_judge(const float *probs, int64_t n, int32_t outputs, int32_t classes, const int32_t *asked,
             double threshold, int64_t *histogram, lw_verdict *out)
{
    if (n < 1 || classes < 1 || outputs < classes)
        return lw_fail(LW_EUSAGE, "judge: %lld rows of %d outputs for %d classes", (long long)n,
                       outputs, classes);
    LW_CLEANUP(lw_free) int64_t *own = lw_calloc((size_t)classes, sizeof *own);
    if (!own)
        return LW_ENOMEM;
    tally t = {0};
    for (int64_t i = 0; i < n; i++) {
        LW_TRY(check_row(probs + i * outputs, outputs, i));
        if (asked && (asked[i] < 0 || asked[i] >= classes))
            return lw_fail(LW_EUSAGE, "judge: class %d asked for in row %lld is not within 0..%d",
                           asked[i], (long long)i, classes - 1);
        count_row(probs + i * outputs, outputs, classes, asked ? asked[i] : -1, threshold, &t, own);
    }
    int64_t low = own[0], high = own[0];
    for (int32_t c = 1; c < classes; c++) {
        low = LW_MIN(low, own[c]);
        high = LW_MAX(high, own[c]);
    }
    if (histogram)
        memcpy(histogram, own, (size_t)classes * sizeof *own);
    double m = (double)n;
    *out = (lw_verdict){.n = n,
                        .accepted = (double)t.own / m,
                        .accepted_any = (double)t.any / m,
                        .agreement = (double)t.agree / m,
                        .junk = (double)t.junk / m,
                        .class_min = (double)low / m,
                        .class_max = (double)high / m,
                        .accepted_count = t.own};
    return 0;
}
