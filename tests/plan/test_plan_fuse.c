/* SPDX-License-Identifier: Apache-2.0 */
/* fuse and upconv, case by case: which products take an epilogue, which chains become one program,
 * what must be left alone, and that the numbers stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "ir/ir.h"

#include "plan/plan_util.h"

/* ---- fuse: epilogues ------------------------------------------------------------------------- */

static void test_epilogue_linear(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 4, 6), r = LAB_X(l, "r", 4, 5);
    lw_val h = lw_linear_op(l->g, x, LAB_P(l, "w", 5, 6), LAB_P(l, "b", 5));
    lab_output(l, "y", lw_silu(l->g, lw_add(l->g, r, h)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 0);
    const lw_node *n = lab_node(g, LW_OP_MATMUL, 0);
    assert_int_equal(((const lw_attr_matmul *)n->attr)->act, LW_ACT_SILU);
    assert_int_equal(n->in[3].id, lab_node(g, LW_OP_INPUT, 1)->out[0].id);
    lab_same_numbers(l);
}

/* Every activation goes into products and convolutions alike, and computes the same. */
static void test_epilogue_activations(void **state)
{
    static const struct {
        int op;
        lw_act act;
    } acts[] = {{LW_EW_relu, LW_ACT_RELU},
                {LW_EW_silu, LW_ACT_SILU},
                {LW_EW_gelu, LW_ACT_GELU},
                {LW_EW_gelu_tanh, LW_ACT_GELU_TANH},
                {LW_EW_quick_gelu, LW_ACT_QUICK_GELU},
                {LW_EW_relu6, LW_ACT_RELU6}};
    plan_lab *l = *state;
    lw_val h = LAB_X(l, "x", 2, 5, 5, 3);
    for (size_t i = 0; i < LW_COUNT(acts); i++) {
        char conv[8], linear[8];
        snprintf(conv, sizeof conv, "w%zu", i);
        snprintf(linear, sizeof linear, "v%zu", i);
        h = lw_conv2d_op(l->g, h, LAB_P(l, conv, 4, 3, 3, 3), LW_NOVAL, 1, 1);
        h = lw_linear_op(l->g, lw_ew1(l->g, (lw_ewop)acts[i].op, h), LAB_P(l, linear, 3, 4),
                         LW_NOVAL);
        h = lw_ew1(l->g, (lw_ewop)acts[i].op, h);
    }
    lab_output(l, "y", h);
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 0);
    for (size_t i = 0; i < LW_COUNT(acts); i++) {
        assert_int_equal(((const lw_attr_conv *)lab_node(g, LW_OP_CONV2D, (int)i)->attr)->act,
                         acts[i].act);
        assert_int_equal(((const lw_attr_matmul *)lab_node(g, LW_OP_MATMUL, (int)i)->attr)->act,
                         acts[i].act);
    }
    lab_same_numbers(l);
}

/* A depthwise convolution takes a residual and an activation, and its weight is packed. */
static void test_epilogue_depthwise(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 2, 5, 4, 6), w = LAB_P(l, "w", 6, 3, 3, 1);
    lw_val h = lw_depthwise_op(l->g, x, w, LAB_P(l, "b", 6), 1, (const int[4]){1, 1, 1, 1});
    lab_output(l, "y", lw_relu6(l->g, lw_add(l->g, h, x)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "pack");
    const lw_node *n = lab_node(g, LW_OP_DEPTHWISE, 0);
    assert_int_equal(lab_count(g, LW_OP_EW), 0);
    assert_int_equal(((const lw_attr_conv *)n->attr)->act, LW_ACT_RELU6);
    assert_true(lw_val_ok(n->in[3]) && lw_val_node(g, n->in[1])->op == LW_OP_PACK);
    lab_same_numbers(l);
}

static void test_epilogue_conv_and_dx(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 1, 4, 4, 3), w = LAB_P(l, "w", 3, 3, 3, 3);
    lw_val h = lw_relu(l->g, lw_add(l->g, lw_conv2d_op(l->g, x, w, LW_NOVAL, 1, 1), x));
    lw_val dh = LAB_X(l, "dh", 1, 4, 4, 3), dx;
    lw_grad(l->g, &h, &dh, 1, &x, &dx, 1);
    lab_output(l, "h", h);
    lab_output(l, "y", dx); /* conv2d_dx + the residual's own gradient */
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_CONV2D), 1);
    assert_int_equal(((const lw_attr_conv *)lab_node(g, LW_OP_CONV2D, 0)->attr)->act, LW_ACT_RELU);
    assert_true(lw_val_ok(lab_node(g, LW_OP_CONV2D_DX, 0)->in[2]));
    lab_same_numbers(l);
}

