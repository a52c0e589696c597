/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of times that contradict themselves are not believed; a busy machine is told from a quiet
 * one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "jobs/compare/compare_job.h"

static lw_latency cell(const char *method, int32_t evaluations, double seconds)
{
    return (lw_latency){.method = method,
                        .how = {.evaluations = evaluations},
                        .batch = 64,
                        .median = seconds,
                        .p95 = seconds,
                        .cpu = seconds,
                        .times_drift = seconds / 2.5};
}

static void test_more_evaluations_take_longer(void **state)
{
    (void)state;
    lw_latency l[] = {cell("drift", 1, 2.5), cell("ddpm", 50, 2.11), cell("ddpm", 100, 1.71),
                      cell("ddpm", 1000, 42)};
    l[0].times_drift = 1;
    /* what a report once printed: 100 evaluations in less time than 50 */
    assert_int_equal(lw_latency_contradictions(l, 4), 1);
    assert_false(l[0].refused || l[1].refused || l[3].refused);
    assert_true(l[2].refused);
    /* of two cells the extrapolated one is not believed */
    l[1].extrapolated = true;
    assert_int_equal(lw_latency_contradictions(l, 4), 1);
    assert_true(l[1].refused && !l[2].refused);
    /* measured again and consistent: nothing is left of it */
    l[2].median = l[2].cpu = 4.2;
    l[2].times_drift = 4.2 / 2.5;
    assert_int_equal(lw_latency_contradictions(l, 4), 0);
    assert_false(l[1].refused || l[2].refused);
    /* other batch sizes are other tables */
    l[2].median = l[2].cpu = 1.71;
    l[2].times_drift = 1.71 / 2.5;
    l[2].batch = 8;
    assert_int_equal(lw_latency_contradictions(l, 4), 0);
}

static void test_clock_against_processor(void **state)
{
    (void)state;
    lw_latency l[] = {cell("drift", 1, 0.19), cell("ddpm", 4, 0.82), cell("ddpm", 40, 39.6)};
    l[0].times_drift = 1;
    l[1].times_drift = 3.9;
    l[2].times_drift = 219; /* as measured once beside a dozen other programs */
    l[2].cpu = 7.65;
    assert_int_equal(lw_latency_contradictions(l, 3), 1);
    assert_true(l[2].refused && !l[1].refused && !l[0].refused);
    l[2].times_drift = 44;
    assert_int_equal(lw_latency_contradictions(l, 3), 0);
    l[2].times_drift = 20;
    assert_int_equal(lw_latency_contradictions(l, 3), 1);
}

static void test_busy_machine(void **state)
{
    (void)state;
    lw_latency l = cell("ddpm", 50, 1.0);
    l.cpu = 1.9; /* of two threads */
    l.p95 = 1.3;
    assert_false(lw_latency_busy(&l, 2));
    l.cpu = 0.9; /* half of the time others ran */
    assert_true(lw_latency_busy(&l, 2));
    l.p95 = 1.05; /* even: one thread did all of it */
    assert_false(lw_latency_busy(&l, 2));
}

static void test_texts(void **state)
{
    char t[32];
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    (void)state;
    assert_string_equal(lw_compare_times(t, 53.12), "53.1x");
    assert_string_equal(lw_compare_times(t, (double)__builtin_nan("")), "(not measured)");
    lw_compare_work w = {.drift = {153, 300},
                         .name = "DDPM",
                         .other = {203, 301},
                         .wall_percent = 32.7,
                         .cpu_percent = 0.3,
                         .known = true};
    lw_compare_work_text(&w, 1, &s);
    assert_non_null(strstr(lw_str_c(&s), "32.7 % apart"));
    assert_non_null(strstr(lw_str_c(&s), "not compared at equal work"));
    lw_str_clear(&s);
    w.equal = true;
    lw_compare_work_text(&w, 1, &s);
    assert_null(strstr(lw_str_c(&s), "not compared at equal work"));
    assert_null(strstr(lw_str_c(&s), "best"));
    w.kept_other =
        (lw_compare_kept){.metric = "eval_fd", .step = 800, .value = 0.12, .floor = 0.04};
    lw_str_clear(&s);
    lw_compare_work_text(&w, 1, &s);
    assert_non_null(strstr(lw_str_c(&s), "The checkpoint of DDPM that was kept as the best is of "
                                         "step 800, not the one compared: eval_fd 0.12 (real: "
                                         "0.04). Held-out distances"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_evaluations_take_longer),
        cmocka_unit_test(test_clock_against_processor),
        cmocka_unit_test(test_busy_machine),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests_name("latency", tests, NULL, NULL);
}
