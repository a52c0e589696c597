/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of features: other programs' files, our own, and those that are refused. */
#include "unit/test_formats_util.h"

#include <math.h>

#define FILES CORPUS "moments/"

static void other_programs_files_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *file, *set;
        int dim;
        lw_elem type;
    } cases[] = {{"clean_fid.npz", NULL, 3, LW_ELEM_F64},
                 {"pytorch_fid.npz", "", 3, LW_ELEM_F32},
                 {"adm.npz", NULL, 3, LW_ELEM_F64},
                 {"adm.npz", "s", 2, LW_ELEM_F64},
                 {"two.safetensors", "train", 3, LW_ELEM_F64},
                 {"two.safetensors", "test", 2, LW_ELEM_F64},
                 {"one.safetensors", NULL, 3, LW_ELEM_F32},
                 {"words.npz", NULL, 3, LW_ELEM_F64}};
    LW_CLEANUP(lw_moments_clear) lw_moments first = {0};
    assert_ok(lw_moments_load(FILES "clean_fid.npz", NULL, &first));
    assert_true(fabs(first.mean[0] - 1.0774206) < 1e-6); /* numpy's, RandomState(0) */
    for (size_t c = 0; c < LW_COUNT(cases); c++) {
        char path[128];
        LW_CLEANUP(lw_moments_clear) lw_moments s = {0};
        snprintf(path, sizeof path, FILES "%s", cases[c].file);
        assert_ok(lw_moments_load(path, cases[c].set, &s));
        assert_int_equal(s.dim, cases[c].dim);
        assert_int_equal(s.dtype, cases[c].type);
        for (int i = 0; i < 9 && s.dim == 3; i++) {
            assert_true(fabs(s.cov[i] - first.cov[i]) <= 1e-6);
            assert_true(fabs(s.mean[i / 3] - first.mean[i / 3]) <= 1e-6);
        }
        bool ours = strcmp(cases[c].file, "one.safetensors") == 0;
        assert_true((s.contract != NULL) == ours);
        if (ours)
            assert_string_equal(s.contract, "{\"resize\": \"pillow\"}");
    }
}

static void what_is_saved_comes_back(void **state)
{
    (void)state;
    double mean[2] = {.5, -3}, cov[4] = {2, .25, .25, 1e-300};
    char text[] = "{\"encoder\": \"abc\"}";
    lw_moments s = {2, 50000, LW_ELEM_F32, mean, cov, text};
    static const char *const names[] = {"s.npz", "s.safetensors"};
    for (int k = 0; k < 4; k++) {
        LW_CLEANUP(lw_moments_clear) lw_moments back = {0};
        s.contract = k < 2 ? text : NULL;
        assert_ok(lw_moments_save(in_scratch(names[k % 2]), &s));
        assert_ok(lw_moments_load(in_scratch(names[k % 2]), NULL, &back));
        assert_int_equal(back.dim, 2);
        assert_int_equal(back.count, 50000);
        assert_int_equal(back.dtype, LW_ELEM_F64);
        assert_memory_equal(back.mean, mean, sizeof mean);
        assert_memory_equal(back.cov, cov, sizeof cov);
        assert_true(k < 2 ? strcmp(back.contract, text) == 0 : back.contract == NULL);
    }
    assert_fails(LW_EUSAGE, "end in .npz", lw_moments_save(in_scratch("s.pkl"), &s));
}

static void bad_files_are_refused_in_a_line(void **state)
{
    (void)state;
    lw_moments s = {0};
    static const struct {
        const char *file, *set, *part;
    } cases[] = {{FILES "wide.npz", NULL, "mu has shape [3] and sigma [2,2]"},
                 {FILES "skew.npz", NULL, "sigma is not symmetric: "},
                 {FILES "nan.npz", NULL, "element 8 of sigma is not finite"},
                 {FILES "clean_fid.npz", "s", "array 'mu_s' is missing"},
                 {CORPUS "npz/pixels.npz", NULL, "array 'mu' is missing"},
                 {FILES "two.safetensors", NULL, "name one of them: test, train"},
                 {FILES "two.safetensors", "tests", "tensor 'tests.mu' is missing"},
                 {CORPUS "safetensors/good.safetensors", "", "tensor 'mu' is missing"}};
    for (size_t c = 0; c < LW_COUNT(cases); c++)
        assert_fails(LW_EFORMAT, cases[c].part, lw_moments_load(cases[c].file, cases[c].set, &s));
    assert_fails(LW_EIO, "none.npz", lw_moments_load("none.npz", NULL, &s));
    assert_fails(LW_EUSAGE, "end in .npz", lw_moments_load("stats.txt", NULL, &s));
    static const char *const whole[] = {FILES "pytorch_fid.npz", FILES "one.safetensors"};
    for (int k = 0; k < 2; k++) { /* cut anywhere before a zip's directory, which repeats it */
        char *bytes = NULL;
        size_t n;
        const char *cut = in_scratch(k ? "cut.safetensors" : "cut.npz");
        assert_ok(lw_file_read(whole[k], 0, &bytes, &n));
        for (size_t at = 0; at + (k ? 1 : 130) < n; at += 13) {
            put_file(cut, bytes, at);
            assert_int_equal(lw_moments_load(cut, NULL, &s), LW_EFORMAT);
        }
        lw_free(&bytes);
    }
    double mean[2] = {0, 0}, cov[4] = {1, 0, 0, -1e-9};
    lw_moments negative = {2, 3, LW_ELEM_F64, mean, cov, NULL};
    assert_ok(lw_moments_save(in_scratch("v.npz"), &negative));
    assert_fails(LW_EFORMAT, "variance of feature 1",
                 lw_moments_load(in_scratch("v.npz"), NULL, &s));
}

