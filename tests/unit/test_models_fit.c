/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of another size than an encoder's are resized in the graph, and the gradient comes back
 * through it. */
#include "unit/test_store_util.h"

#include <math.h>

#include "models/models.h"
#include "plan/plan.h"
#include "cpu_device.h"

enum { B = 2, H = 5, W = 7, FIT_H = 12, FIT_W = 10, PIXELS = B * H * W * 3 };

static void build_tiny(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    (void)arch;
    lw_val map = lw_silu(
        b->g, lw_conv2d(b, "conv", in.x, 4, (lw_conv_opts){.kernel = 3, .pad = 1, .stride = 2}));
    lw_tap_add(out, "pooled", lw_mean(b->g, lw_sqr(b->g, map), LW_OVER_MIDDLE));
    lw_tap_add(out, "s0", map);
}

static const lw_preparation numbers = {LW_NUMBERS_IMAGENET};
static const lw_network_def tiny = {
    .name = "tiny", .kind = "encoder", .preparation = &numbers, .build = build_tiny};

typedef struct rig {
    lw_device *dev;
    lw_store *store;
    lw_graph *g;
    lw_plan *plan;
    lw_exec *e;
} rig;

static void rig_run(rig *r, const float *x)
{
    assert_ok(lw_compile(r->g, r->dev, NULL, &r->plan));
    assert_ok(lw_exec_new(r->plan, LW_SLAB_PARAM, &r->e));
    memcpy(lw_exec_write(r->e, "x"), x, PIXELS * sizeof *x);
    assert_ok(lw_exec_run(r->e, NULL));
}

static void rig_drop(rig *r)
{
    lw_exec_free(&r->e);
    lw_plan_free(&r->plan);
    lw_graph_free(&r->g);
}

static float noise(int i)
{
    return sinf((float)i * 12.9898f);
}

/* The network resizes as one that is given resized pictures. */
static void test_fit(void **state)
{
    rig r = {0};
    lw_taps taps;
    lw_feature_set keys;
    float x[PIXELS], got[B * 4];
    char text[64];
    (void)state;
    for (int i = 0; i < PIXELS; i++)
        x[i] = noise(i);
    assert_ok(cpu_device(2, lw_isa_best(), &r.dev));
    assert_ok(lw_store_new(true, &r.store));
    lw_network n = lw_network_of(&tiny, NULL, r.store);
    assert_ok(lw_network_declare(&n, r.store));
    lw_store_init(r.store, 5);
    for (int32_t how = 0; how < 4; how++) {
        n.fit = (lw_network_fit){.h = FIT_H, .w = FIT_W};
        assert_ok(lw_encoder_fit(&n, 0, how));
        for (int explicitly = 0; explicitly < 2; explicitly++) {
            assert_ok(lw_graph_new(&r.g));
            lw_val v = lw_input(r.g, "x", lw_type_of(LW_F32, 4, B, H, W, 3));
            if (explicitly) {
                const lw_attr_resize to = {.h = FIT_H,
                                           .w = FIT_W,
                                           .form = how >= 2 ? LW_RESAMPLE_FLOAT_AA
                                                            : LW_RESAMPLE_TORCH,
                                           .filter = n.fit.filter};
                v = lw_resize(r.g, v, to);
            }
            lw_network_append(&n, r.g, (lw_network_in){.x = v}, &taps);
            assert_true(lw_type_eq(lw_val_type(r.g, lw_tap_find(&taps, "s0")),
                                   lw_type_of(LW_F32, 4, B, FIT_H / 2, FIT_W / 2, 4)));
            lw_graph_output_add(r.g, "pooled", lw_tap_find(&taps, "pooled"), LW_NOVAL);
            rig_run(&r, x);
            const float *p = lw_exec_read(r.e, "pooled");
            for (int i = 0; i < B * 4; i++)
                if (explicitly)
                    assert_true(fabsf(p[i] - got[i]) < 1e-5f * fabsf(got[i]) + 1e-7f);
                else
                    got[i] = p[i];
            rig_drop(&r);
        }
    }
    /* keys have the shapes of the maps behind it */
    n.fit = (lw_network_fit){
        .h = FIT_H, .w = FIT_W, .form = LW_RESAMPLE_TORCH, .filter = LW_FILTER_BILINEAR};
    assert_ok(lw_features_parse("s0.loc,s0.mean2", &n, 8, 3, &keys));
    assert_true(keys.key[0].slots == 30 && keys.key[1].slots == 6);
    assert_string_equal(lw_encoder_fit_text(&n, 8, 8, text), "resized to 12x10 (bilinear)");
    assert_string_equal(lw_encoder_fit_text(&n, FIT_H, FIT_W, text), "");
    n.image_size = n.preparation.height = 12;
    assert_fails(LW_EUSAGE, "takes pictures of 12x12", lw_encoder_fit(&n, 14, 0));
    lw_store_free(&r.store);
    lw_backend_close(&r.dev);
}

