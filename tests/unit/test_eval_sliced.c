/* SPDX-License-Identifier: Apache-2.0 */
/* Sliced Wasserstein, kernel distance, inception score, replicates: each against its definition. */
#include "unit/test_eval_util.h"

static int by_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* W2^2 of two sets of numbers, both repeated until they are equally many. */
static double plain_wasserstein(const double *a, int n, const double *b, int m)
{
    LW_CLEANUP(lw_free) double *x = lw_calloc((size_t)(n * m), sizeof *x);
    LW_CLEANUP(lw_free) double *y = lw_calloc((size_t)(n * m), sizeof *y);
    double sum = 0;
    for (int i = 0; i < n * m; i++) {
        x[i] = a[i % n];
        y[i] = b[i % m];
    }
    qsort(x, (size_t)(n * m), sizeof *x, by_double);
    qsort(y, (size_t)(n * m), sizeof *y, by_double);
    for (int i = 0; i < n * m; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum / (n * m);
}

static void one_dimension_is_exact(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1}, {5, 5}, {4, 6}, {7, 5}, {40, 33}};
    for (size_t c = 0; c < LW_COUNT(sizes); c++) {
        int n = sizes[c][0], m = sizes[c][1];
        LW_CLEANUP(lw_free) float *a = gauss_rows(1 + c, n, 1);
        LW_CLEANUP(lw_free) float *b = gauss_rows(50 + c, m, 1);
        double x[64], y[64], got;
        for (int i = 0; i < n; i++) {
            a[i] = 100 + (i % 3 == 0 ? 1.5f : a[i]); /* equal ones too */
            x[i] = (double)a[i];
        }
        for (int i = 0; i < m; i++) {
            b[i] += 101;
            y[i] = (double)b[i];
        }
        double want = sqrt(plain_wasserstein(x, n, y, m));
        ok(lw_sliced_wasserstein(NULL, a, n, b, m, 1, 3, 9, &got)); /* directions are 1 and -1 */
        near(got, want, 1e-12 * want);
    }
}

/* Of one direction, found from rows that are unit vectors, everything follows; and its mean square
 * over directions is 1 / dim. */
static void directions_are_unit_vectors(void **state)
{
    (void)state;
    enum { D = 7, K = 4000 };
    double got, sum = 0;
    float zero[D] = {0}, a[D];
    for (int e = 0; e < D; e++) {
        memset(a, 0, sizeof a);
        a[e] = 1;
        ok(lw_sliced_wasserstein(NULL, a, 1, zero, 1, D, K, 3, &got));
        near(got * got, 1.0 / D, 4 * sqrt(2.0 / K) / D);
        sum += got * got;
    }
    near(sum, 1, 1e-12);
}

static void sliced_is_the_mean_over_directions(void **state)
{
    (void)state;
    enum { N = 70, M = 45, D = 5, K = 64 };
    LW_CLEANUP(lw_free) float *a = gauss_rows(11, N, D);
    LW_CLEANUP(lw_free) float *b = gauss_rows(12, M, D);
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    ok(lw_pool_new(3, &pool));
    for (int i = 0; i < M * D; i++)
        b[i] = 2 * b[i] + .5f;
    double one, three, back, other, same;
    ok(lw_sliced_wasserstein(NULL, a, N, b, M, D, K, 1, &one));
    ok(lw_sliced_wasserstein(pool, a, N, b, M, D, K, 1, &three));
    assert_true(one == three);
    ok(lw_sliced_wasserstein(NULL, b, M, a, N, D, K, 1, &back));
    near(back, one, 1e-13);
    ok(lw_sliced_wasserstein(NULL, a, N, b, M, D, K, 2, &other));
    assert_true(other != one);
    near(other, one, .3 * one);
    ok(lw_sliced_wasserstein(NULL, a, N, a, N, D, K, 1, &same));
    assert_true(same == 0);
    for (int i = 0; i < N; i++) /* a shift by s: |s|^2 / D on the mean */
        for (int e = 0; e < D; e++)
            a[i * D + e] = 3 + (float)(i == 0);
    for (int i = 0; i < M * D; i++)
        b[i] = 0;
    ok(lw_sliced_wasserstein(NULL, a + D, N - 1, b, M, D, 4096, 1, &same));
    near(same, 3, .1);
    a[4 * D + 2] = NAN;
    fails(lw_sliced_wasserstein(NULL, a, N, b, M, D, K, 1, &same), LW_ENUMERIC,
          "feature 2 of row 4 of the first");
    fails(lw_sliced_wasserstein(NULL, b, 0, b, M, D, K, 1, &same), LW_EUSAGE, "0 and 45 rows");
}