static void put_moments(int64_t d, int64_t columns, const double *mean, const double *cov)
{
    lw_npz z = {0};
    lw_array mu = {0}, sigma = {0};
    assert_ok(lw_array_init(&mu, LW_ELEM_F64, 1, &d));
    assert_ok(lw_array_init(&sigma, LW_ELEM_F64, 2, (const int64_t[]){d, columns}));
    memcpy(mu.data, mean, mu.bytes);
    memcpy(sigma.data, cov, sigma.bytes);
    assert_ok(lw_npz_add(&z, "mu", &mu));
    assert_ok(lw_npz_add(&z, "sigma", &sigma));
    assert_ok(lw_npz_save(in_scratch("m.npz"), &z));
    lw_npz_clear(&z);
}

/* What rounding leaves of symmetry is evened out; more than that, and what is none at all, is refused. */
static void covariances_are_symmetric(void **state)
{
    (void)state;
    LW_CLEANUP(lw_moments_clear) lw_moments s = {0};
    const double mean[3] = {0, 1, -(double)INFINITY};
    const double nearly[4] = {4, 1, 1 + 3e-5, 4}, far[4] = {4, 1, 1 + 1e-4, 4};
    put_moments(2, 2, mean, nearly);
    assert_ok(lw_moments_load(in_scratch("m.npz"), NULL, &s));
    assert_true(s.cov[1] == s.cov[2] && fabs(s.cov[1] - (1 + 1.5e-5)) < 1e-12);
    lw_moments_clear(&s);
    put_moments(2, 2, mean, far);
    assert_fails(LW_EFORMAT, "not symmetric", lw_moments_load(in_scratch("m.npz"), NULL, &s));
    put_moments(2, 1, mean, far);
    assert_fails(LW_EFORMAT, "sigma [2,1]", lw_moments_load(in_scratch("m.npz"), NULL, &s));
    put_moments(0, 0, mean, far);
    assert_fails(LW_EFORMAT, "d from 1 to", lw_moments_load(in_scratch("m.npz"), NULL, &s));
    const double one[1] = {1};
    put_moments(1, 1, mean + 2, one);
    assert_fails(LW_EFORMAT, "element 0 of mu is not finite",
                 lw_moments_load(in_scratch("m.npz"), NULL, &s));
}

static void clean_fids_names_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *path, *name, *mode, *model, *split, *resolution;
    } good[] = {{"a/cifar10_clean_train_32.npz", "cifar10", "clean", "", "train", "32"},
                {"ffhq_legacy_tensorflow_trainval70k_1024.npz", "ffhq", "legacy_tensorflow", "",
                 "trainval70k", "1024"},
                {"my_set_legacy_pytorch_clip_vit_b_32_custom_na.npz", "my_set", "legacy_pytorch",
                 "clip_vit_b_32", "custom", "na"}};
    static const char *const bad[] = {"stats.npz",
                                      "cifar10_clean_train_32.txt",
                                      "cifar10_clean_32.npz",
                                      "_clean_train_32.npz",
                                      "x_clean_train_3z.npz",
                                      "x_cleantrain_32.npz",
                                      "x_clean__train_32.npz"};
    lw_clean_fid_name n;
    for (size_t i = 0; i < LW_COUNT(good); i++) {
        assert_int_equal(lw_clean_fid_parse(good[i].path, &n), 1);
        assert_string_equal(n.name, good[i].name);
        assert_string_equal(n.mode, good[i].mode);
        assert_string_equal(n.model, good[i].model);
        assert_string_equal(n.split, good[i].split);
        assert_string_equal(n.resolution, good[i].resolution);
    }
    for (size_t i = 0; i < LW_COUNT(bad); i++)
        if (lw_clean_fid_parse(bad[i], &n))
            fail_msg("%s was read", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_programs_files_are_read),
        cmocka_unit_test(what_is_saved_comes_back),
        cmocka_unit_test(bad_files_are_refused_in_a_line),
        cmocka_unit_test(covariances_are_symmetric),
        cmocka_unit_test(clean_fids_names_are_read),
    };
    return cmocka_run_group_tests_name("formats moments", tests, scratch_make, scratch_remove);
}