/* A tap that is its input, so that the numbers themselves are compared. */
static void build_seen(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    (void)b;
    (void)arch;
    lw_tap_add(out, "s0", in.x);
}
static void numbers_of(const void *arch, lw_preparation *p)
{
    (void)arch;
    const float all[3] = {128, 128, 128};
    p->filter = p->form == LW_RESAMPLE_FLOAT_AA ? LW_FILTER_BICUBIC : LW_FILTER_BILINEAR;
    p->scale = 1;
    memcpy(p->mean, all, sizeof all);
    memcpy(p->std, all, sizeof all);
}
static const lw_preparation squash = {.fit = LW_FIT_SQUASH,
                                      .form = LW_RESAMPLE_TORCH,
                                      .filter = LW_FILTER_BILINEAR,
                                      .resize_h = FIT_H,
                                      .resize_w = FIT_W + 2,
                                      .height = FIT_H,
                                      .width = FIT_W,
                                      .half_to_even = true,
                                      LW_NUMBERS_HALF};
static const lw_network_def seen = {.name = "seen",
                                    .kind = "encoder",
                                    .preparation = &squash,
                                    .resize = numbers_of,
                                    .build = build_seen};

/* What the resampling of whole pictures gives, cut, clipped where it overshoots, and its numbers. */
static void expect_seen(const lw_network *n, const float *x, float *out)
{
    const lw_preparation *p = &n->preparation;
    LW_CLEANUP(lw_resample_clear) lw_resample r = {0};
    lw_kernels k;
    lw_kernels_init(&k, LW_ISA_REF);
    assert_ok(lw_resample_init(&r, &(lw_resample_spec){.form = p->form,
                                                       .filter = p->filter,
                                                       .h = H,
                                                       .w = W,
                                                       .c = 3,
                                                       .to_h = FIT_H,
                                                       .to_w = FIT_W + 2,
                                                       .x = 1,
                                                       .out_h = FIT_H,
                                                       .out_w = FIT_W}));
    LW_CLEANUP(lw_free) char *room = lw_calloc(lw_resample_scratch(&r) + 1, 1);
    for (int i = 0; i < B; i++)
        lw_resample_f32(&k.resample, &r, out + i * FIT_H * FIT_W * 3, x + i * H * W * 3, room);
    for (int i = 0; i < B * FIT_H * FIT_W * 3; i++) {
        double byte = (fmin(fmax((double)out[i], -1.0), 1.0) + 1.0) * 127.5;
        out[i] = (float)((byte * p->scale - (double)p->mean[0]) / (double)p->std[0]);
    }
}

/* A preparation of floats is made in the graph, of pictures of any size. */
/* Data for it: prepared as bytes, whole because the graph resizes, or squares. */
static void expect_data(const lw_network *n, bool prepared, bool whole, int32_t asked, int32_t size)
{
    lw_data_opts o = lw_network_data(n, asked);
    assert_true((o.preparation != NULL) == prepared);
    assert_true(o.whole == whole);
    assert_int_equal(o.image_size, size);
    assert_int_equal(o.channels, n->channels);
}

