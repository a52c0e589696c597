/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbours, precision and recall, diversity, colour, judge: against obvious loops and known
 * cases. */
#include "test_eval_util.h"

#include "base/base.h"
#include "eval/eval.h"

static double plain_distance(const float *a, const float *b, int dim)
{
    double sum = 0;
    for (int i = 0; i < dim; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

static void nearest_is_exact(void **state)
{
    (void)state;
    enum { M = 70, N = 1100, D = 13, K = 4 };
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    ok(lw_pool_new(3, &pool));
    for (int offset = 0; offset < 2; offset++) {
        LW_CLEANUP(lw_free) float *q = gauss_rows(1, M, D);
        LW_CLEANUP(lw_free) float *r = gauss_rows(2, N, D);
        /* Far from zero f32 products are useless: only the exact check can be right. */
        for (int i = 0; i < M * D; i++)
            q[i] += (float)(3000 * offset);
        for (int i = 0; i < N * D; i++)
            r[i] += (float)(3000 * offset);
        double d[M * K], e[M * K];
        int64_t at[M * K];
        ok(lw_nearest(NULL, q, M, r, N, D, K, false, d, at));
        ok(lw_nearest(pool, q, M, r, N, D, K, false, e, NULL));
        assert_memory_equal(d, e, sizeof d);
        for (int i = 0; i < M; i++) {
            for (int k = 0; k < K; k++) {
                near(d[i * K + k], plain_distance(q + i * D, r + at[i * K + k] * D, D), 1e-12);
                assert_true(k == 0 || d[i * K + k] >= d[i * K + k - 1]);
            }
            int nearer = 0;
            for (int j = 0; j < N; j++)
                nearer += plain_distance(q + i * D, r + j * D, D) < d[i * K + K - 1] - 1e-12;
            assert_int_equal(nearer, K - 1);
        }
    }
}

static void ties_and_self_are_settled(void **state)
{
    (void)state;
    const float x[6] = {0, 1, 1, 5, 5, 2};
    double d[6];
    int64_t at[6];
    ok(lw_nearest(NULL, x, 6, x, 6, 1, 1, true, d, at));
    static const int64_t want[6] = {1, 2, 1, 4, 3, 1};
    for (int i = 0; i < 6; i++)
        assert_int_equal(at[i], want[i]);
    assert_true(d[1] == 0 && d[3] == 0 && d[0] == 1);
    ok(lw_nearest(NULL, x, 6, x, 6, 1, 1, false, d, at));
    assert_int_equal(at[2], 1);
    assert_true(d[5] == 0);
    fails(lw_nearest(NULL, x, 6, x, 6, 1, 6, true, d, at), LW_EUSAGE, "6 asked for of 5");
    const float bad[2] = {1, INFINITY};
    fails(lw_nearest(NULL, x, 6, bad, 2, 1, 1, false, d, at), LW_ENUMERIC, "row 1 of the second");
}

static void close_pairs_are_counted(void **state)
{
    (void)state;
    enum { N = 600, D = 5 };
    LW_CLEANUP(lw_free) float *x = gauss_rows(3, N, D);
    for (int k = 0; k < 10; k++) /* ten pictures repeated twenty times */
        for (int c = 1; c < 20; c++)
            memcpy(x + (k + 10 * c) * D, x + k * D, D * sizeof *x);
    int64_t pairs, rows, want_pairs = 0;
    ok(lw_close_pairs(NULL, x, 200, D, 1e-6, &pairs, &rows));
    assert_int_equal(pairs, 10 * 190);
    assert_int_equal(rows, 200);
    ok(lw_close_pairs(NULL, x, N, D, .5, &pairs, &rows));
    int hit[N] = {0}, want_rows = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++)
            if (plain_distance(x + i * D, x + j * D, D) < .5) {
                want_pairs++;
                hit[i] = hit[j] = 1;
            }
    for (int i = 0; i < N; i++)
        want_rows += hit[i];
    assert_int_equal(pairs, want_pairs);
    assert_int_equal(rows, want_rows);
    assert_true(rows > 200 && rows < N);
}

/* Distance of each row to its third nearest other row, by looking at all. */
static void third_nearest(const float *x, int n, int dim, double *radius)
{
    for (int j = 0; j < n; j++) {
        double best[3] = {1e9, 1e9, 1e9};
        for (int k = 0; k < n; k++) {
            double d = plain_distance(x + j * dim, x + k * dim, dim);
            if (j == k || d >= best[2])
                continue;
            best[2] = d;
            for (int b = 2; b > 0 && best[b] < best[b - 1]; b--) {
                double t = best[b];
                best[b] = best[b - 1];
                best[b - 1] = t;
            }
        }
        radius[j] = best[2];
    }
}

static void precision_and_recall_are_the_definition(void **state)
{
    (void)state;
    enum { M = 150, N = 170, D = 6, K = 3 };
    LW_CLEANUP(lw_free) float *g = gauss_rows(4, M, D);
    LW_CLEANUP(lw_free) float *r = gauss_rows(5, N, D);
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    ok(lw_pool_new(3, &pool));
    for (int i = 0; i < M * D; i++)
        g[i] = g[i] * .6f + .5f;
    double around_r[N], around_g[M];
    lw_manifold v, w;
    ok(lw_precision_recall(NULL, g, M, r, N, D, K, &v));
    ok(lw_precision_recall(pool, g, M, r, N, D, K, &w));
    assert_memory_equal(&v, &w, sizeof v);
    third_nearest(r, N, D, around_r);
    third_nearest(g, M, D, around_g);
    int inside = 0, balls = 0, reached = 0, held = 0;
    for (int i = 0; i < M; i++) {
        int in = 0;
        for (int j = 0; j < N; j++)
            in += plain_distance(g + i * D, r + j * D, D) <= around_r[j];
        inside += in > 0;
        balls += in;
    }
    for (int j = 0; j < N; j++) {
        int by_real = 0, by_generated = 0;
        for (int i = 0; i < M; i++) {
            double d = plain_distance(g + i * D, r + j * D, D);
            by_real |= d <= around_r[j];
            by_generated |= d <= around_g[i];
        }
        held += by_real;
        reached += by_generated;
    }
    near(v.precision, (double)inside / M, 0);
    near(v.recall, (double)reached / N, 0);
    near(v.density, (double)balls / (M * K), 1e-15);
    near(v.coverage, (double)held / N, 0);
    print_message("narrower, shifted: precision %.3f recall %.3f density %.3f coverage %.3f\n",
                  v.precision, v.recall, v.density, v.coverage);
    assert_true(v.precision > v.recall && v.recall > 0);
    ok(lw_precision_recall(NULL, r, N, r, N, D, K, &v));
    assert_true(v.precision == 1 && v.recall == 1 && v.coverage == 1);
    for (int i = 0; i < M * D; i++)
        g[i] += 100;
    ok(lw_precision_recall(NULL, g, M, r, N, D, K, &v));
    assert_true(v.precision == 0 && v.recall == 0 && v.density == 0 && v.coverage == 0);
    fails(lw_precision_recall(NULL, g, 3, r, N, D, K, &v), LW_EUSAGE, "too few");
}

static void spread_and_diversity(void **state)
{
    (void)state;
    /* class 0: 0, 3 (distance 3); class 1: 0, 1, 5 (mean 10/3); class 2: one row, not counted */
    const float x[6] = {0, 0, 3, 1, 5, 77};
    const int32_t labels[6] = {0, 1, 0, 1, 1, 2};
    double out;
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    ok(lw_pool_new(2, &pool));
    ok(lw_spread(pool, x, 6, 1, labels, 3, &out));
    near(out, (3 + 10.0 / 3) / 2, 1e-14);
    ok(lw_spread(NULL, x, 3, 1, NULL, 0, &out));
    near(out, 2, 1e-14);
    fails(lw_spread(NULL, x, 1, 1, NULL, 0, &out), LW_EUSAGE, "no class has two");
    fails(lw_spread(NULL, x, 6, 1, labels, 2, &out), LW_EUSAGE, "label 2 of row 5");
    const float half[6] = {0, 0, 1.5f, .5f, 2.5f, 9};
    ok(lw_diversity(NULL, half, 6, labels, x, 6, labels, 1, 3, &out));
    near(out, .5, 1e-7);
    const float same[2] = {1, 1};
    fails(lw_diversity(NULL, x, 6, labels, same, 2, NULL, 1, 0, &out), LW_ENUMERIC, "all equal");
}

static void colour_distance_sees_gray(void **state)
{
    (void)state;
    enum { N = 300, PIXELS = 16 };
    double six[6], out;
    const float picture[6] = {0, 1, 2, 4, 1, 0};
    lw_colour_numbers(picture, 2, 3, six);
    static const double want[6] = {2, 1, 1, 2, 0, 1};
    for (int i = 0; i < 6; i++)
        near(six[i], want[i], 1e-15);
    float *real = malloc(N * PIXELS * 3 * sizeof *real),
          *gen = malloc(N * PIXELS * 3 * sizeof *gen);
    for (int i = 0; i < N; i++) /* one flat random colour each */
        for (int p = 0; p < PIXELS; p++)
            for (int c = 0; c < 3; c++) {
                real[(i * PIXELS + p) * 3 + c] = gauss(8, i * 3 + c);
                gen[(i * PIXELS + p) * 3 + c] = gauss(9, i * 3 + c);
            }
    ok(lw_colour_distance(gen, N, real, N, PIXELS, &out));
    assert_true(out < .05);
    for (int i = 0; i < N * PIXELS * 3; i++)
        gen[i] = 0; /* the mean gray: everything the covariance has is missing */
    ok(lw_colour_distance(gen, N, real, N, PIXELS, &out));
    near(out, 1, .02);
    fails(lw_colour_distance(real, N, gen, N, PIXELS, &out), LW_ENUMERIC, "same colours");
    free(real);
    free(gen);
}

static void judge_counts(void **state)
{
    (void)state;
    /* 2 classes and junk */
    const float p[5][3] = {
        {.95f, .03f, .02f}, {.05f, .9f, .05f}, {.92f, .08f, 0}, {.2f, .1f, .7f}, {.6f, .3f, .1f}};
    const int32_t asked[5] = {0, 1, 1, 0, 0};
    lw_verdict v;
    int64_t histogram[2];
    ok(lw_judge(p[0], 5, 3, 2, asked, .9, histogram, &v));
    near(v.accepted, .4, 1e-15);     /* rows 0, 1 */
    near(v.accepted_any, .6, 1e-15); /* and 2, of the wrong class */
    near(v.agreement, .6, 1e-15);    /* 0, 1, 4 */
    near(v.junk, .2, 1e-15);
    assert_int_equal(histogram[0], 4);
    assert_int_equal(histogram[1], 1);
    near(v.class_min, .2, 1e-15);
    near(v.class_max, .8, 1e-15);
    ok(lw_judge(p[0], 5, 3, 2, NULL, .9, NULL, &v));
    near(v.accepted, .6, 1e-15);
    near(v.agreement, .8, 1e-15);
    const float bad[3] = {.5f, .6f, .1f}, nan[3] = {NAN, .5f, .5f}, minus[3] = {-.1f, .6f, .5f};
    fails(lw_judge(bad, 1, 3, 2, NULL, .9, NULL, &v), LW_ENUMERIC, "row 0");
    fails(lw_judge(nan, 1, 3, 2, NULL, .9, NULL, &v), LW_ENUMERIC, "row 0");
    fails(lw_judge(minus, 1, 3, 2, NULL, .9, NULL, &v), LW_ENUMERIC, "row 0");
    const int32_t wrong[1] = {2};
    fails(lw_judge(p[0], 1, 3, 2, wrong, .9, NULL, &v), LW_EUSAGE, "class 2");
    fails(lw_judge(p[0], 0, 3, 2, NULL, .9, NULL, &v), LW_EUSAGE, "0 rows");
}

static void large_sets_find_their_nearest(void **state)
{
    (void)state;
    enum { M = 500, N = 20000, D = 768 };
    LW_CLEANUP(lw_free) float *x = gauss_rows(10, M + N, 8);
    LW_CLEANUP(lw_free) float *wide = malloc((size_t)(M + N) * D * sizeof *wide);
    for (int64_t i = 0; i < M + N; i++)
        for (int k = 0; k < D; k++)
            wide[i * D + k] = x[i * 8 + k % 8] * .5f + (float)(k % 5) * .1f;
    double d[M];
    ok(lw_nearest(NULL, wide, M, wide + (int64_t)M * D, N, D, 1, false, d, NULL));
    for (int i = 0; i < M;
         i += 99) { /* 96 halves of the same eight differences: squares times 24 */
        double best = HUGE_VAL;
        for (int j = M; j < M + N; j++)
            best = fmin(best, plain_distance(x + i * 8, x + j * 8, 8));
        assert_true(fabs(d[i] - sqrt(24) * best) < 1e-3 * best);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_is_exact),
        cmocka_unit_test(ties_and_self_are_settled),
        cmocka_unit_test(close_pairs_are_counted),
        cmocka_unit_test(precision_and_recall_are_the_definition),
        cmocka_unit_test(spread_and_diversity),
        cmocka_unit_test(colour_distance_sees_gray),
        cmocka_unit_test(judge_counts),
        cmocka_unit_test(large_sets_find_their_nearest),
    };
    return cmocka_run_group_tests_name("eval sets", tests, NULL, NULL);
}
