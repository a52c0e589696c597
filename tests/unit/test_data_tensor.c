/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of bytes as data, and rows of data as arrays and pictures. */
#include "unit/test_data_util.h"

#include "formats/formats.h"

static const lw_data_opts none = {.cache_dir = ""};

/* Pixel k of picture i of a set. */
static uint8_t pixel(int64_t i, int64_t k)
{
    return (uint8_t)(31 * i + 7 * k + k * k);
}

static lw_array pictures(int64_t n, int32_t side, int32_t channels, int64_t first)
{
    lw_array a = {0};
    const int64_t shape[4] = {n, side, side, channels}, row = (int64_t)side * side * channels;
    ok(lw_array_init(&a, LW_ELEM_U8, 4, shape));
    for (int64_t i = 0; i < a.count; i++)
        ((uint8_t *)a.data)[i] = pixel(first + i / row, i % row);
    return a;
}

static lw_array labels(lw_elem type, int64_t n, int32_t classes)
{
    lw_array a = {0};
    ok(lw_array_init(&a, type, 1, &n));
    for (int64_t i = 0; i < n; i++)
        if (type == LW_ELEM_I64)
            ((int64_t *)a.data)[i] = i % classes;
        else
            ((uint8_t *)a.data)[i] = (uint8_t)(i % classes);
    return a;
}

static const char *tensor_spec(const char *path)
{
    static char spec[600];
    snprintf(spec, sizeof spec, "tensor:%s", path);
    return spec;
}

static lw_dataset *opened(const char *path, lw_split split)
{
    lw_dataset *d = NULL;
    lw_data_opts o = none;
    o.split = split;
    ok(lw_data_open(tensor_spec(path), &o, &d));
    return d;
}

/* Every tenth is held out, gray is the same in three channels. */
static void gray_array(void **state)
{
    lw_array a = pictures(25, 8, 1, 0);
    const char *path = in_scratch("gray.npy");
    (void)state;
    ok(lw_npy_save(path, a.type, a.rank, a.shape, a.data));
    for (int s = 0; s < 2; s++) {
        static const int64_t train[] = {0, 8, 10, 18, 20, 24}, at_train[] = {0, 8, 9, 17, 18, 22};
        static const int64_t held[] = {9, 19}, at_held[] = {0, 1};
        lw_dataset *d = opened(path, s ? LW_SPLIT_HELDOUT : LW_SPLIT_TRAIN);
        assert_int_equal(d->n, s ? 2 : 23);
        assert_false(d->labelled);
        for (size_t k = 0; k < (s ? LW_COUNT(held) : LW_COUNT(train)); k++)
            for (int64_t p = 0; p < 3 * 64; p++)
                assert_int_equal(d->pixels[(s ? at_held[k] : at_train[k]) * 192 + p],
                                 pixel(s ? held[k] : train[k], p / 3));
        lw_data_close(&d);
    }
    lw_array_clear(&a);
}

static void save_npz(const char *path, const char *const *names, lw_array *arrays, size_t n)
{
    lw_npz z = {0};
    for (size_t i = 0; i < n; i++)
        ok(lw_npz_add(&z, names[i], &arrays[i]));
    ok(lw_npz_save(path, &z));
    lw_npz_clear(&z);
}

/* Keras' layout has its own split. */
static void own_split(void **state)
{
    const char *path = in_scratch("keras.npz");
    lw_array a[] = {pictures(12, 9, 3, 0), labels(LW_ELEM_U8, 12, 4), pictures(5, 9, 3, 100),
                    labels(LW_ELEM_U8, 5, 3)};
    (void)state;
    save_npz(path, (const char *const[]){"x_train", "y_train", "x_test", "y_test"}, a, 4);
    lw_dataset *train = opened(path, LW_SPLIT_TRAIN), *held = opened(path, LW_SPLIT_HELDOUT);
    assert_int_equal(train->n, 12);
    assert_int_equal(held->n, 5);
    assert_int_equal(train->classes, 4);
    assert_string_equal(train->class_names[3], "3");
    assert_int_equal(train->labels[7], 3);
    assert_int_equal(held->labels[4], 1);
    for (int64_t p = 0; p < 9 * 9 * 3; p++)
        assert_int_equal(held->pixels[4 * 243 + p], pixel(104, p));
    lw_data_close(&train);
    lw_data_close(&held);
}

