/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics and Frechet distance: two-pass sums, closed forms, rank deficiency,
 * published numbers. */
#include "test_eval_util.h"

#include "eval/eval_dense.h"
#include "formats/formats.h"
#include "base/base.h"
#include "eval/eval.h"
#include <stdio.h>

static void statistics_equal_two_passes(void **state)
{
    (void)state;
    enum { N = 1000, D = 7 };
    LW_CLEANUP(lw_free) float *x = gauss_rows(1, N, D);
    for (int i = 0; i < N * D; i++)
        x[i] += 1e4f * (float)(i % D); /* far from zero */
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    ok(lw_stats_new(D, &s));
    ok(lw_stats_add(NULL, s, x, N));
    double mean[D], cov[D * D];
    ok(lw_stats_get(s, mean, cov));
    assert_int_equal(lw_stats_count(s), N);
    double trace = 0, got;
    for (int a = 0; a < D; a++) {
        double m = 0;
        for (int i = 0; i < N; i++)
            m += (double)x[i * D + a] / N;
        near(mean[a], m, 1e-9);
        for (int b = 0; b < D; b++) {
            double mb = 0, c = 0;
            for (int i = 0; i < N; i++)
                mb += (double)x[i * D + b] / N;
            for (int i = 0; i < N; i++)
                c += ((double)x[i * D + a] - m) * ((double)x[i * D + b] - mb) / (N - 1);
            near(cov[a * D + b], c, 1e-9);
            assert_true(cov[a * D + b] == cov[b * D + a]);
            trace += a == b ? c : 0;
        }
    }
    ok(lw_stats_trace(s, &got));
    near(got, trace, 1e-8);
}

static void cuts_do_not_change_a_bit(void **state)
{
    (void)state;
    enum { N = 700, D = 33 };
    LW_CLEANUP(lw_free) float *x = gauss_rows(2, N, D);
    double want[D * D], got[D * D], mean[D], mean2[D];
    static const int64_t cuts[] = {700, 1, 127, 128, 129, 300};
    for (size_t c = 0; c < LW_COUNT(cuts); c++) {
        LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
        ok(lw_stats_new(D, &s));
        for (int64_t at = 0; at < N; at += cuts[c]) {
            ok(lw_stats_add(NULL, s, x + at * D, LW_MIN(cuts[c], N - at)));
            if (lw_stats_count(s) > 1)
                ok(lw_stats_get(s, mean2, got)); /* looking changes nothing */
        }
        ok(lw_stats_get(s, c ? mean2 : mean, c ? got : want));
        if (c) {
            assert_memory_equal(got, want, sizeof want);
            assert_memory_equal(mean, mean2, sizeof mean);
        }
    }
}

static void bad_rows_are_named(void **state)
{
    (void)state;
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_CLEANUP(lw_stats_free) lw_stats *t = NULL;
    double out;
    ok(lw_stats_new(2, &s));
    ok(lw_stats_new(3, &t));
    fails(lw_stats_get(s, &out, NULL), LW_EUSAGE, "needs 2");
    const float rows[6] = {1, 2, 3, 4, 5, NAN};
    fails(lw_stats_add(NULL, s, rows, 3), LW_ENUMERIC, "feature 1 of row 2");
    assert_int_equal(lw_stats_count(s), 2);
    const float more[6] = {1, 2, 3, 5, 5, 6};
    ok(lw_stats_add(NULL, t, more, 2));
    fails(lw_frechet(NULL, s, t, &out), LW_ESHAPE, "2 and 3");
    lw_stats *none = NULL;
    fails(lw_stats_new(0, &none), LW_EUSAGE, "0 features");
    const double mean[2] = {0, 0}, bad[4] = {1, 0, 0, -1}, inf[4] = {1, 0, 0, (double)INFINITY},
                 good[4] = {1, 0, 0, 1};
    fails(lw_frechet_arrays(2, mean, bad, mean, good, &out), LW_ENUMERIC,
          "not positive semidefinite");
    fails(lw_frechet_arrays(2, mean, inf, mean, good, &out), LW_ENUMERIC, "not finite");
    LW_CLEANUP(lw_stats_free) lw_stats *fixed = NULL;
    ok(lw_stats_from(2, 10, mean, good, &fixed));
    fails(lw_stats_add(NULL, fixed, rows, 1), LW_EUSAGE, "no further rows");
}

