/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types: which products get narrow operands and from where, dumps of the pass, agreement
 * with f32 and with the oracle of the same type, the same bits for any number of threads and any
 * batch.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan_prover.h"
#include "plan/plan_util.h"
#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "store/store.h"

#define DUMPS "tests/plan/dumps/"
static bool update;

/* ---- calibration by hand: minimum and maximum of every edge ---------------------------------- */

enum { MAX_EDGES = 64 };
typedef struct ranges {
    char name[MAX_EDGES][96];
    lw_edge_range edge[MAX_EDGES];
    lw_calibration c;
} ranges;

static void measure(ranges *r, const plan_lab *l)
{
    memset(r, 0, sizeof *r);
    for (int i = 0; i < l->plan->n_output; i++) {
        const lw_plan_port *p = &l->plan->output[i];
        if (!lw_str_starts(p->name, LW_EDGE_OUTPUT))
            continue;
        const float *x = lw_exec_read(l->exec, p->name);
        float lo = 0, hi = 0;
        for (int64_t e = 0; e < lw_type_count(p->type); e++) {
            lo = fminf(lo, x[e]);
            hi = fmaxf(hi, x[e]);
        }
        assert_true(r->c.n < MAX_EDGES && hi > lo);
        snprintf(r->name[r->c.n], sizeof r->name[0], "%s", p->name + strlen(LW_EDGE_OUTPUT));
        r->edge[r->c.n] = (lw_edge_range){.name = r->name[r->c.n],
                                          .scale = (hi - lo) / 255.0f,
                                          .zero = (int32_t)lrintf(-lo * 255.0f / (hi - lo))};
        r->c.n++;
    }
    r->c.edge = r->edge;
}

/* Ranges of the sampling U-Net. */
static void calibrate(ranges *r)
{
    plan_lab l;
    lab_open(&l, 2, lw_isa_best());
    lab_unet_sample(&l, 4);
    assert_int_equal(lw_calibration_outputs(l.g), 0);
    lab_compile(&l, 1);
    lab_fill(&l);
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){4, 7}), 0);
    measure(r, &l);
    lab_close(&l);
}

/* ---- dumps and structure --------------------------------------------------------------------- */

/* A residual block and its gradients. */
static void build_block(plan_lab *l, bool train)
{
    lw_graph *g = l->g;
    lw_val x = LAB_X(l, "x", 2, 4, 4, 8);
    lw_val h = lw_group_norm(&l->b, "norm1", x, (lw_norm_opts){.groups = 4, .act = LW_ACT_SILU});
    h = lw_conv2d(&l->b, "conv1", h, 16, (lw_conv_opts){.kernel = 3, .pad = 1});
    h = lw_group_norm(&l->b, "norm2", h, (lw_norm_opts){.groups = 4, .act = LW_ACT_SILU});
    h = lw_conv2d(&l->b, "conv2", h, 16, (lw_conv_opts){.kernel = 3, .pad = 1});
    h = lw_add(g, h, lw_conv2d(&l->b, "skip", x, 16, (lw_conv_opts){.kernel = 1}));
    h = lw_conv2d(&l->b, "out", h, 3, (lw_conv_opts){.kernel = 3, .pad = 1});
    if (!train) {
        lab_output(l, "y", h);
        return;
    }
    lw_val loss = lw_mean(g, lw_sqr(g, h), LW_OVER_ALL);
    lab_output(l, "loss", loss);
    assert_int_equal(lw_grad_params(g, loss, LW_NOVAL), 0);
}

static void check_dump(const char *path, bool train, lw_num num, const lw_calibration *c)
{
    plan_lab l;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_CLEANUP(lw_free) char *want = NULL;
    size_t n;
    lab_open(&l, 1, LW_ISA_REF);
    build_block(&l, train);
    lab_compile_as(
        &l,
        &(lw_compile_opts){
            .opt = 1, .dump = &text, .dump_pass = "precision", .precision = num, .calibration = c});
    lab_close(&l);
    if (update)
        assert_int_equal(lw_file_write(path, lw_str_c(&text), text.len), 0);
    if (lw_file_read(path, 0, &want, &n) < 0)
        fail_msg("%s", lw_errmsg());
    if (strcmp(want, lw_str_c(&text)) != 0)
        fail_msg("%s differs (test_plan_precision --update writes it again); now:\n%s", path,
                 lw_str_c(&text));
}

