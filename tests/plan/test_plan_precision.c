/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types: which products get narrow operands and from where, dumps of the pass, agreement
 * with f32 and with the oracle of the same type, the same bits for any number of threads and any
 * batch, and what int8 says without its ranges.
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

static void compile(plan_lab *l, const lw_compile_opts *o)
{
    lw_exec_free(&l->exec);
    lw_plan_free(&l->plan);
    if (lw_compile(l->g, l->dev, o, &l->plan) < 0)
        fail_msg("%s", lw_errmsg());
    assert_int_equal(lw_exec_new(l->plan, LW_SLAB_PARAM, &l->exec), 0);
}

static void settle(plan_lab *l)
{
    assert_int_equal(lw_store_fix(l->store), 0);
    lw_store_init(l->store, 3);
}

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
    settle(&l);
    assert_int_equal(lw_calibration_outputs(l.g), 0);
    compile(&l, &(lw_compile_opts){.opt = 1});
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
    settle(&l);
    compile(
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
    settle(&l);
    compile(&l, &(lw_compile_opts){.opt = 1, .precision = LW_NUM_BF16});
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
        settle(&l);
        compile(&l, &(lw_compile_opts){.opt = 1, .precision = (lw_num)num});
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

/* A weight of two products has one range: of one value, or it is refused. */
static void test_shared_weight(void **state)
{
    (void)state;
    for (int values = 1; values <= 2; values++) {
        plan_lab l;
        lab_open(&l, 1, LW_ISA_REF);
        lw_val x = LAB_X(&l, "x", 2, 8, 8, 16), w = LAB_P(&l, "w", 16, 3, 3, 16);
        lw_val a = lw_conv2d_op(l.g, x, w, LW_NOVAL, 1, 1),
               b = lw_conv2d_op(l.g, values == 1 ? x : a, w, LW_NOVAL, 2, 1);
        lab_output(&l, "a", a);
        lab_output(&l, "b", b);
        assert_int_equal(lw_calibration_outputs(l.g), values == 1 ? 0 : LW_EUNSUPPORTED);
        assert_int_equal(lw_graph_output_count(l.g), 3);
        if (values == 2)
            assert_non_null(strstr(lw_errmsg(), "multiplies two different values"));
        lab_close(&l);
    }
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
    settle(&l);
    compile(&l, &(lw_compile_opts){.opt = opt, .precision = num, .calibration = r ? &r->c : NULL});
    lab_fill(&l);
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){4, 7}), 0);
    memcpy(y, lw_exec_read(l.exec, "y"), sizeof(float) * ROW * (size_t)batch);
    lab_close(&l);
}

/* Root mean square of a - b, relative to a's. */
static double distance(const float *a, const float *b, int64_t n)
{
    double d = 0, s = 0;
    for (int64_t i = 0; i < n; i++) {
        d += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        s += (double)a[i] * (double)a[i];
    }
    return sqrt(d / s);
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
            double to_f32 = distance(f32, fast, 5 * ROW), to_own = distance(oracle, fast, 5 * ROW);
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
    settle(&l);
    const lw_edge_range edge = {"qkv.weight", 0.01f, 128};
    const lw_calibration c = {&edge, 1};
    compile(&l, &(lw_compile_opts){
                    .opt = 1, .precision = num, .calibration = num == LW_NUM_S8 ? &c : NULL});
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
        double far = distance(want, y, N), off = distance(want_dx, dx, N);
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
    settle(&l);
    compile(&l, &(lw_compile_opts){.opt = 1, .precision = num});
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
        double far = distance(want, y, N);
        print_message("patches at %s: relative difference to f32 %.2g\n", lw_isa_name(isa), far);
        assert_true(far > 1e-5 && far < 1e-2);
    }
}

/* One convolution that 4x4 tiles fit: does it read bytes? */
static bool reads_bytes(lw_isa isa, lw_conv_mode mode)
{
    plan_lab l;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    const lw_edge_range edge = {"conv.weight", 0.01f, 128};
    const lw_calibration c = {&edge, 1};
    lab_open_conv(&l, 1, isa, mode);
    lw_val x = LAB_X(&l, "x", 1, 16, 16, 64);
    lab_output(&l, "y", lw_conv2d(&l.b, "conv", x, 64, (lw_conv_opts){.kernel = 3, .pad = 1}));
    settle(&l);
    compile(&l, &(lw_compile_opts){.opt = 1,
                                   .dump = &text,
                                   .dump_pass = "precision",
                                   .precision = LW_NUM_S8,
                                   .calibration = &c});
    lab_close(&l);
    return strstr(lw_str_c(&text), "u8[") != NULL;
}

