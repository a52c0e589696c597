/* SPDX-License-Identifier: Apache-2.0 */
/* The drift field of files and of arrays against the published worked example and goldens in
 * double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/formats.h"
#include "jobs/field/field_job.h"

#include "backend/backend.h"

#define DATA "tests/golden/data/drift.safetensors"

/* The formula of the published example's inputs. */
static double wave(int a, int b, int c, int k)
{
    return sin(0.7 * a + 1.3 * b + 2.1 * c + 0.37 * k * (a + 1) + 0.9 * k) +
           0.5 * cos(1.9 * a * b + 0.61 * k + c);
}

static char dir[64];
static char *in_dir(const char *name)
{
    static char path[4][128];
    static int turn;
    char *p = path[turn = (turn + 1) % 4];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static void write_wave(const char *name, int n, int c, double gain, double offset)
{
    double v[2 * 5 * 6];
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < 6; k++)
                v[(b * n + i) * 6 + k] = gain * wave(b, i, c, k) + offset;
    assert_int_equal(lw_npy_save(in_dir(name), LW_ELEM_F64, 3, (int64_t[]){2, n, 6}, v), 0);
}

static void assert_near(double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * fabs(want)))
        fail_msg("got %.10g, expected %.10g", got, want);
}

/* The example in the precision of `c`, whose numbers must hold to `rel`. */
static void check_example(lw_field_precision precision, double rel)
{
    static const double lambda[] = {0.494998367, 0.320119998, 0.147422452};
    static const double f00[] = {-3.7399032, -3.7011375, -5.5150580,
                                 -6.0475310, -2.7237524, 2.1894520};
    static const double f13[] = {-.2053715, .0919494, .0170923, -.3417988, -.2428436, .1324247};
    char gen[128], pos[128], unc[128], w[128], out[128];
    lw_field_stats s;
    lw_array f = {0};
    write_wave("gen.npy", 4, 0, 1, 0);
    write_wave("pos.npy", 5, 9, 0.9, -0.2);
    write_wave("unc.npy", 2, 5, 0.8, 0.3);
    assert_int_equal(
        lw_npy_save(in_dir("w.npy"), LW_ELEM_F64, 1, (int64_t[]){2}, (double[]){1.5, 0}), 0);
    snprintf(gen, sizeof gen, "%s", in_dir("gen.npy"));
    snprintf(pos, sizeof pos, "%s", in_dir("pos.npy"));
    snprintf(unc, sizeof unc, "%s", in_dir("unc.npy"));
    snprintf(w, sizeof w, "%s", in_dir("w.npy"));
    snprintf(out, sizeof out, "%s", in_dir("F.npy"));
    lw_field_config c = {.gen = gen,
                         .pos = pos,
                         .uncond = unc,
                         .uncond_weight = w,
                         .output = out,
                         .opts = {.tau = {0.2, 0.05, 0.02}, .n_tau = 3, .normalize_over_x = true},
                         .precision = precision,
                         .threads = 2};
    assert_int_equal(lw_job_field(&c, &s), 0);
    assert_near(s.scale, 2.477451603, rel);
    assert_near(s.sigma, 1.011415382, rel);
    assert_near(s.loss, 7.730185823, rel);
    for (int i = 0; i < 3; i++)
        assert_near(s.lambda[i], lambda[i], rel * (precision == LW_FIELD_F64 ? 1 : 3));
    assert_int_equal(lw_npy_load(out, &f), 0);
    assert_int_equal(f.type, precision == LW_FIELD_F64 ? LW_ELEM_F64 : LW_ELEM_F32);
    for (int k = 0; k < 6; k++) {
        double a = precision == LW_FIELD_F64 ? ((double *)f.data)[k] : (double)((float *)f.data)[k];
        double b = precision == LW_FIELD_F64 ? ((double *)f.data)[42 + k]
                                             : (double)((float *)f.data)[42 + k];
        if (fabs(a - f00[k]) > 6e-8 + 10 * rel || fabs(b - f13[k]) > 6e-8 + 10 * rel)
            fail_msg("F[.][.][%d]: %.8g and %.8g, expected %.8g and %.8g", k, a, b, f00[k], f13[k]);
    }
    lw_array_clear(&f);
    for (int i = 0; i < 3; i++) { /* with one temperature the loss is 1 */
        lw_field_config one = c;
        one.opts.n_tau = 1;
        one.opts.tau[0] = c.opts.tau[i];
        one.output = NULL;
        assert_int_equal(lw_job_field(&one, &s), 0);
        assert_near(s.loss, 1.0, 1e-6);
    }
}

/* F has eight printed digits, so the double run is held to 1e-7 absolute here and to the goldens
 * below. */
static void worked_example_in_double(void **state)
{
    (void)state;
    check_example(LW_FIELD_F64, 1e-8);
}

