/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames through U-Nets: all evaluations and moves of a plan give what the
 * parts give one behind the other; a conditioned network sees the frame and its
 * own former answers.
 */
#include "unit/test_formats_util.h"

#include <math.h>

#include "autoencoder_fixture.h"
#include "cpu_device.h"
#include "session/session.h"
#include "unet_fixture.h"

enum { W = 24, H = 16, BYTES = W * H * 3, MOST = 32 * W * H };

static uint8_t frame[BYTES], other[BYTES], want[BYTES], got[BYTES];
static lw_device *dev;
static lw_pixels rgb;
static char coder[160], plain[160], latent[160], shown[160];

static void make_unet(char *dir, const char *name, int32_t channels, int32_t previous,
                      const char *method)
{
    snprintf(dir, 160, "%s", in_scratch(name));
    assert_ok(unet_make(dir, channels, previous, method));
}

static int make_all(void **state)
{
    if (scratch_make(state) < 0)
        return -1;
    snprintf(coder, sizeof coder, "%s", in_scratch("kl"));
    assert_ok(autoencoder_make(coder));
    make_unet(plain, "plain", 3, -1, "ddpm");
    make_unet(latent, "latent", 4, -1, "ddpm");
    make_unet(shown, "shown", 3, 2, "drift");
    for (int i = 0; i < BYTES; i++) {
        frame[i] = (uint8_t)((i * 7919 + i / 37 * 11) % 251);
        other[i] = (uint8_t)(255 - frame[i]);
    }
    lw_pixels_init(&rgb, LW_PIXELS_RGB, LW_MATRIX_601, false, W, H);
    return cpu_device(2, lw_isa_best(), &dev);
}

static int free_all(void **state)
{
    lw_backend_close(&dev);
    return scratch_remove(state);
}

static lw_translator *translator(lw_translator_opts o)
{
    lw_translator *t = NULL;
    o.w = W;
    o.h = H;
    assert_ok(lw_translator_new(dev, &o, &rgb, &t));
    return t;
}

/* ---- the parts
 * -------------------------------------------------------------------------------
 */

/* A network (one evaluation at time t; an encoder, a decoder) by itself. */
static void evaluate(const lw_network *n, const char *tap, int h, int w, const float *x, float t,
                     const float *condition, float *y)
{
    lw_graph *g = NULL;
    lw_forward *f = NULL;
    lw_taps taps;
    assert_ok(lw_graph_new(&g));
    lw_network_in in = {.x = lw_input(g, "x", lw_type_of(LW_F32, 4, 1, h, w, n->channels))};
    if (n->generator && !condition)
        in.t = lw_input(g, "t", lw_type_of(LW_F32, 1, 1));
    if (condition)
        in.condition = lw_input(g, "condition", lw_type_of(LW_F32, 4, 1, h, w, n->condition));
    lw_network_append(n, g, in, &taps);
    lw_graph_output_add(g, "y", lw_tap_find(&taps, tap), LW_NOVAL);
    assert_ok(lw_forward_of(dev, &g, &(lw_compile_opts){.opt = 1}, LW_SLAB_PARAM, "part", &f));
    const size_t pixels = (size_t)(h * w);
    memcpy(lw_forward_input(f, "x"), x, pixels * (size_t)n->channels * sizeof *x);
    if (condition)
        memcpy(lw_forward_input(f, "condition"), condition,
               pixels * (size_t)n->condition * sizeof *x);
    else if (n->generator)
        *(float *)lw_forward_input(f, "t") = t;
    assert_ok(lw_forward_run(f, NULL));
    const lw_port *p;
    assert_ok(lw_forward_find(f, "y", &p));
    memcpy(y, lw_forward_output(f, "y"), p->bytes);
    lw_forward_free(&f);
}

static void draw_noise(uint64_t seed, int h, int w, int c, float *x)
{
    lw_forward *f = NULL;
    assert_ok(lw_noise_new(dev, lw_type_of(LW_F32, 4, 1, h, w, c), NULL, "sample", &f));
    assert_ok(lw_noise_draw(f, 0, (lw_tick){seed, 0}));
    memcpy(x, lw_forward_output(f, "noise"), sizeof *x * (size_t)(h * w * c));
    lw_forward_free(&f);
}

