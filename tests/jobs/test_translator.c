/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames through a network in one plan: the bytes of its parts run one behind the other, for any form of
 * frame, size, fit and number of threads; and no allocation for a frame.
 */
#include "unit/test_formats_util.h"

#include <math.h>

#include "autoencoder_fixture.h"
#include "cpu_device.h"
#include "session/session.h"

enum { W = 37, H = 22, MOST = 64 * 64 * 3 };

static uint8_t frame[MOST], want[MOST], got[MOST];
static char model[160];

static int make_all(void **state)
{
    if (scratch_make(state) < 0)
        return -1;
    snprintf(model, sizeof model, "%s", in_scratch("kl"));
    assert_ok(autoencoder_make(model));
    for (int i = 0; i < MOST; i++)
        frame[i] = (uint8_t)((i * 7919 + i / 37 * 11) % 251);
    return 0;
}

static lw_pixels pixels_of(lw_pixels_form form, int w, int h)
{
    lw_pixels p;
    lw_pixels_init(&p, form, LW_MATRIX_601, false, w, h);
    return p;
}

/* One frame, and how large its result is. */
static int run(int threads, const lw_translator_opts *o, const lw_pixels *in, int *w, int *h)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_translator_free) lw_translator *t = NULL;
    assert_ok(cpu_device(threads, lw_isa_best(), &dev));
    LW_TRY(lw_translator_new(dev, o, in, &t));
    lw_translator_size(t, w, h);
    assert_true(*w * *h * 3 <= MOST);
    memset(got, 77, sizeof got);
    LW_TRY(lw_translator_run(t, frame, got));
    const uint64_t before = lw_alloc_count();
    memcpy(want, got, sizeof got);
    LW_TRY(lw_translator_run(t, frame, got));
    assert_int_equal(lw_alloc_count(), before);
    assert_memory_equal(got, want, sizeof got); /* nothing of a frame is left for the next */
    return 0;
}

static void test_identity(void **state)
{
    lw_kernels k;
    int w, h;
    (void)state;
    lw_kernels_init(&k, LW_ISA_REF);
    for (int form = 0; form < LW_PIXELS_FORMS; form++)
        for (int threads = 1; threads <= 3; threads += 2) {
            const lw_pixels p = pixels_of((lw_pixels_form)form, W, H);
            assert_ok(run(threads, &(lw_translator_opts){.model = "identity"}, &p, &w, &h));
            assert_true(w == W && h == H);
            k.pixels.to_u8(want, frame, &p, 0, p.bands);
            assert_memory_equal(got, want, W * H * 3);
        }
}

/* A plan of one half: from [h][w][c] to its output. */
static float *half(lw_device *dev, const lw_network *n, const char *tap, const float *x, int h,
                   int w, int64_t *count)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_forward_free) lw_forward *f = NULL;
    const lw_compile_opts o = {.opt = 1};
    assert_ok(lw_graph_new(&g));
    assert_ok(lw_network_build(n, g, 1, h, w, tap));
    assert_ok(lw_forward_of(dev, &g, &o, LW_SLAB_PARAM, "half", &f));
    memcpy(lw_forward_input(f, "x"), x, (size_t)h * (size_t)w * (size_t)n->channels * sizeof *x);
    assert_ok(lw_forward_run(f, NULL));
    const lw_port *p;
    assert_ok(lw_forward_find(f, tap, &p));
    *count = p->row;
    float *y = malloc((size_t)p->row * sizeof *y);
    memcpy(y, lw_forward_output(f, tap), (size_t)p->row * sizeof *y);
    return y;
}

/* colour ─► encoder ─► decoder ─► bytes, each by itself. */
static void through_parts(const char *spec, const lw_pixels *p)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_autoencoder_close) lw_autoencoder a = {0};
    const int w = (int)p->w, h = (int)p->h;
    int64_t n;
    float *x = malloc(sizeof *x * (size_t)(w * h * 3));
    assert_ok(cpu_device(1, lw_isa_best(), &dev));
    assert_ok(lw_autoencoder_open(spec, &a));
    dev->kernels->pixels.to_f32(x, frame, p, 0, p->bands);
    float *z = half(dev, a.encoder, "latent", x, h, w, &n);
    assert_int_equal(n, w / a.shrink * (h / a.shrink) * a.channels);
    float *y = half(dev, a.decoder, "y", z, h / a.shrink, w / a.shrink, &n);
    const lw_pixels rgb = pixels_of(LW_PIXELS_RGB, w, h);
    dev->kernels->pixels.from_f32(want, y, &rgb, 0, rgb.bands);
    free(x);
    free(y);
    free(z);
}

/* Levels between `got` and `want`, most of them. */
static int farthest(int n)
{
    int most = 0;
    for (int i = 0; i < n; i++)
        most = LW_MAX(most, abs(got[i] - want[i]));
    return most;
}

