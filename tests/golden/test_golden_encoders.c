/* SPDX-License-Identifier: Apache-2.0 */
/* Encoders against PyTorch: the MAE ResNet with every gradient, the ResNet-18 cut, CIFAR ResNets.
 * Published CIFAR weights are checked with LW_TEST_DATA. */
#include "golden/golden.h"

#include <math.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "backend/backend.h"
#include "formats/formats.h"
#include "store/store.h"
#include "models/models.h"

/* A compiled graph with what it stands on. */
typedef struct rig {
    lw_device *dev;
    lw_graph *g;
    lw_plan *plan;
    lw_exec *e;
    lw_st_file *file;
} rig;

static void rig_open(rig *r, const char *golden, lw_isa isa)
{
    *r = (rig){.dev = golden_device(isa, 2)};
    r->file = golden ? golden_open(golden) : NULL;
    assert_ok(lw_graph_new(&r->g));
}

static void rig_compile(rig *r)
{
    assert_ok(lw_compile(r->g, r->dev, NULL, &r->plan));
    assert_ok(lw_exec_new(r->plan, LW_SLAB_PARAM, &r->e));
}

static void rig_close(rig *r)
{
    lw_exec_free(&r->e);
    lw_plan_free(&r->plan);
    lw_graph_free(&r->g);
    lw_st_close(&r->file);
    lw_backend_close(&r->dev);
}

/* The file's [B,C,H,W] tensor into an input of the same name. */
static void put_nchw(rig *r, const char *name)
{
    const lw_st_tensor *t = NULL;
    float *x = golden_get_f32(r->file, name, NULL);
    assert_ok(lw_st_get(r->file, name, &t));
    golden_to_nhwc(x, t->shape[0], t->shape[1], t->shape[2] * t->shape[3],
                   lw_exec_write(r->e, name));
    free(x);
}

/* An output against the file's tensor, [B,C,H,W] or rows. */
static void check_output(rig *r, const char *output, const char *golden, double tol)
{
    const lw_st_tensor *t = NULL;
    int64_t n = 0;
    double *want = golden_get(r->file, golden, &n);
    const float *have = lw_exec_read(r->e, output);
    float *nchw = malloc(sizeof *nchw * (size_t)n);
    assert_ok(lw_st_get(r->file, golden, &t));
    assert_int_equal(lw_type_count(lw_exec_type(r->e, output)), n);
    if (t->rank == 4)
        golden_to_nchw(have, t->shape[0], t->shape[1], t->shape[2] * t->shape[3], nchw);
    else
        memcpy(nchw, have, sizeof *have * (size_t)n);
    double err = golden_relative(nchw, want, n, 1e-12);
    printf("  %-16s %.2e\n", output, err);
    golden_check(output, err, tol);
    free(nchw);
    free(want);
}

static void check_map(rig *r, const char *output, const char *sketch_name)
{
    char key[64];
    lw_type t = lw_exec_type(r->e, output);
    int64_t n = lw_type_count(t);
    float *nchw = malloc(sizeof *nchw * (size_t)n);
    snprintf(key, sizeof key, "sketch.%s", sketch_name);
    double *sketch = golden_get(r->file, key, NULL);
    golden_to_nchw(lw_exec_read(r->e, output), t.dim[0], t.dim[3], (int64_t)t.dim[1] * t.dim[2],
                   nchw);
    golden_check(output, golden_sketch_error(sketch_name, nchw, n, sketch, 1e-12), 1e-5);
    free(sketch);
    free(nchw);
}

/* ---- the MAE encoder ---- */

static void check_mae_gradients(const rig *r, const lw_store *s, const char *tag)
{
    double worst = 0;
    int checked = 0;
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        const lw_store_entry *e = lw_store_at(s, i);
        golden_part p = golden_part_of(e, 0);
        char key[200];
        float *g = malloc(sizeof *g * (size_t)p.count);
        golden_part_get(e, 0, lw_store_data(s, i, LW_SLAB_GRAD), g);
        double err = -1;
        snprintf(key, sizeof key, "%s.grad.%s", tag, p.name);
        if (golden_has(r->file, key)) {
            double *want = golden_get(r->file, key, NULL);
            err = golden_relative(g, want, p.count, 1e-9);
            free(want);
        }
        snprintf(key, sizeof key, "%s.sketch.%s", tag, p.name);
        if (golden_has(r->file, key)) {
            double *want = golden_get(r->file, key, NULL);
            err = golden_sketch_error(p.name, g, p.count, want, 1e-9);
            free(want);
        }
        free(g);
        if (err < 0)
            continue;
        checked++;
        worst = fmax(worst, err);
        golden_check(key, err, 2e-5);
    }
    printf("  %s: %d gradients, worst %.1e\n", tag, checked, worst);
    assert_true(checked >= 29);
}