static void test_dumps(void **state)
{
    (void)state;
    static const lw_edge_range edge[] = {{"conv1.weight", 0.02f, 14}, {"conv2.weight", 0.02f, 15}};
    check_dump(DUMPS "precision_bf16.txt", false, LW_NUM_BF16, NULL);
    check_dump(DUMPS "precision_bf16_train.txt", true, LW_NUM_BF16, NULL);
    check_dump(DUMPS "precision_int8.txt", false, LW_NUM_S8, &(lw_calibration){edge, 2});
}

/* Forward and weight gradient read one bf16 value, which the norm wrote; thin layers stay f32; what
 * the backward pass keeps in f32 anyway it casts again. */
static void test_shared_casts(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    build_block(&l, true);
    lab_compile_as(&l, &(lw_compile_opts){.opt = 1, .precision = LW_NUM_BF16});
    const lw_graph *g = l.plan->graph;
    int stores = 0, thin = 0, shared = 0;
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *n = lw_graph_node(g, i);
        if (n->op == LW_OP_GROUP_NORM)
            stores += lw_val_type(g, n->out[0]).dtype == LW_BF16;
        if (n->op == LW_OP_CONV2D)
            thin += lw_val_type(g, n->in[0]).dtype == LW_F32;
        for (uint32_t k = 0; n->op == LW_OP_CONV2D && k < lw_graph_node_count(g); k++) {
            const lw_node *d = lw_graph_node(g, k);
            shared += d->op == LW_OP_CONV2D_DW && d->in[1].id == n->in[0].id &&
                      lw_val_type(g, d->in[1]).dtype == LW_BF16;
        }
    }
    assert_int_equal(stores, 2);
    assert_int_equal(thin, 1);   /* "out", 16 -> 3 */
    assert_int_equal(shared, 2); /* conv1, conv2 */
    bool again = false;          /* of x, for skip's weight gradient: norm1's gradient reads x */
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++)
        again |= lw_graph_node(g, i)->op == LW_OP_CAST && lw_graph_node(g, i)->backward &&
                 lw_val_node(g, lw_graph_node(g, i)->in[0])->op == LW_OP_INPUT;
    assert_true(again);
    lab_close(&l);
}

static void test_memory(void **state)
{
    (void)state;
    size_t bytes[2];
    for (int num = LW_NUM_F32; num <= LW_NUM_BF16; num++) {
        plan_lab l;
        lab_open(&l, 1, lw_isa_best());
        lab_unet_train(&l, 8);
        lab_compile_as(&l, &(lw_compile_opts){.opt = 1, .precision = (lw_num)num});
        plan_proof proof;
        if (!plan_prove(l.plan, &proof))
            fail_msg("%s", proof.why);
        bytes[num] = l.plan->frame_bytes;
        lab_close(&l);
    }
    print_message("training step of 8: %zu bytes of values in f32, %zu in bf16\n", bytes[0],
                  bytes[1]);
    assert_true(bytes[LW_NUM_BF16] < bytes[LW_NUM_F32]);
}

/* ---- numbers --------------------------------------------------------------------------------- */

enum { ROW = 8 * 8 * 3 };

/* Rows of the sampling U-Net in `num`. */
static void sample(float *y, int32_t batch, int threads, lw_isa isa, int opt, lw_num num,
                   const ranges *r)
{
    plan_lab l;
    lab_open(&l, threads, isa);
    lab_unet_sample(&l, batch);
    lab_compile_as(
        &l, &(lw_compile_opts){.opt = opt, .precision = num, .calibration = r ? &r->c : NULL});
    lab_fill(&l);
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){4, 7}), 0);
    memcpy(y, lw_exec_read(l.exec, "y"), sizeof(float) * ROW * (size_t)batch);
    lab_close(&l);
}

static void test_agreement(void **state)
{
    (void)state;
    static ranges r;
    static float f32[5 * ROW], fast[5 * ROW], oracle[5 * ROW];
    static const double bound[] = {0, 1e-2, 8e-2};
    calibrate(&r);
    sample(f32, 5, 2, lw_isa_best(), 1, LW_NUM_F32, NULL);
    for (int num = LW_NUM_BF16; num <= LW_NUM_S8; num++) {
        const ranges *c = num == LW_NUM_S8 ? &r : NULL;
        sample(oracle, 5, 1, LW_ISA_REF, 0, (lw_num)num, c);
        for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
            sample(fast, 5, 2, isa, 1, (lw_num)num, c);
            double to_f32 = lab_distance(f32, fast, 5 * ROW),
                   to_own = lab_distance(oracle, fast, 5 * ROW);
            print_message("%s at %s: relative difference to f32 %.2g, to its oracle %.2g\n",
                          num == LW_NUM_S8 ? "int8" : "bf16", lw_isa_name(isa), to_f32, to_own);
            assert_true(to_f32 > 1e-5 && to_f32 < bound[num]);
            /* Where tiles are faster than bf16 a level keeps layers in f32 that its
             * oracle rounds. */
            assert_true(to_own < (num == LW_NUM_S8 ? bound[num] / 2 : bound[num]));
        }
    }
}

