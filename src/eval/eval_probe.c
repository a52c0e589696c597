/* SPDX-License-Identifier: Apache-2.0 */
/* Ridge regression by the normal equations; the header has the formulas. */
#include "eval/eval_probe.h"

#include <math.h>
#include <string.h>

#include "eval/eval.h"
#include "eval/eval_dense.h"

enum { FOLD = 5, LEAST = 10 };

/* What the normal equations are made of. */
typedef struct sums {
    int32_t d, k;
    int64_t n;
    double *mean, *sd; /* [d] */
    double *c;         /* [d][d] correlations */
    double *b;         /* [k][d]: Z^T Y / (n - 1) */
    double *share;     /* [k] */
} sums;

static void sums_clear(sums *s)
{
    lw_free(&s->mean);
    lw_free(&s->sd);
    lw_free(&s->c);
    lw_free(&s->b);
    lw_free(&s->share);
}

static int sums_alloc(sums *s)
{
    size_t d = (size_t)s->d, k = (size_t)s->k;
    s->mean = lw_calloc(d, sizeof *s->mean);
    s->sd = lw_calloc(d, sizeof *s->sd);
    s->c = lw_calloc(d * d, sizeof *s->c);
    s->b = lw_calloc(k * d, sizeof *s->b);
    s->share = lw_calloc(k, sizeof *s->share);
    return s->mean && s->sd && s->c && s->b && s->share ? 0 : LW_ENOMEM;
}

/* Correlations; sd of a feature that never changes is 1. */
static void standardise(sums *s)
{
    int64_t d = s->d;
    for (int64_t i = 0; i < d; i++) {
        double v = s->c[i * d + i];
        s->sd[i] = v > 0 ? sqrt(v) : 1.0;
    }
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++)
            s->c[i * d + j] /= s->sd[i] * s->sd[j];
}

/* Of class c: the sum of its standardised rows over n - 1. */
static void add_classes(sums *s, const float *f, const int32_t *labels)
{
    int64_t d = s->d;
    for (int64_t i = 0; i < s->n; i++) {
        double *b = s->b + labels[i] * d;
        for (int64_t j = 0; j < d; j++)
            b[j] += ((double)f[i * d + j] - s->mean[j]) / s->sd[j];
        s->share[labels[i]] += 1.0;
    }
    for (int64_t i = 0; i < s->k * d; i++)
        s->b[i] /= (double)(s->n - 1);
    for (int32_t c = 0; c < s->k; c++)
        s->share[c] /= (double)s->n;
}

static int sums_of(lw_pool *pool, const float *f, int64_t n, const int32_t *labels, sums *s)
{
    LW_CLEANUP(lw_stats_free) lw_stats *stats = NULL;
    s->n = n;
    LW_TRY(sums_alloc(s));
    LW_TRY(lw_stats_new(s->d, &stats));
    LW_TRY(lw_stats_add(pool, stats, f, n));
    LW_TRY(lw_stats_get(stats, s->mean, s->c));
    standardise(s);
    add_classes(s, f, labels);
    return 0;
}

/* The upper factor U of a [d][d], a = U^T U, over its upper triangle. */
static int factor(double *a, int64_t d)
{
    const lw_dense *dense = lw_dense_best();
    for (int64_t j = 0; j < d; j++) {
        double *u = a + j * d;
        if (!(u[j] > 0))
            return lw_fail(LW_ENUMERIC, "probe: the features' correlations are no numbers");
        double by = 1.0 / sqrt(u[j]);
        for (int64_t t = j; t < d; t++)
            u[t] *= by;
        for (int64_t i = j + 1; i < d; i++)
            dense->more(a + i * d + i, -u[i], u + i, d - i);
    }
    return 0;
}

/* x of U^T U x = b, in place. */
static void solve(const double *u, int64_t d, double *x)
{
    const lw_dense *dense = lw_dense_best();
    for (int64_t j = 0; j < d; j++) {
        x[j] /= u[j * d + j];
        dense->more(x + j + 1, -x[j], u + j * d + j + 1, d - j - 1);
    }
    for (int64_t j = d - 1; j >= 0; j--) {
        x[j] -= dense->dot(u + j * d + j + 1, x + j + 1, d - j - 1);
        x[j] /= u[j * d + j];
    }
}

static int weights_of(const sums *s, double ridge, lw_probe *p)
{
    int64_t d = s->d;
    LW_CLEANUP(lw_free) double *u = lw_calloc((size_t)(d * d), sizeof *u);
    if (!u)
        return LW_ENOMEM;
    memcpy(u, s->c, (size_t)(d * d) * sizeof *u);
    for (int64_t i = 0; i < d; i++)
        u[i * d + i] += ridge;
    LW_TRY(factor(u, d));
    memcpy(p->weight, s->b, (size_t)(s->k * d) * sizeof *u);
    for (int32_t c = 0; c < s->k; c++)
        solve(u, d, p->weight + c * d);
    memcpy(p->mean, s->mean, (size_t)d * sizeof *u);
    memcpy(p->sd, s->sd, (size_t)d * sizeof *u);
    memcpy(p->share, s->share, (size_t)s->k * sizeof *u);
    p->ridge = ridge;
    p->rows = s->n;
    return 0;
}

