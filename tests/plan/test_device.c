/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between plan and a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

#include "plan/plan_util.h"

static void test_opened_by_name(void **state)
{
    (void)state;
    lw_device *dev = NULL;
    const lw_backend_options o = {.threads = 3, .isa = LW_ISA_REF};
    assert_int_equal(lw_backend_open("abacus", &o, &dev), LW_EDEVICE);
    assert_non_null(strstr(lw_errmsg(), "'abacus'"));
    assert_null(dev);
    assert_int_equal(lw_backend_open("cpu", &o, &dev), 0);
    assert_string_equal(dev->name, "cpu");
    assert_string_equal(dev->isa, "ref");
    assert_int_equal(dev->kernels->isa, LW_ISA_REF);
    assert_int_equal(lw_pool_size(dev->pool), 3);
    lw_backend_close(&dev);
    assert_null(dev);
    lw_backend_close(&dev);
}

static bool at_third(void *self)
{
    return ++*(int *)self == 3;
}

/* One watch, on the pool, ends plans between two of their steps. */
static void test_watched_runs_stop(void **state)
{
    plan_lab *l = *state;
    int asked = 0;
    const lw_observer obs = {.self = &asked, .should_stop = at_third};
    lab_unet_sample(l, 1);
    lab_compile(l, 1);
    lab_fill(l);
    lw_pool_watch(l->dev->pool, &obs);
    assert_int_equal(lw_exec_run(l->exec, NULL), LW_ESTOPPED);
    assert_int_equal(asked, 3);
    lw_pool_watch(l->dev->pool, NULL);
    assert_int_equal(lw_exec_run(l->exec, NULL), 0);
    assert_int_equal(asked, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opened_by_name),
        LAB_CASE(test_watched_runs_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
