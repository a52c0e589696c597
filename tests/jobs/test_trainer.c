/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training loop on a job of a handful of numbers: schedules by value, AdamW and the average
 * against double, and what happens when numbers stop being finite.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "cpu_device.h"
#include "store/store.h"
#include "train/train_config.h"
#include "train/train_loop.h"
#include "train/train_schedule.h"

/* ---- schedules ------------------------------------------------------------------------------- */

static void assert_near(double have, double want)
{
    if (!(fabs(have - want) <= 1e-12 * (1.0 + fabs(want))))
        fail_msg("%.17g instead of %.17g", have, want);
}

/* min(d, (1+s)/(10+s)) where s counts the optimiser steps done, this one too. */
static void test_ema_warms_up(void **state)
{
    (void)state;
    assert_near(lw_schedule_ema(0.9999, 0), 2.0 / 11.0);
    assert_near(lw_schedule_ema(0.9999, 1), 3.0 / 12.0);
    assert_near(lw_schedule_ema(0.9999, 8), 10.0 / 19.0);
    assert_near(lw_schedule_ema(0.9999, 98), 100.0 / 109.0);
    assert_near(lw_schedule_ema(0.99, 888),
                890.0 / 899.0); /* the last step of the warm-up: 0.98998... */
    assert_near(lw_schedule_ema(0.99, 890), 0.99);
    assert_near(lw_schedule_ema(0.99, 1000000), 0.99);
    assert_near(lw_schedule_ema(0.0, 5), 0.0); /* no average: the weights themselves */
}

static void test_learning_rates(void **state)
{
    (void)state;
    lw_train_config c = {.learning_rate = 0.2, .warmup_steps = 10};
    assert_near(lw_schedule_lr(&c, 110, 0), 0.02);
    assert_near(lw_schedule_lr(&c, 110, 4), 0.1);
    assert_near(lw_schedule_lr(&c, 110, 9), 0.2);
    assert_near(lw_schedule_lr(&c, 110, 10), 0.2);
    assert_near(lw_schedule_lr(&c, 110, 109), 0.2);
    c.scheduler = LW_SCHEDULE_COSINE;
    c.lr_floor = 0.1;
    assert_near(lw_schedule_lr(&c, 110, 4), 0.1);
    assert_near(lw_schedule_lr(&c, 110, 10), 0.2);
    assert_near(lw_schedule_lr(&c, 110, 60), 0.2 * 0.55); /* half way */
    assert_near(lw_schedule_lr(&c, 110, 35),
                0.2 * (0.1 + 0.9 * 0.5 * (1.0 + sqrt(0.5)))); /* a quarter */
    assert_near(lw_schedule_lr(&c, 110, 110), 0.02);
    assert_near(lw_schedule_lr(&c, 110, 500), 0.02); /* behind the end it stays */
    c.warmup_steps = 110;                            /* nothing but warm-up */
    assert_near(lw_schedule_lr(&c, 110, 109), 0.2);
    assert_near(lw_schedule_lr(&c, 110, 110), 0.2); /* and no number of 0 / 0 behind it */
}

/* ---- a job ----------------------------------------------------------------------------------- */

enum { K = 5, MAX_STEPS = 8 };

typedef struct toy {
    lw_store *store;
    lw_device *dev;
    lw_plan *plan;
    lw_exec *exec;
    lw_train_job job;
    lw_train_config c;
    float x[MAX_STEPS * 4][K];      /* the gradient of each micro-step: input "x" */
    float before[MAX_STEPS * 4][K]; /* parameters when it was fed */
    char dir[64];
} toy;

static int toy_feed(void *self, int64_t leaf)
{
    toy *t = self;
    memcpy(lw_exec_write(t->exec, "x"), t->x[leaf], sizeof t->x[leaf]);
    memcpy(t->before[leaf], lw_store_data(t->store, 0, LW_SLAB_PARAM), sizeof t->before[leaf]);
    return 0;
}

typedef lw_val toy_loss(lw_graph *g, lw_val w, lw_val x);

