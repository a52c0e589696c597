/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of 1, 3 and other numbers of channels, from arrays, files and drawings. */
#include "unit/test_data_util.h"

#include <math.h>

#include "formats/formats.h"

enum { N = 12, SIDE = 9 };

/* Colours, and what Pillow 13's convert("L") makes of them. */
static void luma_is_pillows(void **state)
{
    static const uint8_t rgb[][3] = {
        {0, 0, 0},      {255, 255, 255}, {255, 0, 0},     {0, 255, 0},     {0, 0, 255},  {1, 2, 3},
        {200, 100, 50}, {17, 34, 201},   {128, 127, 129}, {254, 255, 253}, {77, 77, 77}, {3, 0, 4},
        {90, 13, 7},    {33, 66, 99},    {250, 5, 128},   {12, 240, 60}};
    static const uint8_t luma[] = {0,   255, 76, 150, 29, 2,  124, 48,
                                   128, 254, 77, 1,   35, 60, 92,  151};
    uint8_t made[LW_COUNT(luma)], back[256];
    (void)state;
    lw_channels_convert(rgb[0], LW_COUNT(luma), 3, 1, made);
    assert_memory_equal(made, luma, sizeof luma);
    for (int v = 0; v < 256; v++) { /* gray as RGB is that gray */
        uint8_t gray = (uint8_t)v, three[3];
        lw_channels_convert(&gray, 1, 1, 3, three);
        lw_channels_convert(three, 1, 3, 1, &back[v]);
        assert_int_equal(back[v], v);
    }
    fails(lw_channels_check("x", 5, 3), LW_EUNSUPPORTED,
          "x: pictures of 5 channels, and such of 3");
    fails(lw_channels_check("x", 1, 2), LW_EUNSUPPORTED, "x: pictures of 1 channel, and such of 2");
}

/* N pictures of bytes in an array of that shape. */
static const char *array_of(const char *name, int rank, const int64_t *shape)
{
    static char spec[600];
    lw_array a = {0};
    const char *path = in_scratch(name);
    ok(lw_array_init(&a, LW_ELEM_U8, rank, shape));
    for (int64_t i = 0; i < a.count; i++)
        ((uint8_t *)a.data)[i] = (uint8_t)(i * 37 + i / 11);
    ok(lw_npy_save(path, a.type, a.rank, a.shape, a.data));
    lw_array_clear(&a);
    snprintf(spec, sizeof spec, "tensor:%s", path);
    return spec;
}

static lw_dataset *opened(const char *spec, int32_t side, int32_t channels)
{
    lw_dataset *d = NULL;
    const lw_data_opts o = {
        .cache_dir = "", .split = LW_SPLIT_ALL, .image_size = side, .channels = channels};
    ok(lw_data_open(spec, &o, &d));
    return d;
}

/* [N,H,W], [N,H,W,1] and [N,1,H,W] hold the same gray pictures, which stay as they are where gray is
 * asked for, and are the same in three channels where nothing is. */
static void gray_arrays(void **state)
{
    static const int64_t shapes[][4] = {{N, SIDE, SIDE}, {N, SIDE, SIDE, 1}, {N, 1, SIDE, SIDE}};
    (void)state;
    for (int k = 0; k < 3; k++) {
        const char *spec = array_of("gray.npy", k == 0 ? 3 : 4, shapes[k]);
        lw_dataset *gray = opened(spec, 0, 1), *rgb = opened(spec, 0, 0);
        assert_int_equal(gray->channels, 1);
        assert_int_equal(rgb->channels, 3);
        assert_int_equal(lw_data_row_size(gray), SIDE * SIDE);
        assert_true(gray->h == SIDE && gray->w == SIDE && gray->n == N);
        for (int64_t i = 0; i < N * SIDE * SIDE; i++) { /* row 10 was picture 9, held out */
            int64_t row = i / (SIDE * SIDE), of = row == 9    ? 10
                                                  : row == 10 ? 11
                                                  : row == 11 ? 9
                                                              : row;
            int64_t from = of * SIDE * SIDE + i % (SIDE * SIDE);
            assert_int_equal(gray->pixels[i], (uint8_t)(from * 37 + from / 11));
            for (int c = 0; c < 3; c++)
                assert_int_equal(rgb->pixels[3 * i + c], gray->pixels[i]);
        }
        lw_data_close(&gray);
        lw_data_close(&rgb);
    }
}