/* Dropout goes into the product before it, and what follows goes there too; a second one and one with a
 * gradient, which draws the same again, stay. */
static void test_epilogue_dropout(void **state)
{
    plan_lab *l = *state;
    lw_val ids = lw_input(l->g, "rows", lw_type_of(LW_I64, 1, 3));
    lw_val x = LAB_X(l, "x", 3, 4, 8);
    lw_val h = lw_linear_op(l->g, x, LAB_P(l, "w", 12, 8), LAB_P(l, "b", 12));
    h = lw_ew1(l->g, LW_EW_quick_gelu, lw_dropout(l->g, h, ids, 0.4f));
    h = lw_linear_op(l->g, h, LAB_P(l, "v", 8, 12), LW_NOVAL);
    h = lw_dropout(l->g, lw_add(l->g, lw_dropout(l->g, h, ids, 0.3f), x), ids, 0.2f);
    lab_output(l, "y", h);
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 0);
    assert_int_equal(lab_count(g, LW_OP_DROPOUT), 1);
    for (int i = 0; i < 2; i++) {
        const lw_node *n = lab_node(g, LW_OP_MATMUL, i);
        assert_true(((const lw_attr_matmul *)n->attr)->drop == (i ? 0.3f : 0.4f));
        assert_true(lw_val_ok(n->in[5]) && lw_val_ok(n->in[3]) == (i == 1));
    }
    lab_same_numbers(l);
}

static void test_dropout_with_gradient_stays(void **state)
{
    plan_lab *l = *state;
    lw_val ids = lw_input(l->g, "rows", lw_type_of(LW_I64, 1, 3));
    lw_val x = LAB_X(l, "x", 3, 8), w = LAB_P(l, "w", 8, 8), dx;
    lw_val h = lw_dropout(l->g, lw_linear_op(l->g, x, w, LW_NOVAL), ids, 0.4f);
    lw_val dh = LAB_X(l, "dh", 3, 8);
    lw_grad(l->g, &h, &dh, 1, &x, &dx, 1);
    lab_output(l, "h", h);
    lab_output(l, "y", dx);
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_DROPOUT), 2);
    lab_same_numbers(l);
}

/* The activation is applied last: relu(conv) + x must stay an add behind the product. */
static void test_no_residual_behind_activation(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 4, 5), h = lw_linear_op(l->g, x, LAB_P(l, "w", 5, 5), LW_NOVAL);
    lab_output(l, "y", lw_add(l->g, lw_relu(l->g, h), x));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 1);
    assert_int_equal(((const lw_attr_matmul *)lab_node(g, LW_OP_MATMUL, 0)->attr)->act,
                     LW_ACT_RELU);
    lab_same_numbers(l);
}

/* Two activations: the first into the product, the second behind it. Two residuals likewise. */
static void test_one_epilogue_each(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 4, 5), h = lw_linear_op(l->g, x, LAB_P(l, "w", 5, 5), LW_NOVAL);
    h = lw_add(l->g, lw_add(l->g, h, x), lw_scale(l->g, x, 3.0f));
    lab_output(l, "y", lw_silu(l->g, lw_relu(l->g, h)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    const lw_node *n = lab_node(g, LW_OP_MATMUL, 0);
    assert_true(lw_val_ok(n->in[3]));
    assert_int_equal(((const lw_attr_matmul *)n->attr)->act, LW_ACT_NONE);
    assert_int_equal(lab_count(g, LW_OP_EW), 1);
    lab_same_numbers(l);
}

static void test_shared_product_is_not_absorbed(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 4, 5), h = lw_linear_op(l->g, x, LAB_P(l, "w", 5, 5), LW_NOVAL);
    lw_val a = lw_silu(l->g, h);
    lab_output(l, "y", lw_softmax(l->g, lw_mul(l->g, a, lw_softmax(l->g, h))));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(((const lw_attr_matmul *)lab_node(g, LW_OP_MATMUL, 0)->attr)->act,
                     LW_ACT_NONE);
    assert_int_equal(lab_count(g, LW_OP_MATMUL), 1);
    lab_same_numbers(l);
}

