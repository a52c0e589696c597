/* SPDX-License-Identifier: Apache-2.0 */
/* Rows drawn anew, and what their numbers say (Efron 1979). */
#include "eval/eval_resample.h"

#include <string.h>

void lw_draw_clear(lw_draw *d)
{
    lw_free(&d->order);
    lw_free(&d->from);
    lw_free(&d->size);
}

/* Rows in order of their class, and where each class lies. */
static int sort_by_class(lw_draw *d, const lw_resampling *how)
{
    size_t n = (size_t)d->n, c = (size_t)how->classes;
    LW_CLEANUP(lw_free) int64_t *begin = lw_calloc(c + 1, sizeof *begin);
    LW_CLEANUP(lw_free) int64_t *at = lw_calloc(c, sizeof *at);
    d->order = lw_calloc(n, sizeof *d->order);
    d->from = lw_calloc(n, sizeof *d->from);
    d->size = lw_calloc(n, sizeof *d->size);
    if (!begin || !at || !d->order || !d->from || !d->size)
        return LW_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (how->labels[i] < 0 || how->labels[i] >= how->classes)
            return lw_fail(LW_EUSAGE, "bootstrap: label %d of row %zu is not within 0..%d",
                           how->labels[i], i, how->classes - 1);
        begin[how->labels[i] + 1]++;
    }
    for (size_t k = 0; k < c; k++) {
        begin[k + 1] += begin[k];
        at[k] = begin[k];
    }
    for (size_t i = 0; i < n; i++) {
        int32_t k = how->labels[i];
        int64_t to = at[k]++;
        d->order[to] = (int64_t)i;
        d->from[to] = begin[k];
        d->size[to] = begin[k + 1] - begin[k];
    }
    return 0;
}

int lw_draw_init(lw_draw *d, const lw_resampling *how, int64_t n)
{
    if (how->replicates < 20 || n < 1 || n > UINT32_MAX || (how->labels && how->classes < 1))
        return lw_fail(LW_EUSAGE, "bootstrap of %lld rows: %d replicates (20 or more), %d classes",
                       (long long)n, how->replicates, how->classes);
    LW_CLEANUP(lw_draw_clear)
    lw_draw made = {.n = n, .key = lw_rng_key_of(how->seed, lw_hash_name("eval.bootstrap"))};
    if (how->labels)
        LW_TRY(sort_by_class(&made, how));
    *d = made;
    made = (lw_draw){0};
    return 0;
}

int64_t lw_draw_row(const lw_draw *d, uint32_t replicate, int64_t i)
{
    int64_t from = d->order ? d->from[i] : 0, size = d->order ? d->size[i] : d->n;
    int64_t at = from + lw_rng_below(d->key, replicate, (uint64_t)i, 0, (uint32_t)size);
    return d->order ? d->order[at] : at;
}

void lw_draw_counts(const lw_draw *d, uint32_t replicate, int32_t *counts)
{
    memset(counts, 0, (size_t)d->n * sizeof *counts);
    for (int64_t i = 0; i < d->n; i++)
        counts[lw_draw_row(d, replicate, i)]++;
}

int lw_interval_of_replicates(double value, const double *replicates, int32_t n, double level,
                              lw_interval *out)
{
    if (n < 20 || !(level > 0 && level < 1))
        return lw_fail(LW_EUSAGE,
                       "an interval from %d replicates (20 or more), level %g (within 0..1)", n,
                       level);
    LW_CLEANUP(lw_free) double *v = lw_calloc((size_t)n, sizeof *v);
    if (!v)
        return LW_ENOMEM;
    memcpy(v, replicates, (size_t)n * sizeof *v);
    lw_sort(v, (size_t)n);
    double low = lw_quantile(v, (size_t)n, (1 - level) / 2), middle = lw_quantile(v, (size_t)n, .5);
    double high = lw_quantile(v, (size_t)n, (1 + level) / 2);
    *out = (lw_interval){value, LW_MAX(value + (low - middle), 0.0), value + (high - middle)};
    return 0;
}
