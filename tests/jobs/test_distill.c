/* SPDX-License-Identifier: Apache-2.0 */
/* Distillation: the loss against loops, a student that gets nearer to its teacher and opens as an
 * encoder, exact resume, refusals. */
#include "jobs/train_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu_device.h"
#include "jobs/encoder/encoder_distill_parts.h"

#define STUDENT                                                                           \
    "train encoder --objective distill --data synth:16 --limit 256 --width 8 --stages 2 " \
    "--norm-groups 4 --batch-size 16 --warmup-steps 4 --teacher teacher"

/* ---- the loss -------------------------------------------------------------------------------- */

enum { B = 3, S = 8, WIDTH = 4, T = 16, C = 5 };

static float noise(size_t i)
{
    return sinf((float)i * 12.9898f) * 1.7f;
}

/* 0.9 (1 - cosine) + 0.1 smooth L1, averaged over T places of C numbers. */
static double loss_of(const float *p, const float *z, const float *mean, const float *scale)
{
    double far = 0.0, off = 0.0;
    for (int t = 0; t < T; t++) {
        double pz = 0.0, pp = 0.0, zz = 0.0;
        for (int c = 0; c < C; c++) {
            double x = (double)p[t * C + c],
                   y = ((double)z[t * C + c] - (double)mean[c]) * (double)scale[c], d = fabs(x - y);
            pz += x * y;
            pp += x * x;
            zz += y * y;
            off += (d < 1.0 ? 0.5 * d * d : d - 0.5) / (T * C);
        }
        far += (1.0 - pz / sqrt(pp * zz)) / T;
    }
    return 0.9 * far + 0.1 * off;
}