/* Bytes at every level, which multiplies them as such or has tiles for them. */
static void test_tiles_or_bytes(void **state)
{
    (void)state;
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        assert_true(reads_bytes(isa, LW_CONV_MODE_AUTO));
        assert_true(reads_bytes(isa, LW_CONV_MODE_DIRECT));
    }
}

/* Compiles what was built, with ranges for `n` weights, runs it once and copies an output; closes. text: what the pass
 * made of it. */
static void run_in(plan_lab *l, lw_num num, const lw_edge_range *edge, size_t n, lw_str *text,
                   const char *name, float *y, size_t count)
{
    settle(l);
    compile(l, &(lw_compile_opts){.opt = 1,
                                  .dump = text,
                                  .dump_pass = "precision",
                                  .precision = num,
                                  .calibration = &(lw_calibration){edge, (int32_t)n}});
    lab_fill(l);
    assert_int_equal(lw_exec_run(l->exec, &(lw_tick){1, 0}), 0);
    memcpy(y, lw_exec_read(l->exec, name), sizeof(float) * count);
    lab_close(l);
}

static int times_in(const lw_str *text, const char *what)
{
    int n = 0;
    for (const char *at = lw_str_c(text); (at = strstr(at, what)); at++)
        n++;
    return n;
}

enum {
    WRITTEN = 2 * 6 * 6 * 12,
    STREAM = 2 * 6 * 6 * 27,
    FIRST = 2 * 5 * 3 * 16,
    BESIDE = 2 * 6 * 6 * 12,
    ROWS = 2 * 21 * 24
};

/* Products behind one another, of every kind and two activations; kept: what is between them is wanted in f32 too. Returns how
 * many write bytes themselves. */
static int chain_of_bytes(float *y, lw_isa isa, lw_conv_mode mode, bool kept)
{
    plan_lab l;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    static const char *const name[] = {"three", "one", "fc1", "fc2", "last"};
    lw_edge_range edge[LW_COUNT(name)];
    char weight[LW_COUNT(name)][24];
    for (size_t i = 0; i < LW_COUNT(name); i++) {
        snprintf(weight[i], sizeof weight[i], "%s.weight", name[i]);
        edge[i] = (lw_edge_range){weight[i], 0.01f + 0.002f * (float)i, 100 + (int32_t)i};
    }
    lab_open_conv(&l, 2, isa, mode);
    lw_val x = LAB_X(&l, "x", 2, 6, 6, 16), between[4];
    lw_val h = between[0] =
        lw_relu(l.g, lw_conv2d(&l.b, "three", x, 24, (lw_conv_opts){.kernel = 3, .pad = 1}));
    h = between[1] = lw_conv2d(&l.b, "one", h, 20, (lw_conv_opts){.kernel = 1});
    h = lw_reshape(l.g, h, lw_type_of(LW_F32, 3, 2, 36, 20));
    h = between[2] = lw_silu(l.g, lw_linear(&l.b, "fc1", h, 40, true));
    h = between[3] = lw_linear(&l.b, "fc2", h, 16, true);
    h = lw_reshape(l.g, h, lw_type_of(LW_F32, 4, 2, 6, 6, 16));
    lab_output(&l, "y", lw_conv2d(&l.b, "last", h, 12, (lw_conv_opts){.kernel = 3, .pad = 1}));
    static const char *const out[] = {"a", "b", "c", "d"};
    for (int i = 0; kept && i < 4; i++)
        lab_output(&l, out[i], between[i]);
    run_in(&l, LW_NUM_S8, edge, LW_COUNT(edge), &text, "y", y, WRITTEN);
    return times_in(&text, " to u8");
}

/* A product that is read as bytes alone writes them, with the bits of a cast behind it. */
static void test_bytes_written(void **state)
{
    (void)state;
    static float want[WRITTEN], y[WRITTEN];
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa))
        for (int mode = LW_CONV_MODE_AUTO; mode <= LW_CONV_MODE_WINOGRAD; mode++) {
            assert_int_equal(chain_of_bytes(want, isa, (lw_conv_mode)mode, true), 0);
            assert_int_equal(chain_of_bytes(y, isa, (lw_conv_mode)mode, false), 4);
            assert_memory_equal(y, want, sizeof want);
        }
}

