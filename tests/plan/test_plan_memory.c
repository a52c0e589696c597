/* SPDX-License-Identifier: Apache-2.0 */
/* Memory maps proved: no two live values overlap, concatenations are written in place,
 * recomputation keeps every bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan_prover.h"
#include "plan/plan_util.h"
#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "store/store.h"
#include "models/models.h"

static plan_proof assert_proved(const lw_plan *p)
{
    plan_proof proof;
    if (!plan_prove(p, &proof))
        fail_msg("%s", proof.why);
    return proof;
}

static void test_memory_of_small_unet(void **state)
{
    (void)state;
    for (int train = 0; train < 2; train++) {
        size_t bytes[2];
        for (int opt = 0; opt < 2; opt++) {
            plan_lab l;
            lab_open(&l, 2, LW_ISA_REF);
            (train ? lab_unet_train : lab_unet_sample)(&l, 3);
            lab_compile(&l, opt);
            plan_proof proof = assert_proved(l.plan);
            bytes[opt] = l.plan->frame_bytes;
            if (!opt)
                assert_int_equal(proof.in_place + proof.shared, 0);
            else
                assert_true(proof.in_place > 0 && proof.shared > 0);
            lab_close(&l);
        }
        assert_true(bytes[1] < bytes[0] / 2);
    }
}

/* The shared U-Net as users train it (compiled, not run: no slabs are needed). */
static void test_memory_of_shared_unet(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    lw_unet_config c = lw_unet_small();
    lw_network_in in = {.x = LAB_X(&l, "x", 2, 32, 32, 3), .t = LAB_X(&l, "t", 2)};
    l.b.rows = lw_input(l.g, "rows", lw_type_of(LW_I64, 1, 2));
    lw_val loss = lw_mean(l.g, lw_sqr(l.g, lw_unet(&l.b, &c, in)), LW_OVER_ALL);
    lab_output(&l, "loss", loss);
    assert_int_equal(lw_grad_params(l.g, loss, LW_NOVAL), 0);
    if (lw_compile(l.g, l.dev, NULL, &l.plan) < 0)
        fail_msg("%s", lw_errmsg());
    plan_proof proof = assert_proved(l.plan);
    assert_true(proof.in_place > 0 && proof.shared > 0);
    print_message("shared U-Net, training step of 2: %zu bytes of values, %d steps in place\n",
                  l.plan->frame_bytes, proof.in_place);
    lab_close(&l);
}

/* The prover itself: it must see what a wrong planner would do. */
static int concat_tasks(const lw_plan *p, int *steps)
{
    int64_t tasks = 0;
    *steps = 0;
    for (int k = p->n_prepare; k < p->n_steps; k++) {
        if (p->step[k].node->op != LW_OP_CONCAT)
            continue;
        tasks += p->step[k].low.phase[0].n_tasks;
        ++*steps;
    }
    return (int)tasks;
}

/* Skip connections are written where they are concatenated: no copy in a forward pass. */
static void test_concatenations_are_placed(void **state)
{
    (void)state;
    plan_lab l;
    int steps;
    lab_open(&l, 1, LW_ISA_REF);
    lab_unet_sample(&l, 2);
    lab_compile(&l, 1);
    plan_proof proof = assert_proved(l.plan);
    assert_int_equal(concat_tasks(l.plan, &steps), 0);
    assert_true(steps > 3 && proof.placed == 2 * steps);
    lab_close(&l);
}