static void test_float_resize(void **state)
{
    static const char *const names[] = {"torch", "float-aa", "tf-inception"};
    rig r = {0};
    lw_taps taps;
    float x[PIXELS], want[B * FIT_H * FIT_W * 3];
    char text[64];
    (void)state;
    for (int i = 0; i < PIXELS; i++)
        x[i] = noise(i) > 0 ? 1.0f : -1.0f; /* so that bicubic overshoots */
    assert_ok(cpu_device(2, lw_isa_best(), &r.dev));
    assert_ok(lw_store_new(true, &r.store));
    lw_network n = lw_network_of(&seen, NULL, r.store);
    for (size_t k = 0; k < LW_COUNT(names); k++) {
        assert_ok(lw_encoder_resize(&n, names[k]));
        expect_data(&n, false, true, 0, 0);
        expect_data(&n, false, false, 48, 48);
        assert_null(lw_network_preparation(&n));
        assert_ok(lw_graph_new(&r.g));
        lw_val v = lw_input(r.g, "x", lw_type_of(LW_F32, 4, B, H, W, 3));
        lw_network_append(&n, r.g, (lw_network_in){.x = v}, &taps);
        lw_graph_output_add(r.g, "s0", lw_tap_find(&taps, "s0"), LW_NOVAL);
        rig_run(&r, x);
        expect_seen(&n, x, want);
        const float *got = lw_exec_read(r.e, "s0");
        for (size_t i = 0; i < LW_COUNT(want); i++)
            assert_true(fabsf(got[i] - want[i]) < 2e-6f);
        rig_drop(&r);
    }
    assert_string_equal(lw_encoder_fit_text(&n, 8, 8, text),
                        "resized to 12x10 (bilinear, as tf-inception)");
    assert_fails(LW_EUSAGE, "says itself", lw_encoder_fit(&n, 0, 1));
    assert_fails(LW_EUSAGE, "pillow, pillow-13, float-aa", lw_encoder_resize(&n, "best"));
    assert_ok(lw_encoder_resize(&n, "pillow"));
    expect_data(&n, true, false, 48, 0);
    assert_ptr_equal(lw_network_preparation(&n), &n.preparation);
    lw_store_free(&r.store);
    lw_backend_close(&r.dev);
}

/* Along one direction, by differences. */
static void test_gradient(void **state)
{
    rig r = {0};
    lw_taps taps;
    float x[PIXELS];
    double value[3], along = 0.0;
    const float step = 1e-2f;
    (void)state;
    assert_ok(cpu_device(1, lw_isa_best(), &r.dev));
    assert_ok(lw_store_new(true, &r.store));
    lw_network n = lw_network_of(&tiny, NULL, r.store);
    assert_ok(lw_network_declare(&n, r.store));
    lw_store_init(r.store, 5);
    n.fit = (lw_network_fit){
        .h = FIT_H, .w = FIT_W, .form = LW_RESAMPLE_TORCH, .filter = LW_FILTER_BILINEAR};
    for (int k = -1; k <= 1; k++) {
        lw_val dx = LW_NOVAL;
        for (int i = 0; i < PIXELS; i++)
            x[i] = noise(i) + step * (float)k * noise(i + 1000);
        assert_ok(lw_graph_new(&r.g));
        lw_val v = lw_input(r.g, "x", lw_type_of(LW_F32, 4, B, H, W, 3));
        lw_network_append(&n, r.g, (lw_network_in){.x = v}, &taps);
        lw_val sum = lw_sum(r.g, lw_tap_find(&taps, "pooled"), LW_OVER_ALL);
        lw_val one = lw_const_f32(r.g, 1.0f);
        lw_grad(r.g, &sum, &one, 1, &v, &dx, 1);
        lw_graph_output_add(r.g, "sum", sum, LW_NOVAL);
        lw_graph_output_add(r.g, "dx", dx, LW_NOVAL);
        rig_run(&r, x);
        value[k + 1] = (double)*(const float *)lw_exec_read(r.e, "sum");
        const float *d = lw_exec_read(r.e, "dx");
        for (int i = 0; k == 0 && i < PIXELS; i++)
            along += (double)d[i] * (double)noise(i + 1000);
        rig_drop(&r);
    }
    double difference = (value[2] - value[0]) / (2.0 * (double)step);
    assert_true(fabs(along) > 1e-3 && fabs(difference - along) < 1e-3 * fabs(along));
    lw_store_free(&r.store);
    lw_backend_close(&r.dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_float_resize),
        cmocka_unit_test(test_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
