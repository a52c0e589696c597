/* SPDX-License-Identifier: Apache-2.0 */
/* What every device does: test_device [NAME [TESTS]], without one a CPU with memory of its own. */
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

#include "plan/plan_prover.h"
#include "plan/plan_util.h"

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

/* ---- packed weights -------------------------------------------------------------------------- */

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

typedef struct wide_shape {
    int32_t side, in, channels, skip, batch;
    lw_num num;
    bool in_pieces; /* parts begin at 16 bytes on every device */
} wide_shape;

static void compile_as(plan_lab *l, lw_num num)
{
    plan_proof proof;
    assert_int_equal(lw_store_fix(l->store), 0);
    lw_store_init(l->store, 3);
    if (lw_compile(l->g, l->dev, &(lw_compile_opts){.opt = 1, .precision = num}, &l->plan) < 0)
        fail_msg("%s", lw_errmsg());
    if (!plan_prove(l->plan, &proof))
        fail_msg("%s", proof.why);
    assert_int_equal(lw_exec_new(l->plan, LW_SLAB_PARAM, &l->exec), 0);
    lab_fill(l);
}

/* Outputs of both, which are closed, are the same bits. */
static void check_both(plan_lab l[2], const char *const *names)
{
    for (int k = 0; k < 2; k++)
        for (int run = 0; run < 3; run++) /* the second run on may be a recorded one */
            assert_int_equal(lw_exec_run(l[k].exec, NULL), 0);
    for (; *names; names++)
        assert_memory_equal(lw_exec_read(l[0].exec, *names), lw_exec_read(l[1].exec, *names),
                            (size_t)lw_type_count(lw_exec_type(l[0].exec, *names)) * sizeof(float));
    for (int k = 0; k < 2; k++)
        lab_close(&l[k]);
}

/* A level of a U-Net: what the first layer makes is normalised, added, made smaller and concatenated with what comes up, which is
 * normalised, convolved and multiplied as rows. */
static void open_level(plan_lab *l, const wide_shape *s, bool placed)
{
    const int32_t c = s->channels, k = s->skip, all = c + k;
    open_named(l);
    lw_graph *g = l->g;
    l->dev->pitched = placed ? l->dev->pitched : NULL;
    l->dev->f32_to_bf16 &= placed;
    lw_val skip = lw_conv2d_op(g, LAB_X(l, "x", s->batch, s->side, s->side, s->in),
                               LAB_P(l, "w0", k, 3, 3, s->in), LAB_P(l, "b0", k), 1, 1);
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
    lw_val rows = lw_reshape(g, skip, lw_type_of(LW_F32, 3, s->batch, s->side * s->side, k));
    lab_output(l, "z", lw_linear_op(g, rows, LAB_P(l, "v", 24, k), LW_NOVAL));
    lab_output(l, "y",
               lw_add(g, lw_conv2d_op(g, cat, LAB_P(l, "w5", c, 1, 1, all), LW_NOVAL, 1, 0), y));
    compile_as(l, s->num);
}

/* Steps of an op that do something. */
static int working(const lw_plan *p, lw_op op)
{
    int n = 0;
    for (int k = p->n_prepare; k < p->n_steps; k++)
        n += p->step[k].node->op == op && p->step[k].low.phase[0].n_tasks > 0;
    return n;
}

/* What is written where it is concatenated, in the type in which it is read, and read there by products and norms, has the bits of
 * what is cast and copied. */
static void test_what_lies_in_wider_rows_has_the_same_bits(void **state)
{
    static const wide_shape shapes[] = {
        {8, 16, 64, 64, 1, LW_NUM_F32, true},   {8, 3, 64, 64, 2, LW_NUM_BF16, true},
        {6, 16, 16, 24, 3, LW_NUM_F32, true},   {6, 16, 16, 24, 3, LW_NUM_BF16, true},
        {16, 4, 128, 64, 1, LW_NUM_BF16, true}, {6, 16, 10, 6, 2, LW_NUM_F32, false},
        {6, 7, 12, 20, 2, LW_NUM_BF16, false}};
    (void)state;
    for (int i = 0; i < (int)LW_COUNT(shapes); i++) {
        const wide_shape *s = &shapes[i];
        plan_lab l[2];
        for (int k = 0; k < 2; k++) {
            open_level(&l[k], s, k);
            const bool gpu = !l[k].dev->near_one; /* CPUs take rows at any place, and have casts */
            const bool thin = s->num == LW_NUM_BF16 && s->in < 8;
            assert_int_equal(working(l[k].plan, LW_OP_CONCAT), !k || (gpu && !s->in_pieces));
            if (thin && gpu)
                assert_int_equal(working(l[k].plan, LW_OP_CAST), !k);
        }
        check_both(l, (const char *const[]){"y", "z", NULL});
    }
}