/* What was exported is read again, as each kind of file. */
static void there_and_back(void **state)
{
    lw_data_opts o = none;
    lw_dataset *d = NULL, *back = NULL;
    (void)state;
    o.num_images = 40;
    o.seed = 3;
    ok(lw_data_open("synth:16", &o, &d));
    const char *files[] = {in_scratch("out.npz"), in_scratch("out.npy")};
    for (int k = 0; k < 2; k++) {
        ok(lw_data_export(d, files[k], NULL));
        back = opened(files[k], LW_SPLIT_ALL);
        assert_int_equal(back->n, 40);
        assert_int_equal(back->labelled, k == 0);
        for (int64_t i = 0; i < 40; i++) { /* training rows, then 9, 19, 29, 39 */
            int64_t from = i < 36 ? i + i / 9 : 10 * (i - 36) + 9;
            assert_memory_equal(back->pixels + i * 768, d->pixels + from * 768, 768);
            assert_int_equal(back->labels[i], k == 0 ? d->labels[from] : 0);
        }
        lw_data_close(&back);
    }
    char folder[600];
    const char *dir = in_scratch("pictures");
    ok(lw_data_export(d, dir, NULL));
    fails(lw_data_export(d, dir, NULL), LW_EUSAGE, "holds something already");
    snprintf(folder, sizeof folder, "folder:%s", dir);
    o = none;
    o.split = LW_SPLIT_ALL;
    ok(lw_data_open(folder, &o, &back));
    assert_int_equal(back->n, 40);
    for (int64_t i = 0; i < 40; i++) { /* CLASS/NUMBER.png */
        lw_str name = {0};
        lw_data_row_name(back, i, &name);
        long at = strtol(strchr(lw_str_c(&name), '/') + 1, NULL, 10);
        assert_memory_equal(back->pixels + i * 768, d->pixels + at * 768, 768);
        assert_string_equal(back->class_names[back->labels[i]], d->class_names[d->labels[at]]);
        lw_str_clear(&name);
    }
    lw_data_close(&back);
    lw_data_close(&d);
}

static void open_fails(const char *path, int code, const char *part)
{
    lw_dataset *d = NULL;
    fails(lw_data_open(tensor_spec(path), &none, &d), code, part);
}

static void refused(void **state)
{
    static const float f[4 * 8 * 8 * 3];
    static const uint8_t u[4 * 8 * 8 * 5];
    const int64_t rgb[] = {4, 8, 8, 3}, five[] = {4, 8, 8, 5}, flat[] = {4, 64},
                  no[] = {0, 8, 8, 3};
    const char *path = in_scratch("bad.npy");
    (void)state;
    ok(lw_npy_save(path, LW_ELEM_F32, 4, rgb, f));
    open_fails(path, LW_EFORMAT, "[4,8,8,3] of F32, pictures are U8");
    ok(lw_npy_save(path, LW_ELEM_U8, 4, five, u));
    open_fails(path, LW_EUNSUPPORTED, "pictures of 5 channels, and such of 3 are wanted");
    ok(lw_npy_save(path, LW_ELEM_U8, 2, flat, u));
    open_fails(path, LW_EFORMAT, "an array [4,64] of U8");
    ok(lw_npy_save(path, LW_ELEM_U8, 4, no, u));
    open_fails(path, LW_EFORMAT, "an array [0,8,8,3]");
    open_fails(in_scratch("none.npy"), LW_EIO, "none.npy");
    path = in_scratch("bad.npz");
    lw_array few[] = {pictures(12, 8, 3, 0), labels(LW_ELEM_I64, 11, 2)};
    save_npz(path, (const char *const[]){"arr_0", "arr_1"}, few, 2);
    open_fails(path, LW_EFORMAT, "11 labels of 12 pictures");
    lw_array minus[] = {pictures(12, 8, 3, 0), labels(LW_ELEM_I64, 12, 2)};
    ((int64_t *)minus[1].data)[5] = -1;
    save_npz(path, (const char *const[]){"images", "labels"}, minus, 2);
    open_fails(path, LW_EFORMAT, "label 5 is -1");
    lw_array other[] = {pictures(12, 8, 3, 0), pictures(12, 9, 3, 0)};
    save_npz(path, (const char *const[]){"x_train", "x_test"}, other, 2);
    open_fails(path, LW_EFORMAT, "held-out pictures of 9x9");
    lw_array strange[] = {pictures(2, 8, 3, 0)};
    save_npz(path, (const char *const[]){"mu"}, strange, 1);
    open_fails(path, LW_EFORMAT, "no array arr_0, images or x_train");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gray_array), cmocka_unit_test(own_split),
                                       cmocka_unit_test(there_and_back), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
