/* SPDX-License-Identifier: Apache-2.0 */
/* The float resizes against PyTorch's and Pillow's mode F, at the reference level and the best. */
#include "golden/golden.h"

#include "formats/formats.h"
#include "kernels/kernels.h"

static int index_of(const char *const *names, int n, const char *word)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], word) == 0)
            return i;
    fail_msg("unknown word '%s'", word);
    return 0;
}

/* "float-aa.bicubic.9x7_17x23" */
static lw_resample_spec spec_of(const char *name)
{
    char form[16], filter[16];
    int h, w, to_h, to_w;
    assert_int_equal(
        sscanf(name, "%15[^.].%15[^.].%dx%d_%dx%d", form, filter, &h, &w, &to_h, &to_w), 6);
    return (lw_resample_spec){
        .form = (lw_resample_form)index_of(lw_resample_form_name, LW_RESAMPLE_FORMS, form),
        .filter = (lw_filter)index_of(lw_filter_name, LW_FILTERS, filter),
        .h = h,
        .w = w,
        .c = 2,
        .to_h = to_h,
        .to_w = to_w};
}

static void check_case(const struct lw_resample_kernels *k, const lw_st_file *f, const char *name)
{
    lw_resample_spec s = spec_of(name);
    lw_resample r = {0};
    assert_ok(lw_resample_init(&r, &s));
    int64_t n_in = s.h * s.w * s.c, n = 0;
    double *want = golden_get(f, name, &n);
    assert_int_equal(n, s.to_h * s.to_w * s.c);
    int32_t *pixels = lw_calloc((size_t)n_in, sizeof *pixels);
    float *x = lw_calloc((size_t)n_in, sizeof *x), *y = lw_calloc((size_t)n, sizeof *y);
    void *scratch = lw_calloc(lw_resample_scratch(&r), 1);
    char of_x[80];
    snprintf(of_x, sizeof of_x, "%s.x", name);
    golden_integers(of_x, n_in, 256, pixels);
    for (int64_t i = 0; i < n_in; i++)
        x[i] = (float)pixels[i];
    lw_resample_f32(k, &r, y, x, scratch);
    golden_check(name, golden_relative(y, want, n, 1.0), 5e-7);
    lw_free(&scratch);
    lw_free(&y);
    lw_free(&x);
    lw_free(&pixels);
    free(want);
    lw_resample_clear(&r);
}

static void test_forms(void **state)
{
    (void)state;
    int n_isas, cases = 0;
    const lw_isa *isas = golden_isas(&n_isas);
    lw_st_file *f = golden_open("resample");
    for (int i = 0; i < n_isas; i++) {
        lw_kernels k;
        lw_kernels_init(&k, isas[i]);
        for (size_t j = 0; j < lw_st_count(f); j++, cases++)
            check_case(&k.resample, f, lw_st_at(f, j)->name);
    }
    assert_true(cases >= 32);
    lw_st_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