/* A product that is an output of the graph is read by its caller: it keeps its own value. */
static void test_named_product_is_not_absorbed(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 4, 5), h = lw_linear_op(l->g, x, LAB_P(l, "w", 5, 5), LW_NOVAL);
    lab_output(l, "h", h);
    lab_output(l, "y", lw_silu(l->g, h));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 1);
    lab_same_numbers(l);
}

/* A broadcast add ([C], or [B,1,1,1] over an image) is not a residual; h + h reads one
 * value twice. */
static void test_no_residual_of_other_shape(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 2, 4, 4, 3), w = LAB_P(l, "w", 3, 1, 1, 3);
    lw_val h = lw_add(l->g, lw_conv2d_op(l->g, x, w, LW_NOVAL, 1, 0), LAB_X(l, "c", 2, 1, 1, 1));
    lw_val k = lw_conv2d_op(l->g, h, w, LW_NOVAL, 1, 0);
    lab_output(l, "y", lw_add(l->g, k, k));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 2);
    for (int i = 0; i < 2; i++)
        assert_true(lab_node(g, LW_OP_CONV2D, i)->n_in < 4);
    lab_same_numbers(l);
}

/* A row per image (an embedding) behind a convolution, then a residual and an activation: one step.
 * At batch 1 the row is one element per channel, which must not read as another program. */
static void test_image_bias(void **state)
{
    plan_lab *l = *state;
    for (int32_t batch = 1; batch < 3; batch++) {
        lw_val x = LAB_X(l, batch == 1 ? "x1" : "x2", batch, 4, 4, 3),
               w = LAB_P(l, "w", 3, 3, 3, 3);
        lw_val e = LAB_X(l, batch == 1 ? "e1" : "e2", batch, 3);
        lw_val h = lw_conv2d_op(l->g, x, w, LAB_P(l, "b", 3), 1, 1);
        h = lw_silu(l->g, lw_add(l->g, lw_add(l->g, h, e), x));
        lab_output(l, batch == 1 ? "y1" : "y", h);
    }
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 0);
    for (int i = 0; i < 2; i++) {
        const lw_node *n = lab_node(g, LW_OP_CONV2D, i);
        assert_true(lw_val_ok(n->in[3]) && lw_val_ok(n->in[5]));
        assert_int_equal(((const lw_attr_conv *)n->attr)->act, LW_ACT_SILU);
    }
    lab_same_numbers(l);
}

/* One row for all pictures behind a convolution and behind a matrix product, of one picture or of many: a picture's bits
 * are the same. */
static void test_shared_row(void **state)
{
    (void)state;
    enum { C = 12, PIXELS = 16 };
    for (int way = 0; way < 3; way++) {
        float first[2][PIXELS * C];
        for (int32_t batch = 1; batch < 3; batch++) {
            plan_lab l;
            lab_open(&l, 1, lw_isa_best());
            lw_val x = way < 2 ? LAB_X(&l, "x", batch, 4, 4, C) : LAB_X(&l, "x", batch, C);
            lw_val row = way == 1 ? LAB_X(&l, "row", 1, 1, 1, C) : LAB_X(&l, "row", 1, C), h;
            h = way < 2 ? lw_conv2d_op(l.g, x, LAB_P(&l, "w", C, 3, 3, C), LW_NOVAL, 1, 1)
                        : lw_linear_op(l.g, x, LAB_P(&l, "w", C, C), LW_NOVAL);
            lab_output(&l, "y", lw_silu(l.g, lw_add(l.g, h, row)));
            lab_compile(&l, 1);
            const int n = way < 2 ? PIXELS * C : C;
            float *in = lw_exec_write(l.exec, "x"), *add = lw_exec_write(l.exec, "row");
            for (int i = 0; i < batch * n; i++)
                in[i] = (float)(i % n % 37) * 0.03f - 0.5f;
            for (int i = 0; i < C; i++)
                add[i] = (float)i * 0.1f - 0.4f;
            assert_int_equal(lw_exec_run(l.exec, NULL), 0);
            memcpy(first[batch - 1], lw_exec_read(l.exec, "y"), sizeof(float) * (size_t)n);
            lab_close(&l);
        }
        assert_memory_equal(first[0], first[1], sizeof(float) * (way < 2 ? PIXELS * C : C));
    }
}

