/* SPDX-License-Identifier: Apache-2.0 */
/* Junk pictures: each kind is what it says, pure in (seed, index), in range. */
#include "test_data_util.h"

#include "formats/formats.h"
#include "base/base.h"
#include "data/data.h"
#include <math.h>

enum { ROW = 768 };
static lw_dataset *set;
static lw_junk *junk;

static int open_set(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    lw_data_opts o = {.cache_dir = "", .count = 2000};
    int rc = lw_data_open("synth:16", &o, &set);
    return rc ? rc : lw_junk_new(set, 42, &junk);
}

static int close_set(void **state)
{
    lw_junk_free(&junk);
    lw_data_close(&set);
    return scratch_remove(state);
}

static double distance(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; i < ROW; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

static double nearest_real(const float *a)
{
    double best = 1e9;
    float row[ROW];
    for (int64_t i = 0; i < set->n; i++) {
        lw_data_get(set, i, false, row);
        best = fmin(best, distance(a, row));
    }
    return best;
}

static void kinds_are_pure_and_in_range(void **state)
{
    (void)state;
    LW_CLEANUP(lw_junk_free) lw_junk *same = NULL;
    LW_CLEANUP(lw_junk_free) lw_junk *other = NULL;
    ok(lw_junk_new(set, 42, &same));
    ok(lw_junk_new(set, 43, &other));
    for (int k = 0; k < LW_JUNK_COUNT; k++)
        for (int64_t i = 0; i < 20; i++) {
            float a[ROW], b[ROW], c[ROW];
            int32_t la = lw_junk_make(junk, (lw_junk_kind)k, i, a);
            int32_t lb = lw_junk_make(same, (lw_junk_kind)k, i, b);
            lw_junk_make(other, (lw_junk_kind)k, i, c);
            assert_int_equal(la, lb);
            assert_in_range(la, 0, 9);
            assert_memory_equal(a, b, sizeof a);
            assert_memory_not_equal(a, c, sizeof a);
            for (int j = 0; j < ROW; j++)
                assert_true(a[j] >= -1 && a[j] <= 1);
        }
}

static void pictures_that_are_not_of_the_data_are_far_from_it(void **state)
{
    (void)state;
    /* Distance to the nearest real picture, mean of 20; a held-out digit for comparison. */
    LW_CLEANUP(lw_data_close) lw_dataset *held = NULL;
    lw_data_opts o = {.cache_dir = "", .count = 20, .split = LW_SPLIT_HELDOUT};
    ok(lw_data_open("synth:16", &o, &held));
    double real = 0;
    float px[ROW];
    for (int64_t i = 0; i < 20; i++) {
        lw_data_get(held, i, false, px);
        real += nearest_real(px) / 20;
    }
    print_message("held-out %.2f", real);
    for (int k = 0; k < LW_JUNK_COUNT; k++) {
        double d = 0;
        for (int64_t i = 0; i < 20; i++) {
            lw_junk_make(junk, (lw_junk_kind)k, i, px);
            d += nearest_real(px) / 20;
        }
        print_message(", kind %d %.2f", k, d);
        if (k == LW_JUNK_REPEATED)
            assert_true(d == 0);
        else
            assert_true(d > 1);
    }
    print_message("\n");
}

static void pixel_functions_do_the_stated_arithmetic(void **state)
{
    (void)state;
    float a[4 * 4 * 3], b[4 * 4 * 3], out[4 * 4 * 3];
    for (int i = 0; i < 48; i++) {
        a[i] = (float)(i / 3);
        b[i] = 100;
    }
    lw_junk_average(a, b, 4, 4, 3, out);
    assert_true(out[3 * 7] == 53.5f);
    lw_junk_splice(a, b, 4, 4, 3, 1, out);
    assert_true(out[3 * 5] == 5 && out[3 * 6] == 100);
    lw_junk_splice(a, b, 4, 4, 3, 0, out);
    assert_true(out[3 * 7] == 7 && out[3 * 8] == 100);
    lw_junk_blur(a, 4, 4, 3, 2, out); /* cells 2.5 4.5 10.5 12.5 */
    assert_true(out[0] == 2.5f && out[3 * 15] == 12.5f);
    assert_true(fabsf(out[3 * 5] - (.5625f * 2.5f + .1875f * (4.5f + 10.5f) + .0625f * 12.5f)) <
                1e-5f);
    lw_junk_blur(b, 4, 4, 3, 3, out);
    assert_true(fabsf(out[20] - 100) < 1e-4f);
    lw_junk_tile(a, 4, 4, 3, out);
    assert_true(out[0] == 2.5f && out[3 * 1] == 4.5f && out[3 * 2] == 2.5f && out[3 * 10] == 2.5f &&
                out[3 * 15] == 12.5f);
    lw_junk_warp(b, 4, 4, 3, 1, 2, out);
    assert_true(fabsf(out[20] - 100) < 1e-4f);
}

static void blends_mix_classes_and_means_are_means(void **state)
{
    (void)state;
    int kinds[LW_JUNK_COUNT] = {0};
    float px[ROW], want[ROW];
    /* The class mean, recovered by averaging away the noise of many. */
    double sum[10][ROW] = {{0}};
    int count[10] = {0};
    for (int64_t i = 0; i < 600; i++) {
        int32_t c = lw_junk_make(junk, LW_JUNK_MEAN, i, px);
        count[c]++;
        for (int j = 0; j < ROW; j++)
            sum[c][j] += (double)px[j];
    }
    for (int c = 0; c < 10; c++) {
        assert_true(count[c] > 20);
        double mean = 0, worst = 0;
        for (int j = 0; j < ROW; j++) {
            mean = 0;
            for (int64_t i = c; i < set->n; i += 10)
                mean += (set->pixels[i * ROW + j] / 127.5 - 1) / 200;
            worst = fmax(worst, fabs(mean - sum[c][j] / count[c]));
        }
        assert_true(worst < .06);
    }
    for (int64_t i = 0; i < 10; i++) {
        lw_junk_make(junk, LW_JUNK_REPEATED, i, want);
        lw_junk_make(junk, LW_JUNK_REPEATED, i + 10, px);
        assert_memory_equal(px, want, sizeof px);
        kinds[i] = lw_junk_make(junk, LW_JUNK_REPEATED, i, px);
        for (int64_t j = 0; j < i; j++)
            assert_int_not_equal(kinds[i], kinds[j]); /* one of each class */
    }
    double noise = 0, square = 0;
    for (int64_t i = 0; i < 50; i++) {
        lw_junk_make(junk, LW_JUNK_NOISE, i, px);
        for (int j = 0; j < ROW; j++) {
            noise += (double)px[j] / (50 * ROW);
            square += (double)px[j] * (double)px[j] / (50 * ROW);
        }
    }
    assert_true(fabs(noise) < .02 && fabs(square - 1.0 / 3) < .02);
}

/* $LW_TEST_SHEETS names a folder: pictures to look at. */
static void sheets_are_written_on_demand(void **state)
{
    (void)state;
    const char *dir = getenv("LW_TEST_SHEETS");
    if (!dir) {
        print_message("skipped: LW_TEST_SHEETS names no folder\n");
        skip();
    }
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    ok(lw_image_init(&im, 24 * 17, (LW_JUNK_COUNT + 1) * 17));
    for (int k = 0; k <= LW_JUNK_COUNT; k++)
        for (int i = 0; i < 24; i++) {
            float px[ROW];
            uint8_t bytes[ROW];
            if (k < LW_JUNK_COUNT)
                lw_junk_make(junk, (lw_junk_kind)k, i, px);
            else
                lw_data_get(set, i, false, px);
            lw_data_to_u8(px, ROW, bytes);
            for (int y = 0; y < 16; y++)
                memcpy(im.rgb + 3 * ((k * 17 + y) * im.width + i * 17), bytes + 48 * y, 48);
        }
    char path[512];
    snprintf(path, sizeof path, "%s/junk.png", dir);
    ok(lw_png_save(path, &im, NULL));
    LW_CLEANUP(lw_image_clear) lw_image sheet = {0};
    ok(lw_data_sheet(set, 10, 24, 2, 1, &sheet.width, &sheet.height, &sheet.rgb));
    snprintf(path, sizeof path, "%s/synth16.png", dir);
    ok(lw_png_save(path, &sheet, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_pure_and_in_range),
        cmocka_unit_test(pictures_that_are_not_of_the_data_are_far_from_it),
        cmocka_unit_test(pixel_functions_do_the_stated_arithmetic),
        cmocka_unit_test(blends_mix_classes_and_means_are_means),
        cmocka_unit_test(sheets_are_written_on_demand),
    };
    return cmocka_run_group_tests_name("data junk", tests, open_set, close_set);
}