/* Parts of parts are written where they end up, at any depth, and what must be copied is copied there: no bit changes. */
static void test_concatenations_of_concatenations(void **state)
{
    (void)state;
    enum { N = 2 * 13 * 24 };
    static float y[2][2][N];
    for (int i = 0; i < 4; i++) {
        const bool placed = i & 1, low = i & 2;
        plan_lab l;
        int steps;
        lab_open(&l, 2, lw_isa_best());
        l.dev->pitched = placed ? l.dev->pitched : NULL;
        const lw_val x = LAB_X(&l, "x", 2, 13, 24);
        const lw_val a = lw_linear_op(l.g, x, LAB_P(&l, "a", 10, 24), LW_NOVAL);
        const lw_val b = lw_softmax(l.g, lw_linear_op(l.g, x, LAB_P(&l, "b", 6, 24), LW_NOVAL));
        const lw_val c = lw_linear_op(l.g, x, LAB_P(&l, "c", 12, 24), LW_NOVAL);
        const lw_val d = lw_linear_op(l.g, x, LAB_P(&l, "d", 20, 24), LW_NOVAL);
        const lw_val in = lw_concat(l.g, lw_concat(l.g, a, b, 2), c, 2),
                     all = lw_concat(l.g, d, in, 2);
        lab_output(&l, "y0", lw_linear_op(l.g, in, LAB_P(&l, "u", 24, 28), LW_NOVAL));
        lab_output(&l, "y1", lw_linear_op(l.g, all, LAB_P(&l, "v", 24, 48), LW_NOVAL));
        lab_compile_as(&l,
                       &(lw_compile_opts){.opt = 1, .precision = low ? LW_NUM_BF16 : LW_NUM_F32});
        const plan_proof proof = assert_proved(l.plan);
        const int tasks = concat_tasks(l.plan, &steps);
        assert_int_equal(steps, 3);
        assert_true(placed ? tasks == 1 : tasks == 3);
        assert_int_equal(proof.placed, placed ? 5 : 0);
        lab_fill(&l);
        assert_int_equal(lw_exec_run(l.exec, &(lw_tick){0}), 0);
        memcpy(y[0][placed], lw_exec_read(l.exec, "y0"), sizeof y[0][0]);
        memcpy(y[1][placed], lw_exec_read(l.exec, "y1"), sizeof y[1][0]);
        if (placed) {
            assert_memory_equal(y[0][0], y[0][1], sizeof y[0][0]);
            assert_memory_equal(y[1][0], y[1][1], sizeof y[1][0]);
        }
        lab_close(&l);
    }
}

/* A value that the caller sees, one that an attention reads dense, a value beside itself, a result
 * that the caller sees: copied. */
static void test_concatenations_that_stay(void **state)
{
    (void)state;
    plan_lab l;
    int steps;
    lab_open(&l, 1, LW_ISA_REF);
    lw_val x = LAB_X(&l, "x", 2, 4, 6), w = LAB_P(&l, "w", 6, 6);
    lw_val seen = lw_linear_op(l.g, x, w, LW_NOVAL), dense = lw_linear_op(l.g, seen, w, LW_NOVAL);
    lw_val twice = lw_linear_op(l.g, lw_softmax(l.g, x), w, LW_NOVAL);
    lw_val last = lw_linear_op(l.g, twice, w, LW_NOVAL);
    lab_output(&l, "seen", seen);
    lab_output(&l, "a", lw_attention(l.g, dense, 1));
    lab_output(&l, "y", lw_softmax(l.g, lw_concat(l.g, seen, dense, 2)));
    lab_output(&l, "z", lw_softmax(l.g, lw_concat(l.g, twice, twice, 2)));
    lab_output(&l, "u", lw_concat(l.g, last, x, 2));
    lab_compile(&l, 1);
    plan_proof proof = assert_proved(l.plan);
    assert_int_equal(proof.placed, 0);
    assert_true(concat_tasks(l.plan, &steps) >= 3);
    lab_close(&l);
}