static void test_autoencoder(void **state)
{
    const lw_pixels p = pixels_of(LW_PIXELS_420, 38, 22);
    uint8_t first[38 * 22 * 3];
    int w, h;
    (void)state;
    for (int threads = 1; threads <= 3; threads += 2) {
        assert_ok(run(threads, &(lw_translator_opts){.model = model}, &p, &w, &h));
        assert_true(w == 38 && h == 22);
        if (threads == 1)
            memcpy(first, got, sizeof first);
        assert_memory_equal(got, first, sizeof first);
    }
    through_parts(model, &p);
    assert_true(farthest(w * h * 3) <= 1); /* at one rounding apart where a half is a tie */
    assert_true(memcmp(want, frame, sizeof first) != 0);
}

static void test_taef2(void **state)
{
    const char *dir = getenv("LW_TEST_DATA");
    const lw_pixels p = pixels_of(LW_PIXELS_RGB, 40, 24);
    char spec[400];
    int w, h;
    (void)state;
    snprintf(spec, sizeof spec, "%s/encoders/taef2", dir ? dir : "");
    if (!dir || !lw_path_exists(spec)) {
        print_message("skipped: LW_TEST_DATA names no folder with encoders/taef2\n");
        skip();
    }
    snprintf(spec, sizeof spec, "taef2:%s/encoders/taef2", dir);
    assert_ok(run(2, &(lw_translator_opts){.model = spec}, &p, &w, &h));
    through_parts(spec, &p);
    assert_true(farthest(w * h * 3) <= 1);
    snprintf(spec, sizeof spec, "%s/encoders/taef2/taef2_decoder.safetensors", dir);
    memcpy(want, got, sizeof want);
    assert_ok(run(1, &(lw_translator_opts){.model = spec}, &p, &w, &h));
    memcpy(got, want, sizeof want);
}

/* A frame whose halves are dark and bright, left and right. */
static void draw_halves(int w, int h)
{
    for (int i = 0; i < w * h; i++)
        memset(frame + (ptrdiff_t)3 * i, i % w < w / 2 ? 10 : 200, 3);
}

static int at(int w, int x, int y)
{
    return got[3 * (y * w + x) + 1];
}

static void test_fit(void **state)
{
    const lw_pixels p = pixels_of(LW_PIXELS_RGB, 40, 20);
    lw_translator_opts o = {.model = "identity", .w = 20, .h = 20};
    int w, h;
    (void)state;
    draw_halves(40, 20);
    assert_ok(run(1, &o, &p, &w, &h)); /* the middle 20 x 20: nothing is resized */
    assert_true(w == 20 && h == 20 && at(w, 9, 0) == 10 && at(w, 10, 19) == 200);
    o.fit = LW_FRAME_BORDER; /* 20 x 10 in the middle */
    assert_ok(run(1, &o, &p, &w, &h));
    assert_true(at(w, 0, 4) == 0 && at(w, 0, 5) == 10 && at(w, 19, 14) == 200 &&
                at(w, 19, 15) == 0);
    o.at_input = 1; /* the border goes, the scale comes back */
    assert_ok(run(1, &o, &p, &w, &h));
    assert_true(w == 40 && h == 20 && at(w, 0, 0) == 10 && at(w, 39, 19) == 200);
    o.fit = LW_FRAME_CROP;
    o.w = 40; /* of 40 x 20 the middle 40 x 20 is all of it: each pixel 2 high */
    o.h = 40;
    assert_ok(run(1, &o, &p, &w, &h));
    assert_true(w == 20 && h == 20 && at(w, 2, 0) == 10 && at(w, 17, 19) == 200);
    o.fit = LW_FRAME_STRETCH;
    assert_ok(run(1, &o, &p, &w, &h));
    assert_true(w == 40 && h == 20);
    o.at_input = 0;
    assert_ok(run(3, &o, &p, &w, &h));
    assert_true(w == 40 && h == 40 && at(w, 19, 39) == 10 && at(w, 20, 0) == 200);
}

static void check_refused(const char *spec, int w, int h, int code, const char *says)
{
    const lw_pixels p = pixels_of(LW_PIXELS_444, W, H);
    int out_w, out_h;
    const int rc = run(1, &(lw_translator_opts){.model = spec, .w = w, .h = h}, &p, &out_w, &out_h);
    assert_int_equal(rc, code);
    if (!strstr(lw_errmsg(), says))
        fail_msg("'%s' instead of '%s'", lw_errmsg(), says);
}

static void test_refusals(void **state)
{
    const lw_pixels p = pixels_of(LW_PIXELS_444, W, H);
    int w, h;
    (void)state;
    assert_ok(run(1, &(lw_translator_opts){.model = model}, &p, &w, &h));
    assert_true(w == 36 && h == 22); /* what the network takes nearest below */
    check_refused(model, 37, 22, LW_EUSAGE, "multiples of 2: 38x22 is nearest to 37x22");
    check_refused("identity", -3, 2, LW_EUSAGE, "-3x2");
    check_refused("none/such", 0, 0, LW_EIO, "no such");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity), cmocka_unit_test(test_autoencoder),
        cmocka_unit_test(test_taef2),    cmocka_unit_test(test_fit),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_all, scratch_remove);
}