static void test_loss(void **state)
{
    lw_encoder_config net = lw_encoder_default(S);
    struct lw_distill d = {.net = &net};
    lw_device *dev = NULL;
    lw_store *s = NULL;
    lw_graph *g = NULL;
    lw_plan *plan = NULL;
    lw_exec *e = NULL;
    lw_taps taps = {0};
    (void)state;
    net.width = WIDTH;
    net.stages = 2;
    net.n_predicted = 1;
    net.predicted[0] = (lw_predicted){.stage = 2, .width = C};
    d.keys = (lw_feature_set){.n = 1, .key = {{.name = "s9.loc", .slots = T, .c = C}}};
    assert_int_equal(cpu_device(2, lw_isa_best(), &dev), 0);
    assert_int_equal(lw_store_new(true, &s), 0);
    assert_int_equal(lw_encoder_declare(&net, s), 0);
    lw_store_init(s, 3);
    assert_int_equal(lw_graph_new(&g), 0);
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_encoder_net(&b, &net, lw_input(g, "images", lw_type_of(LW_F32, 4, B, S, S, 3)), &taps);
    lw_graph_output_add(g, "p", lw_encoder_predict(&b, &net, &taps, 0), LW_NOVAL);
    lw_graph_output_add(g, "loss", lw_distill_loss(&d, &b, &taps), LW_NOVAL);
    assert_int_equal(lw_compile(g, dev, NULL, &plan), 0);
    assert_int_equal(lw_exec_new(plan, LW_SLAB_PARAM, &e), 0);
    float *x = lw_exec_write(e, "images"), *z = lw_exec_write(e, "teacher/s9.loc"),
          *mean = lw_exec_write(e, "mean/s9.loc"), *scale = lw_exec_write(e, "scale/s9.loc");
    for (size_t i = 0; i < B * S * S * 3; i++)
        x[i] = noise(i);
    for (size_t i = 0; i < B * T * C; i++)
        z[i] = 3.0f + 2.0f * noise(i + 77);
    for (size_t i = 0; i < C; i++) {
        mean[i] = 3.0f + 0.1f * (float)i;
        scale[i] = 0.5f + 0.1f * (float)i;
    }
    assert_int_equal(lw_exec_run(e, NULL), 0);
    const float *p = lw_exec_read(e, "p"), *loss = lw_exec_read(e, "loss");
    for (size_t i = 0; i < B; i++) {
        double want = loss_of(p + i * T * C, z + i * T * C, mean, scale);
        assert_true(fabs((double)loss[i] - want) < 1e-5 * want);
    }
    lw_exec_free(&e);
    lw_plan_free(&plan);
    lw_graph_free(&g);
    lw_store_free(&s);
    lw_backend_close(&dev);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static int enter(void **state)
{
    int rc = lab_enter(state);
    lab_expect(0, TINY_ENCODER " --objective classify --steps 60 --output-dir teacher");
    return rc;
}

static void test_gets_nearer(void **state)
{
    (void)state;
    lab_expect(0, STUDENT " --steps 120 --eval-every 40 --log-every 10 --output-dir student");
    assert_non_null(strstr(lab_err, "features of the teacher: "));
    assert_non_null(strstr(lab_err, "% (teacher "));
    double first = lab_metric("student", "loss", -1), last = lab_metric("student", "loss", 0);
    double held = lab_metric("student", "heldout_loss", 0);
    printf("distill: loss %.4g -> %.4g, held out %.4g, neighbours shared %.3g, k-NN %.3g, "
           "teacher's %.3g\n",
           first, last, held, lab_metric("student", "heldout_neighbours", 0),
           lab_metric("student", "heldout_knn", 0), lab_metric("student", "teacher_knn", 0));
    assert_true(last < 0.6 * first && held < 0.7 * first);
    assert_true(lab_metric("student", "heldout_neighbours", 0) > 0.1);
    assert_true(lab_metric("student", "heldout_knn", 0) > 0.2);
    /* an encoder like any other */
    lab_expect(0, TINY_DRIFT " --encoder student --feature-keys pooled,s2.loc --steps 1 "
                             "--output-dir drift");
    lab_expect(0, "inspect student");
}

/* Maps of the teacher, from the student's map with as many places. */
static void test_maps_and_refusals(void **state)
{
    (void)state;
    lab_expect(0, STUDENT " --teacher-keys s2.loc,s1.mean2,pooled --steps 3 --eval-every 3 "
                          "--output-dir maps");
    lab_expect(2, STUDENT " --teacher-keys s1.mean4 --steps 3 --output-dir no");
    assert_non_null(strstr(lab_err, "--teacher-keys s1.mean4: 16 places: the student's maps have"));
    lab_expect(2, STUDENT " --teacher-keys s7.loc --steps 3 --output-dir no");
    assert_non_null(strstr(lab_err, "unknown feature key 's7.loc'"));
    lab_expect(2, TINY_ENCODER " --objective distill --steps 3 --output-dir no");
    assert_non_null(strstr(lab_err, "--objective distill: needs --teacher SPEC"));
    lab_expect(2, TINY_ENCODER " --teacher teacher --steps 3 --output-dir no");
    assert_non_null(strstr(lab_err, "only --objective distill"));
}

/* Wherever the teacher's features are, and however often the run stops. */
static void test_same_bits(void **state)
{
    (void)state;
    lab_expect(0,
               STUDENT " --steps 6 --log-every 1 --eval-every 3 --feature-disk 0 --output-dir a");
    lab_expect(0, STUDENT " --steps 6 --log-every 1 --eval-every 3 --feature-cache 0 --threads 1 "
                          "--output-dir b");
    assert_non_null(strstr(lab_err, "encoded again in every step"));
    lab_expect(0, STUDENT
               " --steps 3 --log-every 1 --eval-every 3 --scheduler constant --output-dir c");
    lab_expect(0, STUDENT " --steps 6 --log-every 1 --eval-every 3 --scheduler constant --resume "
                          "--output-dir c");
    lab_expect(0, STUDENT " --steps 6 --log-every 1 --eval-every 3 --scheduler constant "
                          "--output-dir d");
    lab_same_checkpoint("a", "b");
    lab_same_logs("a", "b");
    lab_same_checkpoint("c", "d");
    lab_same_logs("c", "d");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_gets_nearer),
        cmocka_unit_test(test_maps_and_refusals),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, enter, lab_leave);
}