/* A replicate is the distance of the rows it draws, here written out. */
static void replicates_are_distances_of_drawn_rows(void **state)
{
    (void)state;
    enum { N = 60, M = 47, D = 4, R = 20, K = 64 };
    LW_CLEANUP(lw_free) float *a = gauss_rows(21, N, D);
    LW_CLEANUP(lw_free) float *b = gauss_rows(22, M, D);
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    LW_CLEANUP(lw_stats_free) lw_stats *reference = NULL;
    ok(lw_pool_new(2, &pool));
    ok(lw_stats_new(D, &reference));
    ok(lw_stats_add(NULL, reference, b, M));
    int32_t labels[N];
    for (int i = 0; i < N; i++)
        labels[i] = i % 7 == 0 ? 2 : i % 2; /* class 2: nine rows */
    for (int with = 0; with < 2; with++) {
        lw_resampling how = {R, 5, with ? labels : NULL, 3};
        double sliced, frechet, s[R], t[R], f[R];
        ok(lw_sliced_replicates(NULL, a, N, b, M, D, K, 1, &how, &sliced, s));
        ok(lw_sliced_replicates(pool, a, N, b, M, D, K, 1, &how, &sliced, t));
        assert_memory_equal(s, t, sizeof s);
        ok(lw_frechet_replicates(NULL, a, N, reference, &how, &frechet, f));
        ok(lw_frechet_replicates(pool, a, N, reference, &how, &frechet, t));
        assert_memory_equal(f, t, sizeof f);
        lw_rng_key key = lw_rng_key_of(5, lw_hash_name("eval.bootstrap"));
        for (int r = 0; r < R; r++) {
            float drawn[N * D];
            int at = 0, order[N], from = 0;
            for (int c = 0; c < 3; c++)
                for (int i = 0; i < N; i++)
                    if (with ? labels[i] == c : c == 0)
                        order[at++] = i;
            for (int i = 0; i < N; i++) {
                int size = N;
                if (with) {
                    int c = labels[order[i]];
                    for (from = 0; labels[order[from]] != c; from++)
                        ;
                    for (size = 0; from + size < N && labels[order[from + size]] == c; size++)
                        ;
                }
                int row = order[from + (int)lw_rng_below(key, (uint32_t)r, (uint64_t)i, 0,
                                                         (uint32_t)size)];
                memcpy(drawn + i * D, a + row * D, D * sizeof *a);
            }
            double want;
            ok(lw_sliced_wasserstein(NULL, drawn, N, b, M, D, K, 1, &want));
            near(s[r], want, 1e-12 * want);
            ok(lw_frechet_rows(drawn, N, reference, &want));
            near(f[r], want, 1e-10 * want);
        }
        lw_interval v;
        ok(lw_interval_of_replicates(sliced, s, R, .9, &v));
        assert_true(v.low < v.value && v.value < v.high && v.value == sliced);
    }
    labels[7] = 3;
    double x, y[R];
    lw_resampling how = {R, 5, labels, 3};
    fails(lw_sliced_replicates(NULL, a, N, b, M, D, K, 1, &how, &x, y), LW_EUSAGE,
          "label 3 of row 7");
    fails(lw_frechet_replicates(NULL, a, N, reference, &how, &x, y), LW_EUSAGE, "label 3 of row 7");
}

/* As many features as rows, more and fewer: replicates of fewer distinct rows than the reference's
 * rank go another way than those of more. */
