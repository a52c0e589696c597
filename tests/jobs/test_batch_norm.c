/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNorm in training: against loops in double, its frozen form with settled statistics against
 * its training form on the same pictures, runs that resume, refusals. */
#include "jobs/train_fixture.h"

#include <math.h>
#include <string.h>

#include "cpu_device.h"
#include "jobs/encoder/encoder_settle.h"
#include "models/models_private.h"

#define TRAINED                                                                         \
    "train encoder --objective classify --norm-type batch --data synth:16 --limit 256 " \
    "--width 8 --stages 2 --batch-size 32 --warmup-steps 4 --crop-padding 2"

/* ---- one layer ------------------------------------------------------------------------------- */

enum { B = 6, H = 5, W = 3, C = 4, O = 3, PICTURES = B * H * W };

static float noise(size_t i)
{
    return sinf((float)i * 12.9898f) * 1.7f;
}

/* y [PICTURES][O] of a 1x1 convolution, normalised over all places of all pictures. */
static void by_loops(const float *x, const float *w, const float *gamma, const float *beta,
                     double *y)
{
    for (int o = 0; o < O; o++) {
        double mean = 0.0, var = 0.0;
        for (int i = 0; i < PICTURES; i++) {
            y[i * O + o] = 0.0;
            for (int c = 0; c < C; c++)
                y[i * O + o] += (double)x[i * C + c] * (double)w[o * C + c];
            mean += y[i * O + o] / PICTURES;
        }
        for (int i = 0; i < PICTURES; i++)
            var += (y[i * O + o] - mean) * (y[i * O + o] - mean) / PICTURES;
        for (int i = 0; i < PICTURES; i++) {
            double u = (y[i * O + o] - mean) / sqrt(var + 1e-5) * (double)gamma[o] +
                       (double)beta[o];
            y[i * O + o] = u > 0.0 ? u : 0.0;
        }
    }
}

static lw_val layer(lw_builder *b)
{
    lw_val x = lw_input(b->g, "x", lw_type_of(LW_F32, 4, B, H, W, C));
    return lw_conv_bn_as(
        b, "conv", "norm", x, O,
        (lw_conv_bn_opts){
            .kernel = 1, .stride = 1, .trained = true, .eps = 1e-5f, .act = LW_ACT_RELU});
}

static void test_layer(void **state)
{
    lw_device *dev = NULL;
    lw_store *s = NULL;
    lw_graph *g = NULL;
    lw_plan *plan = NULL;
    lw_exec *e = NULL;
    double want[PICTURES * O];
    (void)state;
    assert_int_equal(cpu_device(2, lw_isa_best(), &dev), 0);
    assert_int_equal(lw_store_new(true, &s), 0);
    assert_int_equal(lw_graph_new(&g), 0);
    lw_builder b = {.g = g, .params = lw_store_params(s), .training = true};
    lw_graph_output_add(g, "y", layer(&b), LW_NOVAL);
    assert_int_equal(lw_graph_error(g), 0);
    assert_int_equal(lw_store_fix(s), 0);
    lw_store_init(s, 3);
    float *gamma = lw_store_edit(s, lw_store_find(s, "norm.weight"), LW_SLAB_PARAM),
          *beta = lw_store_edit(s, lw_store_find(s, "norm.bias"), LW_SLAB_PARAM);
    const float *w = lw_store_data(s, lw_store_find(s, "conv.weight"), LW_SLAB_PARAM);
    for (int o = 0; o < O; o++) {
        gamma[o] = 0.5f + (float)o;
        beta[o] = 0.3f - 0.2f * (float)o;
    }
    lw_store_touch(s, LW_SLAB_PARAM);
    assert_int_equal(lw_compile(g, dev, NULL, &plan), 0);
    assert_int_equal(lw_exec_new(plan, LW_SLAB_PARAM, &e), 0);
    float *x = lw_exec_write(e, "x");
    for (size_t i = 0; i < PICTURES * C; i++)
        x[i] = 5.0f + noise(i);
    by_loops(x, w, gamma, beta, want);
    assert_int_equal(lw_exec_run(e, NULL), 0);
    const float *y = lw_exec_read(e, "y");
    for (int i = 0; i < PICTURES * O; i++)
        assert_true(fabs((double)y[i] - want[i]) < 1e-4);
    lw_exec_free(&e);
    lw_plan_free(&plan);
    lw_graph_free(&g);
    lw_store_free(&s);
    lw_backend_close(&dev);
}

/* ---- statistics ------------------------------------------------------------------------------ */

enum { PART = 32 }; /* pictures of the data, of a batch and of one norm: settled is what it met */

static int load(void *self, int64_t first, int64_t n, void *images)
{
    const lw_dataset *d = self;
    for (int64_t i = 0; i < n; i++)
        lw_data_get(d, first + i, false, (float *)images + i * lw_data_row_size(d));
    return 0;
}

