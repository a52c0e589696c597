/* SPDX-License-Identifier: Apache-2.0 */
/* The drawn digits: against an independent program's numbers, statistics, spec, speed. */
#include "test_data_util.h"

#include <math.h>

#include "base/base.h"
#include "data/data.h"

static const lw_data_opts in_memory = {.cache_dir = ""};

/* Computed by a separate double-precision program from the same description: mean, sd, pixel (0,0)
 * red, (R/2, R/2) green, (R/3, R/2 + 2) blue, last blue. */
static const struct {
    uint64_t seed, index;
    int32_t size;
    double want[6];
} golden[] = {
    {1, 0, 16, {-0.3619683, 0.6028726, -0.9171224, -0.9027669, 0.0374886, -0.6523882}},
    {1, 8, 16, {-0.3890532, 0.5276987, -0.8500397, 0.2498138, -0.8251389, -0.9381052}},
    {1, 12345, 16, {-0.4660474, 0.4628479, -0.7413868, -0.3329080, -0.9071059, -0.9462597}},
    {7, 23, 32, {-0.4275329, 0.4634020, -0.7447738, -0.0112185, -0.3232397, -0.3363861}},
    {999, 59999, 16, {-0.4799812, 0.3568531, -0.7291437, -0.2839702, -0.3685417, -0.3702629}},
    {1, 5, 32, {-0.4637895, 0.4548840, -0.5040431, -0.4255425, -0.8646614, -0.9576211}},
};

static void pictures_are_the_described_ones(void **state)
{
    (void)state;
    double worst = 0;
    for (size_t g = 0; g < LW_COUNT(golden); g++) {
        int32_t r = golden[g].size, n = r * r * 3;
        float px[32 * 32 * 3];
        lw_synth_draw(golden[g].seed, golden[g].index, r, px);
        double sum = 0, square = 0;
        for (int32_t i = 0; i < n; i++) {
            sum += (double)px[i];
            square += (double)px[i] * (double)px[i];
        }
        double mean = sum / n;
        double got[6] = {mean,
                         sqrt(square / n - mean * mean),
                         (double)px[0],
                         (double)px[(r / 2 * r + r / 2) * 3 + 1],
                         (double)px[(r / 3 * r + r / 2 + 2) * 3 + 2],
                         (double)px[n - 1]};
        for (int k = 0; k < 6; k++) {
            worst = fmax(worst, fabs(got[k] - golden[g].want[k]));
            if (fabs(got[k] - golden[g].want[k]) > 5e-6)
                fail_msg("case %zu number %d: %.7f, not %.7f", g, k, got[k], golden[g].want[k]);
        }
    }
    print_message("largest difference to the independent program: %.2g\n", worst);
}

static void statistics_are_those_of_the_recipe(void **state)
{
    (void)state;
    lw_data_report r;
    lw_data_opts o = in_memory;
    o.count = 8192;
    ok(lw_data_check("synth:16", &o, &r));
    double mean = (r.mean[0] + r.mean[1] + r.mean[2]) / 3, var = 0;
    for (int c = 0; c < 3; c++)
        var += (r.sd[c] * r.sd[c] + (r.mean[c] - mean) * (r.mean[c] - mean)) / 3;
    print_message("8192 at 16x16: mean %.4f sd %.4f\n", mean, sqrt(var));
    assert_true(fabs(mean + .42) < .01);
    assert_true(fabs(sqrt(var) - .48) < .01);
    assert_int_equal(r.set->n, 8192);
    assert_int_equal(r.set->classes, 10);
    assert_true(r.set->labelled && !r.set->flip && !r.set->cached);
    assert_int_equal(r.duplicates, 0);
    for (int c = 0; c < 10; c++)
        assert_in_range(r.class_counts[c], 819, 820);
    lw_data_report_clear(&r);
}

static void rows_are_rounded_pictures(void **state)
{
    (void)state;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = in_memory;
    o.split = LW_SPLIT_HELDOUT;
    o.first = 7;
    o.count = 5;
    ok(lw_data_open("synth:16,seed=3", &o, &d));
    assert_int_equal(d->n, 5);
    assert_int_equal(d->split_rows, 10000);
    assert_string_equal(d->class_names[9], "9");
    for (int64_t i = 0; i < d->n; i++) {
        float exact[768], row[768];
        lw_synth_draw(3, (uint64_t)(50007 + i), 16, exact);
        lw_data_get(d, i, false, row);
        assert_int_equal(d->labels[i], (50007 + i) % 10);
        for (int k = 0; k < 768; k++)
            if (fabsf(exact[k] - row[k]) > 1.0f / 255 + 1e-6f)
                fail_msg("row %d number %d: %f, not %f", (int)i, k, (double)row[k],
                         (double)exact[k]);
    }
}

static void bad_specs_are_named(void **state)
{
    (void)state;
    static const char *const bad[] = {"synth:",           "synth:17",       "synth:160",
                                      "synth:16,seed=",   "synth:16x",      "synth:,",
                                      "synth:16,seed=-1", "synth:16,sed=1", "synth:16,seed=1x"};
    lw_dataset *d = NULL;
    for (size_t i = 0; i < LW_COUNT(bad); i++)
        fails(lw_data_open(bad[i], &in_memory, &d), LW_EUSAGE, bad[i]);
    fails(lw_data_open("sinth:16", &in_memory, &d), LW_EUSAGE, "did you mean 'synth'");
    fails(lw_data_open("", &in_memory, &d), LW_EUSAGE, "no data given");
    fails(lw_data_open("cifar10", &in_memory, &d), LW_EUSAGE, "cifar10:PATH");
    fails(lw_data_open("/tmp", &in_memory, &d), LW_EUSAGE, "folder:/tmp");
    lw_data_opts o = in_memory;
    o.image_size = 32;
    fails(lw_data_open("synth:16", &o, &d), LW_EUSAGE, "write synth:32");
    o.image_size = 4;
    fails(lw_data_open("synth", &o, &d), LW_EUSAGE, "image size 4");
    o = (lw_data_opts){.cache_dir = "", .first = 50000};
    fails(lw_data_open("synth:16", &o, &d), LW_EUSAGE, "split has 50000");
    o = (lw_data_opts){.cache_dir = "", .first = 1, .count = INT64_MAX};
    fails(lw_data_open("synth:16", &o, &d), LW_EUSAGE, "split has 50000");
    assert_null(d);
}