/* Two residual blocks, whose stream is read as bytes by convolutions and added; kept: it is wanted in f32, too. Returns how many
 * products write bf16. */
static int stream_of_blocks(float *y, lw_isa isa, bool kept)
{
    plan_lab l;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    static const char *const name[] = {"in", "b1", "b2", "last"};
    static const lw_edge_range edge[] = {{"in.weight", 2.0f / 255, 128},
                                         {"b1.weight", 0.02f, 0},
                                         {"b2.weight", 0.03f, 0},
                                         {"last.weight", 0.04f, 0}};
    lab_open(&l, 2, isa);
    lw_val h = LAB_X(&l, "x", 2, 6, 6, 16), s[3];
    for (int i = 0; i < 3; i++) {
        lw_val c = lw_conv2d(&l.b, name[i], h, 16, (lw_conv_opts){.kernel = 3, .pad = 1});
        h = s[i] = lw_relu(l.g, i ? lw_add(l.g, c, h) : c);
    }
    lab_output(&l, "y", lw_conv2d(&l.b, name[3], h, 27, (lw_conv_opts){.kernel = 1}));
    static const char *const out[] = {"a", "b", "c"};
    for (int i = 0; kept && i < 3; i++)
        lab_output(&l, out[i], s[i]);
    run_in(&l, LW_NUM_S8, edge, LW_COUNT(edge), &text, "y", y, STREAM);
    return times_in(&text, " to bf16");
}

/* A stream that is read as bytes and added lies in bf16, from which the bytes are made: near what f32 between blocks gives. */
static void test_stream(void **state)
{
    (void)state;
    static float want[STREAM], y[STREAM];
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        assert_int_equal(stream_of_blocks(want, isa, true), 0);
        assert_int_equal(stream_of_blocks(y, isa, false), 2); /* the last is read as bytes alone */
        float far = 0, most = 0;
        for (int i = 0; i < STREAM; i++) {
            far = fmaxf(far, fabsf(y[i] - want[i]));
            most = fmaxf(most, fabsf(want[i]));
        }
        print_message("stream of bf16 at %s: %g of %g\n", lw_isa_name(isa), (double)far,
                      (double)most);
        assert_true(far > 0 && far < most / 20);
    }
}

/* A first layer, maxima of windows, a product: how a network of pictures begins. */
static void first_layers(float *y, lw_isa isa, lw_num num, int kernel, lw_str *text)
{
    plan_lab l;
    static const lw_edge_range edge = {"one.weight", 0.02f, 0};
    lab_open(&l, 2, isa);
    lw_val x = LAB_X(&l, "x", 2, 20, 12, 3);
    x = lw_conv2d(&l.b, "first", x, 16,
                  (lw_conv_opts){.kernel = kernel, .pad = kernel / 2, .stride = 2});
    x = lw_pool2d(l.g, lw_relu(l.g, x), 3, 2, 1, true);
    lab_output(&l, "y", lw_conv2d(&l.b, "one", x, 16, (lw_conv_opts){.kernel = 1}));
    run_in(&l, num, &edge, 1, text, "y", y, FIRST);
}

/* Of 7x7 and 5x5 as of pixels of 2 x 2 where bf16 pays, of 3x3 never; maxima in the type that is read: near f32. */
static void test_first_layers(void **state)
{
    (void)state;
    static float want[FIRST], y[FIRST];
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa))
        for (int kernel = 3; kernel <= 7; kernel += 2)
            for (lw_num num = LW_NUM_BF16; num <= LW_NUM_S8; num++) {
                LW_CLEANUP(lw_str_clear) lw_str text = {0}, none = {0};
                first_layers(want, isa, LW_NUM_F32, kernel, &none);
                first_layers(y, isa, num, kernel, &text);
                double far = 0, all = 0;
                for (int i = 0; i < FIRST; i++) {
                    far += (double)(y[i] - want[i]) * (double)(y[i] - want[i]);
                    all += (double)want[i] * (double)want[i];
                }
                print_message("first layer of %d in %s at %s: relative difference %.2g\n", kernel,
                              num == LW_NUM_S8 ? "int8" : "bf16", lw_isa_name(isa),
                              sqrt(far / all));
                assert_true(far > 0 && far < 0.02 * 0.02 * all);
                assert_int_equal(strstr(lw_str_c(&text), "patches") != NULL,
                                 isa == LW_ISA_AVX512BF16 && kernel > 3);
                const char *pool = strstr(lw_str_c(&text), "pool(");
                assert_non_null(pool);
                pool = strstr(pool, " : ");
                assert_memory_equal(pool, num == LW_NUM_S8 ? " : u8[" : " : bf16[", 5);
            }
}