/* No more rows than features: the rows are the factor. The same from the covariance alone. */
static void few_rows_are_not_factored(void **state)
{
    (void)state;
    enum { D = 300, M = 500 };
    static const int few[] = {2, 40, 299, 300, 301};
    LW_CLEANUP(lw_free) float *r = gauss_rows(82, M, D);
    LW_CLEANUP(lw_free) double *mean = lw_calloc(D, sizeof *mean);
    LW_CLEANUP(lw_free) double *cov = lw_calloc((size_t)D * D, sizeof *cov);
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    LW_CLEANUP(lw_stats_free) lw_stats *reference = NULL;
    ok(lw_pool_new(3, &pool));
    ok(lw_stats_new(D, &reference));
    ok(lw_stats_add(pool, reference, r, M));
    for (size_t c = 0; c < LW_COUNT(few); c++) {
        LW_CLEANUP(lw_free) float *x = gauss_rows(81, few[c], D);
        LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
        LW_CLEANUP(lw_stats_free) lw_stats *given = NULL;
        for (int i = 0; i < few[c] * D; i++)
            x[i] += 1000; /* and nothing is lost to a large mean */
        lw_frechet_parts one, three, by_cov;
        ok(lw_stats_new(D, &s));
        ok(lw_stats_add(NULL, s, x, few[c]));
        ok(lw_stats_get(s, mean, cov));
        ok(lw_stats_from(D, few[c], mean, cov, &given));
        ok(lw_frechet_detail(NULL, s, reference, &one));
        ok(lw_frechet_detail(pool, s, reference, &three));
        ok(lw_frechet_detail(NULL, given, reference, &by_cov));
        assert_true(one.distance == three.distance && one.traces == three.traces);
        assert_int_equal(one.rank_a, LW_MIN(few[c] - 1, D));
        assert_int_equal(by_cov.rank_a, one.rank_a);
        near(one.traces, by_cov.traces, 1e-11 * by_cov.traces);
        near(one.distance, by_cov.distance, 1e-11 * by_cov.distance);
    }
}

static void closed_forms_hold(void **state)
{
    (void)state;
    double out;
    /* Diagonal: sum (m1 - m2)^2 + (s1 - s2)^2. */
    const double m1[3] = {1, -2, 0}, m2[3] = {0, 1, 0}, c1[9] = {4, 0, 0, 0, 9, 0, 0, 0, 1},
                 c2[9] = {1, 0, 0, 0, 25, 0, 0, 0, 0};
    ok(lw_frechet_arrays(3, m1, c1, m2, c2, &out));
    near(out, 10 + 1 + 4 + 1, 1e-12);
    ok(lw_frechet_arrays(3, m2, c2, m1, c1, &out));
    near(out, 16, 1e-12);
    ok(lw_frechet_arrays(3, m1, c1, m1, c1, &out));
    near(out, 0, 1e-14);
    /* 2x2 that do not commute: tr sqrt = sqrt(tr(AB) + 2 sqrt(det A det B)). */
    const double z[2] = {0, 0}, a[4] = {2, .7, .7, 1}, b[4] = {1, -.5, -.5, 3};
    double ab = 2 * 1 + 2 * .7 * -.5 + 1 * 3, det = (2 - .49) * (3 - .25);
    ok(lw_frechet_arrays(2, z, a, z, b, &out));
    near(out, 3 + 4 - 2 * sqrt(ab + 2 * sqrt(det)), 1e-13);
    /* Scaling both by k scales the distance by k. */
    const double ka[4] = {2e-12, .7e-12, .7e-12, 1e-12}, kb[4] = {1e-12, -.5e-12, -.5e-12, 3e-12};
    double small;
    ok(lw_frechet_arrays(2, z, ka, z, kb, &small));
    near(small * 1e12, out, 1e-12);
    /* Zero covariance: a point. */
    const double none[4] = {0, 0, 0, 0};
    ok(lw_frechet_arrays(2, z, none, z, b, &out));
    near(out, 4, 1e-14);
}

/* Gaussians on a plane of a 200-dimensional space: the distance is that of the plane, to many
 * digits. */