/* All moves from z on, by lw_diffusion_apply. times[k]: those expected. */
static void sample(const lw_network *net, bool solver, bool latents, int steps, int left,
                   const int *times, uint64_t seed, int h, int w, float *z)
{
    static lw_diffusion d;
    static float noise[MOST], y[MOST], before[MOST], picture[MOST];
    const int c = net->channels, n = h * w * c;
    assert_ok(lw_diffusion_init(&d, 1000));
    d.timesteps = left;
    d.spacing = LW_SPACING_TRAILING;
    d.spaced = true;
    draw_noise(seed, h, w, c, noise);
    for (int k = 0; k < steps; k++) {
        lw_diffusion_move m = (solver ? lw_solver_move : lw_ddim_move)(&d, steps, k);
        assert_int_equal(m.t, times[k]);
        if (latents) /* no bounds */
            m.by.clip = m.by.limit = (double)INFINITY;
        for (int i = 0; i < n && k == 0; i++)
            z[i] = z[i] * (float)m.by.a + noise[i] * (float)m.by.s;
        evaluate(net, "y", h, w, z, (float)m.t, NULL, y);
        memcpy(picture, z, sizeof picture);
        const lw_diffusion_move believed = lw_picture_move(&m);
        lw_diffusion_apply(&believed, picture, y, NULL, n);
        lw_diffusion_apply(&m, z, y, k > 0 && solver ? before : NULL, n);
        memcpy(before, picture, sizeof before);
    }
}

static void to_bytes(const float *x)
{
    dev->kernels->pixels.from_f32(want, x, &rgb, 0, rgb.bands);
}

/* At a rounding from each other. */
static void check_near(const char *what)
{
    int most = 0, n = 0;
    for (int i = 0; i < BYTES; i++) {
        most = LW_MAX(most, abs(got[i] - want[i]));
        n += got[i] != want[i];
    }
    if (most > 1 || n > BYTES / 50)
        fail_msg("%s: %d of %d bytes differ, by up to %d levels", what, n, BYTES, most);
}

/* ---- img2img
 * ---------------------------------------------------------------------------------
 */

typedef struct one {
    bool latents;
    int sampler, steps, left;
    double strength;
    int times[4];
} one;

static void check_one(const one *k)
{
    static float x[MOST], z[MOST];
    char what[80];
    LW_CLEANUP(lw_network_close) lw_network *net = NULL;
    LW_CLEANUP(lw_autoencoder_close) lw_autoencoder a = {0};
    const bool solver = k->sampler == LW_SAMPLER_DPM_SOLVER;
    lw_translator *t = translator((lw_translator_opts){.model = k->latents ? latent : plain,
                                                       .latents = k->latents ? coder : NULL,
                                                       .sampler = k->sampler,
                                                       .steps = k->steps,
                                                       .strength = k->strength,
                                                       .seed = 9});
    assert_ok(lw_translator_run(t, frame, got));
    assert_ok(lw_network_open(k->latents ? latent : plain, true, &net));
    assert_ok(lw_autoencoder_open(coder, &a));
    dev->kernels->pixels.to_f32(x, frame, &rgb, 0, rgb.bands);
    if (k->latents) {
        evaluate(a.encoder, "latent", H, W, x, 0, NULL, z);
        sample(net, solver, true, k->steps, k->left, k->times, 9, H / 2, W / 2, z);
        evaluate(a.decoder, "y", H / 2, W / 2, z, 0, NULL, x);
    } else {
        sample(net, solver, false, k->steps, k->left, k->times, 9, H, W, x);
    }
    to_bytes(x);
    snprintf(what, sizeof what, "latents %d, sampler %d, %d steps, strength %g", k->latents,
             k->sampler, k->steps, k->strength);
    check_near(what);
    lw_translator_free(&t);
}

