/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Families of networks against the libraries that publish them, by tiny configurations. A file of
 * tests/golden/data holds everything: `names` (tensors and shapes, whose values are the formula's)
 * and `config` become a model folder, which is opened as a user would; the formula's x goes in; every
 * tap.NAME and sketch.NAME is compared, and for the tap `gradient` that of sum(tap * gy) with respect
 * to every picture.
 */
#include "golden/golden.h"

#include <math.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "formats/formats.h"
#include "store/store.h"

static char scratch[64];

/* ---- comparing ------------------------------------------------------------------------------- */

/* An output of the exec in PyTorch's layout. */
static float *read_nchw(lw_exec *e, const char *name, int64_t *n)
{
    lw_type t = lw_exec_type(e, name);
    const float *have = lw_exec_read(e, name);
    *n = lw_type_count(t);
    float *v = malloc(sizeof *v * (size_t)*n);
    if (t.rank == 4)
        golden_to_nchw(have, t.dim[0], t.dim[3], (int64_t)t.dim[1] * t.dim[2], v);
    else
        memcpy(v, have, sizeof *v * (size_t)*n);
    return v;
}

static void check_tap(lw_exec *e, const lw_st_file *f, const char *key)
{
    bool sketch = lw_str_starts(key, "sketch.");
    const char *name = strchr(key, '.') + 1;
    int64_t n, n_want;
    float *have = read_nchw(e, name, &n);
    double *want = golden_get(f, key, &n_want);
    assert_true(sketch || n == n_want);
    double err = sketch ? golden_sketch_error(name, have, n, want, 1e-12)
                        : golden_relative(have, want, n, 1e-12);
    printf("  %-10s %.1e\n", name, err);
    golden_check(key, err, sketch ? 1e-5 : 5e-6);
    free(have);
    free(want);
}

/* A ReLU whose input is within rounding of zero may switch and move the gradient of its picture a
 * little: every picture but one must agree closely. */
static void check_gradient(lw_exec *e, const lw_st_file *f)
{
    int64_t n, batch = lw_exec_type(e, "gx").dim[0];
    float *have = read_nchw(e, "gx", &n);
    int switched = 0;
    for (int64_t b = 0; b < batch; b++) {
        char key[16];
        snprintf(key, sizeof key, "gx.%d", (int)b);
        double *want = golden_get(f, key, NULL);
        double err = golden_sketch_error("gx", have + b * (n / batch), n / batch, want, 0);
        printf("  %-10s %.1e\n", key, err);
        golden_check(key, err, 1e-2);
        switched += err > 2e-5;
        free(want);
    }
    assert_true(switched <= (batch > 1));
    free(have);
}

/* The formula's numbers: of variance 1 for a gradient, in [-1, 1) for pictures. */
static void fill_input(lw_exec *e, const char *name, bool unit)
{
    lw_type t = lw_exec_type(e, name);
    int64_t n = lw_type_count(t);
    float *v = malloc(sizeof *v * (size_t)n), *to = lw_exec_write(e, name);
    golden_fill(name, 0.0, unit ? sqrt(3.0) : 1.0, n, v);
    if (t.rank == 4)
        golden_to_nhwc(v, t.dim[0], t.dim[3], (int64_t)t.dim[1] * t.dim[2], to);
    else
        memcpy(to, v, sizeof *v * (size_t)n);
    free(v);
}

/* x, every tap, and gx, in a graph of their own. */
static void build(const lw_network *net, const lw_st_file *f, lw_graph *g)
{
    int64_t s[4], count;
    lw_taps taps;
    assert_int_equal(golden_shape(lw_st_meta(f, "x"), s, &count), 4);
    assert_int_equal(s[1], net->channels);
    lw_type type = lw_type_of(LW_F32, 4, (int)s[0], (int)s[2], (int)s[3], (int)s[1]);
    lw_val x = lw_input(g, "x", type), gx = LW_NOVAL;
    lw_network_append(net, g, (lw_network_in){.x = x}, &taps);
    assert_ok(lw_graph_error(g));
    for (int32_t i = 0; i < taps.n; i++)
        lw_graph_output_add(g, taps.tap[i].name, taps.tap[i].val, LW_NOVAL);
    if (golden_forward_only())
        return;
    lw_val y = lw_tap_find(&taps, lw_st_meta(f, "gradient"));
    lw_val gy = lw_input(g, "gy", lw_val_type(g, y));
    lw_grad(g, &y, &gy, 1, &x, &gx, 1);
    lw_graph_output_add(g, "gx", gx, LW_NOVAL);
    assert_ok(lw_graph_error(g));
}

static void check_level(const lw_network *net, const lw_st_file *f, lw_device *dev)
{
    lw_graph *g = NULL;
    lw_plan *plan = NULL;
    lw_exec *e = NULL;
    int compared = 0;
    assert_ok(lw_graph_new(&g));
    build(net, f, g);
    assert_ok(lw_compile(g, dev, NULL, &plan));
    assert_ok(lw_exec_new(plan, LW_SLAB_PARAM, &e));
    fill_input(e, "x", false);
    if (!golden_forward_only())
        fill_input(e, "gy", true);
    assert_ok(lw_exec_run(e, &(lw_tick){0}));
    for (size_t i = 0; i < lw_st_count(f); i++) {
        const char *key = lw_st_at(f, i)->name;
        if (!lw_str_starts(key, "tap.") && !lw_str_starts(key, "sketch."))
            continue;
        check_tap(e, f, key);
        compared++;
    }
    assert_true(compared > 0);
    if (!golden_forward_only())
        check_gradient(e, f);
    lw_exec_free(&e);
    lw_plan_free(&plan);
    lw_graph_free(&g);
}

/* Its weights under each of its namings, and back to the bit. */
static void check_way_back(const lw_network *net, const char *dir)
{
    char path[128];
    const lw_naming *own = net->def->namings;
    snprintf(path, sizeof path, "%s/back.safetensors", dir);
    for (; own && own->name; own++) {
        const lw_naming only[] = {*own, {0}};
        lw_store *s = NULL;
        assert_ok(lw_store_save_as(net->store, LW_SLAB_PARAM, path, own, LW_ELEM_F32, NULL, 0));
        assert_ok(lw_store_new(true, &s));
        lw_network again = lw_network_of(net->def, net->arch, s);
        again.channels = net->channels;
        again.preparation = net->preparation;
        assert_ok(lw_network_declare(&again, s));
        assert_ok(lw_store_load(s, LW_SLAB_PARAM, path, only));
        assert_true(lw_store_hash(s, LW_SLAB_PARAM) == lw_store_hash(net->store, LW_SLAB_PARAM));
        lw_store_free(&s);
    }
}

static void test_network(void **state)
{
    const char *name = *state, *word, *resize;
    char dir[96], spec[128];
    lw_network *net = NULL;
    lw_device *dev[2]; /* closed last: the weights may lie in its memory */
    int n;
    const lw_isa *isa = golden_isas(&n);
    lw_st_file *f = golden_open(name);
    snprintf(dir, sizeof dir, "%s/%s", scratch, name);
    golden_write_model(f, dir);
    word = lw_st_meta(f, "word");     /* before the folder: "decoder:" */
    resize = lw_st_meta(f, "resize"); /* one of those it may be given */
    snprintf(spec, sizeof spec, "%s%s", word ? word : "", dir);
    assert_ok(lw_network_open(spec, true, &net));
    if (resize)
        assert_ok(lw_encoder_resize(net, resize));
    check_way_back(net, dir);
    for (int i = 0; i < n; i++) {
        dev[i] = golden_device(isa[i], 2);
        printf("%s %s\n", name, dev[i]->isa);
        check_level(net, f, dev[i]);
    }
    lw_network_close(&net);
    for (int i = 0; i < n; i++)
        lw_backend_close(&dev[i]);
    lw_st_close(&f);
}

/* ---- published weights ----------------------------------------------------------------------- */

/* One picture or latent [C,h,w] through a network; its first tap, in PyTorch's layout. */
static float *run_one(const char *path, const lw_st_tensor *t, const float *x, int64_t *n)
{
    lw_device *dev = golden_device(lw_isa_best(), 2);
    lw_network *net = NULL;
    lw_graph *g = NULL;
    lw_plan *plan = NULL;
    lw_exec *e = NULL;
    assert_ok(lw_network_open(path, true, &net));
    assert_ok(lw_graph_new(&g));
    assert_ok(lw_network_build(net, g, 1, (int32_t)t->shape[2], (int32_t)t->shape[3], NULL));
    assert_ok(lw_compile(g, dev, NULL, &plan));
    assert_ok(lw_exec_new(plan, LW_SLAB_PARAM, &e));
    golden_to_nhwc(x, 1, t->shape[1], t->shape[2] * t->shape[3], lw_exec_write(e, "x"));
    assert_ok(lw_exec_run(e, &(lw_tick){0}));
    float *y = read_nchw(e, lw_graph_output_at(g, 0)->name, n);
    lw_exec_free(&e);
    lw_plan_free(&plan);
    lw_graph_free(&g);
    lw_network_close(&net);
    lw_backend_close(&dev);
    return y;
}

static void check_against(const char *what, const float *have, const lw_st_tensor *t)
{
    double *want = malloc(sizeof *want * (size_t)t->count);
    for (int64_t i = 0; i < t->count; i++)
        want[i] = (double)((const float *)t->data)[i];
    double err = golden_relative(have, want, t->count, 0);
    printf("  taef2 %s %.1e\n", what, err);
    golden_check(what, err, 1e-5);
    free(want);
}

/* taef2: one picture to its latent and back. */
static void test_taef2(void **state)
{
    const char *dir = getenv("LW_TEST_DATA");
    char path[512];
    lw_st_file *f = NULL;
    const lw_st_tensor *latent, *decoded, *input;
    int64_t n;
    double error = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/encoders/taef2/golden1.safetensors", dir ? dir : "");
    if (!dir || !lw_path_exists(path)) {
        print_message("skipped: LW_TEST_DATA names no folder with encoders/taef2\n");
        skip();
    }
    assert_ok(lw_st_open(path, &f));
    assert_ok(lw_st_get(f, "input_rgb_u8_hwc", &input));
    assert_ok(lw_st_get(f, "latent", &latent));
    assert_ok(lw_st_get(f, "decoded", &decoded));
    const uint8_t *byte = input->data;
    float *x = malloc(sizeof *x * (size_t)input->count);
    for (int64_t i = 0; i < input->count; i++)
        x[i % 3 * (input->count / 3) + i / 3] = (float)byte[i] / 127.5f - 1.0f;
    snprintf(path, sizeof path, "%s/encoders/taef2/taef2_encoder.safetensors", dir);
    float *z = run_one(path, decoded, x, &n);
    assert_true(n == latent->count);
    check_against("latent", z, latent);
    snprintf(path, sizeof path, "decoder:%s/encoders/taef2/taef2_decoder.safetensors", dir);
    float *y = run_one(path, latent, z, &n);
    assert_true(n == decoded->count);
    for (int64_t i = 0; i < n; i++) {
        double d = fmin(fmax((double)y[i], -1.0), 1.0) - (double)x[i];
        error += d * d / 4 / (double)n;
        y[i] = (y[i] + 1.0f) / 2.0f;
    }
    check_against("decoded", y, decoded);
    printf("  taef2 there and back %.2f dB\n", -10 * log10(error));
    assert_true(-10 * log10(error) > 35.6 && -10 * log10(error) < 35.7);
    free(x);
    free(y);
    free(z);
    lw_st_close(&f);
}

/* MobileNetV2's published weights, bytes with scales, on four pictures. */
static void test_mobilenet(void **state)
{
    static const char *const taps[][2] = {{"pooled", "features"}, {"logits", "logits"}};
    const char *base = getenv("LW_TEST_DATA");
    char path[512], key[64];
    lw_st_file *f = NULL;
    lw_network *net = NULL;
    lw_graph *g = NULL;
    lw_plan *plan = NULL;
    lw_exec *e = NULL;
    const lw_st_tensor *input;
    int64_t n, count;
    (void)state;
    snprintf(path, sizeof path, "%s/encoders/golden_imagenet4.safetensors", base ? base : "");
    if (!base || !lw_path_exists(path)) {
        print_message("skipped: LW_TEST_DATA names no folder with encoders/golden_imagenet4\n");
        skip();
    }
    lw_device *dev = golden_device(lw_isa_best(), 2);
    assert_ok(lw_st_open(path, &f));
    assert_ok(lw_st_get(f, "input_rgb_u8_nhwc", &input));
    snprintf(path, sizeof path, "%s/encoders/mobilenet_v2/mobilenet_v2_1.0_224.safetensors", base);
    assert_ok(lw_network_open(path, true, &net));
    assert_ok(lw_graph_new(&g));
    assert_ok(lw_network_build(net, g, 4, 224, 224, "pooled,logits"));
    assert_ok(lw_compile(g, dev, NULL, &plan));
    assert_ok(lw_exec_new(plan, LW_SLAB_PARAM, &e));
    float *x = lw_exec_write(e, "x");
    for (int64_t i = 0; i < input->count; i++)
        x[i] = (float)((const uint8_t *)input->data)[i] / 127.5f - 1.0f;
    assert_ok(lw_exec_run(e, &(lw_tick){0}));
    for (size_t k = 0; k < LW_COUNT(taps); k++) {
        snprintf(key, sizeof key, "mobilenet_v2.%s", taps[k][1]);
        double *want = golden_get(f, key, &count);
        float *have = read_nchw(e, taps[k][0], &n);
        assert_true(n == count);
        double err = golden_relative(have, want, n, 0);
        printf("  mobilenet_v2 %s %.1e\n", taps[k][0], err);
        golden_check(key, err, 1e-5);
        free(want);
        free(have);
    }
    lw_exec_free(&e);
    lw_plan_free(&plan);
    lw_graph_free(&g);
    lw_network_close(&net);
    lw_backend_close(&dev);
    lw_st_close(&f);
}

static int make_scratch(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/lw_networks_XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
    (void)state;
    return lw_remove_tree(scratch);
}

#define NETWORK_TEST(file) cmocka_unit_test_prestate(test_network, file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NETWORK_TEST("network_resnet_gray"),
        NETWORK_TEST("network_dinov2_timm_five"),
        NETWORK_TEST("network_resnet_timm"),
        NETWORK_TEST("network_resnet_bottleneck"),
        NETWORK_TEST("network_resnet_basic"),
        cmocka_unit_test(test_taef2),
        NETWORK_TEST("network_taesd_encoder"),
        NETWORK_TEST("network_taesd_decoder"),
        NETWORK_TEST("network_tiny_encoder"),
        NETWORK_TEST("network_tiny_decoder"),
        NETWORK_TEST("network_kl_encoder"),
        NETWORK_TEST("network_kl_decoder"),
        NETWORK_TEST("network_kl_older_encoder"),
        NETWORK_TEST("network_kl_plain_encoder"),
        NETWORK_TEST("network_kl_plain_decoder"),
        NETWORK_TEST("network_clip"),
        NETWORK_TEST("network_clip_vision"),
        NETWORK_TEST("network_clip_open"),
        NETWORK_TEST("network_clip_open_gelu"),
        NETWORK_TEST("network_siglip"),
        NETWORK_TEST("network_siglip_vision"),
        NETWORK_TEST("network_siglip_timm"),
        NETWORK_TEST("network_dinov2"),
        NETWORK_TEST("network_dinov2_oblong"),
        NETWORK_TEST("network_dinov2_gated"),
        NETWORK_TEST("network_dinov2_registers"),
        NETWORK_TEST("network_dinov2_authors"),
        NETWORK_TEST("network_dinov2_authors_registers"),
        NETWORK_TEST("network_dinov2_timm"),
        NETWORK_TEST("network_dinov2_timm_registers"),
        NETWORK_TEST("network_mobilenet_timm"),
        NETWORK_TEST("network_mobilenet_torchvision"),
        NETWORK_TEST("network_efficientnet_lite_timm"),
        NETWORK_TEST("network_efficientnet_lite_flat"),
        NETWORK_TEST("network_efficientnet_lite_both"),
        NETWORK_TEST("network_mobilenet_hf"),
        NETWORK_TEST("network_mobilenet_hf_body"),
        NETWORK_TEST("network_mobilenet_hf_narrow"),
        cmocka_unit_test(test_mobilenet),
        NETWORK_TEST("network_clip_timm"),
        NETWORK_TEST("network_inception_v3"),
        NETWORK_TEST("network_inception_v3_fid"),
        NETWORK_TEST("network_inception_v3_tf"),
        NETWORK_TEST("network_inception_v3_clean_fid"),
        NETWORK_TEST("network_convnext_timm"),
        NETWORK_TEST("network_convnextv2_timm"),
        NETWORK_TEST("network_convnextv2_hf"),
        NETWORK_TEST("network_convnextv2_hf_body"),
        NETWORK_TEST("network_convnext_tv"),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
