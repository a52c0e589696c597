/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of noisy passes and their reliability, against numpy and scipy on small made-up numbers. */
#include "eval/eval.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "unit/test_eval_util.h"

enum { N = 4, T = 6, D = 5 };

static float number(int t, int n, int d)
{
    return (float)((t * 7 + n * 13 + d * 29 + t * d * 3 + n * t * 5) % 23 / 23.0 + d -
                   2 * n * (d == 1));
}

static void close_to(double have, double want)
{
    if (!(fabs(have - want) <= 1e-9 * fabs(want) + 1e-14))
        fail_msg("%.17g, wanted %.17g", have, want);
}

/* numpy: var(ddof=0 or 1), eigvalsh of the T x T Gram matrix. */
static void test_scores(void **state)
{
    static const double want[LW_PASS_SCORES][N] = {
        {0.0699222795713841, 0.0658265117165446, 0.0695337049342318, 0.0609955722858617},
        {0.00150291626610212, 0.00149385887520669, 0.00127293638710575, 0.000822987501943377},
        {0.00058210952243258, 0.000377204486096739, 0.000199275584442365, 0.000326149684450923},
        {0.103906745471591, 0.114681808108723, 0.117517349655405, 0.106175063913876},
        {0.0521507161766139, 0.0369989580931659, 0.0667540856010061, 0.0687496204267475},
        {0.00376437592832024, 0.00374164714971303, 0.00318742079342182, 0.00205958970974451},
        {0.199999965727374, 0.177621014284994, 0.24234693005362, 0.173324529816697},
        {3.01369077818289, 2.95416890517124, 2.38809190065654, 2.99218926929382},
        {1.22889973255837, 1.17367200287269, 1.06312642521802, 1.24718431321205},
        {0.476719692572362, 0.449720053651147, 0.580885989710176, 0.473598665502022},
        {0.0704474452928089, 0.0971354002642429, 0.117142012514596, 0.105907571433966},
        {0.0839067354856609, 0.0789918140598536, 0.0834404459210782, 0.073194686743034},
    };
    static const lw_pass_geometry pre = {0.0834404459210782,
                                         0.627430554090807,
                                         {0.24234693005362, 0.108968627168642, 0.040324266969487,
                                          0.025562405413642}},
                                  post = {0.0015275236645269,
                                          0.656944018578502,
                                          {0.0049373958083855, 0.00184098176405228,
                                           0.000709001233859592, 0.000150099763472958}};
    double scores[N][LW_PASS_SCORES], mean[N * D], var[N * D];
    lw_pass_geometry g[2];
    float x[T * D];
    (void)state;
    for (int n = 0; n < N; n++) {
        for (int t = 0; t < T; t++)
            for (int d = 0; d < D; d++)
                x[t * D + d] = number(t, n, d);
        assert_int_equal(lw_pass_scores(x, T, D, scores[n], mean + n * D, var + n * D, g), 0);
        for (int k = 0; k < 2 && n == 2; k++) {
            const lw_pass_geometry *w = k ? &post : &pre;
            close_to(g[k].trace, w->trace);
            close_to(g[k].offdiag, w->offdiag);
            for (int e = 0; e < 4; e++)
                close_to(g[k].eigs[e], w->eigs[e]);
        }
    }
    assert_int_equal(lw_pass_scores_across(mean, var, N, D, scores), 0);
    for (int n = 0; n < N; n++)
        for (int s = 0; s < LW_PASS_SCORES; s++)
            close_to(scores[n][s], want[s][n]);
}

/* Scores of fewer passes are those of the first ones: the same bits. */
static void test_nested(void **state)
{
    double all[LW_PASS_SCORES], first[LW_PASS_SCORES], mean[D], var[D];
    float x[T * D];
    (void)state;
    for (int i = 0; i < T * D; i++)
        x[i] = number(i / D, 1, i % D);
    assert_int_equal(lw_pass_scores(x, T - 2, D, first, mean, var, NULL), 0);
    x[(T - 1) * D] = 100;
    assert_int_equal(lw_pass_scores(x, T - 2, D, all, mean, var, NULL), 0);
    assert_memory_equal(all, first, sizeof all);
}

static void test_refused(void **state)
{
    double out[LW_PASS_SCORES], mean[D], var[D];
    float x[2 * D] = {0};
    (void)state;
    assert_int_equal(lw_pass_scores(x, 1, D, out, mean, var, NULL), LW_EUSAGE);
    x[D + 2] = NAN;
    assert_int_equal(lw_pass_scores(x, 2, D, out, mean, var, NULL), LW_ENUMERIC);
    assert_non_null(strstr(lw_errmsg(), "number 2 of pass 1"));
    x[D + 2] = 0; /* all passes alike, and of length 0: nothing varies */
    assert_int_equal(lw_pass_scores(x, 2, D, out, mean, var, NULL), 0);
    for (int s = 0; s < LW_PASS_WEIGHTED_TRACE; s++)
        assert_true(isfinite(out[s]));
}

