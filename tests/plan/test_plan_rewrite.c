/* SPDX-License-Identifier: Apache-2.0 */
/* simplify and outputs, case by case: what must be merged, what must be left alone, what no
 * rewriting may lose, and that the numbers stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "store/store.h"

#include "plan/plan_util.h"

/* ---- simplify -------------------------------------------------------------------------------- */

static void test_identities(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 2, 3, 4);
    lw_val y = lw_add_f32(l->g, lw_scale(l->g, x, 1.0f), -0.0f);
    y = lw_ew1(l->g, LW_EW_copy, y);
    y = lw_mul(l->g, lw_const_f32(l->g, 1.0f), y); /* a constant operand, on either side */
    y = lw_reshape(l->g, lw_reshape(l->g, y, lw_type_of(LW_F32, 2, 6, 4)),
                   lw_type_of(LW_F32, 3, 2, 3, 4));
    lab_output(l, "y", lw_silu(l->g, y));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "simplify");
    assert_int_equal(lw_graph_node_count(g), 2);
    assert_int_equal(lab_node(g, LW_OP_EW, 0)->in[0].id, lab_node(g, LW_OP_INPUT, 0)->out[0].id);
    lab_same_numbers(l);
}

/* x * 2, x + 1, x * 1 of another type: none of them is an identity. */
static void test_no_identities(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 3), y = lw_add_f32(l->g, lw_scale(l->g, x, 2.0f), 1.0f);
    y = lw_broadcast(l->g, y, lw_type_of(LW_F32, 2, 5, 3));
    y = lw_add(l->g, y, lw_mul(l->g, x, x)); /* a square is no product with 1 */
    lab_output(l, "y", y);
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "simplify");
    assert_int_equal(lab_count(g, LW_OP_EW), 5);
    lab_same_numbers(l);
}

/* Minus zero and zero is zero: no bit changes with the passes. */
static void test_zero_is_added(void **state)
{
    plan_lab *l = *state;
    const float minus[2] = {-0.0f, 1.0f};
    lw_val x = LAB_X(l, "x", 2);
    lab_output(l, "y", lw_add_f32(l->g, x, 0.0f));
    for (int opt = 0; opt < 2; opt++) {
        lab_compile(l, opt);
        memcpy(lw_exec_write(l->exec, "x"), minus, sizeof minus);
        assert_int_equal(lw_exec_run(l->exec, NULL), 0);
        const float *y = lw_exec_read(l->exec, "y");
        assert_true(y[0] == 0.0f && !signbit(y[0]) && y[1] == 1.0f);
        lw_exec_free(&l->exec);
        lw_plan_free(&l->plan);
    }
}

static void test_constants_become_instructions(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 2, 5), y = LAB_X(l, "z", 2, 5);
    lw_val v = lw_sub(l->g, lw_const_f32(l->g, 3.0f), x); /* constant in front: operand 0 goes */
    v = lw_ew3(l->g, LW_EW_select, v, lw_const_f32(l->g, 0.5f), y); /* and in the middle */
    lab_output(l, "y", lw_div(l->g, v, lw_const_f32(l->g, 4.0f)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "simplify");
    assert_int_equal(lab_count(g, LW_OP_CONST), 0);
    for (int i = 0; i < 3; i++) {
        const lw_attr_ew *a = lab_node(g, LW_OP_EW, i)->attr;
        assert_int_equal(a->step[0].op, LW_EW_konst);
        assert_int_equal(a->n_step, 2);
    }
    lab_same_numbers(l);
}

/* Two constants of one instruction; one that nothing but a constant goes into stays a value. */
static void test_constants_beside_constants(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 2, 5), two = lw_const_f32(l->g, 2.0f);
    lw_val v = lw_ew3(l->g, LW_EW_select, x, lw_const_f32(l->g, 0.5f), two);
    lab_output(l, "y", lw_add(l->g, v, lw_broadcast(l->g, two, lw_val_type(l->g, x))));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "simplify");
    assert_int_equal(lab_node(g, LW_OP_EW, 0)->n_in, 1);
    assert_int_equal(lab_count(g, LW_OP_CONST), 1);
    lab_same_numbers(l);
}

/* What a forward run needs is not taken from the backward pass, which such a run may leave out. */
static void test_merging_keeps_the_passes_apart(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 2, 5);
    bool was = lw_graph_backward(l->g, true);
    lw_val back = lw_silu(l->g, x);
    lw_graph_backward(l->g, was);
    lw_val front = lw_silu(l->g, x);
    lab_output(l, "y", lw_add(l->g, lw_softmax(l->g, back), front));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "simplify");
    assert_int_equal(lab_count(g, LW_OP_EW), 3);
    assert_false(lab_node(g, LW_OP_EW, 1)->backward);
}

static void test_common_nodes_merge(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 4, 6), w = LAB_P(l, "w", 5, 6), v = LAB_P(l, "v", 5, 6);
    lw_val a = lw_linear_op(l->g, lw_silu(l->g, x), w, LW_NOVAL),
           b = lw_linear_op(l->g, lw_silu(l->g, x), w, LW_NOVAL);
    lw_val c = lw_linear_op(l->g, lw_silu(l->g, x), v, LW_NOVAL); /* another weight */
    lab_output(l, "y", lw_add(l->g, lw_mul(l->g, a, b), c));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "simplify");
    assert_int_equal(lab_count(g, LW_OP_MATMUL), 2);
    assert_int_equal(lab_count(g, LW_OP_EW), 3);
    lab_same_numbers(l);
}