/* loss = sum(w x): its gradient is x. */
static lw_val linear_loss(lw_graph *g, lw_val w, lw_val x)
{
    return lw_sum(g, lw_mul(g, w, x), LW_OVER_ALL);
}
/* finite, with an infinite slope at w = 0 */
static lw_val root_loss(lw_graph *g, lw_val w, lw_val x)
{
    return lw_sum(g, lw_mul(g, lw_ew1(g, LW_EW_sqrt, w), x), LW_OVER_ALL);
}

static void toy_open(toy *t, toy_loss *loss, lw_init init)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    memset(t, 0, sizeof *t);
    strcpy(t->dir, "/tmp/leeway-trainer-XXXXXX");
    assert_non_null(mkdtemp(t->dir));
    assert_int_equal(cpu_device(2, lw_isa_best(), &t->dev), 0);
    assert_int_equal(lw_store_new(false, &t->store), 0);
    assert_int_equal(lw_graph_new(&g), 0);
    lw_builder b = {.g = g, .params = lw_store_params(t->store)};
    lw_val w = lw_param(&b, "toy.weight", lw_type_of(LW_F32, 1, K), init);
    lw_val l = loss(g, w, lw_input(g, "x", lw_type_of(LW_F32, 1, K)));
    lw_graph_output_add(g, "loss", l, LW_NOVAL);
    assert_int_equal(lw_grad_params(g, l, LW_NOVAL), 0);
    assert_int_equal(lw_store_fix(t->store), 0);
    lw_store_init(t->store, 1);
    assert_int_equal(lw_compile(g, t->dev, NULL, &t->plan), 0);
    assert_int_equal(lw_exec_new(t->plan, LW_SLAB_PARAM, &t->exec), 0);
    for (int i = 0; i < MAX_STEPS * 4; i++)
        for (int k = 0; k < K; k++)
            t->x[i][k] = sinf((float)(1 + 7 * i + 3 * k)) * (float)(1 + k);
    t->job = (lw_train_job){.name = "toy",
                            .self = t,
                            .dev = t->dev,
                            .store = t->store,
                            .step = t->exec,
                            .plan = t->plan,
                            .leaves = {1, 1, 1},
                            .model = json_object(),
                            .feed = toy_feed};
    t->c = (lw_train_config){.output_dir = t->dir,
                             .steps = 6,
                             .batch_size = 1,
                             .grad_accum_steps = 1,
                             .learning_rate = 0.01,
                             .adam_beta1 = 0.9,
                             .adam_beta2 = 0.99,
                             .adam_eps = 1e-8,
                             .ema_decay = 0.5,
                             .log_every = 1};
}

static void toy_close(toy *t)
{
    json_decref(t->job.model);
    lw_exec_free(&t->exec);
    lw_plan_free(&t->plan);
    lw_store_free(&t->store);
    lw_backend_close(&t->dev);
    lw_remove_tree(t->dir);
}

/* ---- AdamW and the average, written down again ----------------------------------------------- */