/* Rows of 1,024 floats get gaps where only products touch them, and no bit changes. */
static void test_rows_with_gaps(void **state)
{
    (void)state;
    enum { N = 2 * 13 * 24 };
    static float y[2][N];
    for (int gaps = 0; gaps < 2; gaps++) {
        plan_lab l;
        lab_open(&l, 2, lw_isa_best());
        l.dev->pitch = gaps ? l.dev->pitch : NULL;
        lw_val x = LAB_X(&l, "x", 2, 13, 24), w = LAB_P(&l, "w", 1024, 24);
        lw_val h = lw_silu(l.g, lw_linear_op(l.g, x, w, LW_NOVAL));
        lw_val dense = lw_linear_op(l.g, lw_sqr(l.g, x), w, LW_NOVAL);
        lw_val out = lw_linear_op(l.g, h, LAB_P(&l, "u", 24, 1024), LW_NOVAL);
        lab_output(&l, "y", out);
        lab_output(&l, "z", lw_softmax(l.g, dense));
        lab_compile(&l, 1);
        assert_proved(l.plan);
        const lw_graph *g = l.plan->graph;
        lw_val wide = lab_node(g, LW_OP_MATMUL, 2)->in[0];
        wide = lw_type_last(lw_val_type(g, wide)) == 1024 ? wide
                                                          : lab_node(g, LW_OP_MATMUL, 1)->in[0];
        assert_int_equal(lw_val_pitch(g, wide), gaps ? 1040 : 1024);
        assert_int_equal(lw_val_pitch(g, lab_node(g, LW_OP_SOFTMAX, 0)->in[0]), 1024);
        lab_fill(&l);
        assert_int_equal(lw_exec_run(l.exec, &(lw_tick){0}), 0);
        memcpy(y[gaps], lw_exec_read(l.exec, "y"), sizeof y[0]);
        lab_close(&l);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
}

/* Making cheap values again: a smaller frame, every gradient bit the same. */
static void test_recompute_keeps_bits(void **state)
{
    (void)state;
    size_t bytes[2];
    float *grad[2] = {NULL, NULL}, loss[2];
    int64_t n = 0;
    for (int again = 0; again < 2; again++) {
        plan_lab l;
        lab_open(&l, 2, lw_isa_best());
        lab_unet_train(&l, 5);
        assert_int_equal(lw_store_fix(l.store), 0);
        lw_store_init(l.store, 3);
        const lw_compile_opts o = {.opt = 1, .recompute = again};
        assert_int_equal(lw_compile(l.g, l.dev, &o, &l.plan), 0);
        assert_proved(l.plan);
        bytes[again] = l.plan->frame_bytes;
        assert_int_equal(lw_exec_new(l.plan, LW_SLAB_PARAM, &l.exec), 0);
        lab_fill(&l);
        assert_int_equal(lw_exec_run(l.exec, &(lw_tick){4, 7}), 0);
        loss[again] = *(const float *)lw_exec_read(l.exec, "loss");
        const float *slab = lw_store_slab(l.store, LW_SLAB_GRAD, &n);
        grad[again] = lw_calloc((size_t)n, sizeof(float));
        memcpy(grad[again], slab, (size_t)n * sizeof(float));
        lab_close(&l);
    }
    assert_true(loss[0] == loss[1] && loss[0] > 0.0f);
    assert_memory_equal(grad[0], grad[1], (size_t)n * sizeof(float));
    assert_true(bytes[1] < bytes[0] * 3 / 4);
    lw_free(&grad[0]);
    lw_free(&grad[1]);
}

static void test_prover_sees_overlap(void **state)
{
    (void)state;
    plan_lab l;
    plan_proof proof;
    lab_open(&l, 1, LW_ISA_REF);
    lab_unet_train(&l, 2);
    lab_compile(&l, 1);
    int caught = 0, moved = 0;
    for (uint32_t i = 1; i <= l.plan->n_slots;
         i++) { /* every value once on top of its block's start */
        lw_slot *s = &l.plan->slot[i];
        if ((s->place != LW_PLACE_FRAME && s->place != LW_PLACE_DERIVED) || s->offset == 0 ||
            s->last == s->first)
            continue;
        size_t was = s->offset;
        s->offset = 0;
        caught += !plan_prove(l.plan, &proof);
        moved++;
        s->offset = was;
    }
    assert_true(moved > 100 && caught > moved / 2);
    assert_proved(l.plan);
    lab_close(&l);
}

/* Distances too many to keep have the most phases of all steps, and a frame far below N x M
 * (compiled, not run). */
static void test_large_drift_field(void **state)
{
    (void)state;
    enum { N = 4096, C = 128 };
    const lw_attr_drift a = {.groups = 1,
                             .n = N,
                             .np = N,
                             .slots = 1,
                             .c = C,
                             .n_tau = 3,
                             .tau = {0.02, 0.05, 0.2},
                             .normalize_over_x = true};
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    lw_drift_out o = lw_drift_field(l.g, LAB_X(&l, "x", N, 1, C), LAB_X(&l, "p", N, 1, C), LW_NOVAL,
                                    LW_NOVAL, &a);
    lab_output(&l, "loss", o.loss);
    if (lw_compile(l.g, l.dev, NULL, &l.plan) < 0)
        fail_msg("%s", lw_errmsg());
    assert_proved(l.plan);
    assert_true(l.plan->frame_bytes < (size_t)N * 2 * N * sizeof(float) / 2);
    lab_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_of_small_unet),
        cmocka_unit_test(test_memory_of_shared_unet),
        cmocka_unit_test(test_concatenations_are_placed),
        cmocka_unit_test(test_concatenations_of_concatenations),
        cmocka_unit_test(test_concatenations_that_stay),
        cmocka_unit_test(test_rows_with_gaps),
        cmocka_unit_test(test_recompute_keeps_bits),
        cmocka_unit_test(test_prover_sees_overlap),
        cmocka_unit_test(test_large_drift_field),
    };
    return cmocka_run_group_tests_name("plan_memory", tests, NULL, NULL);
}
