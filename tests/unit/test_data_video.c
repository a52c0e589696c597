/* SPDX-License-Identifier: Apache-2.0 */
/* Clips as data: frames in order, whole and as squares, the last tenth held out; frames made worse. */
#include "test_data_util.h"

#include "frames/frames.h"
#include "kernels/formula_picture.h"

enum { W = 96, H = 64, N = 25 };

static void write_clip(const char *path)
{
    static uint8_t rgb[W * H * 3];
    lw_kernels k;
    lw_frame_sink *s = NULL;
    char text[64];
    const lw_frame_format f = {.form = LW_PIXELS_444, .w = W, .h = H, .rate = 25, .per = 1};
    lw_kernels_init(&k, LW_ISA_REF);
    ok(lw_frame_sink_open(path, &f, &k, &s));
    for (int i = 0; i < N; i++) {
        lw_frame_test_draw(rgb, W, H, i);
        ok(lw_frame_sink_put(s, rgb));
    }
    ok(lw_frame_sink_finish(s, text));
    lw_frame_sink_close(&s);
}

/* Frame number of row i; -1: it is none. */
static int64_t number(const lw_dataset *d, int64_t i)
{
    return lw_frame_test_read(d->pixels + i * lw_data_row_size(d), d->w, d->h);
}

static void check_clip(const char *spec)
{
    lw_dataset *d = NULL;
    for (int split = 0; split < 2; split++) {
        const lw_data_opts o = {.cache_dir = "", .whole = true, .split = (lw_split)split};
        ok(lw_data_open(spec, &o, &d));
        assert_int_equal(d->h, H);
        assert_int_equal(d->w, W);
        assert_int_equal(d->n, split ? 2 : 23); /* a tenth, rounded down */
        assert_false(d->labelled);
        for (int64_t i = 0; i < d->n; i++)
            assert_int_equal(number(d, i), i + (split ? 23 : 0));
        lw_data_close(&d);
    }
    ok(lw_data_open(spec, &(lw_data_opts){.cache_dir = "", .image_size = 32}, &d));
    assert_true(d->h == 32 && d->w == 32 && d->n == 23);
    lw_data_close(&d);
}

static void test_clip(void **state)
{
    char spec[600];
    LW_CLEANUP(lw_str_clear) lw_str folder = {0};
    (void)state;
    lw_str_addf(&folder, "folder:%s", in_scratch("frames"));
    write_clip(in_scratch("a.y4m"));
    write_clip(lw_str_c(&folder));
    snprintf(spec, sizeof spec, "video:%s", in_scratch("a.y4m"));
    check_clip(spec);
    snprintf(spec, sizeof spec, "video:%s", in_scratch("frames"));
    check_clip(spec);
    snprintf(spec, sizeof spec, "video:%s", lw_str_c(&folder));
    check_clip(spec);
}

/* Cut within a frame: refused, or the frames before it. */
static void test_cut(void **state)
{
    char spec[600], *bytes = NULL;
    size_t n;
    lw_dataset *d = NULL;
    (void)state;
    write_clip(in_scratch("whole.y4m"));
    ok(lw_file_read(in_scratch("whole.y4m"), 0, &bytes, &n));
    ok(lw_file_write(in_scratch("cut.y4m"), bytes, n - 100));
    lw_free(&bytes);
    snprintf(spec, sizeof spec, "video:%s", in_scratch("cut.y4m"));
    fails(lw_data_open(spec, &(lw_data_opts){.cache_dir = ""}, &d), LW_EFORMAT, "frame 24");
    const lw_data_opts skip = {.cache_dir = "", .on_error = LW_ON_ERROR_SKIP};
    ok(lw_data_open(spec, &skip, &d));
    assert_int_equal(d->n + 2, N - 1);
    lw_data_close(&d);
    fails(lw_data_open("video:nowhere.y4m", NULL, &d), LW_EIO, "No such file");
    fails(lw_data_open("video:/etc/passwd", NULL, &d), LW_EUSAGE, "no source of frames");
}

/* ---- samples of clips ------------------------------------------------------------------------- */

enum { CLIP = 6, CH = 20, CW = 24, SIDE = 16, PREVIOUS = 2 };