static void check_updates(toy *t)
{
    const lw_train_config *c = &t->c;
    double p[K], m[K] = {0}, v[K] = {0}, ema[K];
    const float *start = lw_store_data(t->store, 0, LW_SLAB_PARAM);
    lw_train_result r;
    for (int k = 0; k < K; k++)
        p[k] = ema[k] = (double)start[k];
    if (lw_train_run(&t->job, &t->c, NULL, &r) < 0)
        fail_msg("%s", lw_errmsg());
    for (int64_t s = 0; s < c->steps; s++) {
        double g[K] = {0}, norm = 0.0, lr = lw_schedule_lr(c, c->steps, s),
               d = lw_schedule_ema(c->ema_decay, s);
        for (int k = 0; k < K; k++) {
            for (int i = 0; i < c->grad_accum_steps; i++)
                g[k] += (double)t->x[s * c->grad_accum_steps + i][k] / c->grad_accum_steps;
            norm += g[k] * g[k];
            assert_true(fabs(p[k] - (double)t->before[s * c->grad_accum_steps][k]) < 1e-6);
        }
        double clip = c->grad_clip > 0.0 && sqrt(norm) > c->grad_clip ? c->grad_clip / sqrt(norm)
                                                                      : 1.0;
        for (int k = 0; k < K; k++) {
            m[k] = c->adam_beta1 * m[k] + (1.0 - c->adam_beta1) * g[k] * clip;
            v[k] = c->adam_beta2 * v[k] + (1.0 - c->adam_beta2) * g[k] * g[k] * clip * clip;
            double mh = m[k] / (1.0 - pow(c->adam_beta1, (double)s + 1.0));
            double vh = v[k] / (1.0 - pow(c->adam_beta2, (double)s + 1.0));
            p[k] = p[k] * (1.0 - lr * c->weight_decay) - lr * mh / (sqrt(vh) + c->adam_eps);
            ema[k] = d * ema[k] + (1.0 - d) * p[k];
        }
    }
    for (int k = 0; k < K; k++) {
        assert_true(fabs(p[k] - (double)lw_store_data(t->store, 0, LW_SLAB_PARAM)[k]) < 1e-6);
        assert_true(fabs(ema[k] - (double)lw_store_data(t->store, 0, LW_SLAB_EMA)[k]) < 1e-6);
        assert_true(fabs(m[k] - (double)lw_store_data(t->store, 0, LW_SLAB_M)[k]) < 1e-6);
        assert_true(fabs(v[k] - (double)lw_store_data(t->store, 0, LW_SLAB_V)[k]) < 1e-6);
    }
    assert_int_equal(r.steps, c->steps);
}

static void test_updates(void **state)
{
    (void)state;
    toy t;
    toy_open(&t, linear_loss, (lw_init){LW_INIT_NORMAL, 1.0f});
    check_updates(&t);
    toy_close(&t);
}

static void test_updates_with_everything(void **state)
{
    (void)state;
    toy t;
    toy_open(&t, linear_loss, (lw_init){LW_INIT_NORMAL, 1.0f});
    t.c.grad_accum_steps = 4;
    t.job.leaves.n = 4;
    t.c.grad_clip = 1.5; /* some of the steps are clipped, not all */
    t.c.warmup_steps = 2;
    t.c.scheduler = LW_SCHEDULE_COSINE;
    t.c.weight_decay = 0.1;
    check_updates(&t);
    toy_close(&t);
}

/* ---- the tree of leaves ---------------------------------------------------------------------- */

enum { MOST_LEAVES = 18, F = 3 };

static float leaf_grad[MOST_LEAVES][F];

/* Number k of node (level, index) by its definition; leaves from n on are none. */
static float node_value(int level, int64_t index, int64_t n, int k)
{
    if (level == 0)
        return leaf_grad[index][k];
    float left = node_value(level - 1, 2 * index, n, k);
    bool lone = (2 * index + 1) << (level - 1) >= n;
    return lone ? left : left + node_value(level - 1, 2 * index + 1, n, k);
}

static void add_leaves(lw_leaf_sum *s, int64_t from, int64_t to)
{
    float g[F];
    lw_leaf_sum_begin(s);
    for (int64_t i = from; i < to; i++) {
        memcpy(g, leaf_grad[i], sizeof g); /* as a plan's gradient: gone with the next leaf */
        const lw_leaf_node leaf = {.index = i, .loss = (double)g[0], .grad = g};
        assert_int_equal(lw_leaf_sum_add(s, leaf), 0);
        if (s->total.grad == g)
            assert_int_equal(s->leaves, 1);
    }
}

static void assert_total(const lw_leaf_sum *s, int64_t n)
{
    int level = 0;
    while (1 << level < n)
        level++;
    assert_non_null(s->total.grad);
    for (int k = 0; k < F; k++) {
        float want = node_value(level, 0, n, k);
        assert_memory_equal(&s->total.grad[k], &want, sizeof want);
    }
}