static void test_bits(void **state)
{
    (void)state;
    static ranges r;
    static float one[7 * ROW], other[7 * ROW];
    calibrate(&r);
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa))
        for (int num = LW_NUM_BF16; num <= LW_NUM_S8; num++) {
            const ranges *c = num == LW_NUM_S8 ? &r : NULL;
            sample(one, 7, 1, isa, 1, (lw_num)num, c);
            sample(other, 7, 2, isa, 1, (lw_num)num, c);
            assert_memory_equal(one, other, sizeof one);
            sample(other, 7, 5, isa, 1, (lw_num)num, c);
            assert_memory_equal(one, other, sizeof one);
            sample(other, 1, 3, isa, 1, (lw_num)num, c); /* batch 1, and 4 of 7 */
            assert_memory_equal(one, other, sizeof(float) * ROW);
            sample(other, 4, 3, isa, 1, (lw_num)num, c);
            assert_memory_equal(one, other, sizeof(float) * 4 * ROW);
        }
}

/* Casts of what is computed. */
static int inner_casts(const lw_graph *g)
{
    int n = 0;
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *node = lw_graph_node(g, i);
        n += node->op == LW_OP_CAST && lw_val_node(g, node->in[0])->op != LW_OP_INPUT;
    }
    return n;
}

/* A block of tokens, and with dx also the gradient of its input; the type that its attention multiplies.
 * What makes a value that is read in bf16 writes it so: what is cast is the gradient of q, k and v. */
static lw_num attend(float *y, float *dx, int64_t n, lw_isa isa, lw_num num)
{
    plan_lab l;
    lab_open(&l, 2, isa);
    lw_val x = LAB_X(&l, "x", 2, 50, 48), dh = LAB_X(&l, "dh", 2, 50, 48), d;
    lw_val h = lw_attention(l.g, lw_linear(&l.b, "qkv", x, 3 * 48, true), 2);
    h = lw_linear(&l.b, "out", h, 48, true);
    lab_output(&l, "y", h);
    if (dx) {
        lw_grad(l.g, &h, &dh, 1, &x, &d, 1);
        lab_output(&l, "dx", d);
    }
    const lw_edge_range edge = {"qkv.weight", 0.01f, 128};
    const lw_calibration c = {&edge, 1};
    lab_compile_as(&l, &(lw_compile_opts){.opt = 1,
                                          .precision = num,
                                          .calibration = num == LW_NUM_S8 ? &c : NULL});
    lab_fill(&l);
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){1, 0}), 0);
    memcpy(y, lw_exec_read(l.exec, "y"), sizeof *y * (size_t)n);
    if (dx)
        memcpy(dx, lw_exec_read(l.exec, "dx"), sizeof *dx * (size_t)n);
    const lw_node *node = lab_node(l.plan->graph, LW_OP_ATTENTION, 0),
                  *grad = dx ? lab_node(l.plan->graph, LW_OP_ATTENTION_GRAD, 0) : node;
    lw_num got = (lw_num)((const lw_attr_attention *)node->attr)->num;
    assert_int_equal(((const lw_attr_attention *)grad->attr)->num, got);
    if (num == LW_NUM_BF16)
        assert_int_equal(inner_casts(l.plan->graph), dx ? 1 : 0);
    lab_close(&l);
    return got;
}

/* Narrow, with a gradient too and then with the same bits, at every level within what rounding explains. */
static void test_attention(void **state)
{
    (void)state;
    enum { N = 2 * 50 * 48 };
    static float want[N], y[N], train[N], want_dx[N], dx[N];
    assert_int_equal(attend(want, want_dx, N, LW_ISA_REF, LW_NUM_F32), LW_NUM_F32);
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        assert_int_equal(attend(y, NULL, N, isa, LW_NUM_BF16), LW_NUM_BF16);
        assert_int_equal(attend(train, dx, N, isa, LW_NUM_BF16), LW_NUM_BF16);
        assert_memory_equal(y, train, sizeof y);
        double far = lab_distance(want, y, N), off = lab_distance(want_dx, dx, N);
        print_message("attention at %s: relative difference to f32 %.2g, of the gradient %.2g\n",
                      lw_isa_name(isa), far, off);
        assert_true(far > 1e-4 && far < 1e-2 && off > 1e-4 && off < 1e-2);
        /* Beside bytes, and its gradient, only where that is not slower. */
        const lw_num beside = isa >= LW_ISA_AVX512BF16 ? LW_NUM_BF16 : LW_NUM_F32;
        assert_int_equal(attend(train, NULL, N, isa, LW_NUM_S8), beside);
        assert_int_equal(attend(train, dx, N, isa, LW_NUM_S8), beside);
    }
}