static void rank_deficiency_costs_no_digits(void **state)
{
    (void)state;
    enum { D = 200, N = 40 };
    double u[D], v[D], mean[D] = {0}, out;
    double nu = 0, nv = 0, uv = 0;
    for (int i = 0; i < D; i++) {
        u[i] = (double)gauss(5, i);
        v[i] = (double)gauss(6, i);
        nu += u[i] * u[i];
        uv += u[i] * v[i];
    }
    for (int i = 0; i < D; i++) {
        v[i] -= uv / nu * u[i];
        nv += v[i] * v[i];
    }
    static double one[D * D], two[D * D];
    const double a[4] = {2, .7, .7, 1}, b[4] = {1, -.5, -.5, 3};
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) {
            double uu = u[i] * u[j] / nu, vv = v[i] * v[j] / nv,
                   cross = (u[i] * v[j] + v[i] * u[j]) / sqrt(nu * nv);
            one[i * D + j] = a[0] * uu + a[1] * cross + a[3] * vv;
            two[i * D + j] = b[0] * uu + b[1] * cross + b[3] * vv;
        }
    double want = 7 - 2 * sqrt(4.3 + 2 * sqrt(1.51 * 2.75));
    ok(lw_frechet_arrays(D, mean, one, mean, two, &out));
    print_message("rank 2 in 200 dimensions: off by %.2g\n", out - want);
    near(out, want, 1e-12);
    /* The same rows twice, fewer than dimensions. */
    LW_CLEANUP(lw_free) float *x = gauss_rows(7, N, D);
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    ok(lw_stats_new(D, &s));
    ok(lw_stats_add(NULL, s, x, N));
    ok(lw_frechet_rows(x, N, s, &out));
    near(out, 0, 1e-11);
    for (int i = 0; i < N * D; i++)
        x[i] *= 2; /* exact; covariance times 4: (2 - 1)^2 tr C + |mean|^2 */
    double trace, m[D], shift = 0;
    ok(lw_stats_trace(s, &trace));
    ok(lw_stats_get(s, m, NULL));
    for (int i = 0; i < D; i++)
        shift += m[i] * m[i];
    ok(lw_frechet_rows(x, N, s, &out));
    near(out, trace + shift, 1e-10);
}

static const double *f64(const lw_st_file *f, const char *name)
{
    const lw_st_tensor *t = NULL;
    ok(lw_st_get(f, name, &t));
    assert_int_equal(t->type, LW_ELEM_F64);
    double *copy = malloc(t->bytes);
    memcpy(copy, t->data, t->bytes);
    return copy;
}

/* Frechet distances of ResNet-56 features of CIFAR-10 as scipy found them (40 digits give
 * 2.531177705075036 for train | testjpeg); needs LW_TEST_DATA/encoders. */
static void published_numbers_are_met(void **state)
{
    (void)state;
    const char *root = getenv("LW_TEST_DATA");
    if (!root) {
        print_message("skipped: LW_TEST_DATA names no folder with encoders/resnet_cifar10\n");
        skip();
    }
    char path[600];
    snprintf(path, sizeof path, "%s/encoders/resnet_cifar10/fid_check_resnet56.safetensors", root);
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    ok(lw_st_open(path, &f));
    static const struct {
        const char *a, *b;
        double want;
    } cases[] = {{"train", "test", 0.04996032083923296},
                 {"train", "testjpeg", 2.531177705074896},
                 {"test", "testjpeg", 2.270302921261546}};
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        char name[64];
        const double *part[4];
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "%s.%s", k < 2 ? cases[i].a : cases[i].b,
                     k % 2 ? "cov" : "mu");
            part[k] = f64(f, name);
        }
        double got;
        ok(lw_frechet_arrays(64, part[0], part[1], part[2], part[3], &got));
        print_message("%s | %s: %.15f (scipy %.15f)\n", cases[i].a, cases[i].b, got, cases[i].want);
        near(got, cases[i].want, 1e-11);
        for (int k = 0; k < 4; k++) {
            void *p = (void *)(uintptr_t)part[k];
            free(p);
        }
    }
    const lw_st_tensor *t = NULL, *j = NULL;
    ok(lw_st_get(f, "test5k.features", &t));
    ok(lw_st_get(f, "testjpeg5k.features", &j));
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_CLEANUP(lw_stats_free) lw_stats *train = NULL;
    ok(lw_stats_new(64, &s));
    ok(lw_stats_add(NULL, s, j->data, 5000));
    double got;
    ok(lw_frechet_rows(t->data, 5000, s, &got));
    near(got, 2.257799853783851, 1e-11);
    const double *mu = f64(f, "train.mu"), *cov = f64(f, "train.cov");
    ok(lw_stats_from(64, 50000, mu, cov, &train));
    ok(lw_frechet_rows(t->data, 5000, train, &got));
    near(got, 0.06404891194507911, 1e-11);
    lw_interval iv;
    ok(lw_frechet_bootstrap(t->data, 5000, train, 20, .95, 1, NULL, &iv));
    print_message("train | test5k: %.4f, 95 %% [%.4f, %.4f]\n", iv.value, iv.low, iv.high);
    free((void *)(uintptr_t)mu);
    free((void *)(uintptr_t)cov);
}