/* Pixels become tokens and pixels again: the residual behind attention's output projection. */
static void test_residual_behind_reshape(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 2, 3, 4, 8), h;
    h = lw_reshape(l->g, x, lw_type_of(LW_F32, 3, 2, 12, 8));
    h = lw_attention(l->g, lw_linear_op(l->g, h, LAB_P(l, "qkv", 24, 8), LW_NOVAL), 2);
    h = lw_linear_op(l->g, h, LAB_P(l, "out", 8, 8), LAB_P(l, "b", 8));
    lab_output(l, "y", lw_add(l->g, lw_reshape(l->g, h, lw_type_of(LW_F32, 4, 2, 3, 4, 8)), x));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 0);
    assert_true(lw_val_ok(lab_node(g, LW_OP_MATMUL, 1)->in[3]));
    lab_same_numbers(l);
}

/* The reshape has another reader: the product keeps its value, the add its step. */
static void test_shared_reshape_is_not_absorbed(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 6, 5), z = LAB_X(l, "z", 2, 3, 5);
    lw_val h = lw_reshape(l->g, lw_linear_op(l->g, x, LAB_P(l, "w", 5, 5), LW_NOVAL),
                          lw_type_of(LW_F32, 3, 2, 3, 5));
    lab_output(l, "y", lw_mul(l->g, lw_softmax(l->g, lw_add(l->g, h, z)), lw_softmax(l->g, h)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_MATMUL), 1);
    assert_false(lw_val_ok(lab_node(g, LW_OP_MATMUL, 0)->in[3]));
    assert_int_equal(lab_count(g, LW_OP_EW), 2);
    lab_same_numbers(l);
}

/* ---- upconv ---------------------------------------------------------------------------------- */

static void test_upsample_and_convolution(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 2, 3, 4, 9), w = LAB_P(l, "w", 5, 3, 3, 9), b = LAB_P(l, "b", 5);
    lw_val h = lw_conv2d_op(l->g, lw_upsample(l->g, x, 2), w, b, 1, 1);
    lw_val loss = lw_mean(l->g, lw_sqr(l->g, h), LW_OVER_ALL), one = lw_const_f32(l->g, 1.0f);
    lw_val wrt[3] = {x, w, b}, d[3];
    lw_grad(l->g, &loss, &one, 1, wrt, d, 3);
    lw_val all = lw_add(l->g, lw_sum(l->g, d[0], LW_OVER_ALL), lw_sum(l->g, d[1], LW_OVER_ALL));
    lab_output(l, "y", lw_add(l->g, h, lw_add(l->g, d[2], all)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "upconv");
    assert_int_equal(lab_count(g, LW_OP_UPSAMPLE) + lab_count(g, LW_OP_UPSAMPLE_GRAD), 0);
    assert_int_equal(lab_count(g, LW_OP_UPCONV_WEIGHT), 1); /* both directions read it */
    assert_int_equal(lab_count(g, LW_OP_UPCONV_WEIGHT_GRAD), 1);
    assert_int_equal(lab_count(g, LW_OP_CONV2D_DX), 1);
    assert_int_equal(lab_count(g, LW_OP_CONV2D), 1);
    lab_same_numbers(l);
}