/* A slice that stays in what is written into a concatenation: the block of YOLO whose second half goes on, and a value beside
 * its own half. */
static void open_slices(plan_lab *l, lw_num num, bool placed)
{
    open_named(l);
    lw_graph *g = l->g;
    l->dev->pitched = placed ? l->dev->pitched : NULL;
    lw_val x = LAB_X(l, "x", 2, 6, 6, 16);
    lw_val of = lw_conv2d_op(g, x, LAB_P(l, "w0", 32, 1, 1, 16), LAB_P(l, "b0", 32), 1, 0);
    lw_val half = lw_slice(g, of, 3, 16, 32);
    lw_val m = lw_conv2d_op(g, half, LAB_P(l, "w1", 16, 3, 3, 16), LW_NOVAL, 1, 1);
    m = lw_add(g, lw_conv2d_op(g, m, LAB_P(l, "w2", 16, 3, 3, 16), LW_NOVAL, 1, 1), half);
    lab_output(
        l, "y",
        lw_conv2d_op(g, lw_concat(g, of, m, 3), LAB_P(l, "w3", 16, 1, 1, 48), LW_NOVAL, 1, 0));
    lw_val rows = lw_linear_op(g, lw_reshape(g, x, lw_type_of(LW_F32, 3, 2, 36, 16)),
                               LAB_P(l, "w4", 8, 16), LW_NOVAL);
    lab_output(l, "z", lw_add_f32(g, lw_concat(g, rows, lw_slice(g, rows, 2, 4, 8), 2), 1.0f));
    compile_as(l, num);
}

static void test_slices_of_what_lies_in_wider_rows(void **state)
{
    (void)state;
    for (lw_num num = LW_NUM_F32; num <= LW_NUM_BF16; num++) {
        plan_lab l[2];
        for (int k = 0; k < 2; k++)
            open_slices(&l[k], num, k);
        check_both(l, (const char *const[]){"y", "z", NULL});
    }
}

/* ---- projection shortcuts ---------------------------------------------------------------------- */

typedef struct project_shape {
    int32_t h, w, in, projected, out, batch; /* batch: of many */
    bool swapped, biases, more; /* more: SiLU behind the sum, and a row of each picture */
} project_shape;

/* The end of a residual block whose shortcut is a 1x1 convolution; y: f32. */
static void open_projection(plan_lab *l, const project_shape *s, int32_t batch, bool project)
{
    open_named(l);
    lw_graph *g = l->g;
    l->dev->project = project ? l->dev->project : NULL;
    lw_val x = LAB_X(l, "x", batch, s->h, s->w, s->in + s->projected);
    lw_val main = lw_silu(g, lw_slice(g, x, 3, 0, s->in)),
           u = lw_slice(g, x, 3, s->in, s->in + s->projected);
    main = lw_conv2d_op(g, main, LAB_P(l, "w", s->out, 3, 3, s->in),
                        s->biases ? LAB_P(l, "b", s->out) : LW_NOVAL, 1, 1);
    if (s->more)
        main = lw_add(g, main,
                      lw_linear_op(g, lw_mean(g, u, LW_OVER_MIDDLE),
                                   LAB_P(l, "e", s->out, s->projected), LW_NOVAL));
    u = lw_conv2d_op(g, u, LAB_P(l, "p", s->out, 1, 1, s->projected), LAB_P(l, "c", s->out), 1, 0);
    lw_val y = s->swapped ? lw_add(g, u, main) : lw_add(g, main, u);
    lab_output(l, "y", s->more ? lw_silu(g, y) : y);
    compile_as(l, LW_NUM_BF16);
}

/* y of both, but for what the shortcut was rounded by. */
static void check_close_to(const plan_lab *l, const plan_lab *apart)
{
    const int64_t n = lw_type_count(lw_exec_type(l->exec, "y"));
    assert_int_equal(lw_exec_run(l->exec, NULL), 0);
    assert_int_equal(lw_exec_run(apart->exec, NULL), 0);
    const float *y = lw_exec_read(l->exec, "y"), *want = lw_exec_read(apart->exec, "y");
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)want[i]));
    for (int64_t i = 0; i < n; i++) /* no NaN either */
        assert_true(fabs((double)y[i] - (double)want[i]) < 4e-3 * most);
}