static lw_dataset *noisy_clip(void)
{
    static uint8_t rgb[CH * CW * 3];
    lw_kernels k;
    lw_frame_sink *s = NULL;
    lw_dataset *d = NULL;
    char spec[600], text[64];
    LW_CLEANUP(lw_str_clear) lw_str folder = {0};
    const lw_frame_format f = {.form = LW_PIXELS_RGB, .w = CW, .h = CH, .rate = 25, .per = 1};
    lw_str_addf(&folder, "folder:%s", in_scratch("noise"));
    lw_kernels_init(&k, LW_ISA_REF);
    ok(lw_frame_sink_open(lw_str_c(&folder), &f, &k, &s));
    for (int i = 0; i < CLIP; i++) {
        formula_picture(rgb, CH, CW, 3);
        for (int j = 0; j < CH * CW * 3; j++)
            rgb[j] = (uint8_t)(rgb[j] * (i + 1) + j * i);
        ok(lw_frame_sink_put(s, rgb));
    }
    ok(lw_frame_sink_finish(s, text));
    lw_frame_sink_close(&s);
    snprintf(spec, sizeof spec, "video:%s", lw_str_c(&folder));
    ok(lw_data_open(spec, &(lw_data_opts){.cache_dir = "", .whole = true}, &d));
    return d;
}

static bool is_crop(const lw_dataset *d, int64_t row, int y, int x, bool flip, const float *at,
                    int pitch)
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int k = 0; k < 3; k++) {
                int column = x + (flip ? SIDE - 1 - j : j);
                uint8_t want = d->pixels[((row * CH + y + i) * CW + column) * 3 + k];
                double have = ((double)at[(i * SIDE + j) * pitch + k] + 1) * 127.5;
                if (have < want - 0.01 || have > want + 0.01)
                    return false;
            }
    return true;
}

/* Where a clean crop is from; false: nowhere. */
static bool find_crop(const lw_dataset *d, const float *at, int64_t *row, int *y, int *x,
                      bool *flip)
{
    for (*row = 0; *row < d->n; (*row)++)
        for (*y = 0; *y <= CH - SIDE; (*y)++)
            for (*x = 0; *x <= CW - SIDE; (*x)++)
                for (int f = 0; f < 2; f++) {
                    *flip = f;
                    if (is_crop(d, *row, *y, *x, *flip, at, 3))
                        return true;
                }
    return false;
}

static bool is_zero(const float *at, int pitch)
{
    for (int i = 0; i < SIDE * SIDE; i++)
        if (at[i * pitch] != 0.0f || at[i * pitch + 1] != 0.0f || at[i * pitch + 2] != 0.0f)
            return false;
    return true;
}

/* Clean pictures are crops of frames; so are, in the same place, the frames before. */
static void test_samples(void **state)
{
    enum { SAMPLES = 24, PITCH = 3 * (1 + PREVIOUS) };
    static float clean[SAMPLES][SIDE * SIDE * 3], condition[SAMPLES][SIDE * SIDE * PITCH],
        again[SIDE * SIDE * PITCH];
    lw_dataset *d = noisy_clip();
    lw_clips *c = NULL;
    lw_clip_opts o = {
        .side = SIDE, .frame = true, .previous = PREVIOUS, .flip = true, .batch = 4, .seed = 3};
    int64_t row, rows = 0;
    int y, x, begins = 0, mirrored = 0;
    bool flip;
    (void)state;
    ok(lw_clips_new(d, &o, &c));
    ok(lw_clips_fill(c, 0, SAMPLES, clean[0], condition[0]));
    for (int i = 0; i < SAMPLES; i++) {
        assert_true(find_crop(d, clean[i], &row, &y, &x, &flip));
        assert_true(is_crop(d, row, y, x, flip, condition[i], PITCH));
        for (int k = 0; k < PREVIOUS; k++)
            assert_true(row > k
                            ? is_crop(d, row - k - 1, y, x, flip, condition[i] + 3 * (k + 1), PITCH)
                            : is_zero(condition[i] + 3 * (k + 1), PITCH));
        rows |= 1 << row;
        begins += row == 0;
        mirrored += flip;
    }
    assert_int_equal(rows, (1 << d->n) - 1);
    assert_true(begins > 0 && mirrored > 0 && mirrored < SAMPLES);
    /* a sample by itself; history as a network's answers; none at all */
    ok(lw_clips_fill(c, 7, 1, clean[0], again));
    assert_memory_equal(again, condition[7], sizeof again);
    lw_clips_free(&c);
    o.noise = 20;
    ok(lw_clips_new(d, &o, &c));
    ok(lw_clips_fill(c, 0, SAMPLES, clean[0], condition[0]));
    for (int i = 0; i < SAMPLES; i++)
        if (find_crop(d, clean[i], &row, &y, &x, &flip) && row > 0)
            assert_false(is_crop(d, row - 1, y, x, flip, condition[i] + 3, PITCH));
    lw_clips_free(&c);
    o.drop = 1;
    ok(lw_clips_new(d, &o, &c));
    ok(lw_clips_fill(c, 0, SAMPLES, clean[0], condition[0]));
    for (int i = 0; i < SAMPLES; i++)
        assert_true(is_zero(condition[i] + 3, PITCH) && !is_zero(condition[i], PITCH));
    lw_clips_free(&c);
    o.side = 32;
    fails(lw_clips_new(d, &o, &c), LW_EUSAGE, "hold no crop of 32x32");
    lw_data_close(&d);
}