/* What is done to a picture is done to each channel by itself. */
static void each_channel_alone(void **state)
{
    const int64_t five[] = {N, SIDE, SIDE, 5}, one[] = {N, SIDE, SIDE, 1};
    lw_array a = {0};
    const char *spec;
    (void)state;
    ok(lw_array_init(&a, LW_ELEM_U8, 4, one));
    spec = array_of("five.npy", 4, five);
    lw_dataset *d = opened(spec, 8, 5), *whole = opened(spec, 0, 5);
    const lw_preparation padded = {.fit = LW_FIT_INSIDE,
                                   .filter = LW_FILTER_BICUBIC,
                                   .resize_h = 7,
                                   .resize_w = 12,
                                   .height = 9,
                                   .width = 12,
                                   .channels = 5,
                                   .fill = {1, 2, 3, 4, 5},
                                   .scale = 1,
                                   .std = {1, 1, 1, 1, 1}};
    for (int c = 0; c < 5; c++) {
        uint8_t made[8 * 8], five_made[9 * 12 * 5], one_made[9 * 12], x[SIDE * SIDE];
        lw_preparation square = lw_preparation_square(8), single = padded;
        const lw_raster im = {SIDE, SIDE, 1, x};
        square.channels = single.channels = 1;
        single.fill[0] = (uint8_t)(c + 1);
        for (int i = 0; i < SIDE * SIDE; i++)
            x[i] = whole->pixels[i * 5 + c];
        ok(lw_prepare_pixels(&square, im, made));
        for (int i = 0; i < 8 * 8; i++)
            assert_int_equal(d->pixels[5 * i + c], made[i]);
        ok(lw_prepare_pixels(
            &padded, (lw_raster){SIDE, SIDE, 5, (uint8_t *)(uintptr_t)whole->pixels}, five_made));
        ok(lw_prepare_pixels(&single, im, one_made));
        for (int i = 0; i < 9 * 12; i++)
            assert_int_equal(five_made[5 * i + c], one_made[i]);
    }
    fails(lw_prepare_pixels(&padded, (lw_raster){SIDE, SIDE, 1, (uint8_t *)a.data}, a.data),
          LW_EUNSUPPORTED, "a picture: pictures of 1 channel, and such of 5");
    lw_data_close(&d);
    lw_data_close(&whole);
    lw_array_clear(&a);
}

/* RGB data as gray: the luma of its pictures, and floats and mirror images of it. */
static void rgb_as_gray(void **state)
{
    lw_dataset *rgb = NULL, *gray = NULL;
    lw_data_opts o = {.cache_dir = "", .count = 5};
    float x[256], mirrored[256];
    uint8_t luma[256];
    lw_batch b = {0};
    (void)state;
    ok(lw_data_open("synth:16", &o, &rgb));
    o.channels = 1;
    ok(lw_data_open("synth:16", &o, &gray));
    for (int64_t i = 0; i < 5; i++) {
        lw_channels_convert(rgb->pixels + i * 768, 256, 3, 1, luma);
        assert_memory_equal(gray->pixels + i * 256, luma, 256);
    }
    lw_data_get(gray, 4, false, x);
    lw_data_get(gray, 4, true, mirrored);
    for (int i = 0; i < 256; i++) {
        assert_true(x[i] == (float)luma[i] / 127.5f - 1.0f);
        assert_true(mirrored[i] == x[i / 16 * 16 + 15 - i % 16]);
    }
    ok(lw_batch_init(&b, 5, 16, 16, 1));
    lw_loader_fill(gray, &(lw_loader_opts){.batch_size = 5, .seed = 1}, 0, &b);
    for (int64_t i = 0; i < 5; i++) {
        lw_data_get(gray, b.index[i], false, x);
        assert_memory_equal(b.images + i * 256, x, sizeof x);
    }
    lw_batch_clear(&b);
    lw_data_close(&rgb);
    lw_data_close(&gray);
}

/* Each number of channels has a cache of its own, that of RGB the name it always had. */
static void caches(void **state)
{
    const int64_t shape[] = {N, SIDE, SIDE, 1};
    const char *spec = array_of("cached.npy", 4, shape);
    lw_dataset *d[3] = {0};
    (void)state;
    for (int k = 0; k < 3; k++) {
        const lw_data_opts o = {.cache_dir = in_scratch("cache"), .channels = (int[]){0, 1, 3}[k]};
        ok(lw_data_open(spec, &o, &d[k]));
        assert_int_equal(d[k]->channels, k == 1 ? 1 : 3);
    }
    assert_string_equal(d[0]->cache_path, d[2]->cache_path);
    assert_string_not_equal(d[0]->cache_path, d[1]->cache_path);
    assert_true(d[0]->fingerprint == d[2]->fingerprint && d[0]->fingerprint != d[1]->fingerprint);
    assert_true(d[0]->content != d[1]->content);
    lw_cached_list l = {0};
    ok(lw_data_cache_list(in_scratch("cache"), &l));
    assert_int_equal(l.n, 2);
    assert_int_equal(l.at[0].channels + l.at[1].channels, 4);
    lw_data_cache_list_clear(&l);
    for (int k = 0; k < 3; k++)
        lw_data_close(&d[k]);
}