static void bootstrap_covers_and_repeats(void **state)
{
    (void)state;
    enum { N = 200, D = 3 };
    /* True distance: rows shifted by (1, 0, 0) from a standard normal reference. */
    const double zero[D] = {0}, eye[D * D] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    LW_CLEANUP(lw_stats_free) lw_stats *ref = NULL;
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    ok(lw_pool_new(3, &pool));
    ok(lw_stats_from(D, 1000000, zero, eye, &ref));
    lw_interval all[60];
    double mean = 0; /* what 200 rows give on average: the truth, 1, and their bias */
    for (uint64_t seed = 0; seed < 60; seed++) {
        LW_CLEANUP(lw_free) float *x = gauss_rows(100 + seed, N, D);
        for (int i = 0; i < N; i++)
            x[i * D] += 1;
        lw_interval a, b;
        ok(lw_frechet_bootstrap(x, N, ref, 100, .9, seed, NULL, &a));
        assert_true(a.low < a.value && a.value < a.high && a.low >= 0);
        all[seed] = a;
        mean += a.value / 60;
        if (seed < 3) {
            ok(lw_frechet_bootstrap(x, N, ref, 100, .9, seed, pool, &b));
            assert_memory_equal(&a, &b, sizeof a);
            ok(lw_frechet_bootstrap(x, N, ref, 100, .9, seed + 1, pool, &b));
            assert_true(a.value == b.value && a.low != b.low);
        }
    }
    int covered = 0;
    for (int i = 0; i < 60; i++)
        covered += all[i].low <= mean && mean <= all[i].high;
    print_message("mean %.3f; a 90 %% interval covers it in %d of 60\n", mean, covered);
    near(mean, 1.02, .06);
    assert_in_range(covered, 46, 60);
    lw_interval out;
    const float rows[6] = {0};
    fails(lw_frechet_bootstrap(rows, 2, ref, 5, .9, 1, NULL, &out), LW_EUSAGE, "5 replicates");
    fails(lw_frechet_bootstrap(rows, 1, ref, 50, .9, 1, NULL, &out), LW_EUSAGE, "needs 2");
}

/* Newcombe 1998, Statistics in Medicine 17, 873-890, table II: 56 of 70 against 48 of 80, method
 * 10; and a side that nothing supports is as wide as its own interval. */
static void differences_have_newcombes_interval(void **state)
{
    (void)state;
    lw_interval d = lw_interval_difference(lw_share_interval(56, 70, LW_Z_95),
                                           lw_share_interval(48, 80, LW_Z_95));
    near(d.value, .2, 1e-12);
    near(d.low, .0524, 5e-5);
    near(d.high, .3339, 5e-5);
    d = lw_interval_difference((lw_interval){3, 2, 7}, (lw_interval){1, 1, 1});
    assert_true(d.value == 2 && d.low == 1 && d.high == 6);
}

static void share_intervals_are_wilsons(void **state)
{
    (void)state;
    lw_interval v = lw_share_interval(8, 10, LW_Z_95);
    near(v.value, .8, 0);
    near(v.low, .4901625, 1e-6); /* Wilson 1927; any statistics text */
    near(v.high, .9433178, 1e-6);
    v = lw_share_interval(0, 10, LW_Z_95);
    near(v.low, 0, 0);
    near(v.high, .2775328, 1e-6);
    v = lw_share_interval(10, 10, LW_Z_95);
    near(v.high, 1, 0);
    v = lw_share_interval(0, 0, 2);
    assert_true(v.low == 0 && v.high == 1);
}

