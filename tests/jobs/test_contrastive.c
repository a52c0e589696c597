/* SPDX-License-Identifier: Apache-2.0 */
/* Contrastive training: views, the loss against loops and differences, an encoder that tells pictures
 * apart without labels, exact resume, refusals. */
#include "jobs/train_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu_device.h"
#include "data/data.h"
#include "jobs/encoder/encoder_contrast.h"

#define ENCODER TINY_ENCODER " --objective contrastive"

static float noise(size_t i)
{
    return sinf((float)(i * i) * 0.7f);
}

/* ---- views ----------------------------------------------------------------------------------- */

enum { H = 9, W = 12 };

static void test_views(void **state)
{
    float src[H * W * 3], a[H * W * 3], b[H * W * 3];
    lw_view_opts o = {.least_area = 1, .seed = 3};
    int mirrored = 0, gray = 0, same = 0;
    (void)state;
    for (size_t i = 0; i < LW_COUNT(src); i++)
        src[i] = noise(i);
    lw_view_make(src, H, W, 3, &o, 5, a); /* all of it, as it is */
    for (size_t i = 0; i < LW_COUNT(src); i++)
        assert_true(fabsf(a[i] - src[i]) < 1e-6f);
    o.mirror = true;
    for (int64_t v = 0; v < 400; v++) {
        lw_view_make(src, H, W, 3, &o, v, a);
        bool turned = fabsf(a[0] - src[(W - 1) * 3]) < 1e-6f;
        assert_true(turned || fabsf(a[0] - src[0]) < 1e-6f);
        mirrored += turned;
    }
    assert_true(mirrored > 160 && mirrored < 240);
    o.least_area = 0.2;
    o.colours = 0.5;
    for (int64_t v = 0; v < 400; v++) {
        bool flat = true;
        lw_view_make(src, H, W, 3, &o, v, a);
        lw_view_make(src, H, W, 3, &o, v, b);
        assert_memory_equal(a, b, sizeof a);
        for (int i = 0; i < H * W; i++) {
            flat &= fabsf(a[3 * i] - a[3 * i + 1]) < 1e-6f;
            for (int c = 0; c < 3; c++)
                assert_true(a[3 * i + c] >= -1.00001f && a[3 * i + c] <= 1.00001f);
        }
        gray += flat;
        lw_view_make(src, H, W, 3, &o, v + 1, b);
        same += memcmp(a, b, sizeof a) == 0;
    }
    assert_true(gray > 50 && gray < 110);
    assert_int_equal(same, 0);
    lw_view_make(src, H, W, 1, &o, 0, a); /* one channel: brightness and contrast */
    assert_true(isfinite(a[0]));
}

/* ---- the loss -------------------------------------------------------------------------------- */

enum { PICTURES = 3, P = 5 };

static void test_loss(void **state)
{
    const double tau = 0.3, h = 1e-3;
    lw_device *dev = NULL;
    lw_graph *g = NULL;
    lw_plan *plan = NULL;
    lw_exec *e = NULL;
    lw_val dz = LW_NOVAL;
    float at[2 * PICTURES * P];
    (void)state;
    assert_int_equal(cpu_device(2, lw_isa_best(), &dev), 0);
    assert_int_equal(lw_graph_new(&g), 0);
    lw_val z = lw_input(g, "z", lw_type_of(LW_F32, 2, 2 * PICTURES, P));
    lw_val loss = lw_mean(g, lw_contrast_loss(g, z, tau), LW_OVER_ALL), one = lw_const_f32(g, 1.0f);
    lw_grad(g, &loss, &one, 1, &z, &dz, 1);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    lw_graph_output_add(g, "dz", dz, LW_NOVAL);
    assert_int_equal(lw_compile(g, dev, NULL, &plan), 0);
    assert_int_equal(lw_exec_new(plan, LW_SLAB_PARAM, &e), 0);
    float *in = lw_exec_write(e, "z");
    for (size_t i = 0; i < LW_COUNT(at); i++)
        at[i] = in[i] = 2.0f * noise(i);
    lw_contrast_pairs(lw_exec_write(e, "self"), lw_exec_write(e, "partner"), PICTURES);
    assert_int_equal(lw_exec_run(e, NULL), 0);
    double want = lw_contrast_loss_of(at, PICTURES, P, tau);
    assert_true(fabs((double)*(const float *)lw_exec_read(e, "loss") - want) < 1e-5 * want);
    const float *slope = lw_exec_read(e, "dz");
    for (size_t i = 0; i < LW_COUNT(at); i++) {
        float kept = at[i];
        at[i] = kept + (float)h;
        double up = lw_contrast_loss_of(at, PICTURES, P, tau);
        at[i] = kept - (float)h;
        double down = lw_contrast_loss_of(at, PICTURES, P, tau);
        at[i] = kept;
        assert_true(fabs((up - down) / (2 * h) - (double)slope[i]) < 2e-4);
    }
    lw_exec_free(&e);
    lw_plan_free(&plan);
    lw_graph_free(&g);
    lw_backend_close(&dev);
}