static int probe_new(int32_t dim, int32_t classes, lw_probe **out)
{
    lw_probe *p = lw_calloc(1, sizeof *p);
    *out = p;
    if (!p)
        return LW_ENOMEM;
    *p = (lw_probe){.dim = dim, .classes = classes};
    p->mean = lw_calloc((size_t)dim, sizeof *p->mean);
    p->sd = lw_calloc((size_t)dim, sizeof *p->sd);
    p->weight = lw_calloc((size_t)classes * (size_t)dim, sizeof *p->weight);
    p->share = lw_calloc((size_t)classes, sizeof *p->share);
    return p->mean && p->sd && p->weight && p->share ? 0 : LW_ENOMEM;
}

void lw_probe_free(lw_probe **pp)
{
    lw_probe *p = *pp;
    if (!p)
        return;
    lw_free(&p->mean);
    lw_free(&p->sd);
    lw_free(&p->weight);
    lw_free(&p->share);
    lw_free(pp);
}

void lw_probe_answer(const lw_probe *p, const float *features, int64_t n, int32_t *out)
{
    for (int64_t i = 0; i < n; i++) {
        const float *f = features + i * p->dim;
        double best = -HUGE_VAL;
        for (int32_t c = 0; c < p->classes; c++) {
            const double *w = p->weight + (int64_t)c * p->dim;
            double y = p->share[c];
            for (int32_t j = 0; j < p->dim; j++)
                y += ((double)f[j] - p->mean[j]) / p->sd[j] * w[j];
            if (y > best) {
                best = y;
                out[i] = c;
            }
        }
    }
}

/* Every fifth row behind the others: of n rows the first *fit are learnt from. */
typedef struct folds {
    float *f;
    int32_t *labels, *answers;
    int64_t fit;
} folds;

static void folds_clear(folds *o)
{
    lw_free(&o->f);
    lw_free(&o->labels);
    lw_free(&o->answers);
}

static int fold(const float *f, const int32_t *labels, int64_t n, int32_t dim, folds *o)
{
    o->f = lw_calloc((size_t)n * (size_t)dim, sizeof *o->f);
    o->labels = lw_calloc((size_t)n, sizeof *o->labels);
    o->answers = lw_calloc((size_t)n, sizeof *o->answers);
    if (!o->f || !o->labels || !o->answers)
        return LW_ENOMEM;
    o->fit = n - n / FOLD;
    for (int64_t i = 0; i < n; i++) {
        int64_t held = (i + 1) / FOLD; /* up to row i */
        int64_t to = (i + 1) % FOLD == 0 ? o->fit + held - 1 : i - held;
        memcpy(o->f + to * dim, f + i * dim, (size_t)dim * sizeof *f);
        o->labels[to] = labels[i];
    }
    return 0;
}

/* The ridge that names most of the rows right that were not fitted. */
static int choose_ridge(lw_pool *pool, const float *f, const int32_t *labels, int64_t n,
                        lw_probe *p, double *out)
{
    static const double ridges[] = LW_PROBE_RIDGES;
    LW_CLEANUP(folds_clear) folds o = {0};
    LW_CLEANUP(sums_clear) sums s = {.d = p->dim, .k = p->classes};
    int64_t most = -1;
    LW_TRY(fold(f, labels, n, p->dim, &o));
    LW_TRY(sums_of(pool, o.f, o.fit, o.labels, &s));
    for (size_t r = 0; r < LW_COUNT(ridges); r++) {
        int64_t right = 0;
        LW_TRY(weights_of(&s, ridges[r], p));
        lw_probe_answer(p, o.f + o.fit * p->dim, n - o.fit, o.answers);
        for (int64_t i = 0; i < n - o.fit; i++)
            right += o.answers[i] == o.labels[o.fit + i];
        if (right > most) {
            most = right;
            *out = ridges[r];
        }
    }
    return 0;
}

static int check_labels(const int32_t *labels, int64_t n, int32_t classes)
{
    if (n < LEAST)
        return lw_fail(LW_EUSAGE, "a probe is fitted on %d labelled pictures at least, not %lld",
                       LEAST, (long long)n);
    for (int32_t c = 0; c < classes; c++) {
        int64_t of = 0;
        for (int64_t i = 0; i < n; i++)
            of += labels[i] == c;
        if (!of)
            return lw_fail(LW_EUSAGE, "a probe cannot name class %d: none of its %lld pictures is",
                           (int)c, (long long)n);
    }
    return 0;
}

int lw_probe_fit(lw_pool *pool, const float *features, int64_t n, int32_t dim,
                 const int32_t *labels, int32_t classes, lw_probe **out)
{
    LW_CLEANUP(lw_probe_free) lw_probe *p = NULL;
    LW_CLEANUP(sums_clear) sums s = {.d = dim, .k = classes};
    double ridge = 0;
    LW_TRY(check_labels(labels, n, classes));
    LW_TRY(probe_new(dim, classes, &p));
    LW_TRY(choose_ridge(pool, features, labels, n, p, &ridge));
    LW_TRY(sums_of(pool, features, n, labels, &s));
    LW_TRY(weights_of(&s, ridge, p));
    *out = lw_steal(&p);
    return 0;
}