/* Singular values by one-sided Jacobi rotations: slow, obvious, accurate. a [m][n], m >= n. */
static double nuclear_naive(const double *from, int m, int n)
{
    LW_CLEANUP(lw_free) double *a = lw_calloc((size_t)m * (size_t)n, sizeof *a);
    memcpy(a, from, (size_t)m * (size_t)n * sizeof *a);
    double total = 0;
    for (int sweep = 0; sweep < 40; sweep++)
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) {
                double pp = 0, qq = 0, pq = 0;
                for (int i = 0; i < m; i++) {
                    pp += a[i * n + p] * a[i * n + p];
                    qq += a[i * n + q] * a[i * n + q];
                    pq += a[i * n + p] * a[i * n + q];
                }
                if (fabs(pq) <= 1e-300)
                    continue;
                double z = (qq - pp) / (2 * pq), t = copysign(1, z) / (fabs(z) + sqrt(1 + z * z)),
                       c = 1 / sqrt(1 + t * t), s = c * t;
                for (int i = 0; i < m; i++) {
                    double x = a[i * n + p], y = a[i * n + q];
                    a[i * n + p] = c * x - s * y;
                    a[i * n + q] = s * x + c * y;
                }
            }
    for (int j = 0; j < n; j++) {
        double sum = 0;
        for (int i = 0; i < m; i++)
            sum += a[i * n + j] * a[i * n + j];
        total += sqrt(sum);
    }
    return total;
}

/* Full, graded over 30 powers of ten, of rank 2, with columns and rows of zeros, wide and tall. */
static void singular_values_are_jacobis(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1},   {2, 2},   {3, 2},   {5, 5},   {17, 4},
                                   {33, 32}, {40, 40}, {49, 49}, {131, 98}};
    double worst = 0;
    for (size_t c = 0; c < LW_COUNT(sizes); c++)
        for (int kind = 0; kind < 5; kind++) {
            int m = sizes[c][0], n = sizes[c][1];
            LW_CLEANUP(lw_free) double *a = lw_calloc((size_t)(m * n), sizeof *a);
            LW_CLEANUP(lw_free) double *b = lw_calloc((size_t)(m * n), sizeof *b);
            for (int i = 0; i < m; i++)
                for (int j = 0; j < n; j++) {
                    double v = (double)gauss(40 + c, i * n + j);
                    if (kind == 1)
                        v *= pow(10, -30. * j / n);
                    if (kind == 2)
                        v = (double)gauss(1, i) * (double)gauss(2, j) + 3. * (i % 2) * (j % 3);
                    if (kind == 3 && (j == n / 2 || i == m / 3 || j == 0))
                        v = 0;
                    if (kind == 4)
                        v = i == j ? 1 : j == i + 1 ? 1 : 0; /* bidiagonal as it is */
                    a[i * n + j] = b[j * m + i] = v;
                }
            double want = nuclear_naive(a, m, n), got, wide;
            ok(lw_nuclear_norm(NULL, a, m, n, &got));
            ok(lw_nuclear_norm(NULL, b, n, m, &wide));
            near(got, want, 4e-15 * n * LW_MAX(want, 1e-30));
            near(wide, want, 4e-15 * n * LW_MAX(want, 1e-30));
            worst = LW_MAX(worst, want > 0 ? fabs(got - want) / want : 0);
        }
    print_message("singular values: off by %.2g of their sum at most\n", worst);
    double zero[6] = {0}, got = 1;
    ok(lw_nuclear_norm(NULL, zero, 3, 2, &got));
    assert_true(got == 0);
    ok(lw_nuclear_norm(NULL, zero, 0, 2, &got));
    assert_true(got == 0);
}

/* L L^T is the matrix, also across blocks of rows and when most of them depend on others. */
static void factors_multiply_back(void **state)
{
    (void)state;
    enum { D = 150 };
    static const int ranks[] = {1, 3, 64, 65, 149, 150};
    for (size_t c = 0; c < LW_COUNT(ranks); c++) {
        LW_CLEANUP(lw_free) double *a = lw_calloc(D * D, sizeof *a);
        LW_CLEANUP(lw_free) double *l = lw_calloc(D * D, sizeof *l);
        for (int i = 0; i < D; i++)
            for (int j = 0; j < D; j++) {
                for (int t = 0; t < ranks[c]; t++)
                    a[i * D + j] += (double)gauss(60, i * D + t) * (double)gauss(60, j * D + t);
                l[i * D + j] = a[i * D + j];
            }
        int32_t rank;
        ok(lw_factor(NULL, l, D, &rank));
        assert_int_equal(rank, ranks[c]);
        for (int i = 0; i < D; i++)
            for (int j = 0; j < D; j++) {
                double sum = 0;
                for (int t = 0; t < rank; t++)
                    sum += l[t * D + i] * l[t * D + j];
                near(sum, a[i * D + j], 1e-11);
            }
    }
    double off_diagonal[4] = {0, 1, 1, 0}, hidden[9] = {1, 1, 1, 1, 1, 0, 1, 0, 1};
    int32_t rank;
    fails(lw_factor(NULL, off_diagonal, 2, &rank), LW_ENUMERIC, "not positive semidefinite");
    fails(lw_factor(NULL, hidden, 3, &rank), LW_ENUMERIC, "not positive semidefinite");
}

