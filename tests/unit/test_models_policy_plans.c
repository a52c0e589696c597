/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of the policy: what is prepared, dropout, gradients of rows without a state. */
#include "unit/test_policy_util.h"

#include <math.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "cpu_device.h"
#include "store/store.h"
#include "models/models.h"

/* Projected tables and packed weights are made once per weights, not once per run; a layer is one
 * product with its relu and one norm with its residual. */
static void test_prepared(void **state)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_policy_config c = small();
    lw_store *s = formula_store(&c, 1);
    rig r = {.rows = 16};
    (void)state;
    assert_ok(cpu_device(1, lw_isa_best(), &r.dev));
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_val key = lw_policy_key(&b, &c, lw_policy_body_infer(&b, &c, inputs(g, &c, r.rows)));
    lw_graph_output_add(g, "key", key, LW_NOVAL);
    assert_ok(lw_compile(g, r.dev, NULL, &r.plan));
    assert_ok(lw_exec_new(r.plan, LW_SLAB_PARAM, &r.e));
    int prepare = lw_plan_get_info(r.plan).n_prepare, products = 0, norms = 0, bags = 0, others = 0;
    for (int i = prepare; i < lw_exec_step_count(r.e); i++) {
        const char *op = lw_exec_step_time(r.e, i).op;
        products += strcmp(op, "matmul") == 0;
        norms += strcmp(op, "group_norm") == 0;
        bags += strcmp(op, "embedding_bag") == 0;
        others += strcmp(op, "ew") == 0;
    }
    assert_int_equal(products, c.blocks + 1);
    assert_int_equal(norms, c.blocks + 1);
    assert_int_equal(bags, 2);
    assert_int_equal(others, 1); /* scale, bias and relu behind the bags */
    assert_int_equal(lw_exec_step_count(r.e) - prepare, products + norms + bags + others);
    /* Other weights: the prepared tables follow. */
    rig_run(&r, &c, 0, 16);
    float was = row(&r, "key", 3)[0];
    assert_ok(lw_policy_formula(&c, 2, s));
    rig_run(&r, &c, 0, 16);
    assert_true(row(&r, "key", 3)[0] != was);
    rig_close(&r);
    lw_store_free(&s);
}

/* ---- training -------------------------------------------------------------------------------- */

/* Dropout is drawn by row id and step, only in training, and never at inference. */
static void test_dropout(void **state)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_policy_config c = small();
    c.dropout = 0.5f;
    lw_store *s = formula_store(&c, 1);
    rig r = {.rows = 6};
    (void)state;
    assert_ok(cpu_device(2, lw_isa_best(), &r.dev));
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s), .training = true};
    b.rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, r.rows));
    lw_policy_in in = inputs(g, &c, r.rows);
    lw_val head = lw_policy_head(&b, &c, lw_policy_body(&b, &c, in));
    lw_graph_output_add(g, "head", head, LW_NOVAL);
    lw_val key = lw_policy_key(&b, &c, lw_policy_body_infer(&b, &c, in));
    lw_graph_output_add(g, "key", key, LW_NOVAL);
    assert_ok(lw_grad_params(g, lw_sum(g, lw_sqr(g, head), LW_OVER_ALL), LW_NOVAL));
    assert_ok(lw_compile(g, r.dev, NULL, &r.plan));
    assert_ok(lw_exec_new(r.plan, LW_SLAB_PARAM, &r.e));
    for (int i = 0; i < r.rows; i++)
        ((int64_t *)lw_exec_write(r.e, "rows"))[i] = i % 3; /* rows 3 .. 5 draw what 0 .. 2 draw */
    rig_run(&r, &c, 0, 1);                                  /* one state everywhere */
    size_t e = sizeof(float) * (size_t)c.embed, h = sizeof(float) * (size_t)c.hidden;
    assert_memory_equal(row(&r, "head", 0), row(&r, "head", 3), e);
    assert_memory_not_equal(row(&r, "head", 0), row(&r, "head", 1), e);
    assert_memory_equal(row(&r, "key", 0), row(&r, "key", 1), h);
    const float *pad = lw_store_data(s, lw_store_find(s, "constant_embedding.weight"),
                                     LW_SLAB_GRAD);
    double rest = 0;
    for (int i = 0; i < c.embed * 10; i++) {
        assert_true(i >= c.embed || pad[i] == 0.0f);
        rest += fabs((double)pad[i]);
    }
    assert_true(rest > 0);
    rig_close(&r);
    lw_store_free(&s);
}

/* Rows of nothing but pads (of a batch that is not full) have finite gradients in every
 * composition, also where biases are 0 and a head's length with them. */
static void test_empty_states(void **state)
{
    (void)state;
    for (int k = 0; k < LW_POLICY_ATOMS * LW_POLICY_STATES; k++) {
        LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
        lw_policy_config c = small();
        c.atom = k % LW_POLICY_ATOMS;
        c.state = k / LW_POLICY_ATOMS;
        c.embed = 12;
        c.l2_norm = true;
        lw_store *s = NULL;
        rig r = {.rows = 3};
        assert_ok(lw_store_new(false, &s));
        assert_ok(lw_policy_declare(&c, s));
        lw_policy_init(&c, 4, s);
        assert_ok(cpu_device(1, lw_isa_best(), &r.dev));
        assert_ok(lw_graph_new(&g));
        lw_builder b = {.g = g, .params = lw_store_params(s)};
        lw_val head = lw_policy_head(&b, &c, lw_policy_body(&b, &c, inputs(g, &c, r.rows)));
        lw_graph_output_add(g, "head", head, LW_NOVAL);
        assert_ok(lw_grad_params(g, lw_sum(g, head, LW_OVER_ALL), LW_NOVAL));
        assert_ok(lw_compile(g, r.dev, NULL, &r.plan));
        assert_ok(lw_exec_new(r.plan, LW_SLAB_PARAM, &r.e));
        rig_run(&r, &c, 0, 3);
        memset(lw_exec_write(r.e, "predicates"), 0, sizeof(int32_t) * (size_t)(3 * c.max_atoms));
        memset(lw_exec_write(r.e, "arguments"), 0, sizeof(int32_t) * (size_t)(6 * c.max_atoms));
        assert_ok(lw_exec_run(r.e, &(lw_tick){0}));
        for (int i = 0; i < 3 * c.embed; i++)
            assert_true(isfinite(row(&r, "head", 0)[i]));
        if (lw_store_first_bad(s, LW_SLAB_GRAD))
            fail_msg("atom %d, state %d: the gradient of %s is not finite", c.atom, c.state,
                     lw_store_first_bad(s, LW_SLAB_GRAD));
        rig_close(&r);
        lw_store_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prepared),
                                       cmocka_unit_test(test_dropout),
                                       cmocka_unit_test(test_empty_states)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
