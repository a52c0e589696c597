/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures made worse: what Pillow makes of them, before they are prepared, in a cache of their own. */
#include "test_data_util.h"

#include "data/data.h"
#include "kernels/formula_picture.h"

/* Image.filter(GaussianBlur(r)); resize((max(w // k, 1), max(h // k, 1)), BILINEAR) and back. */
static void test_pillow(void **state)
{
    static const struct {
        int h, w;
        uint64_t hash[LW_DEGRADATIONS];
    } want[] = {
        {224,
         224,
         {0x5982a1af321e01e8, 0x3a3f773ce83bdca8, 0x01d44e14db654bc3, 0xaff730bf89f82585}},
        {32, 32, {0x12c23204764345e5, 0x6003849e59526d75, 0x922fd9b9973e250c, 0xc248e28d17a6d7d4}},
        {61, 47, {0x5c7e68ac61df6c86, 0x1a1194f2a4ccbc04, 0x6d08fd81c0903f7f, 0xc2663b7f56fd9342}},
        {5, 90, {0x68a2497333b9be54, 0xf2c6f6894029eb09, 0x3956a6aade812bc9, 0x7d9238e031577e95}},
        {1, 3, {0x90bb82c65b9b00a4, 0xafb14f2ddb549568, 0x6fb88dbc6c318321, 0x6fb88dbc6c318321}}};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(want); i++)
        for (int d = 0; d < LW_DEGRADATIONS; d++) {
            lw_raster im = {0};
            ok(lw_raster_init(&im, want[i].h, want[i].w, 3));
            formula_picture(im.at, want[i].h, want[i].w, 3);
            ok(lw_degrade(&lw_degradations[d], 0, 0, &im));
            assert_int_equal(im.height, want[i].h);
            assert_int_equal(im.width, want[i].w);
            uint64_t have = lw_hash64(im.at, (size_t)(want[i].h * want[i].w * 3));
            if (have != want[i].hash[d])
                fail_msg("%s of %dx%d: %016llx", lw_degradations[d].name, want[i].w, want[i].h,
                         (unsigned long long)have);
            lw_raster_clear(&im);
        }
}

/* Row by row the picture of the plain opening, made worse and then prepared; names and labels stay. */
static void test_rows(void **state)
{
    const lw_preparation p = {.channels = 3,
                              .fit = LW_FIT_SHORTEST,
                              .filter = LW_FILTER_BICUBIC,
                              .resize_h = 24,
                              .resize_w = 24,
                              .height = 20,
                              .width = 20,
                              .scale = 1,
                              .std = {1, 1, 1}};
    const lw_data_opts plain = {.cache_dir = "", .image_size = 32, .num_images = 7, .seed = 3};
    const lw_data_opts prepared = {.cache_dir = "",
                                   .preparation = &p,
                                   .degradation = &lw_degradations[0],
                                   .num_images = 7,
                                   .seed = 3};
    lw_dataset *a = NULL, *b = NULL;
    uint8_t want[20 * 20 * 3];
    (void)state;
    ok(lw_data_open("synth:32", &plain, &a));
    ok(lw_data_open("synth:32", &prepared, &b));
    assert_int_equal(a->n, b->n);
    for (int64_t i = 0; i < a->n; i++) {
        lw_raster im = {0};
        ok(lw_raster_init(&im, 32, 32, 3));
        memcpy(im.at, a->pixels + i * 32 * 32 * 3, 32 * 32 * 3);
        ok(lw_degrade(&lw_degradations[0], 0, 0, &im));
        ok(lw_prepare_pixels(&p, im, want));
        assert_memory_equal(b->pixels + i * (int64_t)sizeof want, want, sizeof want);
        assert_int_equal(lw_data_row_number(a, i), lw_data_row_number(b, i));
        assert_int_equal(a->labels[i], b->labels[i]);
        lw_raster_clear(&im);
    }
    assert_true(a->fingerprint != b->fingerprint);
    lw_data_close(&a);
    lw_data_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pillow), cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