static void every_instruction_set_has_the_same_bits(void **state)
{
    (void)state;
#if defined(__x86_64__) || defined(__aarch64__)
    if (lw_isa_best() < LW_ISA_AVX2)
        skip();
    enum { M = 13, N = 71, K = 523 };
    LW_CLEANUP(lw_free) float *x = gauss_rows(8, N, K);
    LW_CLEANUP(lw_free) double *a = lw_calloc(N * K, sizeof *a);
    for (int i = 0; i < N * K; i++)
        a[i] = (double)x[i] * (1 + 1e-9 * i);
    static double c[3][M * N], z[3], row[3][K], part[3][N * K];
    float f[3][M * N];
#if defined(__x86_64__)
    const lw_dense *each[3] = {&lw_dense_plain, &lw_dense_avx2, &lw_dense_avx512};
#else
    const lw_dense *each[2] = {&lw_dense_plain, &lw_dense_avx2};
#endif
    LW_CLEANUP(lw_free) double *memory = lw_calloc(lw_gemm_doubles(N, N), sizeof *memory);
    lw_operand rows = LW_ROWS(a, K);
    int levels = lw_isa_best() >= LW_ISA_AVX512 ? 3 : 2;
    for (int w = 0; w < levels; w++) {
        each[w]->dots(f[w], N, x, K, M, x, K, N, K);
        each[w]->gemm(c[w], N, -1, &rows, M, &rows, N, K, memory);
        memcpy(row[w], a, sizeof row[w]);
        z[w] = each[w]->dot(row[w], a + 2 * K, K);
        each[w]->more(row[w], z[w], a + 3 * K, K);
        memcpy(part[w], a, sizeof part[w]);
        each[w]->reflect_left(part[w], K, N, K - 1, a + K, .01);
        each[w]->reflect_right(part[w] + 2, K, N - 2, 47, a + 5, .02);
    }
    for (int w = 1; w < levels; w++) {
        assert_memory_equal(f[0], f[w], sizeof f[0]);
        assert_memory_equal(c[0], c[w], sizeof c[0]);
        assert_memory_equal(row[0], row[w], sizeof row[0]);
        assert_memory_equal(part[0], part[w], sizeof part[0]);
        assert_true(z[0] == z[w]);
    }
    for (int i = 0; i < M; i++) /* and one row is one row, in a tile or alone */
        for (int j = 0; j < N; j++) {
            double alone = 0;
            lw_operand one = LW_ROWS(a + i * K, K), two = LW_ROWS(a + j * K, K);
            lw_dense_avx2.gemm(&alone, 1, -1, &one, 1, &two, 1, K, memory);
            assert_true(alone == c[1][i * N + j]);
        }
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_equal_two_passes),
        cmocka_unit_test(cuts_do_not_change_a_bit),
        cmocka_unit_test(bad_rows_are_named),
        cmocka_unit_test(few_rows_are_not_factored),
        cmocka_unit_test(closed_forms_hold),
        cmocka_unit_test(rank_deficiency_costs_no_digits),
        cmocka_unit_test(singular_values_are_jacobis),
        cmocka_unit_test(factors_multiply_back),
        cmocka_unit_test(every_instruction_set_has_the_same_bits),
        cmocka_unit_test(published_numbers_are_met),
        cmocka_unit_test(bootstrap_covers_and_repeats),
        cmocka_unit_test(differences_have_newcombes_interval),
        cmocka_unit_test(share_intervals_are_wilsons),
    };
    return cmocka_run_group_tests_name("eval frechet", tests, NULL, NULL);
}