static void logits(const lw_encoder_config *net, const lw_picture_run *p, bool training, float *y)
{
    lw_graph *g = NULL;
    lw_forward *f = NULL;
    lw_taps taps = {0};
    lw_feed feed[] = {{.name = "images", .fill = load, .self = p->data}, {.name = "y", .out = y}};
    assert_int_equal(lw_graph_new(&g), 0);
    lw_builder b = {.g = g, .params = lw_store_params(p->store), .training = training};
    lw_type t = lw_type_of(LW_F32, 4, PART, p->data->h, p->data->w, p->data->channels);
    lw_encoder_net(&b, net, lw_input(g, "images", t), &taps);
    lw_graph_output_add(g, "y", lw_tap_find(&taps, "logits"), LW_NOVAL);
    assert_int_equal(lw_forward_of(p->dev, &g, NULL, LW_SLAB_EMA, "test", &f), 0);
    assert_int_equal(lw_forward_rows(f, "test", PART, feed, 2, NULL), 0);
    lw_forward_free(&f);
}

static void test_settled(void **state)
{
    lw_train_config c = {.data = "synth:16", .threads = 2, .seed = 4};
    lw_picture_config pictures = {.limit = PART, .channels = 3};
    lw_picture_run p = {.c = &c, .pictures = &pictures, .leaves = {.size = PART, .n = 1}};
    lw_settle *s = NULL;
    float y[3][PART * 4];
    double apart = 0.0, before = 0.0;
    (void)state;
    assert_int_equal(lw_picture_run_open(&p), 0);
    lw_encoder_config net = lw_encoder_default(p.data->h);
    net.batch_norm = true;
    net.blocks = 2;
    net.classes = 4;
    assert_int_equal(lw_encoder_declare(&net, p.store), 0);
    lw_store_init(p.store, 9);
    logits(&net, &p, true, y[0]);
    logits(&net, &p, false, y[1]);
    assert_int_equal(lw_settle_new(&net, &p, &s), 0);
    assert_int_equal(lw_settle_run(s), 0);
    logits(&net, &p, false, y[2]);
    for (int i = 0; i < PART * net.classes; i++) {
        before = fmax(before, fabs((double)y[0][i] - (double)y[1][i]));
        apart = fmax(apart, fabs((double)y[0][i] - (double)y[2][i]));
    }
    print_message("training form and frozen: apart %.3g, once settled %.3g\n", before, apart);
    assert_true(before > 0.05 && apart < 1e-4);
    uint64_t version = lw_store_version(p.store, LW_SLAB_EMA);
    assert_int_equal(lw_settle_run(s), 0); /* the same weights: nothing to do */
    assert_true(version == lw_store_version(p.store, LW_SLAB_EMA));
    lw_settle_free(&s);
    lw_picture_run_clear(&p);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void test_runs(void **state)
{
    (void)state;
    lab_expect(0, TRAINED " --steps 40 --eval-every 40 --output-dir whole");
    double accuracy = lab_metric("whole", "heldout_accuracy", 0);
    print_message("held-out accuracy %.3g\n", accuracy);
    assert_true(accuracy > 0.25); /* of ten classes */
    /* saved twice instead of once, stopped, threads: the same bits */
    lab_expect(0, TRAINED " --steps 5 --output-dir once");
    lab_expect(0, TRAINED " --steps 5 --save-every 3 --threads 1 --output-dir again");
    lab_same_checkpoint("once", "again");
    lab_expect(0, TRAINED " --steps 5 --resume-from again/checkpoints/step_0000003 "
                          "--output-dir resumed");
    lab_same_checkpoint("once", "resumed");
    /* weight decay acts on statistics by way of momentum */
    lab_expect(0, TRAINED " --optimizer sgd --steps 5 --output-dir sgd");
    lab_expect(0, TRAINED " --optimizer sgd --steps 5 --save-every 3 --output-dir sgd_again");
    lab_same_checkpoint("sgd", "sgd_again");
    /* an encoder like any other, and a student */
    lab_expect(0, TINY_DRIFT " --encoder whole --feature-keys pooled,s2.loc --steps 1 "
                             "--output-dir drift");
    lab_expect(0, "train encoder --objective distill --norm-type batch --data synth:16 --limit 256 "
                  "--width 8 --stages 2 --batch-size 16 --teacher whole --steps 3 "
                  "--output-dir student");
}

static void test_refusals(void **state)
{
    (void)state;
    lab_expect(2, TINY_ENCODER " --norm-type batch --steps 1 --output-dir no");
    assert_non_null(strstr(lab_err, "--norm-type batch: --objective mae"));
    lab_expect(2, TRAINED " --batch-size 4 --steps 1 --output-dir no");
    assert_non_null(strstr(lab_err, "statistics of 4 pictures are noise"));
    lab_expect(2, TINY_ENCODER " --objective judge --crop-padding 2 --steps 1 --output-dir no");
    assert_non_null(strstr(lab_err, "--crop-padding: --objective judge"));
    lab_expect(2, TRAINED "0 --steps 1 --output-dir no"); /* 20 pixels */
    assert_non_null(
        strstr(lab_err, "--crop-padding 20: pictures of 16 x 16 can be moved by up to 7"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layer), cmocka_unit_test(test_settled),
                                       cmocka_unit_test(test_runs),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests_name("batch_norm", tests, lab_enter, lab_leave);
}