/* By three, another filter, another border, few channels: as they stand. */
static void test_no_upconv(void **state)
{
    plan_lab *l = *state;
    lw_graph *g0 = l->g;
    lw_val x = LAB_X(l, "x", 1, 2, 2, 9), u = lw_upsample(g0, x, 2), y;
    y = lw_sum(g0,
               lw_conv2d_op(g0, lw_upsample(g0, x, 3), LAB_P(l, "a", 4, 3, 3, 9), LW_NOVAL, 1, 1),
               LW_OVER_ALL);
    y = lw_add(
        g0, y,
        lw_sum(g0, lw_conv2d_op(g0, u, LAB_P(l, "c", 4, 1, 1, 9), LW_NOVAL, 1, 0), LW_OVER_ALL));
    y = lw_add(
        g0, y,
        lw_sum(g0, lw_conv2d_op(g0, u, LAB_P(l, "d", 4, 3, 3, 9), LW_NOVAL, 1, 0), LW_OVER_ALL));
    y = lw_add(
        g0, y,
        lw_sum(g0, lw_conv2d_op(g0, u, LAB_P(l, "e", 4, 3, 3, 9), LW_NOVAL, 2, 1), LW_OVER_ALL));
    lw_val few = lw_upsample(g0, LAB_X(l, "few", 1, 2, 2, 3), 2);
    lab_output(l, "y",
               lw_add(g0, y,
                      lw_sum(g0, lw_conv2d_op(g0, few, LAB_P(l, "f", 4, 3, 3, 3), LW_NOVAL, 1, 1),
                             LW_OVER_ALL)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "upconv");
    assert_int_equal(lab_count(g, LW_OP_UPCONV_WEIGHT), 0);
    assert_int_equal(lab_count(g, LW_OP_CONV2D), 5);
}

/* A' B has no epilogue on any device. */
static void test_no_epilogue_on_transposed(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 7, 5);
    lab_output(l, "y", lw_relu(l->g, lw_matmul(l->g, x, x, true, false)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 1);
    lab_same_numbers(l);
}

/* ---- fuse: chains ---------------------------------------------------------------------------- */

static void test_chain_becomes_one_program(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 3, 4, 5, 6), c = LAB_P(l, "c", 6);
    lw_val y = lw_mul(l->g, lw_silu(l->g, lw_add(l->g, x, c)), LAB_X(l, "s", 3, 1, 1, 1));
    y = lw_sub(l->g, lw_sqr(l->g, y), lw_mul(l->g, x, c));
    lab_output(l, "y", y);
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    const lw_node *n = lab_node(g, LW_OP_EW, 0);
    assert_int_equal(lab_count(g, LW_OP_EW), 1);
    assert_int_equal(n->n_in, 3); /* x and c once each, though read twice */
    lab_same_numbers(l);
}

/* A value and its reshaped self are read in two modes: two operands. */
static void test_operand_in_two_modes(void **state)
{
    plan_lab *l = *state;
    lw_val c = LAB_X(l, "c", 4), x = LAB_X(l, "x", 4, 4);
    lw_val rows = lw_mul(l->g, x, lw_reshape(l->g, c, lw_type_of(LW_F32, 2, 4, 1)));
    lab_output(l, "y", lw_add(l->g, lw_silu(l->g, rows), c));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 1);
    assert_int_equal(lab_node(g, LW_OP_EW, 0)->n_in, 3);
    lab_same_numbers(l);
}

static void test_shared_producer_is_computed_once(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 4, 5), e = lw_ew1(l->g, LW_EW_exp, x);
    lab_output(l, "y", lw_add(l->g, lw_sqr(l->g, e), lw_silu(l->g, e)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 2);
    lab_same_numbers(l);
}

/* A producer of a smaller shape stays apart: it would be computed once per element. */
static void test_smaller_producer_stays(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 6, 5), c = lw_ew1(l->g, LW_EW_exp, LAB_X(l, "c", 5));
    lab_output(l, "y", lw_silu(l->g, lw_mul(l->g, x, c)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 2);
    lab_same_numbers(l);
}

/* As many elements under another shape: the producer's own broadcasts would mean other things
 * there. */
static void test_producer_of_another_shape_stays(void **state)
{
    plan_lab *l = *state;
    lw_val p = lw_mul(l->g, LAB_X(l, "x", 12, 4), LAB_X(l, "s", 12, 1));
    lab_output(l, "y", lw_add(l->g, lw_silu(l->g, p), LAB_X(l, "z", 2, 6, 4)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    assert_int_equal(lab_count(g, LW_OP_EW), 2);
    lab_same_numbers(l);
}

static void test_too_many_instructions(void **state)
{
    plan_lab *l = *state;
    lw_val y = LAB_X(l, "x", 4, 5);
    for (int i = 0; i < 70; i++)
        y = lw_ew1(l->g, i % 2 ? LW_EW_tanh : LW_EW_neg, y);
    lab_output(l, "y", y);
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    int n = lab_count(g, LW_OP_EW), steps = 0;
    assert_in_range(n, 2, 3);
    for (int i = 0; i < n; i++) {
        int k = ((const lw_attr_ew *)lab_node(g, LW_OP_EW, i)->attr)->n_step;
        assert_in_range(k, 1, LW_EW_MAX_INSTR);
        steps += k;
    }
    assert_int_equal(steps, 70);
    lab_same_numbers(l);
}

/* Fourteen operands: more than one node can read. */
static void test_too_many_operands(void **state)
{
    plan_lab *l = *state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g",
                                        "h", "i", "j", "k", "l", "m", "n"};
    lw_val v[LW_COUNT(names)];
    size_t n = LW_COUNT(names);
    for (size_t i = 0; i < n; i++)
        v[i] = LAB_X(l, names[i], 3, 4);
    while (n > 1) { /* a balanced tree: both sides of an add want to be absorbed */
        for (size_t i = 0; i < n / 2; i++)
            v[i] = lw_mul(l->g, lw_add(l->g, v[2 * i], v[2 * i + 1]), v[2 * i]);
        if (n % 2)
            v[n / 2] = v[n - 1];
        n = (n + 1) / 2;
    }
    lab_output(l, "y", v[0]);
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "fuse");
    int k = lab_count(g, LW_OP_EW);
    assert_in_range(k, 2, 13);
    for (int i = 0; i < k; i++)
        assert_in_range(lab_node(g, LW_OP_EW, i)->n_in, 1, LW_MAX_IN);
    lab_same_numbers(l);
}