static void check_mae(lw_isa isa, bool classify)
{
    rig r;
    lw_store *s = NULL;
    lw_taps taps = {0};
    lw_encoder_config c = lw_encoder_default(16);
    c.classes = 10;
    c.decoder = true;
    rig_open(&r, "encoder_mae", isa);
    assert_ok(lw_store_new(false, &s));
    assert_ok(lw_encoder_declare(&c, s));
    assert_int_equal(lw_store_param_count(s), 112701);
    golden_fill_store(s);
    lw_builder b = {.g = r.g, .params = lw_store_params(s)};
    lw_val x = lw_input(r.g, "x", lw_type_of(LW_F32, 4, 4, 16, 16, 3));
    lw_val mask = lw_input(r.g, "mask", lw_type_of(LW_F32, 4, 4, 16, 16, 1));
    lw_val labels = lw_input(r.g, "labels", lw_type_of(LW_I32, 1, 4));
    lw_encoder_net(&b, &c, lw_mae_hide(r.g, x, mask), &taps);
    lw_val rec = lw_encoder_decode(&b, &c, &taps);
    lw_val mae = lw_mean(r.g, lw_mae_loss(r.g, rec, x, mask), LW_OVER_ALL);
    lw_val ce = lw_mean(r.g, lw_cross_entropy(r.g, lw_tap_find(&taps, "logits"), labels),
                        LW_OVER_ALL);
    lw_graph_output_add(r.g, "reconstruction", rec, LW_NOVAL);
    lw_graph_output_add(r.g, "logits", lw_tap_find(&taps, "logits"), LW_NOVAL);
    lw_graph_output_add(r.g, "layer1", lw_tap_find(&taps, "s1"), LW_NOVAL);
    lw_graph_output_add(r.g, "layer2", lw_tap_find(&taps, "s2"), LW_NOVAL);
    lw_graph_output_add(r.g, "layer3", lw_tap_find(&taps, "s3"), LW_NOVAL);
    lw_graph_output_add(r.g, "mae", mae, LW_NOVAL);
    lw_graph_output_add(r.g, "classify", ce, LW_NOVAL);
    assert_ok(lw_grad_params(r.g, classify ? ce : mae, LW_NOVAL));
    rig_compile(&r);
    put_nchw(&r, "x");
    put_nchw(&r, "mask");
    golden_integers("mae.labels", 4, 10, lw_exec_write(r.e, "labels"));
    assert_ok(lw_exec_run(r.e, &(lw_tick){0}));
    printf("%s, %s\n", lw_isa_name(isa), classify ? "classify" : "mae");
    static const char *const same[] = {"reconstruction", "logits", "layer1", "layer2", "layer3"};
    for (size_t i = 0; i < LW_COUNT(same); i++)
        check_output(&r, same[i], same[i], 5e-6);
    check_output(&r, "mae", "loss.mae", 2e-6);
    check_output(&r, "classify", "loss.classify", 2e-6);
    check_mae_gradients(&r, s, classify ? "classify" : "mae");
    rig_close(&r);
    lw_store_free(&s);
}

static void test_mae(void **state)
{
    int n;
    const lw_isa *isa = golden_isas(&n);
    (void)state;
    for (int i = 0; i < n; i++) {
        check_mae(isa[i], false);
        check_mae(isa[i], true);
    }
}

/* ---- frozen ResNets: features and the gradient to the image ---- */

