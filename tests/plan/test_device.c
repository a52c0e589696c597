/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between plan and a device. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

#include "plan/plan_util.h"

static void test_opened_by_name(void **state)
{
    (void)state;
    lw_device *dev = NULL;
    const lw_backend_options o = {.threads = 3, .isa = LW_ISA_REF};
    assert_int_equal(lw_backend_open("abacus", &o, &dev), LW_EDEVICE);
    assert_non_null(strstr(lw_errmsg(), "'abacus'"));
    assert_null(dev);
    assert_int_equal(lw_backend_open("cpu", &o, &dev), 0);
    assert_string_equal(dev->name, "cpu");
    assert_string_equal(dev->isa, "ref");
    assert_int_equal(dev->kernels->isa, LW_ISA_REF);
    assert_int_equal(lw_pool_size(dev->pool), 3);
    lw_backend_close(&dev);
    assert_null(dev);
    lw_backend_close(&dev);
}

/* y = 2 x + (1, 2, 3), where x is bound, and z = x^2. */
static void open_ports(plan_lab *l, const char *device)
{
    static const float add[3] = {1, 2, 3};
    const lw_backend_options o = {.threads = 2, .isa = lw_isa_best()};
    memset(l, 0, sizeof *l);
    assert_int_equal(lw_backend_open(device, &o, &l->dev), 0);
    assert_int_equal(lw_graph_new(&l->g), 0);
    assert_int_equal(lw_store_new(false, &l->store), 0);
    lw_val x = LAB_X(l, "x", 2, 3);
    lw_val more = lw_const(l->g, lw_type_of(LW_F32, 1, 3), add);
    lab_output(l, "y", lw_add(l->g, lw_scale(l->g, x, 2.0f), more));
    lab_output(l, "z", lw_sqr(l->g, x));
    lab_compile(l, 1);
}

static void fill_x(lw_exec *e, float from)
{
    float *x = lw_exec_write(e, "x");
    for (int i = 0; i < 6; i++)
        x[i] = from + (float)i;
}

static void check_ports(lw_exec *e, float from)
{
    const float *y = lw_exec_read(e, "y"), *z = lw_exec_read(e, "z"), *x = lw_exec_read(e, "x");
    for (int i = 0; i < 6; i++) {
        float v = from + (float)i;
        assert_true(x[i] == v && y[i] == 2 * v + (float)(i % 3 + 1) && z[i] == v * v);
    }
}

static void test_ports_of_the_cpu_are_no_copies(void **state)
{
    (void)state;
    plan_lab l;
    open_ports(&l, "cpu");
    fill_x(l.exec, 4);
    const void *y = lw_exec_read(l.exec, "y");
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    check_ports(l.exec, 4);
    assert_ptr_equal(lw_exec_write(l.exec, "x"), lw_exec_read(l.exec, "x"));
    assert_ptr_equal(lw_exec_read(l.exec, "y"), y);
    assert_null(lw_exec_write(l.exec, "y"));
    lab_close(&l);
}

/* Where device and host do not share memory, what was not asked for again is not there: whoever
 * keeps an address over a run fails on a CPU too. */
static void test_discrete_memory_tells_who_did_not_ask(void **state)
{
    (void)state;
    plan_lab l;
    float mine[6] = {7, 8, 9, 10, 11, 12};
    open_ports(&l, "cpu-discrete");
    fill_x(l.exec, 4);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    check_ports(l.exec, 4);
    const float *y = lw_exec_read(l.exec, "y");
    float *x = lw_exec_write(l.exec, "x");
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_true(y[0] != y[0] && y[5] != y[5]); /* not fetched again */
    check_ports(l.exec, 4);
    x[0] = 100; /* not asked for again */
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_true(((const float *)lw_exec_read(l.exec, "y"))[0] == 9);
    assert_int_equal(lw_exec_bind(l.exec, "x", mine), 0);
    for (int k = 0; k < 2; k++) { /* bound memory is taken as it is, each time */
        assert_int_equal(lw_exec_run(l.exec, NULL), 0);
        check_ports(l.exec, mine[0]);
        for (int i = 0; i < 6; i++)
            mine[i] += 10;
    }
    lab_close(&l);
}

typedef struct questions {
    int asked, last; /* says stop at the last one, and never again */
} questions;

static bool at_last(void *self)
{
    questions *q = self;
    return ++q->asked == q->last;
}

