/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Laplace's approximation of a last layer against dense matrices (tools/golden/laplace.py): of one
 * calibration picture the Gauss-Newton matrix of all weights by autograd, of several the factors'
 * product written out; the prior of largest evidence from the dense determinant.
 */
#include "eval/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "formats/formats.h"
#include "unit/test_eval_util.h"

static lw_st_file *file;

static int open_file(void **state)
{
    (void)state;
    return lw_st_open("tests/golden/data/laplace.safetensors", &file);
}

static int close_file(void **state)
{
    (void)state;
    lw_st_close(&file);
    return 0;
}

static const lw_st_tensor *find(const char *name, const char *what)
{
    char full[64];
    snprintf(full, sizeof full, "%s.%s", name, what);
    return lw_st_find(file, full);
}

/* A laplace of the case, fitted to its pictures in calls of so many rows. */
static lw_laplace *fit(const char *name, int64_t rows)
{
    const lw_st_tensor *f = find(name, "f"), *g = find(name, "g"), *text = find(name, "text");
    const double *o = find(name, "options")->data;
    const float *from = f->data, *to = g->data;
    lw_laplace *l = NULL;
    const lw_laplace_opts opts = {.in = (int32_t)f->shape[1],
                                  .out = (int32_t)g->shape[1],
                                  .bias = o[0] > 0,
                                  .squares = o[1],
                                  .prior = o[2],
                                  .texts = text ? (int32_t)text->shape[0] : 0,
                                  .text = text ? text->data : NULL,
                                  .scale = o[3],
                                  .shift = o[4],
                                  .sigmoid = o[5] > 0,
                                  .pictures = o[6]};
    assert_int_equal(lw_laplace_new(&opts, &l), 0);
    for (int64_t i = 0; i < f->shape[0]; i += rows) {
        int64_t n = LW_MIN(rows, f->shape[0] - i);
        assert_int_equal(lw_laplace_add(NULL, l, from + i * f->shape[1], to + i * g->shape[1], n),
                         0);
    }
    assert_int_equal(lw_laplace_fit(NULL, l), 0);
    return l;
}

static double worst(const double *have, const double *want, int64_t n)
{
    double top = 0, apart = 0;
    for (int64_t i = 0; i < n; i++) {
        top = fmax(top, fabs(want[i]));
        apart = fmax(apart, fabs(have[i] - want[i]));
    }
    return apart / top;
}

static void check_case(const char *name)
{
    const lw_st_tensor *f = find(name, "test_f"), *g = find(name, "test_g"),
                       *mean = find(name, "mean");
    const double *chosen = find(name, "fit")->data, *want = find(name, "scores")->data;
    int64_t k = mean->shape[1];
    LW_CLEANUP(lw_laplace_free) lw_laplace *l = fit(name, 1000);
    LW_CLEANUP(lw_free) double *scratch = lw_calloc(lw_laplace_doubles(l), sizeof *scratch);
    lw_laplace_info info = lw_laplace_get_info(l);
    double out[LW_LAPLACE_SCORES],
        apart[4] = {fabs(info.prior / chosen[0] - 1), fabs(info.gamma / chosen[1] - 1)};
    for (int64_t i = 0; i < f->shape[0]; i++) {
        assert_int_equal(lw_laplace_scores(l, (const float *)f->data + i * f->shape[1],
                                           (const float *)g->data + i * g->shape[1], scratch, out),
                         0);
        double m = worst(scratch, (const double *)mean->data + i * k, k);
        double v = worst(scratch + k, (const double *)find(name, "variance")->data + i * k, k);
        apart[2] = fmax(apart[2], fmax(m, v));
        for (int s = 0; s < LW_LAPLACE_SCORES; s++)
            apart[3] = fmax(apart[3], fabs(out[s] / want[i * LW_LAPLACE_SCORES + s] - 1));
    }
    printf("%-9s prior %.4g (%.1e apart), weights told %.3f (%.1e), answers %.1e, scores %.1e\n",
           name, info.prior, apart[0], info.gamma, apart[1], apart[2], apart[3]);
    for (int i = 0; i < 4; i++)
        assert_true(apart[i] < 1e-9);
}