static void test_parts(void **state)
{
    static const one all[] = {
        {false, LW_SAMPLER_AUTO, 1, 400, 0.4, {399}},
        {false, LW_SAMPLER_DDIM, 4, 600, 0.6, {599, 449, 299, 149}},
        {false, LW_SAMPLER_DPM_SOLVER, 2, 1000, 1.0, {999, 499}},
        {true, LW_SAMPLER_DDIM, 2, 500, 0.5, {499, 249}},
        {true, LW_SAMPLER_DPM_SOLVER, 4, 800, 0.8, {799, 599, 399, 199}},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(all); i++)
        check_one(&all[i]);
}

static void test_settings(void **state)
{
    lw_translator *t = translator((lw_translator_opts){.model = plain, .strength = 0.3});
    lw_translator *u = translator((lw_translator_opts){.model = plain, .strength = 0.9, .seed = 3});
    (void)state;
    assert_ok(lw_translator_run(t, frame, want));
    assert_ok(lw_translator_run(t, frame, got));
    assert_memory_equal(got, want, BYTES); /* the noise is that of the seed */
    lw_translator_set_strength(t, 0.9);
    assert_ok(lw_translator_run(t, frame, got));
    assert_true(memcmp(got, want, BYTES) != 0);
    memcpy(want, got, BYTES);
    lw_translator_set_seed(t, 3);
    assert_ok(lw_translator_run(t, frame, got));
    assert_true(memcmp(got, want, BYTES) != 0);
    assert_ok(lw_translator_run(u, frame, want));
    assert_memory_equal(got, want, BYTES); /* as one that was made so */
    lw_translator_free(&t);
    lw_translator_free(&u);
}

/* The decoder in a plan of its own on another device: the same bits, whichever picture it is at, and no
 * allocation for a frame. */
static void test_decoder_apart(void **state)
{
    static const int32_t precisions[] = {LW_NUM_F32, LW_NUM_BF16};
    static float latents[2][MOST];
    static uint8_t pictures[2][BYTES];
    lw_device *beside = NULL;
    (void)state;
    assert_ok(cpu_device(3, lw_isa_best(), &beside));
    for (int i = 0; i < 4; i++) {
        lw_translator_opts o = {.model = i < 2 ? latent : coder,
                                .latents = i < 2 ? coder : NULL,
                                .steps = i < 2 ? 2 : 0,
                                .precision = precisions[i % 2]};
        lw_translator *whole = translator(o);
        o.beside_dev = beside;
        lw_translator *t = translator(o);
        assert_int_equal(lw_translator_latent(whole), 0);
        assert_int_equal(lw_translator_latent(t), H / 2 * (W / 2) * 4);
        assert_ok(lw_translator_run(whole, frame, pictures[0]));
        assert_ok(lw_translator_run(whole, other, pictures[1]));
        assert_ok(lw_translator_run(t, frame, got));
        assert_memory_equal(got, pictures[0], BYTES);
        const uint64_t before = lw_alloc_count();
        assert_ok(lw_translator_encode(t, frame, latents[0])); /* one is ahead of the decoder */
        assert_ok(lw_translator_encode(t, other, latents[1]));
        for (int k = 0; k < 2; k++) {
            assert_ok(lw_translator_decode(t, latents[k], got));
            assert_memory_equal(got, pictures[k], BYTES);
        }
        assert_int_equal(lw_alloc_count(), before);
        lw_translator_free(&whole);
        lw_translator_free(&t);
    }
    lw_backend_close(&beside);
}

static void test_fresh_noise(void **state)
{
    lw_translator *t =
        translator((lw_translator_opts){.model = plain, .strength = 0.5, .fresh_noise = 1});
    (void)state;
    assert_ok(lw_translator_run(t, frame, want));
    assert_ok(lw_translator_run(t, frame, got));
    assert_true(memcmp(got, want, BYTES) != 0);
    lw_translator_reset(t);
    assert_ok(lw_translator_run(t, frame, got));
    assert_memory_equal(got, want, BYTES);
    lw_translator_free(&t);
}

/* ---- conditioned
 * -----------------------------------------------------------------------------
 */