/* What is read by a product, and by another as its maxima, in either order: bytes of the first one's range, which holds the
 * least values too. turned: a reshape lies between the maxima and their product. */
static void maxima_beside(float *y, lw_num num, bool first, bool turned)
{
    plan_lab l;
    static const lw_edge_range edge[] = {
        {"in.weight", 2.0f / 255, 128}, {"all.weight", 0.03f, 128}, {"most.weight", 0.015f, 0}};
    lab_open(&l, 2, LW_ISA_REF);
    lw_val h = lw_conv2d(&l.b, "in", LAB_X(&l, "x", 2, 6, 6, 16), 16,
                         (lw_conv_opts){.kernel = 3, .pad = 1});
    lw_val all = first ? lw_conv2d(&l.b, "all", h, 12, (lw_conv_opts){.kernel = 1}) : h;
    lw_val most = lw_pool2d(l.g, h, 3, 2, 1, true);
    if (turned)
        most = lw_reshape(l.g, most, lw_type_of(LW_F32, 4, 2, 9, 1, 16));
    lab_output(&l, "most", lw_conv2d(&l.b, "most", most, 12, (lw_conv_opts){.kernel = 1}));
    if (!first)
        all = lw_conv2d(&l.b, "all", h, 12, (lw_conv_opts){.kernel = 1});
    lab_output(&l, "all", all);
    run_in(&l, num, edge, LW_COUNT(edge), NULL, "all", y, BESIDE);
}

static void test_maxima_beside(void **state)
{
    (void)state;
    static float want[BESIDE], y[BESIDE];
    maxima_beside(want, LW_NUM_F32, true, false);
    for (int way = 0; way < 4; way++) {
        double far = 0, all = 0;
        maxima_beside(y, LW_NUM_S8, way & 1, way & 2);
        for (int i = 0; i < BESIDE; i++) {
            far += (double)(y[i] - want[i]) * (double)(y[i] - want[i]);
            all += (double)want[i] * (double)want[i];
        }
        print_message("beside maxima, way %d: relative difference %.2g\n", way, sqrt(far / all));
        assert_true(far < 0.04 * 0.04 * all);
    }
}

/* A vision transformer begins: patches, a LayerNorm of rows, a product of bytes. kept: the rows are wanted in f32, too. Returns
 * whether patches are the rows of a product of bf16. */
static bool first_rows(float *y, lw_isa isa, lw_num num, bool kept)
{
    plan_lab l;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    static const lw_edge_range edge = {"fc.weight", 0.03f, 110};
    lab_open(&l, 2, isa);
    lw_val x = LAB_X(&l, "x", 2, 12, 28, 3);
    x = lw_conv2d(&l.b, "stem", x, 40, (lw_conv_opts){.kernel = 4, .stride = 4});
    x = lw_layer_norm(&l.b, "norm", lw_reshape(l.g, x, lw_type_of(LW_F32, 2, 42, 40)), 1e-5f,
                      LW_NOVAL);
    lab_output(
        &l, "y",
        lw_linear(&l.b, "fc", lw_reshape(l.g, x, lw_type_of(LW_F32, 3, 2, 21, 40)), 24, true));
    if (kept)
        lab_output(&l, "kept", x);
    run_in(&l, num, &edge, 1, &text, "y", y, ROWS);
    return times_in(&text, "patches") > 0;
}

/* Rows that are read as bytes alone have those of a cast behind them. */
static void test_first_rows(void **state)
{
    (void)state;
    static float want[ROWS], f32[ROWS], y[ROWS];
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        first_rows(f32, isa, LW_NUM_F32, false);
        first_rows(want, isa, LW_NUM_S8, true);
        assert_int_equal(first_rows(y, isa, LW_NUM_S8, false), isa == LW_ISA_AVX512BF16);
        assert_memory_equal(y, want, sizeof want);
        const double far = distance(f32, y, ROWS);
        print_message("first rows in int8 at %s: relative difference %.2g\n", lw_isa_name(isa),
                      far);
        assert_true(far > 1e-4 && far < 0.03);
    }
}