static void image_size_chooses_the_drawing(void **state)
{
    (void)state;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = {.cache_dir = "", .image_size = 16, .count = 3};
    ok(lw_data_open("synth", &o, &d));
    assert_int_equal(d->h, 16);
    lw_data_close(&d);
    o.image_size = 0;
    ok(lw_data_open("synth", &o, &d));
    assert_int_equal(d->w, 32);
}

static void threads_do_not_change_a_bit(void **state)
{
    (void)state;
    uint64_t content[3];
    for (int t = 1; t <= 3; t++) {
        LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
        LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
        ok(lw_pool_new(t, &pool));
        lw_data_opts o = {.cache_dir = "", .count = 5000, .pool = pool};
        ok(lw_data_open("synth:16", &o, &d));
        content[t - 1] = d->content;
    }
    assert_true(content[0] == content[1] && content[1] == content[2]);
    LW_CLEANUP(lw_data_close) lw_dataset *other = NULL;
    lw_data_opts o = {.cache_dir = "", .count = 5000};
    ok(lw_data_open("synth:16,seed=2", &o, &other));
    assert_true(other->content != content[0]);
}

static void drawing_is_fast(void **state)
{
    (void)state;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = {.cache_dir = "", .count = 8192};
    double t = lw_now();
    ok(lw_data_open("synth:16", &o, &d));
    t = lw_now() - t;
    print_message("8192 pictures of 16x16 on one thread: %.3f s\n", t);
    assert_true(t < 20); /* a sanitizer build on a busy machine */
}

/* One class a line, cells where they belong. */
static void sheet_shows_a_class_a_line(void **state)
{
    (void)state;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = {.cache_dir = "", .count = 200};
    ok(lw_data_open("synth:16", &o, &d));
    int64_t rows[10 * 30];
    lw_data_sheet_rows(d, 10, 30, rows);
    for (int l = 0; l < 10; l++)
        for (int c = 0; c < 30; c++)
            assert_int_equal(rows[l * 30 + c], c < 20 ? c * 10 + l : -1);
    int64_t twice[20 * 4];
    lw_data_sheet_rows(d, 20, 4, twice);
    assert_int_equal(twice[4 * 13], 4 * 10 + 3); /* class 3 again, from its fifth picture on */
    int32_t w, h;
    LW_CLEANUP(lw_free) uint8_t *rgb = NULL;
    ok(lw_data_sheet(d, 10, 12, 3, 1, &w, &h, &rgb));
    assert_int_equal(w, 12 * 49 + 1);
    assert_int_equal(h, 10 * 49 + 1);
    assert_int_equal(rgb[0], 128);
    const uint8_t *second = d->pixels + 10 * 768; /* class 0, second picture, first pixel */
    assert_memory_equal(rgb + 3 * (w + 50), second, 3);
    fails(lw_data_sheet(d, 1000, 1000, 16, 1, &w, &h, &rgb), LW_EUSAGE, "fewer pictures");
    lw_free(&rgb);
    const int64_t all = d->n;
    d->n = 13; /* three classes of two pictures, seven of one: no line and no column is empty */
    ok(lw_data_sheet(d, 30, 40, 1, 2, &w, &h, &rgb));
    assert_int_equal(w, 2 * 18 + 2);
    assert_int_equal(h, 10 * 18 + 2);
    d->n = all;
}

/* Any stretch of the drawn order has all classes, and nearly as many rows of each. */
static void drawn_rows_stand_for_all(void **state)
{
    (void)state;
    enum { ALL = 1000, SOME = 200 };
    const lw_data_opts o = {.image_size = 16, .count = ALL, .cache_dir = ""};
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    LW_CLEANUP(lw_free) int64_t *rows = NULL;
    int of_class[ALL / SOME][10] = {{0}}, seen[ALL] = {0}, turns = 0;
    ok(lw_data_open("synth", &o, &d));
    ok(lw_data_drawn(d, &rows));
    for (int i = 0; i < ALL; i++) {
        assert_true(rows[i] >= 0 && rows[i] < ALL && !seen[rows[i]]++);
        of_class[i / SOME][d->labels[rows[i]]]++;
        turns += i > 0 && d->labels[rows[i]] == (d->labels[rows[i - 1]] + 1) % 10;
    }
    for (int i = 0; i < ALL / SOME * 10; i++)
        assert_in_range(of_class[i / 10][i % 10], SOME / 10 - 1, SOME / 10 + 1);
    assert_true(turns < ALL / 5); /* classes do not take turns, as the data's do */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_the_described_ones),
        cmocka_unit_test(statistics_are_those_of_the_recipe),
        cmocka_unit_test(rows_are_rounded_pictures),
        cmocka_unit_test(bad_specs_are_named),
        cmocka_unit_test(image_size_chooses_the_drawing),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(drawing_is_fast),
        cmocka_unit_test(sheet_shows_a_class_a_line),
        cmocka_unit_test(drawn_rows_stand_for_all),
    };
    return cmocka_run_group_tests_name("data synth", tests, scratch_make, scratch_remove);
}