/* All leaves in order keep no more than is said; two parts, cut anywhere, make the same bits. */
static void check_tree(lw_device *dev, int64_t n)
{
    int kept = 0;
    lw_leaf_sum all = {.dev = dev, .floats = F, .leaves = n}, part = all, rest = all;
    add_leaves(&all, 0, n);
    if (n > 1)
        assert_total(&all, n);
    for (size_t i = 0; i < LW_COUNT(all.node); i++)
        kept += all.node[i].grad != NULL;
    assert_int_equal(kept, lw_leaf_sum_slabs(n));
    for (int64_t cut = 1; cut < n; cut++) {
        add_leaves(&part, 0, cut);
        add_leaves(&rest, cut, n);
        assert_null(part.total.grad);
        for (int i = 0; i < rest.n; i++)
            assert_int_equal(lw_leaf_sum_add(&part, rest.node[i]), 0);
        assert_total(&part, n);
        assert_true(part.total.loss == all.total.loss);
    }
    lw_leaf_sum_clear(&all);
    lw_leaf_sum_clear(&part);
    lw_leaf_sum_clear(&rest);
}

static void test_leaf_tree(void **state)
{
    (void)state;
    lw_device *dev = NULL;
    float in_order = 0.0f;
    assert_int_equal(cpu_device(2, lw_isa_best(), &dev), 0);
    for (int i = 0; i < MOST_LEAVES; i++)
        for (int k = 0; k < F; k++)
            leaf_grad[i][k] = expf(5.0f * sinf((float)(1 + 5 * i + 2 * k)));
    for (int64_t n = 1; n <= MOST_LEAVES; n++)
        check_tree(dev, n);
    for (int i = 0; i < 16; i++)
        in_order += leaf_grad[i][0];
    assert_true(in_order != node_value(4, 0, 16, 0)); /* numbers for which the order matters */
    lw_backend_close(&dev);
}

/* ---- numbers that stop being finite ---------------------------------------------------------- */

static void assert_last_is(const toy *t, int64_t step)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_CLEANUP(lw_checkpoint_clear) lw_checkpoint c = {0};
    lw_store *fresh = t->store; /* loading proves that it is whole */
    assert_int_equal(lw_checkpoint_latest(t->dir, &dir), 0);
    if (lw_checkpoint_load(lw_str_c(&dir), fresh, &c) < 0)
        fail_msg("%s", lw_errmsg());
    assert_int_equal(c.step, step);
    assert_null(lw_store_first_bad(fresh, LW_SLAB_PARAM));
    assert_null(lw_store_first_bad(fresh, LW_SLAB_EMA));
}

static void test_loss_not_finite(void **state)
{
    (void)state;
    toy t;
    lw_train_result r;
    toy_open(&t, linear_loss, (lw_init){LW_INIT_ONES, 0});
    t.c.save_every = 1;
    t.x[3][2] = NAN;
    assert_int_equal(lw_train_run(&t.job, &t.c, NULL, &r), LW_ENUMERIC);
    assert_non_null(strstr(lw_errmsg(), "step 4"));
    assert_non_null(strstr(lw_errmsg(), "toy.weight"));
    assert_non_null(strstr(lw_errmsg(), "the loss is not finite"));
    assert_int_equal(lw_exit_code(LW_ENUMERIC), 7);
    assert_last_is(&t, 3);
    toy_close(&t);
}

static void test_gradient_not_finite(void **state)
{
    (void)state;
    toy t;
    lw_train_result r;
    toy_open(&t, root_loss, (lw_init){LW_INIT_ONES, 0});
    lw_store_edit(t.store, 0, LW_SLAB_PARAM)[1] = 0.0f;
    for (int i = 0; i < MAX_STEPS; i++)
        t.x[i][1] = i < 2 ? 0.0f : 1.0f; /* 0 / 0 is not a number either */
    lw_store_touch(t.store, LW_SLAB_PARAM);
    t.c.save_every = 1;
    assert_int_equal(lw_train_run(&t.job, &t.c, NULL, &r), LW_ENUMERIC);
    assert_non_null(strstr(lw_errmsg(), "gradient norm"));
    assert_non_null(strstr(lw_errmsg(), "step 1"));
    assert_non_null(strstr(lw_errmsg(), "toy.weight"));
    assert_non_null(strstr(lw_errmsg(), "checkpoint"));
    toy_close(&t);
}