/* One watch, on the pool, ends plans within any of their steps. */
static void test_watched_runs_stop(void **state)
{
    plan_lab *l = *state;
    questions q = {0};
    const lw_observer obs = {.self = &q, .should_stop = at_last};
    lab_unet_sample(l, 1);
    lab_compile(l, 1);
    lab_fill(l);
    lw_pool_watch(l->dev->pool, &obs);
    assert_int_equal(lw_exec_run(l->exec, NULL), 0);
    assert_true(q.asked > lw_exec_step_count(l->exec)); /* before the tasks of a step */
    const questions all = q;
    for (int last = 1; last <= all.asked; last += 7) {
        q = (questions){.last = last};
        lw_store_touch(l->store,
                       LW_SLAB_PARAM); /* what is prepared is cut off too, and made again */
        assert_int_equal(lw_exec_run(l->exec, NULL), LW_ESTOPPED);
        assert_int_equal(q.asked, last);
    }
    q = (questions){0};
    assert_int_equal(lw_exec_run(l->exec, NULL), 0);
    lw_pool_watch(l->dev->pool, NULL);
    assert_int_equal(lw_exec_run(l->exec, NULL), 0);
    assert_in_range(q.asked, 1, all.asked);
}

/* A store follows the exec that binds it; what the host edits is there from its touch on. */
static void test_store_on_a_device(void **state)
{
    (void)state;
    plan_lab l;
    lw_device *cpu = NULL;
    lw_plan *plan = NULL;
    lw_exec *exec = NULL;
    const lw_backend_options o = {.threads = 1, .isa = LW_ISA_REF};
    memset(&l, 0, sizeof l);
    assert_int_equal(lw_backend_open("cpu-discrete", &o, &l.dev), 0);
    assert_int_equal(lw_graph_new(&l.g), 0);
    assert_int_equal(lw_store_new(false, &l.store), 0);
    l.b = (lw_builder){.g = l.g, .params = lw_store_params(l.store)};
    lab_output(&l, "y", lw_sqr(l.g, LAB_P(&l, "w", 3)));
    assert_int_equal(lw_store_fix(l.store), 0);
    lw_store_init(l.store, 3);
    assert_ptr_equal(lw_store_slab(l.store, LW_SLAB_PARAM, NULL),
                     lw_store_data(l.store, 0, LW_SLAB_PARAM));
    lab_compile(&l, 1);
    assert_ptr_not_equal(lw_store_slab(l.store, LW_SLAB_PARAM, NULL),
                         lw_store_data(l.store, 0, LW_SLAB_PARAM));
    for (float v = 2; v < 4; v++) {
        lw_store_edit(l.store, 0, LW_SLAB_PARAM)[1] = v;
        lw_store_touch(l.store, LW_SLAB_PARAM);
        assert_int_equal(lw_exec_run(l.exec, NULL), 0);
        assert_true(((const float *)lw_exec_read(l.exec, "y"))[1] == v * v);
        assert_true(lw_store_data(l.store, 0, LW_SLAB_PARAM)[1] == v);
    }
    assert_int_equal(lw_backend_open("cpu", &o, &cpu), 0);
    assert_int_equal(lw_compile(l.g, cpu, &(lw_compile_opts){.opt = 1}, &plan), 0);
    assert_int_equal(lw_exec_new(plan, LW_SLAB_PARAM, &exec), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "on one device"));
    lw_plan_free(&plan);
    lab_close(&l);
    lw_backend_close(&cpu);
}

/* ---- packed weights -------------------------------------------------------------------------- */

static const char *device_name = "cpu-discrete"; /* or the program's argument */

/* An empty graph and store on the device that is tested. */
static void open_named(plan_lab *l)
{
    memset(l, 0, sizeof *l);
    assert_int_equal(lw_backend_open(device_name, &(lw_backend_options){.threads = 2}, &l->dev), 0);
    assert_int_equal(lw_graph_new(&l->g), 0);
    assert_int_equal(lw_store_new(false, &l->store), 0);
    l->b = (lw_builder){.g = l->g, .params = lw_store_params(l->store)};
}

static struct {
    const lw_plan *plan;
    int (*run)(void *self, const lw_launch *l);
    int prepared;
} watched;

static int count_prepared(void *self, const lw_launch *l)
{
    for (int k = 0; k < watched.plan->n_prepare; k++)
        watched.prepared += l->low == &watched.plan->step[k].low && l->task.phase == 0;
    return watched.run(self, l);
}

enum { ROWS = 67, DEPTH = 70, COLUMNS = 66 };