/* The k-th answer by itself: of noise, the frame and the two answers before. */
static void answer(const lw_network *n, const float *x, const float *first, const float *second,
                   float *y)
{
    static float noise[MOST], condition[MOST];
    draw_noise(0, H, W, 3, noise);
    for (int i = 0; i < W * H; i++)
        for (int c = 0; c < 3; c++) {
            condition[9 * i + c] = x[3 * i + c];
            condition[9 * i + 3 + c] = first[3 * i + c];
            condition[9 * i + 6 + c] = second[3 * i + c];
        }
    evaluate(n, "y", H, W, noise, 0, condition, y);
    for (int i = 0; i < BYTES; i++)
        y[i] = fminf(fmaxf(y[i], -1.0f), 1.0f);
}

static void test_condition(void **state)
{
    static float x[BYTES], y[4][BYTES];
    static uint8_t said[3][BYTES];
    LW_CLEANUP(lw_network_close) lw_network *n = NULL;
    lw_translator *t = translator((lw_translator_opts){.model = shown});
    (void)state;
    assert_ok(lw_network_open(shown, true, &n));
    dev->kernels->pixels.to_f32(x, frame, &rgb, 0, rgb.bands);
    answer(n, x, y[0], y[0], y[1]); /* y[0]: zeros */
    answer(n, x, y[1], y[0], y[2]);
    answer(n, x, y[2], y[1], y[3]);
    for (int k = 0; k < 3; k++) {
        assert_ok(lw_translator_run(t, frame, got));
        memcpy(said[k], got, BYTES);
        to_bytes(y[k + 1]);
        check_near("an answer");
    }
    assert_true(memcmp(said[0], said[1], BYTES) != 0 && memcmp(said[1], said[2], BYTES) != 0);
    lw_translator_reset(t);
    assert_ok(lw_translator_run(t, frame, got));
    assert_memory_equal(got, said[0], BYTES);
    lw_translator_reset(t); /* another frame, another answer */
    assert_ok(lw_translator_run(t, other, got));
    assert_true(memcmp(got, said[0], BYTES) != 0);
    const uint64_t before = lw_alloc_count();
    lw_translator_reset(t);
    for (int k = 0; k < 3; k++) {
        assert_ok(lw_translator_run(t, frame, got));
        assert_memory_equal(got, said[k], BYTES);
    }
    assert_int_equal(lw_alloc_count(), before);
    lw_translator_free(&t);
}

/* The second frame's answer is that of the first one's picture. */
static void test_feed_back(void **state)
{
    static uint8_t second[BYTES];
    int most = 0;
    lw_translator *t = translator((lw_translator_opts){.model = coder, .feed_back = true});
    lw_translator *u = translator((lw_translator_opts){.model = coder});
    (void)state;
    assert_ok(lw_translator_run(u, frame, want));
    assert_ok(lw_translator_run(t, frame, got));
    assert_memory_equal(got, want, BYTES);
    assert_ok(lw_translator_run(t, other, second));
    lw_translator_reset(t);
    assert_ok(lw_translator_run(t, frame, got));
    assert_memory_equal(got, want, BYTES);
    assert_ok(lw_translator_run(t, frame, got));
    assert_memory_equal(got, second, BYTES); /* whatever frame came */
    assert_ok(lw_translator_run(u, want, second));
    for (int i = 0; i < BYTES; i++) /* of bytes, which are the floats but for a rounding */
        most = LW_MAX(most, abs(got[i] - second[i]));
    assert_true(most <= 6);
    lw_translator_free(&t);
    lw_translator_free(&u);
}

/* n frames at n steps in one batch: the pictures of frames by themselves, n - 1 runs later, bit for bit, for
 * any number of threads; a reset loses none of those in flight. */