/* The patches of a picture are rows of a matrix product under bf16, in f32 a convolution. */
static void embed(float *y, int64_t n, lw_isa isa, lw_num num)
{
    plan_lab l;
    lab_open(&l, 2, isa);
    lw_val x = LAB_X(&l, "x", 2, 8, 12, 3);
    lab_output(&l, "y", lw_conv2d(&l.b, "stem", x, 24, (lw_conv_opts){.kernel = 4, .stride = 4}));
    lab_compile_as(&l, &(lw_compile_opts){.opt = 1, .precision = num});
    lab_fill(&l);
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){1, 0}), 0);
    memcpy(y, lw_exec_read(l.exec, "y"), sizeof *y * (size_t)n);
    lw_op op = num == LW_NUM_BF16 ? LW_OP_MATMUL : LW_OP_CONV2D;
    const lw_node *product = lab_node(l.plan->graph, op, 0);
    assert_int_equal(lw_val_type(l.plan->graph, product->in[0]).dtype,
                     num == LW_NUM_BF16 ? LW_BF16 : LW_F32);
    lab_close(&l);
}

static void test_patches(void **state)
{
    (void)state;
    enum { N = 2 * 2 * 3 * 24 };
    float want[N], y[N];
    embed(want, N, LW_ISA_REF, LW_NUM_F32);
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        embed(y, N, isa, LW_NUM_BF16);
        double far = lab_distance(want, y, N);
        print_message("patches at %s: relative difference to f32 %.2g\n", lw_isa_name(isa), far);
        assert_true(far > 1e-5 && far < 1e-2);
    }
}

/* ---- f32 as sums of three bf16 --------------------------------------------------------------- */

enum { SIDE = 8, WIDE = 96, SAMPLE = SIDE * SIDE * WIDE };

/* A 1x1 convolution and a matrix product; y: [batch][SAMPLE]. Returns the bytes of packed weights. */
static size_t products_at(lw_isa isa, int threads, int32_t batch, float *y)
{
    plan_lab l;
    lab_open(&l, threads, isa);
    lw_val x = lw_conv2d(&l.b, "conv", LAB_X(&l, "x", batch, SIDE, SIDE, WIDE), WIDE,
                         (lw_conv_opts){.kernel = 1});
    x = lw_reshape(l.g, x, lw_type_of(LW_F32, 3, batch, SIDE * SIDE, WIDE));
    lab_output(&l, "y", lw_linear(&l.b, "linear", x, WIDE, true));
    lab_compile(&l, 1);
    lab_fill(&l);
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){.seed = 1}), 0);
    memcpy(y, lw_exec_read(l.exec, "y"), (size_t)batch * SAMPLE * sizeof *y);
    const size_t bytes = lw_plan_get_info(l.plan).derived_bytes;
    lab_close(&l);
    return bytes;
}

/* On tile registers: half as many bytes again, the numbers of vectors but for rounding, the same bits for any batch and any
 * number of threads. */
static void test_three_bf16(void **state)
{
    (void)state;
    if (lw_isa_best() < LW_ISA_AMX)
        skip();
    static float vectors[2 * SAMPLE], two[2 * SAMPLE], other[2 * SAMPLE];
    const size_t plain = products_at(LW_ISA_AVX512, 1, 2, vectors);
    assert_int_equal(plain, 2 * WIDE * WIDE * sizeof(float));
    assert_int_equal(products_at(LW_ISA_AMX, 1, 2, two), plain / 2 * 3);
    products_at(LW_ISA_AMX, 3, 2, other);
    assert_memory_equal(two, other, sizeof two);
    products_at(LW_ISA_AMX, 2, 1, other);
    assert_memory_equal(two, other, sizeof *two * SAMPLE);
    const double off = lab_distance(vectors, two, 2 * SAMPLE);
    assert_true(off > 0.0 && off < 5e-7);
}

int main(int argc, char **argv)
{
    update = argc > 1 && strcmp(argv[1], "--update") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dumps),   cmocka_unit_test(test_shared_casts),
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_bits),    cmocka_unit_test(test_attention),
        cmocka_unit_test(test_patches), cmocka_unit_test(test_three_bf16),
    };
    return cmocka_run_group_tests_name("plan_precision", tests, NULL, NULL);
}
