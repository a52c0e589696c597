/* SPDX-License-Identifier: Apache-2.0 */
/* What is turned while frames go through: the network has it from the next frame on, and what it refuses
 * changes nothing. */
#include "unit/test_formats_util.h"

#include "jobs/stream/stream_intake.h"
#include "jobs/stream/stream_settings.h"
#include "unet_fixture.h"

enum {
    W = 24,
    H = 16,
    BYTES = W * H * 3,
    SIMILARITY = 0,
    STRENGTH,
    SEED,
    STEPS,
    WIDTH,
    HEIGHT,
    MODEL
};

static uint8_t frame[BYTES], want[BYTES], got[BYTES];

static void run(lw_stream_network *n, uint8_t *rgb)
{
    lw_stream_tag tag = {0};
    assert_ok(lw_stream_network_run(n, frame, &tag, rgb));
}

static void check_same(lw_stream_network *n, bool same)
{
    run(n, got);
    assert_int_equal(memcmp(got, want, BYTES) == 0, same);
    memcpy(want, got, BYTES);
}

/* Until nothing is being built or freed; frames go on meanwhile. */
static void settle(lw_stream_settings *s, const double *value, lw_stream_network *n)
{
    lw_stream_settings_apply(s, value, n, NULL);
    while (lw_stream_builder_busy(&s->builder)) {
        run(n, got);
        lw_stream_settings_apply(s, value, n, NULL);
    }
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
    const lw_stream_config c = {
        .network = {.model = model, .w = W, .h = H, .seed = (1ull << 60) + 1}, .threads = 2};
    assert_ok(lw_stream_network_open(&n, &c, &p));
    lw_stream_settings_init(&s, &c);
    assert_int_equal(s.n, MODEL);
    for (int i = 0; i < s.n; i++)
        value[i] = s.knob[i].value;
    run(&n, want);
    lw_stream_settings_apply(&s, value, &n, NULL);
    check_same(&n, true);
    for (int k = STRENGTH; k <= SEED; k++) { /* there and back: no double is the seed */
        value[k] = 0.9 + (k == SEED);
        settle(&s, value, &n);
        run(&n, got);
        assert_true(memcmp(got, want, BYTES) != 0);
        value[k] = s.knob[k].value;
        settle(&s, value, &n);
        check_same(&n, true);
    }
    const double turned[][2] = {{STRENGTH, 0.9}, {SEED, 7}, {STEPS, 3}, {WIDTH, 32}, {HEIGHT, 32}};
    for (size_t i = 0; i < LW_COUNT(turned); i++) {
        value[(int)turned[i][0]] = turned[i][1];
        settle(&s, value, &n);
        check_same(&n, false);
        check_same(&n, true);
    }
    value[WIDTH] = 33; /* it takes even ones */
    settle(&s, value, &n);
    assert_non_null(strstr(s.note, "it stays as it was: "));
    assert_non_null(strstr(s.note, "multiples of"));
    check_same(&n, true);
    lw_translator_network_size(n.now.translator, &w, &h);
    assert_true(w == 32 && h == 32);
    value[WIDTH] = value[HEIGHT] = 0;
    settle(&s, value, &n);
    lw_translator_network_size(n.now.translator, &w, &h);
    assert_true(w == W && h == H);
    lw_stream_settings_close(&s);
    lw_stream_network_close(&n);
}

/* Frames are the old model's until the new one is there, and then those of a stream of the new one; what
 * cannot be opened leaves the old one. A change in the middle of another is taken when that is there. */