/* As more of the depth of what adds it, and apart; in any batch, on devices of any size. */
static void test_a_projection_is_more_of_the_depth(void **state)
{
    static const project_shape shapes[] = {
        {4, 4, 128, 192, 64, 3, false, true, true},    {8, 8, 256, 512, 128, 9, false, true, false},
        {16, 16, 64, 64, 68, 3, true, true, false},    {7, 5, 128, 576, 36, 3, true, false, true},
        {32, 32, 128, 192, 128, 2, false, true, true}, {9, 32, 64, 320, 192, 2, true, true, true}};
    (void)state;
    for (int i = 0; i < (int)LW_COUNT(shapes); i++) {
        const project_shape *s = &shapes[i];
        plan_lab few, many, apart, one;
        open_projection(&few, s, 1, true);
        open_projection(&many, s, s->batch, true);
        open_projection(&apart, s, s->batch, false);
        setenv("LW_EMULATED_MULTIPROCESSORS", "1", 1);
        open_projection(&one, s, s->batch, true);
        unsetenv("LW_EMULATED_MULTIPROCESSORS");
        assert_int_equal(working(apart.plan, LW_OP_CONV2D), 2);
        assert_int_equal(working(many.plan, LW_OP_CONV2D), many.dev->project ? 1 : 2);
        check_samples(&few, &many, (const char *const[]){"y", NULL}, s->batch);
        check_samples(&few, &one, (const char *const[]){"y", NULL}, s->batch);
        check_close_to(&many, &apart);
        lab_close(&few);
        lab_close(&many);
        lab_close(&apart);
        lab_close(&one);
    }
}

/* ---- inputs ------------------------------------------------------------------------------------ */

static void set_inputs(lw_exec *e, float x)
{
    float *to = lw_exec_write(e, "x"), *more = lw_exec_write(e, "more");
    for (int i = 0; i < MANY; i++) {
        to[i] = x;
        more[i] = (float)i;
    }
}

static void check_sum(lw_exec *e, float x)
{
    const float *y = lw_exec_read(e, "y");
    for (int i = 0; i < MANY; i++)
        assert_true(y[i] == x + (float)i);
}

/* Copies that go on by themselves read what was there when the run was started: whoever writes, binds or frees waits. */
static void test_inputs_of_the_next_run(void **state)
{
    static float mine[MANY];
    (void)state;
    plan_lab l;
    open_named(&l);
    lab_output(&l, "y", lw_add(l.g, LAB_X(&l, "x", MANY), LAB_X(&l, "more", MANY)));
    lab_compile(&l, 1);
    for (int k = 0; k < 4; k++) { /* nothing is read between runs */
        set_inputs(l.exec, (float)k);
        assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    }
    check_sum(l.exec, 3);
    assert_int_equal(lw_exec_bind(l.exec, "x", mine), 0);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    mine[0] = mine[MANY - 1] = 100; /* the next run's */
    check_sum(l.exec, 0);
    assert_int_equal(lw_exec_bind(l.exec, "x", NULL), 0);
    set_inputs(l.exec, 7);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_int_equal(lw_exec_bind(l.exec, "more", mine), 0); /* what was copied from is freed */
    set_inputs(l.exec, 8);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    check_sum(l.exec, 8);
    lab_close(&l);
}

/* ---- threads -------------------------------------------------------------------------------- */

/* A thread that is there before the devices are, and goes from one to the next. */
typedef struct visitor {
    lw_exec *exec;
    pthread_barrier_t meet;
    float y;
    int rc;
} visitor;

enum { VISITS = 2 };

static void *visit(void *arg)
{
    visitor *v = arg;
    for (int i = 0; i < VISITS; i++) {
        pthread_barrier_wait(&v->meet);
        *(float *)lw_exec_write(v->exec, "x") = 4;
        v->rc = lw_exec_run(v->exec, NULL);
        v->y = *(const float *)lw_exec_read(v->exec, "y");
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
        open_named(&l);
        lab_output(&l, "y", lw_scale(l.g, LAB_X(&l, "x", 1), 2.0f));
        lab_compile(&l, 1);
        v.exec = lw_steal(&l.exec);
        pthread_barrier_wait(&v.meet);
        pthread_barrier_wait(&v.meet);
        assert_int_equal(v.rc, 0);
        assert_true(v.y == 8);
        lab_close(&l);
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&v.meet);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_are_packed_once),
        cmocka_unit_test(test_a_row_has_the_same_bits_in_any_batch),
        cmocka_unit_test(test_a_norm_has_the_same_bits_in_any_batch),
        cmocka_unit_test(test_attention_has_the_same_bits_in_any_batch),
        cmocka_unit_test(test_what_lies_in_wider_rows_has_the_same_bits),
        cmocka_unit_test(test_slices_of_what_lies_in_wider_rows),
        cmocka_unit_test(test_a_projection_is_more_of_the_depth),
        cmocka_unit_test(test_inputs_of_the_next_run),
        cmocka_unit_test(test_any_thread_computes),
    };
    device_name = argc > 1 ? argv[1] : device_name;
    if (argc > 2)
        cmocka_set_test_filter(argv[2]); /* with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
