/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks and average precision: by hand, and beside sorting everything. */
#include "test_eval_util.h"

#include "base/base.h"
#include "kernels/kernels.h"
#include "eval/eval.h"

static lw_rank rank_among(double positive, const double *negative, int64_t n)
{
    lw_rank r = {0};
    for (int64_t i = 0; i < n; i++)
        ok(lw_rank_add(&r, positive, negative[i]));
    return r;
}

static void ranks_by_hand(void **state)
{
    (void)state;
    const double low = -(double)INFINITY;
    const double others[] = {-1.5, -0.5, -0.5, 0.0, -100.0, low};
    lw_rank r = rank_among(-0.5, others, 6);
    assert_int_equal(r.higher, 1);
    assert_int_equal(r.ties, 2);
    assert_int_equal(r.lower, 3);
    near(lw_rank_value(&r, LW_RANK_REALISTIC), 3, 0);
    near(lw_rank_value(&r, LW_RANK_OPTIMISTIC), 2, 0);
    near(lw_rank_value(&r, LW_RANK_PESSIMISTIC), 4, 0);
    r = rank_among(low, others, 6);
    near(lw_rank_value(&r, LW_RANK_REALISTIC), 6.5, 0);
    r = (lw_rank){0};
    near(lw_rank_value(&r, LW_RANK_REALISTIC), 1, 0); /* alone */
    static const lw_rank_rule rules[] = {LW_RANK_REALISTIC, LW_RANK_OPTIMISTIC,
                                         LW_RANK_PESSIMISTIC};
    static const char *const text[] = {"realistic: 1 + higher + ties/2", "optimistic: 1 + higher",
                                       "pessimistic: 1 + higher + ties"};
    for (size_t i = 0; i < LW_COUNT(rules); i++) {
        assert_string_equal(lw_rank_rule_text(rules[i]), text[i]);
        assert_true(lw_str_starts(text[i], lw_rank_rule_name(rules[i])));
    }
}

static void means_by_hand(void **state)
{
    (void)state;
    lw_rank_sum s = {0};
    assert_true(isnan(lw_rank_sum_means(&s).mrr));
    lw_rank_sum_add(&s, 1);
    lw_rank_sum_add(&s, 2.5);
    lw_rank_sum_add(&s, 10);
    lw_rank_sum_add(&s, 10.5);
    lw_rank_metrics m = lw_rank_sum_means(&s);
    assert_int_equal(m.n, 4);
    near(m.mrr, (1 + 0.4 + 0.1 + 1 / 10.5) / 4, 1e-15);
    near(m.mean_rank, 6, 1e-15);
    near(m.hits[0], 0.25, 0);
    near(m.hits[1], 0.5, 0);
    near(m.hits[2], 0.75, 0);
}

static void no_number_is_an_error(void **state)
{
    (void)state;
    LW_CLEANUP(lw_auc_pr_free) lw_auc_pr *a = NULL;
    const double nan = (double)NAN, one = 1;
    lw_rank r = {0};
    fails(lw_rank_add(&r, nan, 1), LW_ENUMERIC, "not a number");
    fails(lw_rank_add(&r, 1, nan), LW_ENUMERIC, "not a number");
    assert_int_equal(r.higher + r.ties + r.lower, 0);
    fails(lw_auc_pr_new(&nan, 1, &a), LW_ENUMERIC, "not a number");
    ok(lw_auc_pr_new(&one, 1, &a));
    fails(lw_auc_pr_add(a, nan), LW_ENUMERIC, "not a number");
    near(lw_auc_pr_value(a), 1, 0);
}

static double auc(const double *p, int64_t n, const double *neg, int64_t m)
{
    LW_CLEANUP(lw_auc_pr_free) lw_auc_pr *a = NULL;
    ok(lw_auc_pr_new(p, n, &a));
    for (int64_t i = 0; i < m; i++)
        ok(lw_auc_pr_add(a, neg[i]));
    return lw_auc_pr_value(a);
}

static void average_precision_by_hand(void **state)
{
    (void)state;
    const double p[] = {0.35, 0.8}, n[] = {0.1, 0.4}; /* the example of scikit-learn's page */
    near(auc(p, 2, n, 2), 0.5 * 1 + 0.5 * 2 / 3.0, 1e-15);
    const double same[] = {2, 2}, four[] = {2, 2, 2, 2};
    near(auc(same, 2, four, 4), 2 / 6.0, 1e-15); /* all tie: the share of positives */
    near(auc(same, 2, NULL, 0), 1, 0);
}

/* The definition, threshold by threshold over all scores. */
static double plain_auc(const double *p, int64_t n, const double *neg, int64_t m)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t hits = 0, misses = 0;
        for (int64_t k = 0; k < n; k++)
            hits += p[k] >= p[i];
        for (int64_t k = 0; k < m; k++)
            misses += neg[k] >= p[i];
        sum += (double)hits / (double)(hits + misses);
    }
    return sum / (double)n;
}

static void streams_agree_with_definitions(void **state)
{
    (void)state;
    enum { MOST = 60 };
    const lw_rng_key key = lw_rng_key_of(3, 1);
    for (uint32_t round = 0; round < 400; round++) {
        double p[MOST], neg[MOST];
        int64_t n = 1 + (int64_t)lw_rng_below(key, round, 0, 0, MOST - 1),
                m = (int64_t)lw_rng_below(key, round, 0, 1, MOST);
        uint32_t levels = 2 + lw_rng_below(key, round, 0, 2, 30); /* few: many ties */
        for (int64_t i = 0; i < MOST; i++) {
            p[i] = -(double)lw_rng_below(key, round, 1, (uint64_t)i, levels);
            neg[i] = -(double)lw_rng_below(key, round, 2, (uint64_t)i, levels);
        }
        near(auc(p, n, neg, m), plain_auc(p, n, neg, m), 1e-12);
        lw_rank r = rank_among(p[0], neg, m);
        int64_t places = 0, before = 0; /* mean place over all orders of equal scores */
        for (int64_t i = 0; i < m; i++) {
            before += neg[i] > p[0];
            places += neg[i] == p[0];
        }
        double sum = 0;
        for (int64_t t = 0; t <= places; t++)
            sum += (double)(before + t + 1);
        near(lw_rank_value(&r, LW_RANK_REALISTIC), sum / (double)(places + 1), 1e-12);
        assert_int_equal(r.higher + r.ties + r.lower, m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_by_hand),
        cmocka_unit_test(means_by_hand),
        cmocka_unit_test(no_number_is_an_error),
        cmocka_unit_test(average_precision_by_hand),
        cmocka_unit_test(streams_agree_with_definitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