static void test_models(void **state)
{
    lw_pixels p;
    char plain[160], other[160];
    double value[LW_STREAM_KNOBS];
    static uint8_t first[BYTES], second[BYTES];
    lw_stream_settings s;
    lw_stream_network n = {0}, m = {0};
    (void)state;
    snprintf(plain, sizeof plain, "%s", in_scratch("plain"));
    snprintf(other, sizeof other, "%s", in_scratch("other"));
    assert_ok(unet_make(plain, 3, -1, "ddpm"));
    assert_ok(unet_make(other, 3, 1, "ddpm"));
    lw_pixels_init(&p, LW_PIXELS_RGB, LW_MATRIX_601, false, W, H);
    const lw_stream_config c = {.network = {.model = plain, .w = W, .h = H, .seed = 2},
                                .models = {other, "none", "identity"},
                                .n_models = 3,
                                .threads = 2};
    lw_stream_config d = c;
    d.network.model = other;
    d.network.strength = 0.75;
    assert_ok(lw_stream_network_open(&n, &c, &p));
    assert_ok(lw_stream_network_open(&m, &d, &p));
    run(&n, first);
    run(&m, second);
    assert_true(memcmp(first, second, BYTES) != 0);
    lw_stream_settings_init(&s, &c);
    assert_int_equal(s.n, LW_STREAM_KNOBS);
    for (int i = 0; i < s.n; i++)
        value[i] = s.knob[i].value;
    value[MODEL] = 2; /* "none": nothing there */
    settle(&s, value, &n);
    assert_non_null(strstr(s.note, "it stays as it was: "));
    run(&n, got);
    assert_memory_equal(got, first, BYTES);
    value[MODEL] = 1;
    value[WIDTH] = W;
    value[HEIGHT] = H;
    lw_stream_settings_apply(&s, value, &n, NULL);
    assert_true(lw_stream_builder_busy(&s.builder));
    run(&n, got);
    assert_memory_equal(got, first, BYTES);
    value[STRENGTH] = 0.75; /* while it is being built */
    settle(&s, value, &n);
    assert_string_equal(s.note, "");
    lw_stream_network_reset(&n); /* it sees its former answers */
    run(&n, got);
    assert_memory_equal(got, second, BYTES);
    value[MODEL] = 3;
    lw_stream_settings_apply(&s, value, &n, NULL);
    value[MODEL] = 1;
    value[STEPS] = 2;
    settle(&s, value, &n);
    settle(&s, value, &n);
    run(&n, got);
    assert_true(memcmp(got, second, BYTES) != 0 && memcmp(got, frame, BYTES) != 0);
    value[MODEL] = 3;
    value[STEPS] = 1;
    lw_stream_settings_apply(&s, value, &n, NULL); /* and ends in the middle of it */
    lw_stream_settings_close(&s);
    lw_stream_network_close(&n);
    lw_stream_network_close(&m);
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

/* A frame is what training makes of that row, and stands on the left of what the network makes of it; the
 * verdict sees it as it was before. */
static void test_worse_beside(void **state)
{
    enum { SIDE = 64, TALL = 32, ALL = SIDE * TALL * 3 };
    static uint8_t rgb[ALL], undamaged[ALL], both[2 * ALL];
    lw_stream_intake in;
    lw_stream_network n = {0}, judged = {0};
    lw_kernels k;
    lw_degradation d;
    double captured;
    const lw_frame_options o = {0};
    (void)state;
    lw_kernels_init(&k, lw_isa_best());
    const lw_stream_config c = {.input = "test:64x32",
                                .degrade = "blur:2,noise:9",
                                .threads = 1,
                                .network = {.model = "identity", .seed = 3, .beside = true}};
    assert_ok(lw_stream_intake_open(&in, &c, &o, &k));
    assert_ok(lw_stream_network_open(&n, &c, &in.pixels));
    assert_true(n.w == 2 * SIDE && n.h == TALL);
    const lw_stream_config verdict = {.drift_metrics = "here",
                                      .degrade = c.degrade,
                                      .threads = 1,
                                      .network = {.model = "identity"}};
    assert_ok(lw_stream_network_open(&judged, &verdict, &in.pixels));
    assert_ok(lw_degradation_parse(c.degrade, &d));
    for (int64_t row = 0; row < 3; row++) {
        LW_CLEANUP(lw_raster_clear) lw_raster im = {0};
        assert_ok(lw_raster_init(&im, TALL, SIDE, 3));
        lw_frame_test_draw(im.at, SIDE, TALL, row);
        assert_ok(lw_stream_intake_next(&in, row, rgb, undamaged, &captured));
        assert_memory_equal(undamaged, im.at, ALL);
        assert_ok(lw_degrade(&d, 3, row, &im));
        assert_memory_equal(rgb, im.at, ALL);
        lw_stream_tag tag = {.number = row};
        lw_translator_undamaged(judged.now.translator, undamaged);
        assert_ok(lw_stream_network_run(&judged, rgb, &tag, both));
        assert_memory_equal(both, rgb, ALL);
        assert_memory_equal(lw_translator_given(judged.now.translator), undamaged, ALL);
        assert_ok(lw_stream_network_run(&n, rgb, &tag, both));
        for (int y = 0; y < TALL; y++)
            for (int half = 0; half < 2; half++)
                assert_memory_equal(both + (2 * y + half) * SIDE * 3, rgb + y * SIDE * 3, SIDE * 3);
    }
    lw_stream_network_close(&n);
    lw_stream_network_close(&judged);
    lw_stream_intake_close(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings), cmocka_unit_test(test_models),
        cmocka_unit_test(test_similarity), cmocka_unit_test(test_worse_beside)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