static void refused(void **state)
{
    const int64_t five[] = {N, SIDE, SIDE, 5}, many[] = {2, 3, SIDE, 80};
    lw_dataset *d = NULL;
    lw_data_opts o = {.cache_dir = ""};
    lw_preparation p = lw_preparation_square(8);
    char text[700];
    (void)state;
    snprintf(text, sizeof text, "%s", array_of("other.npy", 4, five));
    fails(lw_data_open(text, &o, &d), LW_EUNSUPPORTED, "of 5 channels, and such of 3 are wanted");
    o.channels = 1;
    fails(lw_data_open(text, &o, &d), LW_EUNSUPPORTED, "of 5 channels, and such of 1 are wanted");
    o.channels = LW_MAX_CHANNELS + 1;
    fails(lw_data_open(text, &o, &d), LW_EUSAGE, "65 channels are not within 1..64");
    o.channels = 1;
    o.preparation = &p;
    fails(lw_data_open(text, &o, &d), LW_EUSAGE,
          "1 channels beside a preparation of pictures of 3");
    o = (lw_data_opts){.cache_dir = ""};
    fails(lw_data_open(array_of("wide.npy", 4, many), &o, &d), LW_EUNSUPPORTED,
          "pictures of 80 channels, which come last");
}

/* A sheet shows gray as gray, and of five channels the first three; an export keeps them. */
static void shown_and_exported(void **state)
{
    const int64_t shapes[][4] = {{N, SIDE, SIDE, 1}, {N, SIDE, SIDE, 5}};
    (void)state;
    for (int k = 0; k < 2; k++) {
        const int32_t c = (int32_t)shapes[k][3];
        lw_dataset *d = opened(array_of("shown.npy", 4, shapes[k]), 0, c), *back = NULL;
        int32_t w, h;
        uint8_t *rgb = NULL;
        char spec[600];
        ok(lw_data_sheet(d, 1, 1, 1, 0, &w, &h, &rgb));
        for (int i = 0; i < SIDE * SIDE; i++)
            for (int j = 0; j < 3; j++)
                assert_int_equal(rgb[3 * i + j], d->pixels[c * i + (c == 1 ? 0 : j)]);
        lw_free(&rgb);
        ok(lw_data_export(d, in_scratch("back.npy"), NULL));
        snprintf(spec, sizeof spec, "tensor:%s", in_scratch("back.npy"));
        back = opened(spec, 0, c);
        assert_memory_equal(back->pixels, d->pixels, (size_t)lw_data_row_size(d));
        lw_data_close(&back);
        if (c == 5) {
            fails(lw_data_export(d, in_scratch("five"), NULL), LW_EUNSUPPORTED, "of 5 channels");
        } else {
            ok(lw_data_export(d, in_scratch("one"), NULL));
            snprintf(spec, sizeof spec, "folder:%s", in_scratch("one"));
            back = opened(spec, 0, 1);
            assert_memory_equal(back->pixels, d->pixels, (size_t)lw_data_row_size(d));
            lw_data_close(&back);
        }
        lw_data_close(&d);
    }
}

static void measured(void **state)
{
    const int64_t shape[] = {N, SIDE, SIDE, 5};
    lw_data_report r;
    const lw_data_opts o = {.cache_dir = "", .channels = 5};
    (void)state;
    ok(lw_data_check(array_of("measured.npy", 4, shape), &o, &r));
    assert_int_equal(r.set->channels, 5);
    for (int c = 0; c < 5; c++) {
        double sum = 0;
        for (int64_t i = 0; i < r.set->n * SIDE * SIDE; i++)
            sum += r.set->pixels[5 * i + c] / 127.5 - 1;
        assert_true(fabs(sum / (double)(r.set->n * SIDE * SIDE) - r.mean[c]) < 1e-9);
    }
    lw_data_report_clear(&r);
}

/* Needs the real files: LW_TEST_DATA/mnist. */
static void real_digits(void **state)
{
    const char *root = getenv("LW_TEST_DATA");
    char spec[700];
    (void)state;
    snprintf(spec, sizeof spec, "mnist:%s/mnist", root ? root : "");
    if (!root || !lw_path_exists(spec + strlen("mnist:"))) {
        print_message("skipped: LW_TEST_DATA names no folder with mnist\n");
        skip();
    }
    lw_data_opts o = {.cache_dir = "", .split = LW_SPLIT_HELDOUT, .num_images = 200};
    lw_dataset *rgb = NULL, *gray = NULL;
    ok(lw_data_open(spec, &o, &rgb));
    o.channels = 1;
    ok(lw_data_open(spec, &o, &gray));
    assert_true(gray->n == 200 && gray->channels == 1 && rgb->channels == 3 && gray->h == 32);
    for (int64_t i = 0; i < 200 * 32 * 32; i++)
        assert_int_equal(rgb->pixels[3 * i], gray->pixels[i]);
    lw_data_close(&rgb);
    lw_data_close(&gray);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(luma_is_pillows),
                                       cmocka_unit_test(gray_arrays),
                                       cmocka_unit_test(each_channel_alone),
                                       cmocka_unit_test(rgb_as_gray),
                                       cmocka_unit_test(caches),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(shown_and_exported),
                                       cmocka_unit_test(measured),
                                       cmocka_unit_test(real_digits)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