static void test_dense(void **state)
{
    static const char *const names[] = {"classes1", "classes", "few",     "narrow",
                                        "clip1",    "clip",    "siglip1", "siglip"};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(names); i++)
        check_case(names[i]);
}

/* H(E p) - E H(p) of a million draws, where the covariance is small. */
static void test_information(void **state)
{
    const lw_st_tensor *f = find("narrow", "test_f"), *g = find("narrow", "test_g");
    const double *drawn = find("narrow", "information")->data;
    LW_CLEANUP(lw_laplace_free) lw_laplace *l = fit("narrow", 1000);
    LW_CLEANUP(lw_free) double *scratch = lw_calloc(lw_laplace_doubles(l), sizeof *scratch);
    double out[LW_LAPLACE_SCORES];
    (void)state;
    for (int64_t i = 0; i < f->shape[0]; i++) {
        assert_int_equal(lw_laplace_scores(l, (const float *)f->data + i * f->shape[1],
                                           (const float *)g->data + i * g->shape[1], scratch, out),
                         0);
        printf("information %.6f, drawn %.6f\n", out[LW_LAPLACE_MUTUAL_INFORMATION], drawn[i]);
        assert_true(fabs(out[LW_LAPLACE_MUTUAL_INFORMATION] / drawn[i] - 1) < 0.1);
    }
}

/* The same bits however the pictures came: blocks are of a fixed number of rows. */
static void test_calls(void **state)
{
    const lw_st_tensor *f = find("narrow", "test_f"), *g = find("narrow", "test_g");
    double out[2][LW_LAPLACE_SCORES], scratch[64];
    (void)state;
    for (int k = 0; k < 2; k++) {
        LW_CLEANUP(lw_laplace_free) lw_laplace *l = fit("narrow", k ? 7 : 300);
        assert_true(lw_laplace_doubles(l) <= LW_COUNT(scratch));
        assert_int_equal(lw_laplace_scores(l, f->data, g->data, scratch, out[k]), 0);
    }
    assert_memory_equal(out[0], out[1], sizeof out[0]);
}

static void test_refusals(void **state)
{
    const float f[] = {1, 2, 3}, g[] = {0, 0}, certain[] = {4000, 0}, bad[] = {(float)NAN, 1};
    const double text[] = {1, 0, 0, 0};
    lw_laplace_opts o = {.in = 3, .out = 2, .squares = 1};
    lw_laplace *l = NULL;
    (void)state;
    assert_int_equal(lw_laplace_new(&o, &l), 0);
    assert_int_equal(lw_laplace_fit(NULL, l), LW_EUSAGE); /* no picture */
    assert_int_equal(lw_laplace_add(NULL, l, f, bad, 1), LW_ENUMERIC);
    assert_int_equal(lw_laplace_add(NULL, l, f, certain, 1), 0);
    assert_int_equal(lw_laplace_fit(NULL, l), LW_ENUMERIC);
    assert_non_null(strstr(lw_errmsg(), "every answer to the calibration pictures is certain"));
    lw_laplace_free(&l);

    o.squares = 0;
    assert_int_equal(lw_laplace_new(&o, &l), 0);
    assert_int_equal(lw_laplace_add(NULL, l, f, g, 1), 0);
    assert_int_equal(lw_laplace_fit(NULL, l), LW_ENUMERIC);
    assert_non_null(strstr(lw_errmsg(), "all weights of the last layer are 0"));
    lw_laplace_free(&l);

    o = (lw_laplace_opts){.in = 3, .out = 2, .squares = 1, .texts = 2, .text = text, .scale = 1};
    assert_int_equal(lw_laplace_new(&o, &l), LW_ENUMERIC); /* text 1 is 0 */
    o.texts = 1;
    assert_int_equal(lw_laplace_new(&o, &l), 0);
    assert_int_equal(lw_laplace_add(NULL, l, f, g, 1), LW_ENUMERIC);
    lw_laplace_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_information),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
