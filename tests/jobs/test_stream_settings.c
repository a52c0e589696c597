/* SPDX-License-Identifier: Apache-2.0 */
/* What is turned while frames go through: the network has it from the next frame on, and what it refuses
 * changes nothing. */
#include "unit/test_formats_util.h"

#include "jobs/stream/stream_settings.h"
#include "unet_fixture.h"

enum { W = 24, H = 16, BYTES = W * H * 3, SIMILARITY = 0, STRENGTH, SEED, STEPS, WIDTH, HEIGHT };

static uint8_t frame[BYTES], want[BYTES], got[BYTES];

static void run(lw_stream_network *n, uint8_t *rgb)
{
    assert_ok(lw_stream_network_run(n, frame, rgb));
}

static void check_same(lw_stream_network *n, bool same)
{
    run(n, got);
    assert_int_equal(memcmp(got, want, BYTES) == 0, same);
    memcpy(want, got, BYTES);
}

static void test_settings(void **state)
{
    lw_pixels p;
    char model[160];
    double value[LW_STREAM_KNOBS];
    int32_t w, h;
    lw_stream_settings s;
    lw_stream_network n = {0};
    (void)state;
    snprintf(model, sizeof model, "%s", in_scratch("unet"));
    assert_ok(unet_make(model, 3, -1, "ddpm"));
    for (int i = 0; i < BYTES; i++)
        frame[i] = (uint8_t)(i * 7919 % 251);
    lw_pixels_init(&p, LW_PIXELS_RGB, LW_MATRIX_601, false, W, H);
    const lw_stream_config c = {.network = {.model = model, .w = W, .h = H}, .threads = 2};
    assert_ok(lw_stream_network_open(&n, &c, &p));
    lw_stream_settings_init(&s, &c);
    assert_int_equal(s.n, LW_STREAM_KNOBS);
    for (int i = 0; i < s.n; i++)
        value[i] = s.knob[i].value;
    run(&n, want);
    lw_stream_settings_apply(&s, value, &n, NULL);
    check_same(&n, true);
    const double turned[][2] = {{STRENGTH, 0.9}, {SEED, 7}, {STEPS, 3}, {WIDTH, 32}, {HEIGHT, 32}};
    for (size_t i = 0; i < LW_COUNT(turned); i++) {
        value[(int)turned[i][0]] = turned[i][1];
        lw_stream_settings_apply(&s, value, &n, NULL);
        check_same(&n, false);
        check_same(&n, true);
    }
    value[WIDTH] = 33; /* it takes even ones */
    lw_stream_settings_apply(&s, value, &n, NULL);
    check_same(&n, true);
    lw_translator_network_size(n.translator, &w, &h);
    assert_true(w == 32 && h == 32);
    value[WIDTH] = value[HEIGHT] = 0;
    lw_stream_settings_apply(&s, value, &n, NULL);
    lw_translator_network_size(n.translator, &w, &h);
    assert_true(w == W && h == H);
    lw_stream_network_close(&n);
}

/* Frames that do not differ are computed once in eleven; those that do are computed. */
static void test_similarity(void **state)
{
    lw_pixels p;
    lw_stream_settings s;
    lw_stream_network n = {0};
    (void)state;
    lw_pixels_init(&p, LW_PIXELS_RGB, LW_MATRIX_601, false, W, H);
    const lw_stream_config c = {.network = {.model = "identity"}, .threads = 1};
    assert_ok(lw_stream_network_open(&n, &c, &p));
    lw_stream_settings_init(&s, &c);
    assert_int_equal(s.n, 1);
    run(&n, got);
    run(&n, got);
    assert_int_equal(n.similar.skipped, 0);
    lw_stream_settings_apply(&s, (const double[]){0.98}, &n, NULL);
    for (int i = 0; i < 23; i++) { /* the first, twelfth and last are computed */
        run(&n, got);
        assert_memory_equal(got, frame, BYTES);
    }
    assert_int_equal(n.similar.skipped, 20);
    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < BYTES; k++)
            frame[k] = (uint8_t)((k + i + 1) * 7919 % 251);
        run(&n, got);
        assert_memory_equal(got, frame, BYTES);
    }
    assert_int_equal(n.similar.skipped, 20);
    run(&n, got);
    assert_int_equal(n.similar.skipped, 21);
    lw_stream_network_reset(&n);
    run(&n, got);
    assert_int_equal(n.similar.skipped, 21);
    lw_stream_network_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_settings),
                                       cmocka_unit_test(test_similarity)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