static void test_reliability(void **state)
{
    enum { K = 4, M = 7 };
    double s[K * M];
    lw_reliability r;
    (void)state;
    for (int k = 0; k < K; k++)
        for (int i = 0; i < M; i++)
            s[k * M + i] = (i * 31 + k * k * 11 + i * i * 7 * (k + 1)) % 29 / 29.0 * 1.5 + i * .4;
    assert_int_equal(lw_reliability_of(s, K, M, &r), 0);
    close_to(r.signal, 0.834116237755507);
    close_to(r.noise, 0.137941651095634);
    close_to(r.snr, 6.04687729290131);
    close_to(r.icc, 0.852873612850948);
    close_to(r.rho_median, 0.946428571428572);
    close_to(r.rho_q25, 0.928571428571429);
    close_to(r.rho_q75, 0.964285714285715);
    r = (lw_reliability){.rho_median = .8, .snr = 2, .icc = .75};
    assert_string_equal(lw_reliability_status(&r), "usable");
    r.snr = 1.5;
    assert_string_equal(lw_reliability_status(&r), "marginal");
    r.rho_median = .59;
    assert_string_equal(lw_reliability_status(&r), "failed");
    assert_int_equal(lw_reliability_of(s, 1, M, &r), 0);
    assert_string_equal(lw_reliability_status(&r), "insufficient_trials");
}

/* Scores that do not vary: the means of 60 equal numbers or ranks are none but that number. */
static void test_constant(void **state)
{
    enum { PICTURES = 60, K = 3 };
    double s[K * PICTURES], other[PICTURES], v;
    lw_reliability r;
    lw_interval i;
    (void)state;
    for (int k = 0; k < K * PICTURES; k++)
        s[k] = 0.1;
    for (int k = 0; k < PICTURES; k++)
        other[k] = k * 31 % PICTURES;
    assert_int_equal(lw_reliability_of(s, K, PICTURES, &r), 0);
    assert_true(r.signal == 0 && r.noise == 0);
    assert_true(isnan(r.snr) && isnan(r.icc) && isnan(r.rho_median));
    assert_int_equal(lw_spearman(s, s + PICTURES, PICTURES, &v), 0);
    assert_true(isnan(v));
    assert_int_equal(lw_spearman_interval(s, other, PICTURES, 3, &i), 0);
    assert_true(isnan(i.value) && isnan(i.low) && isnan(i.high));
    for (int k = 0; k < K * PICTURES; k++) /* the same in every trial */
        s[k] = 0.1 * other[k % PICTURES];
    assert_int_equal(lw_reliability_of(s, K, PICTURES, &r), 0);
    assert_true(r.noise == 0 && isnan(r.snr) && r.icc == 1);
    close_to(r.rho_median, 1);
}

static void test_ranks(void **state)
{
    static const double a[] = {1, 2, 2, 3, 5, 5, 5, 0}, b[] = {2, 1, 4, 4, 4, 9, 1, 0},
                        flat[8] = {0};
    static const bool positive[] = {true, false, true, false, true, false, false, false};
    lw_interval area;
    double v;
    (void)state;
    assert_int_equal(lw_spearman(a, b, 8, &v), 0);
    close_to(v, 0.563291139240506);
    assert_int_equal(lw_spearman(a, flat, 8, &v), 0);
    assert_true(isnan(v));
    assert_int_equal(lw_auroc_interval(a, positive, 8, 1, &area), 0);
    close_to(area.value, (1 + 1.5 + 4) / 15.0); /* pairs won by 1, 2 and 5, ties half */
}

/* Scores that go with the truth in part: numpy and scipy, 20,000 draws of their own. */
static void test_intervals(void **state)
{
    enum { M = 150 };
    double x[M], y[M];
    bool positive[M];
    lw_interval v;
    (void)state;
    for (int i = 0; i < M; i++) {
        x[i] = i * 7919 % 997 / 997.0;
        y[i] = floor((x[i] + 1.3 * ((i * 104729 + 71) % 1009) / 1009.0) * 40) / 40;
        positive[i] = y[i] + i * 613 % 101 / 101.0 > 1.9;
    }
    assert_int_equal(lw_spearman_interval(x, y, M, 5, &v), 0);
    close_to(v.value, 0.611688236976109);
    near(v.low, 0.49938394, 0.02);
    near(v.high, 0.70217283, 0.02);
    assert_int_equal(lw_auroc_interval(x, positive, M, 5, &v), 0);
    close_to(v.value, 0.754317111459969);
    near(v.low, 0.67068497, 0.02);
    near(v.high, 0.82967257, 0.02);
    assert_int_equal(lw_auroc_shuffled(x, positive, M, 5, &v), 0);
    near(v.value, 0.5, 0.012);
    near(v.low, 0.40344878, 0.03);
    near(v.high, 0.59851354, 0.03);
}

/* Few positives: most draws have none. Ties: as the value itself has them. */
static void test_no_interval(void **state)
{
    static const double a[] = {1, 2, 3, 4}, flat[4] = {0}, up[] = {2, 2, 4, 3};
    static const bool none[4] = {false}, all[] = {true, true, true, false};
    lw_interval v;
    (void)state;
    assert_int_equal(lw_auroc_interval(a, none, 4, 1, &v), 0);
    assert_true(isnan(v.value) && isnan(v.low) && isnan(v.high));
    assert_int_equal(lw_spearman_interval(a, flat, 4, 1, &v), 0);
    assert_true(isnan(v.value) && isnan(v.low) && isnan(v.high));
    assert_int_equal(lw_auroc_interval(flat, all, 4, 1, &v), 0);
    assert_true(v.value == 0.5 && v.low == 0.5 && v.high == 0.5);
    v = lw_share_rising(a, up, 4); /* up, the same, up, down; Wilson's bounds of 2 in 4 */
    close_to(v.value, 0.5);
    close_to(v.low, 0.15003898915215);
    close_to(v.high, 0.84996101084785);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),      cmocka_unit_test(test_nested),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_reliability),
        cmocka_unit_test(test_ranks),       cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_no_interval), cmocka_unit_test(test_constant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
