/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of pictures made here: classes, sizes, splits, and what cannot be read. */
#include "test_data_util.h"

#include "formats/formats.h"
#include "base/base.h"
#include "data/data.h"

static const lw_data_opts in_memory = {.cache_dir = ""};

static void write_picture(const char *name, int32_t w, int32_t h, uint8_t level)
{
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    char dir[600];
    snprintf(dir, sizeof dir, "%s", in_scratch(name));
    *strrchr(dir, '/') = '\0';
    ok(lw_mkdirs(dir));
    ok(lw_image_init(&im, w, h));
    for (int32_t i = 0; i < w * h; i++) {
        im.rgb[3 * i] = level;
        im.rgb[3 * i + 1] = (uint8_t)(i % w);
        im.rgb[3 * i + 2] = (uint8_t)(i / w);
    }
    if (lw_str_ends(name, ".png")) {
        ok(lw_png_save(in_scratch(name), &im, NULL));
        return;
    }
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    ok(lw_jpeg_encode(&im, 95, &s));
    ok(lw_file_write(in_scratch(name), s.s, s.len));
}

static void folders_are_classes(void **state)
{
    (void)state;
    char name[64];
    for (int i = 0; i < 21; i++) {
        snprintf(name, sizeof name, "f/dog/%02d.png", i);
        write_picture(name, 40, 20, (uint8_t)(100 + i));
    }
    write_picture("f/cat/b.JPG", 10, 30, 7);
    write_picture("f/cat/a.png", 16, 16, 9);
    write_picture("f/.hidden/a.png", 16, 16, 9);
    ok(lw_file_write(in_scratch("f/readme.txt"), "x", 1));
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = {.cache_dir = "", .image_size = 10};
    ok(lw_data_open(spec_of("folder", in_scratch("f")), &o, &d));
    assert_int_equal(d->classes, 2);
    assert_string_equal(d->class_names[0], "cat");
    assert_string_equal(d->class_names[1], "dog");
    assert_int_equal(
        d->n, 1 + 19); /* b.JPG (capitals first) trains, a.png is held out; dog without 09, 19 */
    assert_int_equal(d->labels[0], 0);
    assert_int_equal(d->labels[1], 1);
    const uint8_t *dog = d->pixels + 300; /* the square x 10..29 of 40x20, halved */
    assert_int_equal(dog[0], 100);
    assert_int_equal(dog[1], 11); /* (9 + 3 10 + 3 11 + 12) / 8: the cut comes last */
    assert_int_equal(dog[3 * 99 + 1], 29);
    assert_int_equal(dog[3 * 99 + 2], 18); /* (3 19 + 3 18 + 17) / 7 */
    lw_data_close(&d);
    o.split = LW_SPLIT_HELDOUT;
    ok(lw_data_open(spec_of("folder", in_scratch("f")), &o, &d));
    assert_int_equal(d->n, 3);
    assert_int_equal(d->pixels[300], 109);
    assert_int_equal(d->pixels[600], 119);
}

static void expect_side(const char *dir, int32_t side, const char *note)
{
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    ok(lw_data_open(spec_of("folder", in_scratch(dir)), &in_memory, &d));
    assert_int_equal(d->h, side);
    assert_int_equal(d->w, side);
    if (*note ? !strstr(d->note, note) : *d->note)
        fail_msg("%s: note '%s', not '%s'", dir, d->note, note);
}

