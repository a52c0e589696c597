/* SPDX-License-Identifier: Apache-2.0 */
/* A linear probe against numpy's solution of the same normal equations (scikit-learn's RidgeClassifier
 * with alpha = ridge (n - 1) on standardised features answers the same). */
#include "unit/test_eval_util.h"

#include "eval/eval_probe.h"

enum { N = 40, D = 6, K = 3 };

static void make(float *f, int32_t *labels)
{
    for (int i = 0; i < N; i++) {
        labels[i] = i % K;
        for (int d = 0; d < D; d++)
            f[i * D + d] =
                (float)((i * 37 + d * 11 + i * d * 5) % 29 / 29.0 + (d == i % K ? 0.35 : 0.0));
        f[i * D + 5] = 0.25F; /* says nothing */
    }
}

static void test_numpy(void **state)
{
    static const double weight[K][D] = {{0.240310001471813, -0.114720035582006, -0.073465181002713,
                                         -0.054636152474486, -0.025989863888927, 0},
                                        {-0.12184719004969, 0.265422464271484, -0.115733451087591,
                                         0.026119980732839, 0.038369883941083, 0},
                                        {-0.118462811422122, -0.150702428689478, 0.189198632090304,
                                         0.028516171741647, -0.012380020052156, 0}};
    static const int32_t answers[N] = {2, 1, 0, 0, 1, 2, 0, 0, 2, 0, 1, 2, 1, 2, 0, 0, 1, 2, 0, 1,
                                       0, 0, 1, 1, 0, 1, 2, 0, 1, 2, 1, 1, 2, 0, 1, 2, 0, 1, 2, 0};
    float f[N * D];
    int32_t labels[N], got[N];
    LW_CLEANUP(lw_probe_free) lw_probe *p = NULL;
    (void)state;
    make(f, labels);
    assert_int_equal(lw_probe_fit(NULL, f, N, D, labels, K, &p), 0);
    near(p->ridge, 0.1, 0);
    assert_int_equal(p->rows, N);
    for (int c = 0; c < K; c++)
        for (int d = 0; d < D; d++)
            near(p->weight[c * D + d], weight[c][d], 1e-7);
    lw_probe_answer(p, f, N, got);
    for (int i = 0; i < N; i++)
        assert_int_equal(got[i], answers[i]);
}

/* More features than rows: the ridge makes it solvable. */
static void test_wide(void **state)
{
    enum { ROWS = 12, WIDE = 31 };
    float f[ROWS * WIDE];
    int32_t labels[ROWS], got[ROWS];
    LW_CLEANUP(lw_probe_free) lw_probe *p = NULL;
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        labels[i] = i % 2;
        for (int d = 0; d < WIDE; d++)
            f[i * WIDE + d] = gauss(7, i * WIDE + d) + (d == 3 ? 6.0F * (float)labels[i] : 0.0F);
    }
    assert_int_equal(lw_probe_fit(NULL, f, ROWS, WIDE, labels, 2, &p), 0);
    lw_probe_answer(p, f, ROWS, got);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(got[i], labels[i]);
}

static void test_refusals(void **state)
{
    float f[N * D];
    int32_t labels[N];
    lw_probe *p = NULL;
    (void)state;
    make(f, labels);
    assert_int_equal(lw_probe_fit(NULL, f, 9, D, labels, K, &p), LW_EUSAGE);
    assert_int_equal(lw_probe_fit(NULL, f, N, D, labels, K + 1, &p), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "class 3"));
    f[17] = (float)NAN;
    assert_int_equal(lw_probe_fit(NULL, f, N, D, labels, K, &p), LW_ENUMERIC);
    assert_null(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numpy),
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("eval_probe", tests, NULL, NULL);
}
