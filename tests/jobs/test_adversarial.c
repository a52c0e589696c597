/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures against one network's Frechet distance: they win that network and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_device.h"
#include "base/base.h"
#include "data/data.h"
#include "eval/eval.h"
#include "formats/formats.h"
#include "models/models.h"
#include "session/session.h"
#include "store/store.h"
#include "results.h"

enum { SIDE = 16, FLOATS = SIDE * SIDE * 3, N = 150 };

static char dir[64] = "/tmp/lw_adversarial_XXXXXX";
static lw_device *dev;
static lw_dataset *held;
static int64_t *drawn;

/* An encoder with its first random weights. */
static void save_net(const char *name, int32_t width, uint64_t seed)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    lw_encoder_config c = lw_encoder_default(SIDE);
    c.width = width;
    c.stages = 2;
    LW_CLEANUP(lw_json_drop) json_t *config = lw_encoder_to_json(&c);
    ok(lw_store_new(true, &s));
    ok(lw_encoder_declare(&c, s));
    lw_store_init(s, seed);
    ok(lw_model_folder_save(lw_path_join(&path, dir, name), s, LW_SLAB_PARAM, config,
                            LW_WEIGHTS_HF));
}

static int enter(void **state)
{
    (void)state;
    const lw_data_opts o = {.split = LW_SPLIT_HELDOUT};
    if (!mkdtemp(dir))
        return -1;
    setenv("LW_CACHE", dir, 1);
    save_net("attacked", 8, 1);
    save_net("other", 8, 2);
    ok(lw_data_open("synth:16", &o, &held));
    ok(lw_data_drawn(held, &drawn));
    return cpu_device(2, lw_isa_best(), &dev);
}

static int leave(void **state)
{
    (void)state;
    lw_free(&drawn);
    lw_data_close(&held);
    lw_backend_close(&dev);
    return lw_remove_tree(dir);
}

/* A network and the statistics of half of the pictures in it. */
typedef struct looked {
    lw_score_net *net;
    lw_stats *reference;
} looked;