/* Without an image size: one size stays, of several a power of two is chosen and named. */
static void folders_keep_their_size(void **state)
{
    (void)state;
    write_picture("k16/a/1.png", 16, 16, 1);
    write_picture("k16/b/2.jpg", 16, 16, 2);
    expect_side("k16", 16, "");
    write_picture("k20/1.png", 40, 20, 1); /* the central square of all is of one size */
    write_picture("k20/2.png", 20, 30, 1);
    expect_side("k20", 20, "");
    write_picture("k4/1.png", 4, 4, 1);
    expect_side("k4", 8, "pictures of 4x4 are resized to 8x8");
    write_picture("mix/1.png", 17, 90, 1);
    write_picture("mix/2.jpg", 40, 41, 1);
    write_picture("mix/3.png", 300, 200, 1);
    expect_side("mix", 32, "(shorter side 17 to 200 pixels, median 40) are resized to 32x32");
    write_picture("mix/4.png", 300, 300, 1);
    write_picture("mix/5.png", 300, 300, 1);
    expect_side("mix", 64, "median 200) are resized to 64x64");
    write_picture("tiny/1.png", 3, 3, 1);
    write_picture("tiny/2.png", 5, 5, 1);
    expect_side("tiny", 8, "resized to 8x8");
    lw_data_opts o = {.cache_dir = in_scratch("sizes")};
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    for (int round = 0; round < 2; round++) { /* built, then from the cache */
        lw_data_close(&d);
        ok(lw_data_open(spec_of("folder", in_scratch("mix")), &o, &d));
        assert_int_equal(d->h, 64);
        assert_non_null(strstr(d->note, "--image-size N"));
    }
}

/* For networks that resize by themselves: nothing is cut off or resized before. */
static void folders_stay_whole(void **state)
{
    (void)state;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = {.cache_dir = in_scratch("whole"), .whole = true, .split = LW_SPLIT_ALL};
    write_picture("w/1.png", 20, 12, 7);
    write_picture("w/2.png", 20, 12, 8);
    for (int round = 0; round < 2; round++) { /* built, then from the cache */
        lw_data_close(&d);
        ok(lw_data_open(spec_of("folder", in_scratch("w")), &o, &d));
        assert_true(d->n == 2 && d->h == 12 && d->w == 20 && !*d->note);
        assert_int_equal(d->pixels[0], 7);
        assert_int_equal(d->pixels[12 * 20 * 3 - 2], 19); /* its column */
        assert_int_equal(d->pixels[12 * 20 * 3], 8);
    }
    lw_data_close(&d);
    o.whole = false; /* not the same rows */
    ok(lw_data_open(spec_of("folder", in_scratch("w")), &o, &d));
    assert_true(d->h == 12 && d->w == 12);
    lw_data_close(&d);
    o.whole = true;
    write_picture("w/3.png", 12, 20, 8);
    fails(lw_data_open(spec_of("folder", in_scratch("w")), &o, &d), LW_EUSAGE, "1.png is 20x12, ");
    o.image_size = 16;
    fails(lw_data_open(spec_of("folder", in_scratch("w")), &o, &d), LW_EUSAGE,
          "neither resized nor prepared");
}

static void train_and_test_folders_are_splits(void **state)
{
    (void)state;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = {.cache_dir = "", .image_size = 8, .split = LW_SPLIT_HELDOUT};
    write_picture("s/train/x/1.png", 8, 8, 1);
    write_picture("s/train/y/1.png", 8, 8, 2);
    write_picture("s/val/y/1.png", 8, 8, 3);
    ok(lw_data_open(spec_of("folder", in_scratch("s")), &o, &d));
    assert_int_equal(d->n, 1);
    assert_int_equal(d->labels[0], 1);
    assert_int_equal(d->pixels[0], 3);
    lw_data_close(&d);
    write_picture("s/val/z/1.png", 8, 8, 3);
    fails(lw_data_open(spec_of("folder", in_scratch("s")), &o, &d), LW_EFORMAT, "class 'z'");
}