static void check_together(const char *model, const char *latents, int threads)
{
    enum { N = 3, RUNS = 7 };
    static uint8_t in[RUNS][BYTES], alone[RUNS][BYTES];
    const lw_translator_opts o = {
        .model = model, .latents = latents, .w = W, .h = H, .steps = N, .strength = 0.6, .seed = 5};
    lw_translator_opts together = o;
    together.steps = 0;
    together.stream_batch = N;
    lw_device *own = NULL;
    lw_translator *t = NULL, *u = NULL;
    assert_ok(cpu_device(threads, lw_isa_best(), &own));
    assert_ok(lw_translator_new(own, &o, &rgb, &t));
    assert_ok(lw_translator_new(own, &together, &rgb, &u));
    assert_int_equal(lw_translator_delay(t), 0);
    assert_int_equal(lw_translator_delay(u), N - 1);
    for (int k = 0; k < RUNS; k++) {
        for (int i = 0; i < BYTES; i++)
            in[k][i] = (uint8_t)(frame[i] + 31 * k);
        assert_ok(lw_translator_run(t, in[k], alone[k]));
    }
    for (int k = 0; k < RUNS + N - 1; k++) {
        assert_ok(lw_translator_run(u, in[k % RUNS], got));
        if (k >= N - 1)
            assert_memory_equal(got, alone[k - N + 1], BYTES);
        if (k == 4)
            lw_translator_reset(u);
    }
    assert_true(memcmp(alone[0], alone[1], BYTES) != 0);
    lw_translator_free(&t);
    lw_translator_free(&u);
    lw_backend_close(&own);
}

static void test_together(void **state)
{
    (void)state;
    char framed[160];
    make_unet(framed, "framed", 3, 0, "ddpm");
    for (int threads = 1; threads <= 3; threads += 2) {
        check_together(plain, NULL, threads);
        check_together(latent, coder, threads);
        check_together(framed, NULL, threads);
    }
}

/* Pictures of another size, in the result's own. */
static void test_result_size(void **state)
{
    const lw_translator_opts o = {
        .model = plain, .w = 2 * W, .h = 2 * H, .out_w = W, .out_h = H, .steps = 3, .seed = 4};
    lw_translator *t = NULL;
    int32_t w, h;
    (void)state;
    assert_ok(lw_translator_new(dev, &o, &rgb, &t));
    lw_translator_network_size(t, &w, &h);
    assert_true(w == 2 * W && h == 2 * H);
    lw_translator_size(t, &w, &h);
    assert_true(w == W && h == H);
    memset(got, 77, sizeof got);
    assert_ok(lw_translator_run(t, frame, got));
    lw_translator_free(&t);
    t = translator((lw_translator_opts){.model = plain, .steps = 3, .seed = 4});
    assert_ok(lw_translator_run(t, frame, want));
    assert_true(memcmp(got, want, BYTES) != 0);
    lw_translator_free(&t);
}

/* ---- refusals
 * --------------------------------------------------------------------------------
 */

static void check_refused(lw_translator_opts o, int code, const char *says)
{
    lw_translator *t = NULL;
    assert_int_equal(lw_translator_new(dev, &o, &rgb, &t), code);
    if (!strstr(lw_errmsg(), says))
        fail_msg("'%s' instead of '%s'", lw_errmsg(), says);
}

static void test_refusals(void **state)
{
    char alone[160];
    (void)state;
    make_unet(alone, "alone", 3, -1, "drift");
    check_refused((lw_translator_opts){.model = plain, .w = 17, .h = 16}, LW_EUSAGE,
                  "multiples of 2: 18x16 is nearest to 17x16");
    check_refused((lw_translator_opts){.model = latent}, LW_EUSAGE, "name the autoencoder");
    check_refused((lw_translator_opts){.model = plain, .latents = coder}, LW_EUSAGE, "4");
    check_refused((lw_translator_opts){.model = latent, .latents = coder, .w = 24, .h = 18},
                  LW_EUSAGE, "multiples of 4: 24x20 is nearest to 24x18");
    check_refused((lw_translator_opts){.model = alone}, LW_EUSAGE, "noise alone");
    check_refused((lw_translator_opts){.model = shown, .steps = 2}, LW_EUSAGE, "one step");
    check_refused((lw_translator_opts){.model = plain, .steps = 65}, LW_EUSAGE, "1 to 64");
    check_refused((lw_translator_opts){.model = coder, .latents = coder}, LW_EUSAGE, "generators");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),         cmocka_unit_test(test_settings),
        cmocka_unit_test(test_decoder_apart), cmocka_unit_test(test_fresh_noise),
        cmocka_unit_test(test_condition),     cmocka_unit_test(test_feed_back),
        cmocka_unit_test(test_result_size),   cmocka_unit_test(test_together),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