/* y of both execs is `times` the numbers of want, but for a column (-1: for none); the weights were packed `packed` times
 * so far. */
static void check_packed(lw_exec *const e[2], const float *want, float times, int but, int packed)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lw_exec_run(e[i], NULL), 0);
        const float *y = lw_exec_read(e[i], "y");
        for (int k = 0; k < ROWS * COLUMNS; k++)
            assert_true(y[k] == times * want[k] || k % COLUMNS == but);
    }
    assert_int_equal(watched.prepared, packed);
}

/* Weights of products of bf16 are laid out anew behind a touch of their store and at no other time, once for all execs and
 * all that read them, on devices that record runs, too. */
static void test_weights_are_packed_once(void **state)
{
    static float want[ROWS * COLUMNS];
    (void)state;
    plan_lab l;
    lw_exec *both[2] = {NULL, NULL};
    open_named(&l);
    lw_val x = lw_cast(l.g, LAB_X(&l, "x", ROWS, DEPTH), LW_BF16, LW_NOVAL),
           more = lw_cast(l.g, LAB_X(&l, "more", 3, DEPTH), LW_BF16, LW_NOVAL),
           w = LAB_P(&l, "w", COLUMNS, DEPTH);
    lab_output(&l, "y", lw_linear_op(l.g, x, w, LW_NOVAL));
    lab_output(&l, "z", lw_linear_op(l.g, more, w, LW_NOVAL));
    lab_compile(&l, 1);
    assert_int_equal(l.plan->n_prepare, 1);
    assert_int_equal(l.plan->step[0].node->op, LW_OP_PACK);
    both[0] = l.exec;
    assert_int_equal(lw_exec_new(l.plan, LW_SLAB_PARAM, &both[1]), 0);
    lab_fill(&l);
    memcpy(lw_exec_write(both[1], "x"), lw_exec_read(l.exec, "x"), sizeof(float[ROWS * DEPTH]));
    watched.plan = l.plan;
    watched.run = l.dev->run;
    watched.prepared = 0;
    l.dev->run = count_prepared;
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    memcpy(want, lw_exec_read(l.exec, "y"), sizeof want);
    for (int i = 0; i < 4; i++)
        check_packed(both, want, 1, -1, 1);
    float *at = lw_store_edit(l.store, 0, LW_SLAB_PARAM);
    for (int i = 0; i < COLUMNS * DEPTH; i++)
        at[i] *= 2;
    lw_store_touch(l.store, LW_SLAB_PARAM);
    for (int i = 0; i < 3; i++)
        check_packed(both, want, 2, -1, 2);
    lw_store_edit(l.store, 0,
                  LW_SLAB_PARAM)[DEPTH] = INFINITY; /* whatever fills up its neighbour */
    lw_store_touch(l.store, LW_SLAB_PARAM);
    check_packed(both, want, 2, 1, 3);
    lw_exec_free(&both[1]);
    lab_close(&l);
}

/* ---- products of few rows --------------------------------------------------------------------- */

enum { LONG = 520, MANY = 4096 }; /* a depth of several places, columns of many tiles */

/* y: rows x by weights that are stored, z: by such that are computed beside them. */
static void open_product(plan_lab *l, int32_t rows)
{
    open_named(l);
    lw_val x = LAB_X(l, "x", rows, LONG), w = LAB_P(l, "w", MANY, LONG);
    lw_val v = lw_scale(l->g, LAB_X(l, "v", MANY, LONG), 2.0f);
    lab_output(l, "y", lw_linear_op(l->g, x, w, LAB_P(l, "bias", MANY)));
    lab_output(l, "z", lw_linear_op(l->g, lw_scale(l->g, x, 0.5f), v, LW_NOVAL));
    lab_compile(l, 1);
    lab_fill(l);
}

