/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks, their means, average precision. */
#include "eval/eval_rank.h"

#include <math.h>
#include <string.h>

#include "base/base.h"

const int32_t lw_rank_hits_at[LW_RANK_HITS] = {1, 3, 10};

const char *lw_rank_rule_text(lw_rank_rule rule)
{
    static const char *const text[] = {"realistic: 1 + higher + ties/2", "optimistic: 1 + higher",
                                       "pessimistic: 1 + higher + ties"};
    return text[rule];
}

const char *lw_rank_rule_name(lw_rank_rule rule)
{
    static const char *const name[] = {"realistic", "optimistic", "pessimistic"};
    return name[rule];
}

static int no_number(void)
{
    return lw_fail(LW_ENUMERIC, "a score is not a number: it cannot be ranked");
}

int lw_rank_add(lw_rank *r, double positive, double negative)
{
    if (isnan(positive) || isnan(negative))
        return no_number();
    r->higher += negative > positive;
    r->ties += negative == positive;
    r->lower += negative < positive;
    return 0;
}

double lw_rank_value(const lw_rank *r, lw_rank_rule rule)
{
    static const double share[] = {0.5, 0.0, 1.0}; /* of the ties that stand above */
    return 1.0 + (double)r->higher + share[rule] * (double)r->ties;
}

void lw_rank_sum_add(lw_rank_sum *s, double rank)
{
    s->n++;
    s->rank += rank;
    s->reciprocal += 1.0 / rank;
    for (int k = 0; k < LW_RANK_HITS; k++)
        s->hits[k] += rank <= lw_rank_hits_at[k];
}

lw_rank_metrics lw_rank_sum_means(const lw_rank_sum *s)
{
    double n = s->n > 0 ? (double)s->n : (double)NAN;
    lw_rank_metrics m = {s->n, s->reciprocal / n, s->rank / n, {0}};
    for (int k = 0; k < LW_RANK_HITS; k++)
        m.hits[k] = (double)s->hits[k] / n;
    return m;
}

struct lw_auc_pr {
    double *positive; /* [n], ascending */
    int64_t *above;   /* [n + 1]: negatives that are at least positive[i] but not positive[i + 1]
                         are above[i + 1] */
    int64_t n;
};

int lw_auc_pr_new(const double *positive, int64_t n, lw_auc_pr **out)
{
    LW_CLEANUP(lw_auc_pr_free) lw_auc_pr *a = lw_calloc(1, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->n = n;
    a->positive = lw_calloc((size_t)n + 1, sizeof *a->positive);
    a->above = lw_calloc((size_t)n + 1, sizeof *a->above);
    if (!a->positive || !a->above)
        return LW_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(positive[i]))
            return no_number();
        a->positive[i] = positive[i];
    }
    lw_sort(a->positive, (size_t)n);
    *out = lw_steal(&a);
    return 0;
}

void lw_auc_pr_free(lw_auc_pr **pp)
{
    if (*pp) {
        lw_free(&(*pp)->positive);
        lw_free(&(*pp)->above);
    }
    lw_free(pp);
}

int lw_auc_pr_add(lw_auc_pr *a, double negative)
{
    int64_t low = 0, high = a->n; /* positives that are no higher */
    if (isnan(negative))
        return no_number();
    while (low < high) {
        int64_t mid = (low + high) / 2;
        if (a->positive[mid] <= negative)
            low = mid + 1;
        else
            high = mid;
    }
    a->above[low]++;
    return 0;
}

double lw_auc_pr_value(const lw_auc_pr *a)
{
    int64_t hits = 0, misses = 0;
    double sum = 0;
    for (int64_t i = a->n - 1; i >= 0;) {
        int64_t group = 0;
        double threshold = a->positive[i];
        for (; i >= 0 && a->positive[i] == threshold; i--, group++)
            misses += a->above[i + 1];
        hits += group;
        sum += (double)group * (double)hits / (double)(hits + misses);
    }
    return sum / (double)a->n;
}
