/* SPDX-License-Identifier: Apache-2.0 */
/* Every op in both directions: oracle against fast plans at each ISA level, gradients by
 * differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "ir/ir.h"
#include "ops/op_cases.h"

static void test_all(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; op_case_at(i); i++)
        bad += op_check(op_case_at(i));
    assert_int_equal(bad, 0);
}

/* An op cannot stay without a case: every op that runs was in some graph above. Packing is the
 * device's own, chains are made by a pass (tests/plan/test_plan_chain.c). */
static void test_coverage(void **state)
{
    (void)state;
    for (int i = 0; i < LW_OP_COUNT; i++) {
        if (lw_op_get((lw_op)i)->flags & (LW_OPF_LEAF | LW_OPF_ALIAS) || i == LW_OP_PACK ||
            i == LW_OP_CONV_CHAIN)
            continue;
        if (!op_seen((lw_op)i))
            printf("no case has op '%s'\n", lw_op_get((lw_op)i)->name);
        assert_true(op_seen((lw_op)i));
    }
}

/* Walks the table of ops: no hole where a rule is expected. */
static void test_records(void **state)
{
    (void)state;
    for (int i = 0; i < LW_OP_COUNT; i++) {
        const lw_op_def *d = lw_op_get((lw_op)i);
        assert_non_null(d->name);
        assert_non_null(d->infer);
        assert_non_null(d->grad);
        assert_non_null(d->cost);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records), cmocka_unit_test(test_all),
                                       cmocka_unit_test(test_coverage)};
    return cmocka_run_group_tests_name("ops", tests, NULL, NULL);
}