static void replicates_of_few_rows_agree(void **state)
{
    (void)state;
    enum { M = 90, R = 20 };
    static const int sizes[][2] = {{30, 60}, {60, 40}, {40, 40}, {200, 12}};
    for (size_t c = 0; c < LW_COUNT(sizes); c++) {
        int n = sizes[c][0], dim = sizes[c][1];
        LW_CLEANUP(lw_free) float *a = gauss_rows(71, n, dim);
        LW_CLEANUP(lw_free) float *b = gauss_rows(72, M, dim);
        LW_CLEANUP(lw_free) float *drawn = gauss_rows(73, n, dim);
        LW_CLEANUP(lw_stats_free) lw_stats *reference = NULL;
        ok(lw_stats_new(dim, &reference));
        ok(lw_stats_add(NULL, reference, b, M));
        lw_resampling how = {R, 5, NULL, 0};
        lw_rng_key key = lw_rng_key_of(5, lw_hash_name("eval.bootstrap"));
        double value, want, each[R];
        ok(lw_frechet_replicates(NULL, a, n, reference, &how, &value, each));
        ok(lw_frechet_rows(a, n, reference, &want));
        near(value, want, 0);
        for (uint32_t r = 0; r < R; r++) {
            for (int i = 0; i < n; i++) {
                uint32_t row = lw_rng_below(key, r, (uint64_t)i, 0, (uint32_t)n);
                memcpy(drawn + i * dim, a + (int)row * dim, (size_t)dim * sizeof *a);
            }
            ok(lw_frechet_rows(drawn, n, reference, &want));
            near(each[r], want, 1e-9 * want); /* rows drawn twice have no rank */
        }
    }
}

static double kernel(const float *x, const float *y, int dim)
{
    double dot = 0;
    for (int e = 0; e < dim; e++)
        dot += (double)x[e] * (double)y[e];
    dot = dot / dim + 1;
    return dot * dot * dot;
}

static double plain_kid(const float *a, int n, const float *b, int m, int dim)
{
    double aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            aa += i == j ? 0 : kernel(a + i * dim, a + j * dim, dim);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            bb += i == j ? 0 : kernel(b + i * dim, b + j * dim, dim);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            ab += kernel(a + i * dim, b + j * dim, dim);
    return aa / ((double)n * (n - 1)) + bb / ((double)m * (m - 1)) - 2 * ab / ((double)n * m);
}

static void kernel_distance_is_the_definition(void **state)
{
    (void)state;
    enum { N = 300, M = 261, D = 9 };
    LW_CLEANUP(lw_free) float *a = gauss_rows(31, N, D);
    LW_CLEANUP(lw_free) float *b = gauss_rows(32, M, D);
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    ok(lw_pool_new(3, &pool));
    for (int i = 0; i < M * D; i++)
        b[i] = b[i] * 1.2f + .3f;
    lw_kid_value v, w;
    ok(lw_kid(NULL, a, N, b, M, D, 40, 100, 7, true, &v));
    ok(lw_kid(pool, a, N, b, M, D, 40, 100, 7, true, &w));
    assert_memory_equal(&v, &w, sizeof v);
    double want = plain_kid(a, N, b, M, D);
    near(v.all, want, 1e-12 * want);
    near(v.mean, v.all, 4 * v.sd / sqrt(40)); /* unbiased */
    assert_true(v.sd > 0 && v.subsets == 40 && v.rows == 100);
    print_message("KID %.4f; of subsets %.4f +- %.4f\n", v.all, v.mean, v.sd);
    ok(lw_kid(NULL, a, N, b, M, D, 3, 1000, 7, false, &v)); /* as many as there are */
    assert_true(v.rows == M && isnan(v.all));
    ok(lw_kid(NULL, a, M, b, M, D, 3, 1000, 7, true, &v)); /* each subset is all */
    near(v.mean, v.all, 1e-12 * v.all);
    near(v.sd, 0, 1e-12);
    b[5] = INFINITY;
    fails(lw_kid(NULL, a, M, b, M, D, 3, 1000, 7, true, &v), LW_ENUMERIC, "not finite");
    fails(lw_kid(NULL, a, 1, b, M, D, 3, 1000, 7, true, &v), LW_EUSAGE, "1 and 261 rows");
}

/* Mean over subsets of so many rows, each by the definition, of the rows that are drawn. */
static double plain_subsets(const float *a, int n, const float *b, int m, int dim, int subsets,
                            int rows, uint64_t seed)
{
    const lw_rng_key key = lw_rng_key_of(seed, lw_hash_name("eval.kid"));
    const lw_rng_key other = {{key.k[0] ^ 1, key.k[1]}};
    float *x = malloc((size_t)(2 * rows * dim) * sizeof *x), *y = x + rows * dim;
    double sum = 0;
    for (int s = 0; s < subsets; s++) {
        for (int i = 0; i < rows; i++) {
            uint64_t ra = lw_rng_permute(key, (uint32_t)s, (uint64_t)n, (uint64_t)i),
                     rb = lw_rng_permute(other, (uint32_t)s, (uint64_t)m, (uint64_t)i);
            memcpy(x + i * dim, a + (int64_t)ra * dim, (size_t)dim * sizeof *x);
            memcpy(y + i * dim, b + (int64_t)rb * dim, (size_t)dim * sizeof *x);
        }
        sum += plain_kid(x, rows, y, rows, dim);
    }
    free(x);
    return sum / subsets;
}

