/* SPDX-License-Identifier: Apache-2.0 */
/*
 * int8: which products read and write bytes by their ranges, what lies beside those, near f32 and with the same bits
 * whatever the batch, and what is said where ranges are missing.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan_util.h"
#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "store/store.h"

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

/* ---- bytes ------------------------------------------------------------------------------------ */

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
    lab_compile_as(&l, &(lw_compile_opts){.opt = 1,
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
    lab_compile_as(l, &(lw_compile_opts){.opt = 1,
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
                const double far = lab_distance(want, y, FIRST);
                print_message("first layer of %d in %s at %s: relative difference %.2g\n", kernel,
                              num == LW_NUM_S8 ? "int8" : "bf16", lw_isa_name(isa), far);
                assert_true(far > 0 && far < 0.02);
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
        maxima_beside(y, LW_NUM_S8, way & 1, way & 2);
        const double far = lab_distance(want, y, BESIDE);
        print_message("beside maxima, way %d: relative difference %.2g\n", way, far);
        assert_true(far < 0.04);
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
        const double far = lab_distance(f32, y, ROWS);
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
            lab_compile_as(&l, &(lw_compile_opts){.opt = 1,
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
                              lw_isa_name(isa), lab_distance(want, y, N));
            else
                memcpy(want, y, sizeof want);
            assert_true(!bytes ||
                        (lab_distance(want, y, N) > 1e-4 && lab_distance(want, y, N) < 2e-2));
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
    lab_compile_as(&l, &(lw_compile_opts){.opt = 1,
                                          .precision = LW_NUM_S8,
                                          .calibration = &(lw_calibration){edge, 2}});
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
            const lw_calibration c = {edges, way == 0 ? 2 : 1};
            lab_compile_as(&l,
                           &(lw_compile_opts){.opt = 1, .precision = LW_NUM_S8, .calibration = &c});
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
    lab_unet_sample(&l, 2);
    assert_int_equal(lw_store_fix(l.store), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_weight), cmocka_unit_test(test_tiles_or_bytes),
        cmocka_unit_test(test_bytes_written), cmocka_unit_test(test_stream),
        cmocka_unit_test(test_first_layers),  cmocka_unit_test(test_maxima_beside),
        cmocka_unit_test(test_first_rows),    cmocka_unit_test(test_upsampled),
        cmocka_unit_test(test_wide_bits),     cmocka_unit_test(test_norm_read_twice),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests_name("plan_calibration", tests, NULL, NULL);
}