/* An embedding of constants, as of a time that never changes: [1,C], whatever the batch. With one
 * picture it has the shape of the picture's own row and must not be taken for one. */
static void test_prepared_rows_stay_apart(void **state)
{
    (void)state;
    for (int32_t batch = 1; batch <= 3; batch += 2) {
        plan_lab l;
        lab_open(&l, 1, LW_ISA_REF);
        float table[6] = {1, 2, 3, 4, 5, 6};
        lw_val t = lw_const(l.g, lw_type_of(LW_F32, 2, 1, 6), table);
        lw_val e = lw_silu(l.g, lw_linear_op(l.g, t, LAB_P(&l, "w", 5, 6), LW_NOVAL));
        lw_val row = lw_linear_op(l.g, LAB_X(&l, "x", batch, 4), LAB_P(&l, "v", 5, 4), LW_NOVAL);
        row = lw_silu(l.g, lw_add(l.g, row, e));
        lw_val h = lw_conv2d_op(l.g, LAB_X(&l, "h", batch, 2, 2, 3), LAB_P(&l, "k", 5, 1, 1, 3),
                                LW_NOVAL, 1, 0);
        h = lw_add(l.g, lw_scale(l.g, h, 2.0f),
                   lw_reshape(l.g, e, lw_type_of(LW_F32, 4, 1, 1, 1, 5)));
        lab_output(&l, "y", row);
        lab_output(&l, "z", h);
        LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(&l, "fuse");
        assert_int_equal(lab_count(g, LW_OP_EW), 2);
        for (int i = 0; i < 2; i++) {
            const lw_node *n = lab_node(g, LW_OP_MATMUL, i);
            assert_int_equal(((const lw_attr_matmul *)n->attr)->act,
                             i == 0 ? LW_ACT_SILU : LW_ACT_NONE);
            assert_true(n->n_in <= 3 || !lw_val_ok(n->in[3]));
        }
        lab_same_numbers(&l);
        lab_close(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_CASE(test_epilogue_linear),
        LAB_CASE(test_epilogue_activations),
        LAB_CASE(test_epilogue_depthwise),
        LAB_CASE(test_epilogue_conv_and_dx),
        LAB_CASE(test_epilogue_dropout),
        LAB_CASE(test_dropout_with_gradient_stays),
        LAB_CASE(test_no_residual_behind_activation),
        LAB_CASE(test_one_epilogue_each),
        LAB_CASE(test_shared_product_is_not_absorbed),
        LAB_CASE(test_named_product_is_not_absorbed),
        LAB_CASE(test_no_residual_of_other_shape),
        LAB_CASE(test_image_bias),
        cmocka_unit_test(test_shared_row),
        LAB_CASE(test_residual_behind_reshape),
        LAB_CASE(test_shared_reshape_is_not_absorbed),
        LAB_CASE(test_upsample_and_convolution),
        LAB_CASE(test_no_upconv),
        LAB_CASE(test_no_epilogue_on_transposed),
        LAB_CASE(test_chain_becomes_one_program),
        LAB_CASE(test_operand_in_two_modes),
        LAB_CASE(test_shared_producer_is_computed_once),
        LAB_CASE(test_smaller_producer_stays),
        LAB_CASE(test_producer_of_another_shape_stays),
        LAB_CASE(test_too_many_instructions),
        LAB_CASE(test_too_many_operands),
        cmocka_unit_test(test_prepared_rows_stay_apart),
    };
    return cmocka_run_group_tests_name("plan_fuse", tests, NULL, NULL);
}