/* Formula weights by name; the stem of ResNet-18 is cut from the 7x7 kernel the formula gives. */
static void fill_resnet(lw_store *s, bool cut)
{
    golden_fill_store(s);
    if (!cut)
        return;
    int32_t at = lw_store_find(s, "conv1.weight");
    float *wide = malloc(sizeof *wide * 64 * 3 * 49), *part = malloc(sizeof *part * 64 * 3 * 9);
    golden_parameter("conv1.weight", 4, (const int64_t[]){64, 3, 7, 7}, wide);
    for (int p = 0; p < 64 * 3; p++)
        for (int y = 0; y < 3; y++)
            memcpy(part + (p * 3 + y) * 3, wide + (p * 7 + y + 2) * 7 + 2, 3 * sizeof *part);
    golden_part_put(lw_store_at(s, at), 0, part, lw_store_edit(s, at, LW_SLAB_PARAM));
    free(wide);
    free(part);
}

/* A ReLU whose input is within rounding of zero may switch and move the gradient of its picture a
 * little: every picture but one must agree closely. */
static void check_image_gradient(rig *r, int32_t batch)
{
    enum { ONE = 3 * 1024 };
    double *want = golden_get(r->file, "gx", NULL);
    float *have = malloc(sizeof *have * (size_t)batch * ONE);
    int switched = 0;
    golden_to_nchw(lw_exec_read(r->e, "gx"), batch, 3, 1024, have);
    for (int32_t b = 0; b < batch; b++) {
        double err = golden_relative(have + b * ONE, want + b * ONE, ONE, 0);
        printf("  gx of picture %d  %.2e\n", b, err);
        golden_check("gx", err, 1e-2);
        switched += err > 5e-6;
    }
    assert_true(switched <= 1);
    free(have);
    free(want);
}

static void check_resnet(lw_isa isa, bool cut)
{
    rig r;
    lw_store *s = NULL;
    lw_taps taps = {0};
    int32_t batch = cut ? 4 : 3, f = cut ? 128 : 64;
    rig_open(&r, cut ? "encoder_resnet18" : "encoder_cifar20", isa);
    assert_ok(lw_store_new(true, &s));
    lw_val x = lw_input(r.g, "x", lw_type_of(LW_F32, 4, batch, 32, 32, 3)), gx = LW_NOVAL;
    lw_val gy = lw_input(r.g, "gy", lw_type_of(LW_F32, 2, batch, f));
    const lw_network n = lw_network_of(cut ? &lw_network_def_resnet18
                                           : &lw_network_def_resnet_cifar10,
                                       &(int32_t){3}, s); /* blocks of a stage: ResNet-20 */
    lw_network_append(&n, r.g, (lw_network_in){.x = x}, &taps);
    assert_ok(lw_store_fix(s));
    fill_resnet(s, cut);
    lw_val pooled = lw_tap_find(&taps, "pooled");
    lw_grad(r.g, &pooled, &gy, 1, &x, &gx, 1);
    lw_graph_output_add(r.g, "features", lw_tap_find(&taps, "pooled"), LW_NOVAL);
    lw_graph_output_add(r.g, "gx", gx, LW_NOVAL);
    for (int32_t i = 0; i < taps.n; i++)
        lw_graph_output_add(r.g, taps.tap[i].name, taps.tap[i].val, LW_NOVAL);
    rig_compile(&r);
    put_nchw(&r, "x");
    float *v = golden_get_f32(r.file, "gy", NULL);
    memcpy(lw_exec_write(r.e, "gy"), v, sizeof *v * (size_t)(batch * f));
    free(v);
    assert_ok(lw_exec_run(r.e, &(lw_tick){0}));
    printf("%s %s\n", cut ? "resnet18" : "resnet20", lw_isa_name(isa));
    check_output(&r, "features", cut ? "y" : "features", 5e-6);
    check_image_gradient(&r, batch);
    if (lw_val_ok(lw_tap_find(&taps, "logits")))
        check_output(&r, "logits", "logits", 5e-6);
    if (cut)
        check_map(&r, "s0", "stem");
    check_map(&r, "s1", "layer1");
    check_map(&r, "s2", "layer2");
    if (!cut)
        check_map(&r, "s3", "layer3");
    rig_close(&r);
    lw_store_free(&s);
}

static void test_resnets(void **state)
{
    int n;
    const lw_isa *isa = golden_isas(&n);
    (void)state;
    for (int i = 0; i < n; i++) {
        check_resnet(isa[i], true);
        check_resnet(isa[i], false);
    }
}

/* ---- published weights ---- */

enum { IMAGES = 256 };