/* A few rows, whose weights may be on their way before what runs before is through, have the bits of many. */
static void test_a_row_has_the_same_bits_in_any_batch(void **state)
{
    enum { ROWS_OF_MANY = 20 };
    const size_t bytes = sizeof(float[MANY * LONG]);
    static const int32_t counts[] = {1, 13};
    (void)state;
    plan_lab many;
    open_product(&many, ROWS_OF_MANY);
    assert_int_equal(lw_exec_run(many.exec, NULL), 0);
    const float *x = lw_exec_read(many.exec, "x");
    for (int i = 0; i < (int)LW_COUNT(counts); i++) {
        plan_lab few;
        open_product(&few, counts[i]);
        for (int k = 0; k < 2; k++) { /* the second run on may be a recorded one */
            const size_t at = (size_t)k * 3;
            memset(lw_exec_write(few.exec, "v"), 0, bytes); /* what was there is not what will be */
            assert_int_equal(lw_exec_run(few.exec, NULL), 0);
            memcpy(lw_exec_write(few.exec, "v"), lw_exec_read(many.exec, "v"), bytes);
            memcpy(lw_exec_write(few.exec, "x"), x + at * LONG,
                   (size_t)counts[i] * LONG * sizeof *x);
            assert_int_equal(lw_exec_run(few.exec, NULL), 0);
            for (const char *const *name = (const char *const[]){"y", "z", NULL}; *name; name++)
                assert_memory_equal(lw_exec_read(few.exec, *name),
                                    (const float *)lw_exec_read(many.exec, *name) + at * MANY,
                                    (size_t)counts[i] * MANY * sizeof *x);
        }
        lab_close(&few);
    }
    lab_close(&many);
}

/* ---- samples alone and among others --------------------------------------------------------- */

/* x of the first, a middle and the last of `batch` samples alone has the same outputs, to the last bit. */
static void check_samples(const plan_lab *few, const plan_lab *many, const char *const *names,
                          int32_t batch)
{
    const size_t in = (size_t)lw_type_count(lw_exec_type(few->exec, "x"));
    assert_int_equal(lw_exec_run(many->exec, NULL), 0);
    const float *x = lw_exec_read(many->exec, "x");
    for (int k = 0; k < 3; k++) { /* the second run on may be a recorded one */
        const size_t i = (size_t)(k * (batch - 1) / 2);
        memcpy(lw_exec_write(few->exec, "x"), x + i * in, in * sizeof *x);
        assert_int_equal(lw_exec_run(few->exec, NULL), 0);
        for (const char *const *name = names; *name; name++) {
            const size_t out = (size_t)lw_type_count(lw_exec_type(few->exec, *name));
            assert_memory_equal(lw_exec_read(few->exec, *name),
                                (const float *)lw_exec_read(many->exec, *name) + i * out,
                                out * sizeof *x);
        }
    }
}

/* ---- norms ----------------------------------------------------------------------------------- */

typedef struct norm_shape {
    int32_t h, w, c, groups, batch;
    bool narrow;
} norm_shape;

/* y: the norm of pictures x, behind a shift that is computed and without one. */
static void open_norm(plan_lab *l, const norm_shape *s, int32_t batch)
{
    const lw_attr_norm a = {.groups = s->groups, .eps = 1e-5f, .act = LW_ACT_SILU};
    open_named(l);
    lw_val x = LAB_X(l, "x", batch, s->h, s->w, s->c), gamma = LAB_P(l, "gamma", s->c),
           beta = lw_scale(l->g, LAB_X(l, "beta", s->c), 2.0f);
    if (s->narrow)
        x = lw_cast(l->g, x, LW_BF16, LW_NOVAL);
    lw_val y = lw_graph_op(l->g, LW_OP_GROUP_NORM, (lw_val[]){x, gamma, beta}, 3, &a, sizeof a);
    lab_output(l, "y", y);
    lab_output(l, "z", lw_graph_op(l->g, LW_OP_GROUP_NORM, (lw_val[]){x, gamma}, 2, &a, sizeof a));
    lab_compile(l, 1);
    lab_fill(l);
}

/* Where groups of few pictures are spread over more of a GPU than those of many, and where they are not: rows and channels of
 * a thread, places that nobody has, groups of a warp. */
static void test_a_norm_has_the_same_bits_in_any_batch(void **state)
{
    static const norm_shape shapes[] = {
        {32, 32, 128, 32, 9, true}, {16, 16, 128, 32, 9, false}, {16, 16, 64, 8, 35, true},
        {8, 8, 64, 8, 35, true},    {9, 13, 32, 8, 67, false},   {4, 4, 64, 8, 67, true},
        {4, 4, 64, 8, 67, false},   {5, 7, 48, 4, 67, true},     {3, 5, 48, 4, 67, false}};
    (void)state;
    for (int i = 0; i < (int)LW_COUNT(shapes); i++) {
        const norm_shape *s = &shapes[i];
        plan_lab few, many;
        open_norm(&few, s, 1);
        open_norm(&many, s, s->batch);
        check_samples(&few, &many, (const char *const[]){"y", "z", NULL}, s->batch);
        lab_close(&few);
        lab_close(&many);
    }
}