static void one_folder_has_no_labels(void **state)
{
    (void)state;
    LW_CLEANUP(lw_data_close) lw_dataset *d = NULL;
    lw_data_opts o = {.cache_dir = "", .image_size = 16};
    write_picture("one/1.png", 12, 12, 50);
    ok(lw_data_open(spec_of("folder", in_scratch("one")), &o, &d));
    assert_int_equal(d->classes, 1);
    assert_false(d->labelled);
    assert_int_equal(d->pixels[0], 50); /* bilinear growth keeps a constant */
    lw_data_close(&d);
    o.split = LW_SPLIT_HELDOUT;
    fails(lw_data_open(spec_of("folder", in_scratch("one")), &o, &d), LW_EFORMAT,
          "no held-out pictures");
}

static void unreadable_pictures_are_listed(void **state)
{
    (void)state;
    lw_data_opts o = {.cache_dir = "", .image_size = 8};
    lw_dataset *d = NULL;
    write_picture("u/a/1.png", 8, 8, 1);
    write_picture("u/a/2.png", 8, 8, 1);
    write_picture("u/b/3.png", 8, 8, 1);
    ok(lw_file_write(in_scratch("u/a/2.png"), "\x89PNG nonsense", 13));
    ok(lw_file_write(in_scratch("u/b/4.jpg"), "\xff\xd8\xff", 3));
    fails(lw_data_open(spec_of("folder", in_scratch("u")), &o, &d), LW_EFORMAT, "u/a/2.png");
    fails(lw_data_open(spec_of("folder", in_scratch("nothing")), &o, &d), LW_EIO, "nothing");
    ok(lw_mkdirs(in_scratch("void/sub")));
    fails(lw_data_open(spec_of("folder", in_scratch("void")), &o, &d), LW_EFORMAT,
          "no .png, .jpg, .jpeg, .bmp or .webp");
    lw_data_report r;
    ok(lw_data_check(spec_of("folder", in_scratch("u")), &o, &r));
    assert_null(r.set);
    assert_int_equal(r.files_read, 4);
    assert_int_equal(r.n_problems, 2);
    assert_true(lw_str_ends(r.problems[0].path, "b/4.jpg") ||
                lw_str_ends(r.problems[0].path, "a/2.png"));
    lw_data_report_clear(&r);
    fails(lw_data_check("folder:/no/such/place", &o, &r), LW_EIO, "/no/such/place");
    lw_data_report_clear(&r);
}

static void duplicates_are_counted(void **state)
{
    (void)state;
    lw_data_report r;
    lw_data_opts o = {.cache_dir = "", .image_size = 8};
    static const uint8_t level[12] = {5, 6, 5, 7, 6, 5, 8, 9, 10, 250, 11, 12}; /* 9 is held out */
    char name[64];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "dup/k/%02d.png", i);
        write_picture(name, 8, 8, level[i]);
    }
    ok(lw_data_check(spec_of("folder", in_scratch("dup")), &o, &r));
    assert_int_equal(r.set->n, 11);
    assert_int_equal(r.duplicates, 3);
    assert_int_equal(r.duplicate_a, 0);
    assert_int_equal(r.duplicate_b, 2);
    assert_true(r.min[0] > 5 / 127.5 - 1 - 1e-9 && r.min[0] < 5 / 127.5 - 1 + 1e-9);
    assert_true(r.max[0] > 12 / 127.5 - 1 - 1e-9 && r.max[0] < 12 / 127.5 - 1 + 1e-9);
    assert_true(r.mean[1] > 3.5 / 127.5 - 1 - 1e-9 && r.mean[1] < 3.5 / 127.5 - 1 + 1e-9);
    lw_data_report_clear(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_classes),
        cmocka_unit_test(folders_keep_their_size),
        cmocka_unit_test(folders_stay_whole),
        cmocka_unit_test(train_and_test_folders_are_splits),
        cmocka_unit_test(one_folder_has_no_labels),
        cmocka_unit_test(unreadable_pictures_are_listed),
        cmocka_unit_test(duplicates_are_counted),
    };
    lw_log_set(LW_LOG_ERROR); /* small files are warned about */
    return cmocka_run_group_tests_name("folders", tests, scratch_make, scratch_remove);
}