/* A convolution behind upsampling reads bytes too, on summed weights: near f32 at every level. */
static void test_upsampled(void **state)
{
    (void)state;
    enum { N = 2 * 8 * 8 * 12 };
    static float want[N];
    const lw_edge_range edge = {"up.weight", 2.0f / 255, 128};
    const lw_calibration c = {&edge, 1};
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa))
        for (int bytes = 0; bytes < 2; bytes++) {
            plan_lab l;
            LW_CLEANUP(lw_str_clear) lw_str text = {0};
            lab_open_conv(&l, 2, isa, LW_CONV_MODE_DIRECT);
            lw_val x = lw_upsample(l.g, LAB_X(&l, "x", 2, 4, 4, 16), 2);
            lab_output(&l, "y",
                       lw_conv2d(&l.b, "up", x, 12, (lw_conv_opts){.kernel = 3, .pad = 1}));
            settle(&l);
            compile(&l, &(lw_compile_opts){.opt = 1,
                                           .dump = &text,
                                           .dump_pass = "fuse",
                                           .precision = bytes ? LW_NUM_S8 : LW_NUM_F32,
                                           .calibration = bytes ? &c : NULL});
            assert_non_null(strstr(lw_str_c(&text), "conv2d_dx"));
            lab_fill(&l);
            assert_int_equal(lw_exec_run(l.exec, &(lw_tick){1, 0}), 0);
            const float *y = lw_exec_read(l.exec, "y");
            if (bytes)
                print_message("int8 behind upsampling at %s: relative difference %.2g\n",
                              lw_isa_name(isa), distance(want, y, N));
            else
                memcpy(want, y, sizeof want);
            assert_true(!bytes || (distance(want, y, N) > 1e-4 && distance(want, y, N) < 2e-2));
            lab_close(&l);
        }
}

enum { WIDE_ROW = 6 * 10 * 512 };

/* Two wide convolutions behind upsampling: 384 channels at 3x5, then 512 at half of that. */
static void sample_wide(float *y, int32_t batch, int threads, lw_isa isa)
{
    plan_lab l;
    const lw_edge_range edge[] = {{"small.weight", 2.0f / 255, 128}, {"up.weight", 2.0f / 255, 90}};
    lab_open(&l, threads, isa);
    lw_conv_opts o = {.kernel = 3, .pad = 1};
    lw_val a = lw_upsample(l.g, LAB_X(&l, "a", batch, 3, 5, 384), 2);
    lw_val b = lw_upsample(l.g, LAB_X(&l, "b", batch, 1, 3, 512), 2);
    lw_val z = lw_conv2d(&l.b, "small", b, 384, o);
    lab_output(&l, "y", lw_conv2d(&l.b, "up", a, 512, o));
    lab_output(&l, "z", z);
    settle(&l);
    compile(&l, &(lw_compile_opts){
                    .opt = 1, .precision = LW_NUM_S8, .calibration = &(lw_calibration){edge, 2}});
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            lw_val_type(l.plan->graph, lab_node(l.plan->graph, LW_OP_CONV2D_DX, i)->in[0]).dtype,
            LW_U8);
    lab_fill(&l);
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){1, 0}), 0);
    int64_t rest = lw_type_count(lw_exec_type(l.exec, "z")) / batch;
    assert_int_equal(rest, 2 * 6 * 384);
    for (int32_t i = 0; i < batch; i++, y += WIDE_ROW + rest) {
        memcpy(y, (float *)lw_exec_read(l.exec, "y") + i * (int64_t)WIDE_ROW, WIDE_ROW * sizeof *y);
        memcpy(y + WIDE_ROW, (float *)lw_exec_read(l.exec, "z") + i * rest,
               (size_t)rest * sizeof *y);
    }
    lab_close(&l);
}

/* Whole sums: one image has the same bits in any batch, on any number of threads, and at every
 * level with vectors. */