/* Of the pictures that were given, those whose largest logit is their class. */
static int count_right(const float *logits, const uint8_t *cifar)
{
    int right = 0;
    for (int b = 0; b < IMAGES; b++) {
        int best = 0;
        for (int k = 1; k < 10; k++)
            best = logits[b * 10 + k] > logits[b * 10 + best] ? k : best;
        right += best == cifar[b * 3073];
    }
    return right;
}

static void check_published(const char *dir, const char *name, const lw_st_file *golden,
                            const uint8_t *cifar)
{
    rig r;
    lw_network *enc = NULL;
    lw_taps taps = {0};
    char path[512];
    snprintf(path, sizeof path, "resnet_cifar10:%s/encoders/resnet_cifar10/%s.safetensors", dir,
             name);
    assert_ok(lw_encoder_open(path, &enc));
    assert_string_equal(enc->name, name);
    rig_open(&r, NULL, lw_isa_best());
    lw_val x = lw_input(r.g, "x", lw_type_of(LW_F32, 4, IMAGES, 32, 32, 3));
    lw_network_append(enc, r.g, (lw_network_in){.x = x}, &taps);
    lw_graph_output_add(r.g, "features", lw_tap_find(&taps, "pooled"), LW_NOVAL);
    lw_graph_output_add(r.g, "logits", lw_tap_find(&taps, "logits"), LW_NOVAL);
    rig_compile(&r);
    float *in = lw_exec_write(r.e, "x");
    for (int b = 0; b < IMAGES; b++)
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < 1024; i++)
                in[(b * 1024 + i) * 3 + c] = (float)cifar[b * 3073 + 1 + c * 1024 + i] / 127.5f -
                                             1.0f;
    assert_ok(lw_exec_run(r.e, &(lw_tick){0}));
    static const char *const outputs[] = {"features", "logits"};
    for (size_t k = 0; k < 2; k++) {
        int64_t n = 0;
        snprintf(path, sizeof path, "%s.%s", name, outputs[k]);
        double *want = golden_get(golden, path, &n), err;
        err = golden_relative(lw_exec_read(r.e, outputs[k]), want, n, 0);
        printf("  %s %s %.2e\n", name, outputs[k], err);
        golden_check(path, err, 1e-4);
        free(want);
    }
    int right = count_right(lw_exec_read(r.e, "logits"), cifar);
    printf("  %s has %d of %d right\n", name, right, IMAGES);
    assert_true(right >= 230); /* of 10,000: 91.73 to 93.39 % (tools/weights_check.py) */
    rig_close(&r);
    lw_network_close(&enc);
}

/* test_batch.bin out of the archive, or lying there unpacked; NULL: neither. */
static char *read_cifar(const char *dir)
{
    char path[512], *bytes = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/cifar10/test_batch.bin", dir);
    if (lw_path_exists(path)) {
        assert_ok(lw_file_read(path, 0, &bytes, &n));
        return bytes;
    }
    snprintf(path, sizeof path, "%s/cifar10/cifar-10-batches-bin.tar.xz", dir);
    if (!lw_path_exists(path))
        return NULL;
    assert_ok(lw_archive_extract(path, "test_batch.bin", (size_t)64 << 20, &bytes, &n));
    assert_true(n >= IMAGES * 3073);
    return bytes;
}

static void test_published(void **state)
{
    const char *dir = getenv("LW_TEST_DATA");
    char path[512];
    lw_st_file *golden = NULL;
    (void)state;
    if (!dir) {
        print_message("skipped: LW_TEST_DATA is not set\n");
        skip();
    }
    char *cifar = read_cifar(dir);
    if (!cifar) {
        print_message("skipped: no test_batch.bin under %s/cifar10\n", dir);
        skip();
    }
    snprintf(path, sizeof path, "%s/encoders/resnet_cifar10/golden_test256.safetensors", dir);
    assert_ok(lw_st_open(path, &golden));
    check_published(dir, "resnet20", golden, (uint8_t *)cifar);
    check_published(dir, "resnet32", golden, (uint8_t *)cifar);
    check_published(dir, "resnet56", golden, (uint8_t *)cifar);
    lw_st_close(&golden);
    lw_free(&cifar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mae),
        cmocka_unit_test(test_resnets),
        cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
