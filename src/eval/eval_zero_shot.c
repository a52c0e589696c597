/* SPDX-License-Identifier: Apache-2.0 */
/* Logits of pictures against texts, and how close the answers are. */
#include "eval/eval.h"

#include <math.h>

static int normalize(const char *what, double *x, int64_t n, int32_t dim)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int32_t d = 0; d < dim; d++)
            sum += x[i * dim + d] * x[i * dim + d];
        if (!isfinite(sum) || sum <= 0)
            return lw_fail(LW_ENUMERIC, "%s %lld has a length of %g: no direction", what,
                           (long long)i, sqrt(sum));
        for (int32_t d = 0; d < dim; d++)
            x[i * dim + d] /= sqrt(sum);
    }
    return 0;
}

/* Of one template: logits [classes]; the largest and the second one, where the largest is. */
typedef struct answer {
    double first, second, sum; /* sum of exp(logit - first) */
    int32_t best;
} answer;

static answer ask(const lw_zero_shot *z, const double *text, const double *u, double *logits)
{
    answer a = {.first = -(double)INFINITY, .second = -(double)INFINITY};
    for (int32_t c = 0; c < z->classes; c++) {
        double cosine = 0;
        for (int32_t d = 0; d < z->dim; d++)
            cosine += text[(int64_t)c * z->dim + d] * u[d];
        logits[c] = exp(z->scale) * cosine + z->bias;
        if (logits[c] > a.first) {
            a.second = a.first;
            a.first = logits[c];
            a.best = c;
        } else if (logits[c] > a.second) {
            a.second = logits[c];
        }
    }
    for (int32_t c = 0; c < z->classes; c++)
        a.sum += exp(logits[c] - a.first);
    return a;
}

static double entropy_of(const answer *a, const double *logits, int32_t classes)
{
    double h = 0;
    for (int32_t c = 0; c < classes; c++) {
        double p = exp(logits[c] - a->first) / a->sum;
        h -= p * log(fmax(p, 1e-12));
    }
    return h;
}

/* Of the largest probabilities of the templates, logits of the first one left in `logits`. */
static double variance_of(const lw_zero_shot *z, const double *text, const double *u, double *most,
                          double *logits)
{
    double mean = 0, sum = 0;
    for (int32_t t = z->templates - 1; t >= 0; t--) {
        most[t] = 1 / ask(z, text + (int64_t)t * z->classes * z->dim, u, logits).sum;
        mean += most[t] / z->templates;
    }
    for (int32_t t = 0; t < z->templates; t++)
        sum += (most[t] - mean) * (most[t] - mean);
    return z->templates > 1 ? sum / (z->templates - 1) : 0;
}

int lw_zero_shot_of(const lw_zero_shot *z, const float *features, int64_t n, double *margin,
                    double *entropy, double *sensitivity, int32_t *best)
{
    int64_t rows = (int64_t)z->templates * z->classes;
    if (z->classes < 2 || z->templates < 1)
        return lw_fail(LW_EUSAGE, "%d classes: a margin needs two or more", (int)z->classes);
    LW_CLEANUP(lw_free) double *text = lw_calloc((size_t)(rows * z->dim), sizeof *text);
    LW_CLEANUP(lw_free) double *u = lw_calloc((size_t)z->dim, sizeof *u);
    LW_CLEANUP(lw_free) double *most = lw_calloc((size_t)z->templates, sizeof *most);
    LW_CLEANUP(lw_free) double *logits = lw_calloc((size_t)z->classes, sizeof *logits);
    if (!text || !u || !most || !logits)
        return LW_ENOMEM;
    for (int64_t i = 0; i < rows * z->dim; i++)
        text[i] = z->text[i];
    LW_TRY(normalize("text", text, rows, z->dim));
    for (int64_t i = 0; i < n; i++) {
        for (int32_t d = 0; d < z->dim; d++)
            u[d] = (double)features[i * z->dim + d];
        int rc = normalize("row", u, 1, z->dim);
        if (rc < 0)
            return lw_fail_in(rc, "picture %lld: ", (long long)i);
        sensitivity[i] = variance_of(z, text, u, most, logits);
        answer a = ask(z, text, u, logits);
        margin[i] = a.first - a.second;
        entropy[i] = entropy_of(&a, logits, z->classes);
        best[i] = a.best;
    }
    return 0;
}
