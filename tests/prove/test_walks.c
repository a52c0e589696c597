/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks by the uniform policy: what comes out for a query depends on nothing but knowledge base,
 * query, seed and id; never more proofs live than allowed; nothing is allocated while walking;
 * errors say what is wrong.
 */
#include "prove/test_walks_util.h"

#include "base/base.h"
#include "plan/plan.h"
#include "cpu_device.h"
#include "logic/logic.h"
#include "jobs/prove/walk/prove_walks.h"

static void uniform_walks_depend_on_the_walk_alone(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    lw_walks_options o = lw_walks_defaults();
    lw_walks_counts a = walk(kb, NULL, &o, 1, &first), b;
    int ends[5] = {0};
    for (int i = 0; i < WALKS; i++)
        ends[first.of[i].end]++;
    print_message("%d walks: %d proved, %d failed, %d stopped, %d deep; %lld choices of %.1f\n",
                  WALKS, ends[1], ends[2], ends[3], ends[4], (long long)a.query_steps,
                  (double)a.states_offered / (double)a.query_steps);
    assert_true(ends[1] > 0 && ends[3] > 0);
    assert_int_equal(a.query_steps, a.env.steps);
    assert_int_equal(a.states_offered, a.env.successors);
    for (int i = 0; i < 3; i++) {
        o.fixed_batch_size = (int32_t[]){1, 7, 600}[i];
        b = walk(kb, NULL, &o, (int[]){5, 2, 3}[i], &other);
        same_results(&first, &other);
        assert_int_equal(a.query_steps, b.query_steps);
        assert_int_equal(a.forced, b.forced);
        assert_memory_equal(&a.env, &b.env, sizeof a.env);
    }
    o.seed = 1;
    b = walk(kb, NULL, &o, 1, &other);
    assert_int_not_equal(a.query_steps, b.query_steps);
}

static void wrong_use_is_named(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    lw_walks_options o = lw_walks_defaults();
    ok(cpu_device(1, lw_isa_best(), &dev));
    o.fixed_batch_size = 0;
    fails(lw_walks_new(kb, dev, NULL, &o, &w), LW_EUSAGE, "fixed-batch-size");
    o = lw_walks_defaults();
    o.rows = 0;
    fails(lw_walks_new(kb, dev, NULL, &o, &w), LW_EUSAGE, "rows");
    o = lw_walks_defaults();
    o.precision = LW_NUM_S8;
    fails(lw_walks_new(kb, dev, NULL, &o, &w), LW_EUSAGE, "precision");
    o = lw_walks_defaults();
    o.env.max_depth = 0;
    fails(lw_walks_new(kb, dev, NULL, &o, &w), LW_EUSAGE, "max-depth");
    LW_CLEANUP(net_clear) net n = {0};
    net_of(kb, 3, &n);
    o = lw_walks_defaults();
    o.env.padding_atoms = n.config.max_atoms + 1;
    fails(lw_walks_new(kb, dev, &n.source, &o, &w), LW_EUSAGE, "padding-atoms");
    o = lw_walks_defaults();
    o.env.max_total_vars = n.config.variables + 1;
    fails(lw_walks_new(kb, dev, &n.source, &o, &w), LW_EUSAGE, "max-total-vars");
    n.config.constants++;
    o = lw_walks_defaults();
    fails(lw_walks_new(kb, dev, &n.source, &o, &w), LW_EUSAGE, "constants");
    assert_null(w);
}

static bool stranger(void *self, lw_walk *out)
{
    *out = (lw_walk){.id = 77, .query = {1, {1, *(int32_t *)self}}};
    return true;
}

static void a_run_ends_with_its_errors_and_another_may_follow(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    lw_walks_options o = lw_walks_defaults();
    int32_t nobody = PEOPLE + 1;
    o.fixed_batch_size = 16;
    ok(cpu_device(2, lw_isa_best(), &dev));
    ok(lw_walks_new(kb, dev, NULL, &o, &w));
    fails(lw_walks_run(w, stranger, done, &nobody), LW_EUSAGE, "walk 77");
    other = (crowd){.kb = kb, .n = WALKS, .stop_after = 20};
    fails(lw_walks_run(w, next, done, &other), LW_ESTOPPED, "enough");
    other = (crowd){.kb = kb, .n = 0};
    ok(lw_walks_run(w, next, done, &other));
    other = (crowd){.kb = kb, .n = WALKS};
    ok(lw_walks_run(w, next, done, &other));
    o.fixed_batch_size = 512;
    walk(kb, NULL, &o, 1, &first);
    same_results(&first, &other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_walks_depend_on_the_walk_alone),
        cmocka_unit_test(wrong_use_is_named),
        cmocka_unit_test(a_run_ends_with_its_errors_and_another_may_follow),
    };
    return cmocka_run_group_tests_name("walks", tests, NULL, NULL);
}