/* ---- attention -------------------------------------------------------------------------------- */

typedef struct attention_shape {
    int32_t tokens, heads, channels, batch; /* channels: of a head */
    bool narrow;
} attention_shape;

static void open_attention(plan_lab *l, const attention_shape *s, int32_t batch)
{
    const lw_attr_attention a = {.heads = s->heads, .num = s->narrow ? LW_NUM_BF16 : LW_NUM_F32};
    open_named(l);
    lw_val x = LAB_X(l, "x", batch, s->tokens, 3 * s->heads * s->channels);
    if (s->narrow)
        x = lw_cast(l->g, x, LW_BF16, LW_NOVAL);
    lab_output(l, "y", lw_graph_op(l->g, LW_OP_ATTENTION, &x, 1, &a, sizeof a));
    lab_compile(l, 1);
    lab_fill(l);
}

/* Blocks of queries are of another size where there are few pictures; what a row adds up, and when, is not. */
static void test_attention_has_the_same_bits_in_any_batch(void **state)
{
    static const attention_shape shapes[] = {{96, 4, 64, 33, true},
                                             {128, 4, 40, 33, true},
                                             {70, 2, 16, 5, true},
                                             {65, 1, 128, 3, true},
                                             {70, 2, 64, 5, false}};
    (void)state;
    for (int i = 0; i < (int)LW_COUNT(shapes); i++) {
        plan_lab few, many;
        open_attention(&few, &shapes[i], 1);
        open_attention(&many, &shapes[i], shapes[i].batch);
        check_samples(&few, &many, (const char *const[]){"y", NULL}, shapes[i].batch);
        lab_close(&few);
        lab_close(&many);
    }
}

/* ---- rows of something wider ------------------------------------------------------------------ */

/* Steps of concatenations that copy nothing, of `all`. */
static int in_place(const lw_plan *p, int *all)
{
    int n = 0;
    *all = 0;
    for (int k = p->n_prepare; k < p->n_steps; k++)
        if (p->step[k].node->op == LW_OP_CONCAT) {
            ++*all;
            n += p->step[k].low.phase[0].n_tasks == 0;
        }
    return n;
}

typedef struct wide_shape {
    int32_t side, channels, skip, batch;
    lw_num num;
    bool in_pieces; /* parts begin at 16 bytes on every device */
} wide_shape;

/* A level of a U-Net: what comes down is normalised, added, made smaller and concatenated with what comes up, which is normalised,
 * convolved and multiplied as rows. */
static void open_level(plan_lab *l, const wide_shape *s, bool placed)
{
    const int32_t c = s->channels, k = s->skip, all = c + k;
    open_named(l);
    lw_graph *g = l->g;
    l->dev->pitched = placed ? l->dev->pitched : NULL;
    lw_val skip = lw_conv2d_op(g, LAB_X(l, "x", s->batch, s->side, s->side, 16),
                               LAB_P(l, "w0", k, 3, 3, 16), LAB_P(l, "b0", k), 1, 1);
    lw_val norm = lw_group_norm_op(g, skip, LAB_P(l, "g0", k), LAB_P(l, "h0", k), LW_NOVAL,
                                   LW_NOVAL, 2, 1e-5f, LW_ACT_NONE);
    lw_val beside = lw_add(g, lw_conv2d_op(g, norm, LAB_P(l, "w1", k, 3, 3, k), LW_NOVAL, 1, 1),
                           skip);
    lw_val low = lw_conv2d_op(g, beside, LAB_P(l, "w2", c, 3, 3, k), LW_NOVAL, 2, 1);
    lw_val up = lw_conv2d_op(g, lw_upsample(g, low, 2), LAB_P(l, "w3", c, 3, 3, c), LW_NOVAL, 1, 1);
    lw_val cat = lw_concat(g, up, beside, 3);
    lw_val more = lw_group_norm_op(g, cat, LAB_P(l, "g1", all), LAB_P(l, "h1", all), LW_NOVAL,
                                   LW_NOVAL, 2, 1e-5f, LW_ACT_NONE);
    lw_val y = lw_conv2d_op(g, lw_silu(g, more), LAB_P(l, "w4", c, 3, 3, all), LW_NOVAL, 1, 1);
    lw_val rows = lw_reshape(g, skip, lw_type_of(LW_F32, 2, s->batch * s->side * s->side, k));
    lab_output(l, "z", lw_linear_op(g, rows, LAB_P(l, "v", 24, k), LW_NOVAL));
    lab_output(l, "y",
               lw_add(g, lw_conv2d_op(g, cat, LAB_P(l, "w5", c, 1, 1, all), LW_NOVAL, 1, 0), y));
    assert_int_equal(lw_store_fix(l->store), 0);
    lw_store_init(l->store, 3);
    if (lw_compile(g, l->dev, &(lw_compile_opts){.opt = 1, .precision = s->num}, &l->plan) < 0)
        fail_msg("%s", lw_errmsg());
    assert_int_equal(lw_exec_new(l->plan, LW_SLAB_PARAM, &l->exec), 0);
    lab_fill(l);
}