static void test_wide_bits(void **state)
{
    (void)state;
    enum { ROW_BYTES = (WIDE_ROW + 2 * 6 * 384) * (int)sizeof(float) };
    static const int ways[][2] = {{1, 2}, {3, 3}, {8, 2}};
    float *one = lw_calloc(8, (size_t)ROW_BYTES), *other = lw_calloc(8, (size_t)ROW_BYTES);
    float *vectors = lw_calloc(8, (size_t)ROW_BYTES);
    assert_true(one && other && vectors);
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        sample_wide(one, 8, 1, isa);
        for (size_t i = isa ? 0 : 2; i < LW_COUNT(ways); i++) {
            sample_wide(other, ways[i][0], ways[i][1], isa);
            assert_memory_equal(one, other, (size_t)(ways[i][0] * ROW_BYTES));
        }
        if (isa == LW_ISA_AVX2)
            memcpy(vectors, one, 8 * (size_t)ROW_BYTES);
        if (isa > LW_ISA_AVX2)
            assert_memory_equal(one, vectors, 8 * (size_t)ROW_BYTES);
    }
    lw_free(&one);
    lw_free(&other);
    lw_free(&vectors);
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
    double off = 0.0, all = 0.0;
    for (int i = 0; i < 2 * SAMPLE; i++) {
        off += pow((double)(two[i] - vectors[i]), 2.0);
        all += pow((double)vectors[i], 2.0);
    }
    assert_true(all > 0.0 && off > 0.0 && sqrt(off / all) < 5e-7);
}

/* What a norm makes is read as bytes by a product and added to what comes of it: y = h + f(h), h = norm(x). */
static void test_norm_read_twice(void **state)
{
    (void)state;
    static const lw_edge_range edges[] = {{"w1", .02f, 128}, {"w2", .02f, 128}};
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa))
        for (int way = 0; way < 2; way++) {
            plan_lab l;
            lab_open(&l, 1, isa);
            lw_val gamma = LAB_P(&l, "gamma", 32), beta = LAB_P(&l, "beta", 32), h, f;
            if (way == 0) {
                h = lw_layer_norm_op(l.g, LAB_X(&l, "x", 2, 10, 32), gamma, beta, LW_NOVAL, 1e-5f);
                f = lw_linear_op(l.g, h, LAB_P(&l, "w1", 64, 32), LW_NOVAL);
                f = lw_linear_op(l.g, lw_relu(l.g, f), LAB_P(&l, "w2", 32, 64), LW_NOVAL);
            } else {
                h = lw_group_norm_op(l.g, LAB_X(&l, "x", 2, 8, 8, 32), gamma, beta, LW_NOVAL,
                                     LW_NOVAL, 4, 1e-5f, LW_ACT_SILU);
                f = lw_conv2d_op(l.g, h, LAB_P(&l, "w1", 32, 3, 3, 32), LW_NOVAL, 1, 1);
            }
            lab_output(&l, "y", lw_add(l.g, f, h));
            settle(&l);
            const lw_calibration c = {edges, way == 0 ? 2 : 1};
            compile(&l, &(lw_compile_opts){.opt = 1, .precision = LW_NUM_S8, .calibration = &c});
            lab_fill(&l);
            assert_int_equal(lw_exec_run(l.exec, NULL), 0);
            lab_close(&l);
        }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void test_errors(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    build_block(&l, false);
    settle(&l);
    lw_compile_opts o = {.opt = 1, .precision = LW_NUM_S8};
    assert_int_equal(lw_compile(l.g, l.dev, &o, &l.plan), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "leeway quantize"));
    const lw_edge_range foreign = {"elsewhere.weight", 0.1f, 3};
    const lw_calibration c = {&foreign, 1};
    o.calibration = &c;
    assert_int_equal(lw_compile(l.g, l.dev, &o, &l.plan), LW_EFORMAT);
    assert_null(l.plan);
    lab_close(&l);
}

int main(int argc, char **argv)
{
    update = argc > 1 && strcmp(argv[1], "--update") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_weight),  cmocka_unit_test(test_dumps),
        cmocka_unit_test(test_shared_casts),   cmocka_unit_test(test_memory),
        cmocka_unit_test(test_agreement),      cmocka_unit_test(test_bits),
        cmocka_unit_test(test_attention),      cmocka_unit_test(test_patches),
        cmocka_unit_test(test_tiles_or_bytes), cmocka_unit_test(test_bytes_written),
        cmocka_unit_test(test_stream),         cmocka_unit_test(test_first_layers),
        cmocka_unit_test(test_maxima_beside),  cmocka_unit_test(test_first_rows),
        cmocka_unit_test(test_upsampled),      cmocka_unit_test(test_wide_bits),
        cmocka_unit_test(test_three_bf16),     cmocka_unit_test(test_norm_read_twice),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests_name("plan_precision", tests, NULL, NULL);
}