/* Pairs of all rows once, or each subset's: the same draws, the same numbers. Blocks of both ways are
 * whole and not. */
static void kernel_distance_of_subsets(void **state)
{
    (void)state;
    enum { N = 700, M = 420, D = 19 };
    static const struct {
        int subsets, rows;
    } cases[] = {{2, 390}, {60, 130}, {7, 200}, {390, 50}};
    LW_CLEANUP(lw_free) float *a = gauss_rows(31, N, D);
    LW_CLEANUP(lw_free) float *b = gauss_rows(32, M, D);
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    ok(lw_pool_new(3, &pool));
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        lw_kid_value v, w;
        const int s = cases[i].subsets, r = cases[i].rows;
        double want = plain_subsets(a, N, b, M, D, s, r, 5);
        ok(lw_kid(NULL, a, N, b, M, D, s, r, 5, false, &v));
        ok(lw_kid(pool, a, N, b, M, D, s, r, 5, false, &w));
        assert_true(v.mean == w.mean && v.sd == w.sd);
        near(v.mean, want, 1e-12);
        ok(lw_kid(pool, a, N, b, M, D, s, r, 5, true, &w)); /* through all pairs */
        near(w.mean, want, 1e-12);
        near(w.sd, v.sd, 1e-10);
    }
}

static void inception_score_is_the_definition(void **state)
{
    (void)state;
    enum { N = 103, C = 6, SPLITS = 10 };
    LW_CLEANUP(lw_free) float *logits = gauss_rows(41, N, C);
    double mean, sd, score[SPLITS], m = 0, s = 0;
    for (int i = 0; i < N * C; i++)
        logits[i] = 3 * logits[i] + 700; /* exp alone would be infinite */
    ok(lw_inception_score(logits, N, C, SPLITS, &mean, &sd));
    for (int k = 0; k < SPLITS; k++) {
        double p[N][C], marginal[C] = {0}, kl = 0;
        int from = k * N / SPLITS, to = (k + 1) * N / SPLITS;
        for (int i = from; i < to; i++) {
            double sum = 0;
            for (int c = 0; c < C; c++)
                sum += exp((double)logits[i * C + c] - 700);
            for (int c = 0; c < C; c++) {
                p[i][c] = exp((double)logits[i * C + c] - 700) / sum;
                marginal[c] += p[i][c] / (to - from);
            }
        }
        for (int i = from; i < to; i++)
            for (int c = 0; c < C; c++)
                kl += p[i][c] * (log(p[i][c]) - log(marginal[c])) / (to - from);
        score[k] = exp(kl);
        m += score[k] / SPLITS;
    }
    for (int k = 0; k < SPLITS; k++)
        s += (score[k] - m) * (score[k] - m) / SPLITS;
    near(mean, m, 1e-12);
    near(sd, sqrt(s), 1e-12);
    for (int i = 0; i < N * C; i++) /* sure of each, all classes as often */
        logits[i] = i / C % C == i % C ? 1000 : 0;
    ok(lw_inception_score(logits, 10 * C, C, SPLITS, &mean, &sd));
    near(mean, C, 1e-12);
    near(sd, 0, 1e-12);
    logits[8] = NAN;
    fails(lw_inception_score(logits, N, C, SPLITS, &mean, &sd), LW_ENUMERIC, "logit 2 of row 1");
    fails(lw_inception_score(logits, 9, C, SPLITS, &mean, &sd), LW_EUSAGE, "9 rows");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_dimension_is_exact),
        cmocka_unit_test(directions_are_unit_vectors),
        cmocka_unit_test(sliced_is_the_mean_over_directions),
        cmocka_unit_test(replicates_are_distances_of_drawn_rows),
        cmocka_unit_test(replicates_of_few_rows_agree),
        cmocka_unit_test(kernel_distance_is_the_definition),
        cmocka_unit_test(kernel_distance_of_subsets),
        cmocka_unit_test(inception_score_is_the_definition),
    };
    return cmocka_run_group_tests_name("eval sliced", tests, NULL, NULL);
}