/* What is written where it is concatenated, and read there by products and norms, has the bits of what is copied. */
static void test_what_lies_in_wider_rows_has_the_same_bits(void **state)
{
    static const wide_shape shapes[] = {
        {8, 64, 64, 1, LW_NUM_F32, true},    {8, 64, 64, 2, LW_NUM_BF16, true},
        {6, 16, 24, 3, LW_NUM_F32, true},    {6, 16, 24, 3, LW_NUM_BF16, true},
        {16, 128, 64, 1, LW_NUM_BF16, true}, {6, 10, 6, 2, LW_NUM_F32, false},
        {6, 12, 20, 2, LW_NUM_BF16, false}};
    (void)state;
    for (int i = 0; i < (int)LW_COUNT(shapes); i++) {
        plan_lab l[2];
        int all, n;
        for (int k = 0; k < 2; k++) {
            open_level(&l[k], &shapes[i], k);
            n = in_place(l[k].plan, &all);
            assert_int_equal(all, 1);
            assert_int_equal(n,
                             k && (shapes[i].in_pieces || l[k].dev->near_one)); /* CPUs take any */
            for (int run = 0; run < 3; run++) /* the second run on may be a recorded one */
                assert_int_equal(lw_exec_run(l[k].exec, NULL), 0);
        }
        for (const char *const *name = (const char *const[]){"y", "z", NULL}; *name; name++)
            assert_memory_equal(lw_exec_read(l[0].exec, *name), lw_exec_read(l[1].exec, *name),
                                (size_t)lw_type_count(lw_exec_type(l[0].exec, *name)) *
                                    sizeof(float));
        for (int k = 0; k < 2; k++)
            lab_close(&l[k]);
    }
}

/* ---- threads -------------------------------------------------------------------------------- */

/* A thread that is there before the devices are, and goes from one to the next. */
typedef struct visitor {
    lw_exec *exec;
    pthread_barrier_t meet;
    float y[6];
    int rc;
} visitor;

enum { VISITS = 2 };

static void *visit(void *arg)
{
    visitor *v = arg;
    for (int i = 0; i < VISITS; i++) {
        pthread_barrier_wait(&v->meet);
        fill_x(v->exec, 4);
        v->rc = lw_exec_run(v->exec, NULL);
        memcpy(v->y, lw_exec_read(v->exec, "y"), sizeof v->y);
        lw_exec_free(&v->exec);
        pthread_barrier_wait(&v->meet);
    }
    return NULL;
}

