/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers that depend on the order of scores alone, with their intervals over the rows. A draw of
 * rows is how often each is there, so the rows are sorted once for all draws.
 */
#include "eval/eval_ranks.h"

#include <math.h>
#include <stdlib.h>

#include "eval/eval_resample.h"

static int by_value(const void *a, const void *b)
{
    const struct lw_ranked *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

int lw_ranking_init(lw_ranking *r, const double *x, int64_t n)
{
    *r = (lw_ranking){n, lw_calloc((size_t)n + 1, sizeof *r->sorted)};
    if (!r->sorted)
        return LW_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        r->sorted[i] = (struct lw_ranked){x[i], i};
    qsort(r->sorted, (size_t)n, sizeof *r->sorted, by_value);
    return 0;
}

void lw_ranking_clear(lw_ranking *r)
{
    lw_free(&r->sorted);
}

void lw_ranking_ranks(const lw_ranking *r, const int32_t *counts, double *out)
{
    int64_t before = 0;
    for (int64_t i = 0, j; i < r->n; i = j) {
        int64_t equal = 0;
        for (j = i; j < r->n && r->sorted[j].value == r->sorted[i].value; j++)
            equal += counts ? counts[r->sorted[j].at] : 1;
        j = LW_MAX(j, i + 1); /* not a number: equal to nothing */
        for (int64_t k = i; k < j; k++)
            out[r->sorted[k].at] = (double)(2 * before + equal + 1) / 2;
        before += equal;
    }
}

/* The mean of x [n], each counts[i] times there (NULL: once). Counted from one of them: the mean of equal
 * numbers is that number then, where one off by a rounding leaves deviations that look like scores. */
static double mean_of(const double *x, const int32_t *counts, int64_t n)
{
    double sum = 0;
    int64_t first = 0;
    while (counts && first < n - 1 && counts[first] == 0)
        first++;
    for (int64_t i = first; i < n; i++)
        sum += (counts ? counts[i] : 1) * (x[i] - x[first]);
    return n > 0 ? x[first] + sum / (double)n : (double)NAN;
}

double lw_correlation(const double *a, const double *b, const int32_t *counts, int64_t n)
{
    double ma = mean_of(a, counts, n), mb = mean_of(b, counts, n), aa = 0, bb = 0, ab = 0;
    for (int64_t i = 0; i < n; i++) {
        double times = counts ? counts[i] : 1;
        aa += times * (a[i] - ma) * (a[i] - ma);
        bb += times * (b[i] - mb) * (b[i] - mb);
        ab += times * (a[i] - ma) * (b[i] - mb);
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : (double)NAN;
}

/* ---- two of them ------------------------------------------------------------------------------- */

typedef struct ranked_pair {
    int64_t n;
    lw_ranking a, b;      /* b of a correlation */
    const bool *positive; /* of an area */
    double *rank;         /* [2][n] */
} ranked_pair;

static void pair_clear(ranked_pair *p)
{
    lw_ranking_clear(&p->a);
    lw_ranking_clear(&p->b);
    lw_free(&p->rank);
}

static int pair_init(ranked_pair *p, const double *a, const double *b, const bool *positive,
                     int64_t n)
{
    *p = (ranked_pair){.n = n, .positive = positive};
    p->rank = lw_calloc(2 * (size_t)n + 1, sizeof *p->rank);
    if (!p->rank)
        return LW_ENOMEM;
    LW_TRY(lw_ranking_init(&p->a, a, n));
    return b ? lw_ranking_init(&p->b, b, n) : 0;
}

static double spearman(const ranked_pair *p, const int32_t *counts)
{
    lw_ranking_ranks(&p->a, counts, p->rank);
    lw_ranking_ranks(&p->b, counts, p->rank + p->n);
    return lw_correlation(p->rank, p->rank + p->n, counts, p->n);
}

static double auroc(const ranked_pair *p, const int32_t *counts)
{
    double sum = 0, positives = 0;
    lw_ranking_ranks(&p->a, counts, p->rank);
    for (int64_t i = 0; i < p->n; i++) {
        double times = !p->positive[i] ? 0 : counts ? counts[i] : 1;
        sum += times * p->rank[i];
        positives += times;
    }
    double negatives = (double)p->n - positives;
    return positives > 0 && negatives > 0
               ? (sum - positives * (positives + 1) / 2) / (positives * negatives)
               : (double)NAN;
}

int lw_spearman(const double *a, const double *b, int64_t n, double *out)
{
    LW_CLEANUP(pair_clear) ranked_pair p = {0};
    LW_TRY(pair_init(&p, a, b, NULL, n));
    *out = spearman(&p, NULL);
    return 0;
}

/* ---- their intervals --------------------------------------------------------------------------- */

enum { REPLICATES = 1000, SHUFFLES = 200 };

/* The middle 95 % of those of v [n] that are numbers (v is sorted); NaN when less than half are. */
static void middle_of(double *v, int64_t n, lw_interval *out)
{
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(v[i]))
            v[m++] = v[i];
    lw_sort(v, (size_t)m);
    bool few = 2 * m < n;
    out->low = few ? (double)NAN : lw_quantile(v, (size_t)m, 0.025);
    out->high = few ? (double)NAN : lw_quantile(v, (size_t)m, 0.975);
}

static int bootstrap(const ranked_pair *p, double (*of)(const ranked_pair *, const int32_t *),
                     uint64_t seed, lw_interval *out)
{
    LW_CLEANUP(lw_draw_clear) lw_draw draw = {0};
    LW_CLEANUP(lw_free) double *v = lw_calloc(REPLICATES, sizeof *v);
    LW_CLEANUP(lw_free) int32_t *counts = lw_calloc((size_t)p->n, sizeof *counts);
    if (!v || !counts)
        return LW_ENOMEM;
    LW_TRY(lw_draw_init(&draw, &(lw_resampling){.replicates = REPLICATES, .seed = seed}, p->n));
    out->value = of(p, NULL);
    for (uint32_t r = 0; r < REPLICATES; r++) {
        lw_draw_counts(&draw, r, counts);
        v[r] = of(p, counts);
    }
    middle_of(v, REPLICATES, out);
    out->low = LW_MIN(out->value, out->low); /* not a number stays */
    out->high = LW_MAX(out->value, out->high);
    return 0;
}

int lw_spearman_interval(const double *a, const double *b, int64_t n, uint64_t seed,
                         lw_interval *out)
{
    LW_CLEANUP(pair_clear) ranked_pair p = {0};
    LW_TRY(pair_init(&p, a, b, NULL, n));
    return bootstrap(&p, spearman, seed, out);
}

int lw_auroc_interval(const double *score, const bool *positive, int64_t n, uint64_t seed,
                      lw_interval *out)
{
    LW_CLEANUP(pair_clear) ranked_pair p = {0};
    LW_TRY(pair_init(&p, score, NULL, positive, n));
    return bootstrap(&p, auroc, seed, out);
}

int lw_auroc_shuffled(const double *score, const bool *positive, int64_t n, uint64_t seed,
                      lw_interval *out)
{
    LW_CLEANUP(pair_clear) ranked_pair p = {0};
    LW_CLEANUP(lw_free) bool *shuffled = lw_calloc((size_t)n + 1, sizeof *shuffled);
    double v[SHUFFLES];
    lw_rng_key key = lw_rng_key_of(seed, lw_hash_name("eval.shuffle"));
    if (!shuffled)
        return LW_ENOMEM;
    LW_TRY(pair_init(&p, score, NULL, shuffled, n));
    *out = (lw_interval){0, 0, 0};
    for (uint32_t k = 0; k < SHUFFLES; k++) {
        for (int64_t i = 0; i < n; i++)
            shuffled[i] = positive[lw_rng_permute(key, k, (uint64_t)n, (uint64_t)i)];
        v[k] = auroc(&p, NULL);
        out->value += v[k] / SHUFFLES;
    }
    middle_of(v, SHUFFLES, out);
    return 0;
}

lw_interval lw_share_rising(const double *before, const double *after, int64_t n)
{
    int64_t rises = 0;
    for (int64_t i = 0; i < n; i++)
        rises += after[i] > before[i];
    return lw_share_interval(rises, n, LW_Z_95);
}