/* Equal draws merge, other streams do not, and dropout of one stream in two scopes is
 * two things. */
static void test_random_merges_by_stream(void **state)
{
    plan_lab *l = *state;
    lw_type t = lw_type_of(LW_F32, 2, 3, 4);
    lw_val rows = lw_input(l->g, "rows", lw_type_of(LW_I64, 1, 3));
    lw_val a = lw_random(l->g, "a", LW_RANDOM_NORMAL, 0, t, rows),
           b = lw_random(l->g, "a", LW_RANDOM_NORMAL, 0, t, rows);
    lw_val c = lw_random(l->g, "c", LW_RANDOM_NORMAL, 0, t, rows),
           d = lw_random(l->g, "a", LW_RANDOM_UNIFORM, 0, t, rows);
    lab_output(l, "y", lw_add(l->g, lw_add(l->g, a, b), lw_add(l->g, c, d)));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "simplify");
    assert_int_equal(lab_count(g, LW_OP_RANDOM), 3);
    lab_same_numbers(l);
}

static void test_dead_nodes_go(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 2, 2);
    lw_softmax(l->g, lw_silu(l->g, x));
    LAB_X(l, "unused", 7); /* an input stays: it can be bound */
    lab_output(l, "y", lw_relu(l->g, x));
    LW_CLEANUP(lw_graph_free) lw_graph *g = lab_passes(l, "simplify");
    assert_int_equal(lab_count(g, LW_OP_SOFTMAX), 0);
    assert_int_equal(lab_count(g, LW_OP_EW), 1);
    assert_int_equal(lab_count(g, LW_OP_INPUT), 2);
}

/* ---- what rewriting must not lose ------------------------------------------------------------ */

/* A gradient goes into the slab even where no step reads the parameter itself. */
static void test_gradient_of_unread_parameter(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 4, 5), b = LAB_P(l, "b", 5), lone = LAB_P(l, "lone", 3);
    lw_val loss = lw_sum(l->g, lw_add(l->g, x, b), LW_OVER_ALL); /* not an output */
    assert_int_equal(lw_grad_params(l->g, loss, LW_NOVAL), 0);
    assert_int_equal(lw_graph_output_count(l->g), 2);
    for (int opt = 0; opt < 2; opt++) {
        lab_compile(l, opt);
        lab_fill(l);
        float *g = lw_store_edit(l->store, lw_store_find(l->store, "b"), LW_SLAB_GRAD);
        float *h = lw_store_edit(l->store, lw_store_find(l->store, "lone"), LW_SLAB_GRAD);
        memset(g, 0xff, 5 * sizeof *g);
        memset(h, 0xff, 3 * sizeof *h);
        assert_int_equal(lw_exec_run(l->exec, NULL), 0);
        for (int i = 0; i < 5; i++)
            assert_true(g[i] == 4.0f);
        for (int i = 0; i < 3; i++)
            assert_true(h[i] == 0.0f);
        lw_exec_free(&l->exec);
        lw_plan_free(&l->plan);
    }
    (void)lone;
}

/* One value under several names, a leaf as an output, an output that others read: each its own
 * memory. */
static void test_outputs_are_their_own(void **state)
{
    plan_lab *l = *state;
    lw_val x = LAB_X(l, "x", 4, 5), w = LAB_P(l, "w", 4, 5), y = lw_silu(l->g, x);
    lab_output(l, "y", y);
    lab_output(l, "again", y);
    lab_output(l, "flat", lw_reshape(l->g, y, lw_type_of(LW_F32, 1, 20)));
    lab_output(l, "x too", x);
    lab_output(l, "w", w);
    lab_output(l, "w2", lw_sqr(l->g, w));
    lab_output(l, "w4", lw_sqr(l->g, lw_sqr(l->g, w)));
    lab_compile(l, 1);
    lab_fill(l);
    assert_int_equal(lw_exec_run(l->exec, NULL), 0);
    static const char *const names[] = {"y", "again", "flat", "x too", "w", "w2", "w4", "x"};
    for (size_t i = 0; i < LW_COUNT(names); i++)
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(lw_exec_read(l->exec, names[i]), lw_exec_read(l->exec, names[k]));
    const float *a = lw_exec_read(l->exec, "y"), *p = lw_store_data(l->store, 0, LW_SLAB_PARAM);
    const float *w4 = lw_exec_read(l->exec, "w4");
    assert_memory_equal(a, lw_exec_read(l->exec, "again"), 20 * sizeof *a);
    assert_memory_equal(a, lw_exec_read(l->exec, "flat"), 20 * sizeof *a);
    assert_memory_equal(p, lw_exec_read(l->exec, "w"), 20 * sizeof *p);
    for (int i = 0; i < 20; i++)
        assert_true(fabsf(w4[i] - p[i] * p[i] * p[i] * p[i]) < 1e-6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_CASE(test_identities),
        LAB_CASE(test_no_identities),
        LAB_CASE(test_zero_is_added),
        LAB_CASE(test_constants_become_instructions),
        LAB_CASE(test_constants_beside_constants),
        LAB_CASE(test_merging_keeps_the_passes_apart),
        LAB_CASE(test_common_nodes_merge),
        LAB_CASE(test_random_merges_by_stream),
        LAB_CASE(test_dead_nodes_go),
        LAB_CASE(test_gradient_of_unread_parameter),
        LAB_CASE(test_outputs_are_their_own),
    };
    return cmocka_run_group_tests_name("plan_rewrite", tests, NULL, NULL);
}
