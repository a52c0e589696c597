/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvalues, and the Frechet distance as a loss: its value, its gradient against differences. */
#include "test_eval_util.h"

#include "eval/eval_dense.h"

/* a = rows^T diag(values) rows, rows orthonormal */
static void eigen_gives_the_matrix_back(void **state)
{
    (void)state;
    static const int32_t sizes[] = {1, 2, 3, 17, 64};
    for (size_t c = 0; c < LW_COUNT(sizes); c++) {
        int32_t n = sizes[c], rank = n > 3 ? n / 2 : n; /* half of them are zero */
        size_t count = (size_t)n * (size_t)n;
        LW_CLEANUP(lw_free) float *x = gauss_rows(5, rank, n);
        double *a = calloc(count, sizeof *a), *v = calloc(count, sizeof *v);
        double *values = calloc((size_t)n, sizeof *values);
        for (int32_t t = 0; t < rank; t++)
            for (int32_t i = 0; i < n; i++)
                for (int32_t j = 0; j < n; j++)
                    a[i * n + j] += (t % 2 ? -1.0 : 1.0) * (double)x[t * n + i] *
                                    (double)x[t * n + j];
        memcpy(v, a, count * sizeof *v);
        ok(lw_eigen(v, n, values));
        for (int32_t i = 0; i < n; i++)
            for (int32_t j = 0; j < n; j++) {
                double back = 0, dot = 0;
                for (int32_t t = 0; t < n; t++) {
                    back += values[t] * v[t * n + i] * v[t * n + j];
                    dot += v[i * n + t] * v[j * n + t];
                }
                near(back, a[i * n + j], 1e-12 * n * n);
                near(dot, i == j ? 1.0 : 0.0, 1e-12 * n);
            }
        free(a);
        free(v);
        free(values);
    }
}

/* Reference of n_ref rows; n rows of other scale. */
static void check_gradient(int64_t n_ref, int64_t n, int32_t dim)
{
    LW_CLEANUP(lw_free) float *ref = gauss_rows(7, n_ref, dim);
    LW_CLEANUP(lw_free) float *x = gauss_rows(8, n, dim);
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_CLEANUP(lw_frechet_loss_free) lw_frechet_loss *loss = NULL;
    double *g = calloc((size_t)(n * dim), sizeof *g), *scrap = calloc((size_t)(n * dim), sizeof *g);
    double value, want;
    for (int64_t i = 0; i < n * dim; i++)
        x[i] = 1.5f * x[i] + .25f * (float)(i % dim);
    ok(lw_stats_new(dim, &s));
    ok(lw_stats_add(NULL, s, ref, n_ref));
    ok(lw_frechet_loss_new(s, &loss));
    ok(lw_frechet_gradient(loss, x, n, &value, g));
    ok(lw_frechet_rows(x, n, s, &want));
    near(value, want, 2e-5 * want);
    for (int64_t i = 0; i < n * dim; i += 1 + n * dim / 23) {
        const float h = 1.f / 1024, at = x[i];
        double up, down;
        x[i] = at + h;
        ok(lw_frechet_gradient(loss, x, n, &up, scrap));
        double step = (double)x[i];
        x[i] = at - h;
        ok(lw_frechet_gradient(loss, x, n, &down, scrap));
        step -= (double)x[i];
        x[i] = at;
        near(g[i], (up - down) / step, 2e-5 * (1 + fabs(g[i])));
        assert_true(fabs(g[i]) > 1e-4 || n > 20); /* the test sees something */
    }
    free(g);
    free(scrap);
}

static void gradient_is_the_slope(void **state)
{
    (void)state;
    check_gradient(200, 60, 9); /* full rank */
    check_gradient(200, 7, 9);  /* fewer rows than dimensions */
    check_gradient(6, 60, 9);   /* a reference of low rank */
    check_gradient(6, 5, 9);    /* both */
}

static void equal_rows_have_no_slope(void **state)
{
    (void)state;
    enum { N = 50, D = 6 };
    LW_CLEANUP(lw_free) float *x = gauss_rows(9, N, D);
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_CLEANUP(lw_frechet_loss_free) lw_frechet_loss *loss = NULL;
    double value, g[N * D];
    ok(lw_stats_new(D, &s));
    ok(lw_stats_add(NULL, s, x, N));
    ok(lw_frechet_loss_new(s, &loss));
    ok(lw_frechet_gradient(loss, x, N, &value, g));
    near(value, 0, 1e-8);
    for (int i = 0; i < N * D; i++)
        near(g[i], 0, 1e-8);
}

static void bad_rows_are_refused(void **state)
{
    (void)state;
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_CLEANUP(lw_frechet_loss_free) lw_frechet_loss *loss = NULL;
    const float rows[4] = {1, 2, 3, 5}, bad[4] = {1, 2, NAN, 4};
    double value, g[4];
    ok(lw_stats_new(2, &s));
    ok(lw_stats_add(NULL, s, rows, 2));
    ok(lw_frechet_loss_new(s, &loss));
    fails(lw_frechet_gradient(loss, rows, 1, &value, g), LW_EUSAGE, "needs 2");
    fails(lw_frechet_gradient(loss, bad, 2, &value, g), LW_ENUMERIC, "feature 0 of row 1");
    const float same[4] = {1, 2, 1, 2}; /* no covariance at all */
    ok(lw_frechet_gradient(loss, same, 2, &value, g));
    for (int i = 0; i < 4; i++)
        assert_true(isfinite(g[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eigen_gives_the_matrix_back),
        cmocka_unit_test(gradient_is_the_slope),
        cmocka_unit_test(equal_rows_have_no_slope),
        cmocka_unit_test(bad_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