/* Finite loss, finite gradient, and an update that overflows: the checkpoint before stays
 * the last. */
static void test_weights_not_finite(void **state)
{
    (void)state;
    toy t;
    lw_train_result r;
    toy_open(&t, linear_loss, (lw_init){LW_INIT_ONES, 0});
    t.c.steps = 2;
    assert_int_equal(lw_train_run(&t.job, &t.c, NULL, &r), 0);
    t.c.resume = true;
    t.c.steps = 3;
    t.c.learning_rate = 1e39;
    assert_int_equal(lw_train_run(&t.job, &t.c, NULL, &r), LW_ENUMERIC);
    assert_non_null(strstr(lw_errmsg(), "toy.weight"));
    assert_non_null(strstr(lw_errmsg(), "step 3"));
    assert_last_is(&t, 2);
    toy_close(&t);
}

/* The gradient of a micro-batch before the last is the bad one. */
static void test_bad_micro_batch_is_named(void **state)
{
    (void)state;
    toy t;
    lw_train_result r;
    toy_open(&t, linear_loss, (lw_init){LW_INIT_ONES, 0});
    t.c.grad_accum_steps = 3;
    t.job.leaves.n = 3;
    t.x[4][1] = NAN; /* the second of three of step 2 */
    assert_int_equal(lw_train_run(&t.job, &t.c, NULL, &r), LW_ENUMERIC);
    assert_non_null(strstr(lw_errmsg(), "step 2"));
    assert_non_null(strstr(lw_errmsg(), "first bad gradient: toy.weight"));
    toy_close(&t);
}

/* ---- how long -------------------------------------------------------------------------------- */

static const double minutes = 0.02;

/* Far too hopeful: steps take 20 ms. */
static int toy_measure(void *self, double budget, lw_train_pace *out)
{
    (void)self;
    assert_true(fabs(budget - 60.0 * minutes) < 1e-9);
    *out = (lw_train_pace){.step = 1e-3};
    return 0;
}

static int toy_advance(void *self, int64_t step, int64_t goal, lw_train_step *out)
{
    (void)self, (void)step, (void)goal;
    lw_sleep(0.02);
    *out = (lw_train_step){.loss = 1.0};
    return 0;
}

static void test_minutes_are_kept(void **state)
{
    (void)state;
    toy t;
    lw_train_result r;
    toy_open(&t, linear_loss, (lw_init){LW_INIT_ONES, 0});
    t.job.measure = toy_measure;
    t.job.advance = toy_advance;
    t.c.steps = 0;
    t.c.minutes = minutes;
    double began = lw_now();
    assert_int_equal(lw_train_run(&t.job, &t.c, NULL, &r), 0);
    double took = lw_now() - began;
    print_message("%lld of %lld steps in %.3f s of %.3f\n", (long long)r.steps,
                  (long long)r.minutes_steps, took, 60.0 * minutes);
    assert_in_range(r.minutes_steps, 1000, 1200);
    assert_in_range(r.steps, 1, 63); /* what 1.05 of the time has room for */
    assert_last_is(&t, r.steps);
    toy_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ema_warms_up),
        cmocka_unit_test(test_learning_rates),
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_updates_with_everything),
        cmocka_unit_test(test_leaf_tree),
        cmocka_unit_test(test_loss_not_finite),
        cmocka_unit_test(test_gradient_not_finite),
        cmocka_unit_test(test_weights_not_finite),
        cmocka_unit_test(test_bad_micro_batch_is_named),
        cmocka_unit_test(test_minutes_are_kept),
    };
    return cmocka_run_group_tests_name("trainer", tests, NULL, NULL);
}