/* ---- made worse ------------------------------------------------------------------------------ */

static uint64_t hash_of(const char *text, int h, int w, uint64_t seed, int64_t row)
{
    LW_CLEANUP(lw_raster_clear) lw_raster im = {0};
    lw_degradation d;
    ok(lw_raster_init(&im, h, w, 3));
    formula_picture(im.at, h, w, 3);
    ok(lw_degradation_parse(text, &d));
    ok(lw_degrade(&d, seed, row, &im));
    assert_true(im.height == h && im.width == w && im.channels == 3);
    return lw_hash64(im.at, (size_t)(h * w * 3));
}

static void test_degrade(void **state)
{
    /* By Pillow 11: GaussianBlur(1.5); resize by BICUBIC to half and back; convert("L"). */
    static const struct {
        const char *text;
        uint64_t hash;
    } want[] = {{"blur:1.5", 0x88f611f6235a8268},
                {"down:2", 0x0ce06b367c3df681},
                {"down:4", 0x46e160f1c7fa658a},
                {"gray", 0x6c47c182c4cd8b39},
                {"blur:0.8,down:3,gray", 0x4de6503f10a4266c}};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(want); i++)
        if (hash_of(want[i].text, 61, 47, 1, 2) != want[i].hash)
            fail_msg("%s: %016llx", want[i].text,
                     (unsigned long long)hash_of(want[i].text, 61, 47, 1, 2));
    /* in the order given; noise by seed and row */
    assert_true(hash_of("gray,noise:9", 61, 47, 1, 2) != hash_of("noise:9,gray", 61, 47, 1, 2));
    assert_true(hash_of("noise:9", 61, 47, 1, 2) == hash_of("noise:9", 61, 47, 1, 2));
    assert_true(hash_of("noise:9", 61, 47, 1, 2) != hash_of("noise:9", 61, 47, 1, 3));
    assert_true(hash_of("noise:9", 61, 47, 1, 2) != hash_of("noise:9", 61, 47, 2, 2));
}

/* Noise of gray 128: its mean and deviation; a JPEG is near its picture, and nearer at quality 95. */
static void test_sizes_of_harm(void **state)
{
    LW_CLEANUP(lw_raster_clear) lw_raster im = {0};
    lw_degradation d;
    double sum = 0, squares = 0, far[2] = {0};
    const int n = 64 * 64 * 3;
    (void)state;
    ok(lw_raster_init(&im, 64, 64, 3));
    memset(im.at, 128, (size_t)n);
    ok(lw_degradation_parse("noise:20", &d));
    ok(lw_degrade(&d, 1, 1, &im));
    for (int i = 0; i < n; i++) {
        sum += im.at[i] - 128.0;
        squares += (im.at[i] - 128.0) * (im.at[i] - 128.0);
    }
    assert_true(sum / n > -0.6 && sum / n < 0.6);
    assert_true(squares / n > 380 && squares / n < 420);
    for (int k = 0; k < 2; k++) {
        LW_CLEANUP(lw_raster_clear) lw_raster a = {0};
        ok(lw_raster_init(&a, 64, 64, 3));
        lw_frame_test_draw(a.at, 64, 64, 5);
        memcpy(im.at, a.at, (size_t)n);
        ok(lw_degradation_parse(k ? "jpeg:95" : "jpeg:20", &d));
        ok(lw_degrade(&d, 1, 1, &a));
        for (int i = 0; i < n; i++)
            far[k] += (double)(a.at[i] - im.at[i]) * (a.at[i] - im.at[i]) / n;
    }
    assert_true(far[0] > 2 * far[1] && far[1] > 0 && far[0] < 600);
}

static void test_words(void **state)
{
    static const char *const wrong[] = {"",         "blur",   "blur:0", "blur:x",
                                        "down:1",   "gray:2", "jpeg:0", "jpeg:50.5",
                                        "noise:-1", "fog:2",  "gray,",  "blur:nan"};
    lw_degradation d;
    (void)state;
    for (size_t i = 0; i < LW_COUNT(wrong); i++)
        fails(lw_degradation_parse(wrong[i], &d), LW_EUSAGE, "--degrade");
    fails(lw_degradation_parse("gray,gray,gray,gray,gray,gray,gray,gray,gray", &d), LW_EUSAGE,
          "more than 8");
    ok(lw_degradation_parse("blur:1.5,down:2,jpeg:40", &d));
    assert_true(d.n == 3 && d.step[1].kind == LW_DEGRADE_DOWN && d.step[0].by == 1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clip),          cmocka_unit_test(test_cut),
        cmocka_unit_test(test_samples),       cmocka_unit_test(test_degrade),
        cmocka_unit_test(test_sizes_of_harm), cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