/* Features that say nothing: log(2 B - 1). */
static void test_nothing_learnt(void **state)
{
    float z[2 * PICTURES * P];
    (void)state;
    for (size_t i = 0; i < LW_COUNT(z); i++)
        z[i] = 1.0f;
    assert_true(fabs(lw_contrast_loss_of(z, PICTURES, P, 0.5) - log(2 * PICTURES - 1)) < 1e-9);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void test_tells_apart(void **state)
{
    (void)state;
    lab_expect(0, ENCODER " --steps 160 --eval-every 40 --log-every 10 --norm-type batch "
                          "--view-min-area 0.5 --view-colors 0.2 --output-dir run");
    double first = lab_metric("run", "loss", -1), last = lab_metric("run", "heldout_loss", 0),
           knn = lab_metric("run", "heldout_knn", 0);
    printf("contrastive: loss %.3f (nothing: %.3f) -> held out %.3f, k-NN %.3f\n", first, log(31),
           last, knn);
    assert_true(last < first - 0.3 && knn > 0.12);
    lab_expect(0, TINY_DRIFT " --encoder run --feature-keys pooled,s2.loc --steps 1 "
                             "--output-dir drift"); /* an encoder like any other */
    lab_expect(0, "inspect run");
    lab_expect(0, ENCODER " --precision bf16 --steps 3 --output-dir low");
}

static void test_refusals(void **state)
{
    (void)state;
    lab_expect(2, ENCODER " --leaf-size 1 --steps 3 --output-dir no");
    assert_non_null(strstr(lab_err, "a leaf of one picture"));
    lab_expect(2, ENCODER " --crop-padding 2 --steps 3 --output-dir no");
    assert_non_null(strstr(lab_err, "--objective contrastive has none"));
    lab_expect(2, ENCODER " --view-min-area 0 --steps 3 --output-dir no");
    assert_non_null(strstr(lab_err, "--view-min-area"));
}

static void test_same_bits(void **state)
{
    static const char args[] = " --log-every 1 --eval-every 3 --scheduler constant --output-dir ";
    (void)state;
    lab_expect(0, ENCODER " --steps 6 --leaf-size 8%sa", args);
    lab_expect(0, ENCODER " --steps 6 --leaf-size 8 --threads 1%sb", args);
    lab_expect(0, ENCODER " --steps 3 --leaf-size 8%sc", args);
    lab_expect(0, ENCODER " --steps 6 --leaf-size 8 --resume%sc", args);
    lab_same_checkpoint("a", "b");
    lab_same_logs("a", "b");
    lab_same_checkpoint("a", "c");
    lab_same_logs("a", "c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),          cmocka_unit_test(test_loss),
        cmocka_unit_test(test_nothing_learnt), cmocka_unit_test(test_tells_apart),
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, lab_enter, lab_leave);
}