static void worked_example_in_float(void **state)
{
    (void)state;
    check_example(LW_FIELD_F32, 3e-6);
}

static const lw_st_tensor *tensor(const lw_st_file *f, const char *tag, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s.%s", tag, name);
    return lw_st_find(f, full);
}

static double number(const lw_st_tensor *t, int64_t i)
{
    double d;
    float f;
    if (t->type == LW_ELEM_F64) {
        memcpy(&d, (const char *)t->data + 8 * i, 8);
        return d;
    }
    lw_elem_to_f32(t->type, (const char *)t->data + (size_t)i * lw_elem_size(t->type), 1, &f);
    return (double)f;
}

static char *save(const char *name, const lw_st_tensor *t)
{
    if (!t)
        return NULL;
    char *p = in_dir(name);
    assert_int_equal(lw_npy_save(p, t->type, t->rank, t->shape, t->data), 0);
    return strdup(p);
}

static void check_golden(const lw_st_file *f, const char *tag, lw_drift_variant variant,
                         bool over_x, lw_field_precision precision, double rel)
{
    const lw_st_tensor *want = tensor(f, tag, "F"), *tau = tensor(f, tag, "taus"),
                       *sc = tensor(f, tag, "scalars");
    lw_array got = {0};
    lw_field_stats s;
    lw_field_config c = {
        .gen = save("gen.npy", tensor(f, tag, "gen")),
        .pos = save("pos.npy", tensor(f, tag, "pos")),
        .uncond = save("unc.npy", tensor(f, tag, "uncond")),
        .uncond_weight = save("w.npy", tensor(f, tag, "weight")),
        .output = strdup(in_dir("F.npy")),
        .opts = {.n_tau = (int32_t)tau->count, .normalize_over_x = over_x, .variant = variant},
        .precision = precision,
        .threads = 2};
    for (int i = 0; i < c.opts.n_tau; i++)
        c.opts.tau[i] = number(tau, i);
    assert_int_equal(lw_job_field(&c, &s), 0);
    if (variant == LW_DRIFT_OFFICIAL)
        assert_near(s.scale, number(sc, 0), rel);
    assert_near(s.loss, number(sc, 2), rel);
    for (int i = 0; i < c.opts.n_tau; i++)
        assert_near(s.raw_mean_v2[i], number(tensor(f, tag, "raw"), i), 3 * rel);
    assert_int_equal(lw_npy_load(c.output, &got), 0);
    assert_int_equal(got.count, want->count);
    double err = 0, norm = 0;
    for (int64_t i = 0; i < got.count; i++) {
        double v = precision == LW_FIELD_F64 ? ((double *)got.data)[i]
                                             : (double)((float *)got.data)[i];
        err += (v - number(want, i)) * (v - number(want, i));
        norm += number(want, i) * number(want, i);
    }
    printf("%-14s %s  relative L2 %.1e\n", tag, precision == LW_FIELD_F64 ? "f64" : "f32",
           sqrt(err / norm));
    assert_true(sqrt(err / norm) <= rel);
    lw_array_clear(&got);
    const void *texts[] = {c.gen, c.pos, c.uncond, c.uncond_weight, c.output};
    for (int i = 0; i < 5; i++)
        free((void *)(uintptr_t)texts[i]);
}

static void goldens(void **state)
{
    (void)state;
    static const struct {
        const char *tag;
        lw_drift_variant variant;
        bool rows_only;
    } cases[] = {
        {"example", LW_DRIFT_OFFICIAL, false},  {"one_group", LW_DRIFT_OFFICIAL, false},
        {"groups", LW_DRIFT_OFFICIAL, false},   {"slots", LW_DRIFT_OFFICIAL, false},
        {"rows_only", LW_DRIFT_OFFICIAL, true}, {"wide", LW_DRIFT_OFFICIAL, false},
        {"one_tau", LW_DRIFT_OFFICIAL, false},  {"plain", LW_DRIFT_PLAIN, false},
        {"plain_rows", LW_DRIFT_PLAIN, true},   {"tau_times_dim", LW_DRIFT_TAU_TIMES_DIM, false}};
    lw_st_file *f = NULL;
    assert_int_equal(lw_st_open(DATA, &f), 0);
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        check_golden(f, cases[i].tag, cases[i].variant, !cases[i].rows_only, LW_FIELD_F64, 1e-6);
        check_golden(f, cases[i].tag, cases[i].variant, !cases[i].rows_only, LW_FIELD_F32, 3e-4);
    }
    lw_st_close(&f);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/lw_test_field_XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return lw_remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(worked_example_in_double),
                                       cmocka_unit_test(worked_example_in_float),
                                       cmocka_unit_test(goldens)};
    return cmocka_run_group_tests_name("golden_field", tests, set_up, tear_down);
}