static float *real_pictures(int64_t first, int64_t n)
{
    float *x = malloc((size_t)(n * FLOATS) * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        lw_data_get(held, drawn[first + i], false, x + i * FLOATS);
    return x;
}

static double distance(const looked *l, const float *x, int64_t n)
{
    float *f = malloc((size_t)(n * l->net->dim) * sizeof *f);
    double out;
    ok(lw_score_net_run(l->net, x, n, f, NULL));
    ok(lw_frechet_rows(f, n, l->reference, &out));
    free(f);
    return out;
}

static looked open_net(const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    looked l = {NULL, NULL};
    float *x = real_pictures(0, 2 * N);
    ok(lw_score_net_open(dev, lw_path_join(&path, dir, name), SIDE, &l.net));
    float *f = malloc((size_t)(2 * N * l.net->dim) * sizeof *f);
    ok(lw_score_net_run(l.net, x, 2 * N, f, NULL));
    ok(lw_stats_new(l.net->dim, &l.reference));
    ok(lw_stats_add(NULL, l.reference, f, 2 * N));
    free(f);
    free(x);
    return l;
}

static void close_net(looked *l)
{
    lw_score_net_close(&l->net);
    lw_stats_free(&l->reference);
}

/* The attacked network's distance falls below that of real pictures, another's does not. */
static void one_network_is_won(void **state)
{
    (void)state;
    looked a = open_net("attacked"), b = open_net("other");
    float *real = real_pictures(2 * N, N), *x = real_pictures(3 * N, N);
    LW_CLEANUP(lw_junk_free) lw_junk *junk = NULL;
    ok(lw_junk_new(held, 3, &junk));
    for (int64_t i = 0; i < N; i++)
        lw_junk_make(junk, LW_JUNK_BLUR, i, x + i * FLOATS);
    const double before_b = distance(&b, x, N), floor_a = distance(&a, real, N),
                 floor_b = distance(&b, real, N);
    lw_adversarial_result r;
    const lw_adversarial_opts o = {.steps = 40};
    ok(lw_adversarial_pictures(dev, a.net->encoder, SIDE, a.reference, &o, x, N, &r));
    printf("attacked %.4g -> %.4g (real %.4g), other %.4g -> %.4g (real %.4g), moved %.3g\n",
           r.before, r.after, floor_a, before_b, distance(&b, x, N), floor_b, r.moved);
    assert_true(fabs(distance(&a, x, N) - r.after) < 1e-3 * r.before);
    assert_true(r.after < floor_a && r.before > 10 * floor_a);
    assert_true(distance(&b, x, N) > 3 * floor_b);
    for (int64_t i = 0; i < N * FLOATS; i++)
        assert_true(x[i] >= -1 && x[i] <= 1);
    free(real);
    free(x);
    close_net(&a);
    close_net(&b);
}

/* So few that their covariance has a low rank, on one thread and on two: the same bytes. */
static void threads_change_no_bit(void **state)
{
    (void)state;
    enum { FEW = 7 };
    looked a = open_net("attacked");
    float *x = real_pictures(2 * N, FEW), *y = real_pictures(2 * N, FEW);
    const lw_adversarial_opts o = {.steps = 4};
    lw_adversarial_result r, s;
    lw_device *one;
    ok(cpu_device(1, lw_isa_best(), &one));
    ok(lw_adversarial_pictures(dev, a.net->encoder, SIDE, a.reference, &o, x, FEW, &r));
    ok(lw_adversarial_pictures(one, a.net->encoder, SIDE, a.reference, &o, y, FEW, &s));
    assert_memory_equal(x, y, FEW * FLOATS * sizeof *x);
    assert_true(r.after < r.before && r.after == s.after);
    assert_int_equal(lw_adversarial_pictures(dev, a.net->encoder, SIDE, a.reference, &o, x, 1, &r),
                     LW_EUSAGE);
    lw_backend_close(&one);
    free(x);
    free(y);
    close_net(&a);
}

/* As a verdict gets them: bytes, classes, in words what they are; from a generator's pictures or from
 * blurred ones; noise leaves no picture equal to one that was learnt. */
static void both_are_planted(void **state)
{
    (void)state;
    enum { FEW = 20 };
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_data_close) lw_dataset *train = NULL;
    const lw_data_opts d = {.count = 300};
    float *start = real_pictures(0, FEW);
    int32_t labels[FEW] = {3, 1, 4};
    double noise = 0;
    lw_planted_cost c;
    lw_planted p[LW_PLANTED], q[LW_PLANTED];
    ok(lw_data_open("synth:16", &d, &train));
    lw_planted_opts o = {.network = lw_path_join(&path, dir, "attacked"),
                         .name = "attacked",
                         .train = train,
                         .start = start,
                         .labels = labels,
                         .n = FEW,
                         .steps = 12};
    ok(lw_planted_forecast(dev, &o, &c));
    /* 20 pictures are a batch, 300 training pictures five; a look more than steps */
    assert_true(c.batches == 5 && c.attack.batches == 1 && c.attack.steps == 12);
    assert_true(c.open > 0 && c.per_batch > 0 && c.attack.per_batch > 0 && c.attack.gradient > 0);
    double attack = c.attack.open + 12 * (c.attack.per_batch + c.attack.gradient) +
                    c.attack.gradient;
    assert_true(fabs(c.attack.seconds - attack) <= 1e-9 * attack);
    assert_true(fabs(c.seconds - (c.open + 5 * c.per_batch + attack)) <= 1e-9 * c.seconds);
    ok(lw_planted_make(dev, &o, p));
    assert_true(p[0].n == FEW && p[1].n == FEW && p[0].attack.after < .5 * p[0].attack.before);
    assert_string_equal(p[0].name, "against attacked");
    assert_non_null(strstr(p[0].how, "12 steps"));
    assert_memory_equal(p[0].labels, labels, sizeof labels);
    for (int i = 0; i < FEW; i++) {
        int64_t best = INT64_MAX;
        for (int64_t r = 0; r < train->n; r++) {
            int64_t sum = 0;
            for (int k = 0; k < FLOATS; k++) {
                int64_t off = p[1].rgb[i * FLOATS + k] - train->pixels[r * FLOATS + k];
                sum += off * off;
            }
            best = LW_MIN(best, sum);
        }
        noise += sqrt((double)best / FLOATS) / FEW;
    }
    assert_true(noise > .5 * 127.5 * LW_JUNK_GRAIN && noise < 1.1 * 127.5 * LW_JUNK_GRAIN);
    o.start = NULL;
    ok(lw_planted_make(dev, &o, q));
    assert_non_null(strstr(q[0].how, "blurred"));
    assert_true(q[0].labels && memcmp(p[0].rgb, q[0].rgb, FEW * FLOATS) != 0);
    assert_memory_equal(p[1].rgb, q[1].rgb, FEW * FLOATS);
    for (int i = 0; i < LW_PLANTED; i++) {
        lw_planted_clear(&p[i]);
        lw_planted_clear(&q[i]);
    }
    free(start);
}

static int steps_seen;
static void on_step(void *self, const char *what, int64_t done, int64_t total, const char *note)
{
    (void)self;
    (void)what;
    (void)note;
    steps_seen = (int)done;
    assert_int_equal(total, 30);
}
static bool after_two(void *self)
{
    (void)self;
    return steps_seen == 2;
}

static void stops_when_asked(void **state)
{
    (void)state;
    looked a = open_net("attacked");
    float *x = real_pictures(0, 5);
    const lw_observer obs = {.progress = on_step, .should_stop = after_two};
    const lw_adversarial_opts o = {.steps = 30, .obs = &obs};
    lw_adversarial_result r;
    assert_int_equal(lw_adversarial_pictures(dev, a.net->encoder, SIDE, a.reference, &o, x, 5, &r),
                     LW_ESTOPPED);
    assert_int_equal(steps_seen, 2);
    free(x);
    close_net(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_network_is_won),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(both_are_planted),
        cmocka_unit_test(stops_when_asked),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