/* Whoever opened a device, any thread computes on it, and the next of that name is another one. */
static void test_any_thread_computes(void **state)
{
    (void)state;
    plan_lab l;
    visitor v = {0};
    pthread_t thread;
    assert_int_equal(pthread_barrier_init(&v.meet, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, visit, &v), 0);
    for (int i = 0; i < VISITS; i++) {
        open_ports(&l, device_name);
        v.exec = lw_steal(&l.exec);
        pthread_barrier_wait(&v.meet);
        pthread_barrier_wait(&v.meet);
        assert_int_equal(v.rc, 0);
        for (int k = 0; k < 6; k++)
            assert_true(v.y[k] == 2 * (4 + (float)k) + (float)(k % 3 + 1));
        lab_close(&l);
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&v.meet);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

enum { SLOTS = 2, CHANNELS = 24, TAUS = 2, PLACES = LW_DRIFT_STATS(TAUS) };

/* The drift field of `groups` groups of n samples and n positives. */
static void open_field(plan_lab *l, int groups, int n)
{
    lw_attr_drift a = {.groups = groups,
                       .n = n,
                       .np = n,
                       .slots = SLOTS,
                       .c = CHANNELS,
                       .n_tau = TAUS,
                       .tau = {0.05, 0.2},
                       .normalize_over_x = true};
    lab_open(l, 2, lw_isa_best());
    lw_drift_out o = lw_drift_field(l->g, LAB_X(l, "x", groups * n, SLOTS, CHANNELS),
                                    LAB_X(l, "p", groups * n, SLOTS, CHANNELS), LW_NOVAL, LW_NOVAL,
                                    &a);
    lab_output(l, "dx", o.dx);
    lab_output(l, "stats", o.stats);
    lab_compile(l, 1);
    lab_fill(l);
}

typedef struct gathering {
    lw_device *dev;
    int64_t groups, blocks; /* parts: one a task */
    char names[64];
    double by; /* S as if it were so much larger */
} gathering;

/* List of `n` parts of `row` numbers: the first becomes what all together are, the others nothing. */
static void gather_list(void *data, const lw_reduction *r, int64_t at, int64_t n, int64_t row)
{
    double *d = data;
    float *s = data;
    for (int64_t to = at; to < at + row; to++)
        for (int64_t from = to + row; from < at + n * row; from += row) {
            if (r->type == LW_F64) {
                d[to] += d[from];
                d[from] = 0;
            } else if (r->op == LW_REDUCE_SUM) {
                s[to] += s[from];
                s[from] = 0;
            } else {
                s[to] = fminf(s[to], s[from]);
                s[from] = 3e38f;
            }
        }
}

/* As ranks would put the parts together; minima of a group's targets are followed by their own. */
static void gather(void *self, const lw_reduction *r, void *data)
{
    gathering *f = self;
    const lw_memory *m = f->dev->memory;
    size_t bytes = (size_t)r->count * (r->type == LW_F64 ? 8 : 4);
    char *copy = malloc(bytes);
    m->write ? m->read(m->self, copy, data, bytes) : (void)memcpy(copy, data, bytes);
    snprintf(f->names + strlen(f->names), sizeof f->names - strlen(f->names), "%s ", r->name);
    if (r->op == LW_REDUCE_MEAN)
        gather_list(copy, r, 0, f->groups * f->blocks, r->count / (f->groups * f->blocks));
    for (int64_t g = 0; g < f->groups && r->op != LW_REDUCE_MEAN; g++)
        gather_list(copy, r, g * r->count / f->groups, f->blocks,
                    r->count / f->groups / (f->blocks + (r->op == LW_REDUCE_MIN)));
    if (strcmp(r->name, "scale") == 0)
        *(double *)(void *)copy *= f->by;
    m->write ? m->write(m->self, data, copy, bytes) : (void)memcpy(data, copy, bytes);
    free(copy);
}

static void check_gather(int groups, int n, int blocks, const char *names)
{
    plan_lab l;
    float stats[PLACES];
    open_field(&l, groups, n);
    gathering f = {.dev = l.dev, .groups = groups * SLOTS, .blocks = blocks, .by = 1};
    const lw_ranks ranks = {.self = &f, .reduce = gather};
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    size_t bytes = lw_type_bytes(lw_exec_type(l.exec, "dx"));
    float *dx = malloc(bytes);
    memcpy(dx, lw_exec_read(l.exec, "dx"), bytes);
    memcpy(stats, lw_exec_read(l.exec, "stats"), sizeof stats);
    lw_exec_ranks(l.exec, &ranks);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_string_equal(f.names, names);
    assert_memory_equal(lw_exec_read(l.exec, "stats"), stats, sizeof stats);
    assert_memory_equal(lw_exec_read(l.exec, "dx"), dx, bytes);
    f.by = 2;
    f.names[0] = 0;
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_true(((const float *)lw_exec_read(l.exec, "stats"))[0] == 2 * stats[0]);
    lw_exec_ranks(l.exec, NULL);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_memory_equal(lw_exec_read(l.exec, "stats"), stats, sizeof stats);
    free(dx);
    lab_close(&l);
}

/* What the field says are its parts are all that passes between its tasks. */
static void test_reductions_hold_all_parts(void **state)
{
    (void)state;
    if (lw_isa_best() == LW_ISA_REF)
        skip();
    check_gather(3, 8, 1, "scale moments ");
    check_gather(1, 300, 5, "scale minima columns moments ");
}

/* Two ranks of two groups each, in threads that meet at every reduction. */
typedef struct rank {
    plan_lab l;
    struct rank *other;
    pthread_barrier_t *meet;
    double sent[64];
    int rc;
} rank;

static void mean_of_both(void *self, const lw_reduction *r, void *data)
{
    rank *me = self;
    double *part = data;
    memcpy(me->sent, part, (size_t)r->count * sizeof *part);
    pthread_barrier_wait(me->meet);
    for (int64_t i = 0; i < r->count; i++)
        part[i] = 0.5 * (me->sent[i] + me->other->sent[i]);
    pthread_barrier_wait(me->meet);
}

static void *run_rank(void *arg)
{
    rank *me = arg;
    const lw_ranks ranks = {.self = me, .reduce = mean_of_both};
    lw_exec_ranks(me->l.exec, &ranks);
    me->rc = lw_exec_run(me->l.exec, NULL);
    return NULL;
}

/* Groups spread over ranks have the field of all of them; its mean is over a rank's own rows. */
static void test_two_ranks_have_one_field(void **state)
{
    enum { N = 8, HALF = 2 * N * SLOTS * CHANNELS };
    (void)state;
    if (lw_isa_best() == LW_ISA_REF || strcmp(lw_backend_chosen(), "cpu") != 0)
        skip();
    plan_lab whole;
    rank rank_of[2];
    pthread_barrier_t meet;
    pthread_t thread[2];
    open_field(&whole, 4, N);
    assert_int_equal(lw_exec_run(whole.exec, NULL), 0);
    assert_int_equal(pthread_barrier_init(&meet, NULL, 2), 0);
    for (int i = 0; i < 2; i++) {
        rank_of[i].other = &rank_of[!i];
        rank_of[i].meet = &meet;
        open_field(&rank_of[i].l, 2, N);
        for (const char *const *name = (const char *const[]){"x", "p", NULL}; *name; name++)
            memcpy(lw_exec_write(rank_of[i].l.exec, *name),
                   (const float *)lw_exec_read(whole.exec, *name) + (ptrdiff_t)i * HALF,
                   HALF * sizeof(float));
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_rank, &rank_of[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&meet);
    const float *stats = lw_exec_read(whole.exec, "stats"), *dx = lw_exec_read(whole.exec, "dx");
    for (int i = 0; i < 2; i++) {
        const float *s = lw_exec_read(rank_of[i].l.exec, "stats"),
                    *d = lw_exec_read(rank_of[i].l.exec, "dx");
        assert_int_equal(rank_of[i].rc, 0);
        for (int k = 0; k < PLACES; k++)
            assert_true(fabsf(s[k] - stats[k]) <= 1e-6f * fabsf(stats[k]));
        for (int k = 0; k < HALF; k++)
            assert_true(fabsf(d[k] - 2 * dx[i * HALF + k]) <= 1e-6f * fabsf(d[k]) + 1e-9f);
        lab_close(&rank_of[i].l);
    }
    lab_close(&whole);
}

/* test_device [NAME]: that device alone, in what every device does */
int main(int argc, char **argv)
{
    const struct CMUnitTest any[] = {
        cmocka_unit_test(test_weights_are_packed_once),
        cmocka_unit_test(test_a_row_has_the_same_bits_in_any_batch),
        cmocka_unit_test(test_a_norm_has_the_same_bits_in_any_batch),
        cmocka_unit_test(test_attention_has_the_same_bits_in_any_batch),
        cmocka_unit_test(test_what_lies_in_wider_rows_has_the_same_bits),
        cmocka_unit_test(test_any_thread_computes)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opened_by_name),
        cmocka_unit_test(test_ports_of_the_cpu_are_no_copies),
        cmocka_unit_test(test_discrete_memory_tells_who_did_not_ask),
        cmocka_unit_test(test_store_on_a_device),
        cmocka_unit_test(test_weights_are_packed_once),
        cmocka_unit_test(test_a_row_has_the_same_bits_in_any_batch),
        cmocka_unit_test(test_a_norm_has_the_same_bits_in_any_batch),
        cmocka_unit_test(test_attention_has_the_same_bits_in_any_batch),
        cmocka_unit_test(test_what_lies_in_wider_rows_has_the_same_bits),
        cmocka_unit_test(test_any_thread_computes),
        cmocka_unit_test(test_reductions_hold_all_parts),
        cmocka_unit_test(test_two_ranks_have_one_field),
        LAB_CASE(test_watched_runs_stop),
    };
    if (argc < 2)
        return cmocka_run_group_tests(tests, NULL, NULL);
    device_name = argv[1];
    return cmocka_run_group_tests_name("any device", any, NULL, NULL);
}
