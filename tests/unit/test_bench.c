/* SPDX-License-Identifier: Apache-2.0 */
/* bench: statistics of known samples, the verdict, two benches compared, files read back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "bench/bench.h"
#include "bench/profile/bench_profile.h"

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 * fmax(1, fabs(want))))
        fail_msg("%.17g is not %.17g", got, want);
}

static void samples_are_described(void **state)
{
    (void)state;
    const double ms[] = {5, 1, 4, 2, 3};
    lw_summary s = lw_summarize(ms, 5);
    assert_int_equal(s.n, 5);
    near(s.mean, 3);
    near(s.std, sqrt(2.5));
    near(s.min, 1);
    near(s.p50, 3);
    near(s.p95, 4.8);
    near(s.p99, 4.96);
    near(s.p10, 1.4);
    near(s.mad, 1); /* 2 1 0 1 2 */
    s = lw_summarize(ms, 1);
    near(s.p50, 5);
    near(s.p99, 5);
    near(s.mad, 0);
    assert_true(isnan(s.std));
    assert_true(isnan(lw_summarize(NULL, 0).p50));
    const double even[] = {1, 2, 3, 10};
    near(lw_summarize(even, 4).p50, 2.5);
}

static lw_bench_verdict judge(const double *base, const double *now, int32_t n)
{
    lw_summary a = lw_summarize(base, n), b = lw_summarize(now, n);
    return lw_bench_judge(&a, &b);
}

enum { N = 5 };

static void verdicts_need_median_and_minimum(void **state)
{
    (void)state;
    const double base[N] = {100, 100.1, 100.2, 100.1, 100};
    const double equal[N] = {100.1, 100, 100.1, 100.2, 100};
    const double little[N] = {102.9, 103, 103.1, 103, 102.8}; /* below 3 % */
    const double slower[N] = {103.5, 103.6, 103.7, 103.6, 103.5};
    const double faster[N] = {96, 96.1, 96.2, 96.1, 96};
    const double median_only[N] = {100, 110, 110, 110, 110}; /* the minimum stayed */
    const double minimum_only[N] = {90, 100, 100.1, 100, 100.1};
    assert_int_equal(judge(base, equal, N), LW_BENCH_NOISE);
    assert_int_equal(judge(base, little, N), LW_BENCH_NOISE);
    assert_int_equal(judge(base, slower, N), LW_BENCH_WORSE);
    assert_int_equal(judge(slower, base, N), LW_BENCH_BETTER);
    assert_int_equal(judge(base, faster, N), LW_BENCH_BETTER);
    assert_int_equal(judge(base, median_only, N), LW_BENCH_NOISE);
    assert_int_equal(judge(base, minimum_only, N), LW_BENCH_NOISE);
}

/* Samples that scatter by 10 must move by 30. */
static void spread_widens_the_margin(void **state)
{
    (void)state;
    double base[N] = {80, 90, 100, 110, 120}, now[N];
    for (int i = 0; i < N; i++)
        now[i] = base[i] + 29;
    assert_int_equal(judge(base, now, N), LW_BENCH_NOISE);
    for (int i = 0; i < N; i++)
        now[i] = base[i] + 31;
    assert_int_equal(judge(base, now, N), LW_BENCH_WORSE);
    /* the spread of the new samples counts as much as that of the old */
    const double calm[N] = {100, 100, 100, 100, 100}, wild[N] = {104, 114, 124, 134, 144};
    assert_int_equal(judge(calm, wild, N), LW_BENCH_NOISE);
}

/* ---- whole benches --------------------------------------------------------------------------- */

static lw_bench bench_of(const char *cpu, int n)
{
    static const char *const name[] = {"one", "two", "three"};
    lw_bench b = {.warm_up = 1, .samples = 3};
    b.machine = json_pack("{s:s, s:i, s:i, s:s}", "cpu", cpu, "cpus", 2, "threads", 2, "isa",
                          "avx2");
    b.cases = lw_calloc((size_t)n, sizeof *b.cases);
    for (b.n = 0; b.n < n; b.n++) {
        lw_bench_case *c = &b.cases[b.n];
        snprintf(c->suite, sizeof c->suite, "unet");
        snprintf(c->name, sizeof c->name, "%s", name[b.n]);
        c->ms = lw_calloc(3, sizeof *c->ms);
        for (c->n = 0; c->n < 3; c->n++)
            c->ms[c->n] = 10 * (b.n + 1) + 0.01 * c->n;
        c->batch = 4;
        c->base_ms = c->difference = c->peak_share = c->error = (double)NAN;
    }
    return b;
}

static void benches_are_compared_by_name(void **state)
{
    (void)state;
    LW_CLEANUP(lw_bench_clear) lw_bench base = bench_of("A", 3);
    LW_CLEANUP(lw_bench_clear) lw_bench now = bench_of("A", 3);
    LW_CLEANUP(lw_free) lw_bench_change *d = NULL;
    int32_t n;
    snprintf(now.cases[2].name, sizeof now.cases[2].name, "other");
    for (int i = 0; i < 3; i++)
        now.cases[0].ms[i] *= 2;
    assert_int_equal(lw_bench_compare(&base, &now, true, &d, &n), 0);
    assert_int_equal(n, 4);
    assert_int_equal(d[0].verdict, LW_BENCH_WORSE);
    assert_int_equal(d[1].verdict, LW_BENCH_NOISE);
    assert_int_equal(d[2].verdict, LW_BENCH_NEW);
    assert_int_equal(d[3].verdict, LW_BENCH_GONE);
    assert_string_equal(d[3].name, "three");
    lw_free(&d);
    assert_int_equal(lw_bench_compare(&base, &now, false, &d, &n), 0);
    assert_int_equal(n, 3);
}

static void other_machines_are_refused(void **state)
{
    (void)state;
    LW_CLEANUP(lw_bench_clear) lw_bench a = bench_of("A", 1);
    LW_CLEANUP(lw_bench_clear) lw_bench b = bench_of("B", 1);
    LW_CLEANUP(lw_bench_clear) lw_bench same = bench_of("A", 2);
    assert_int_equal(lw_bench_same_machine(&a, &same), 0);
    assert_int_equal(lw_bench_same_machine(&a, &b), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "cpu was \"A\" and is \"B\""));
    json_object_set_new(same.machine, "isa", json_string("avx512"));
    assert_int_equal(lw_bench_same_machine(&a, &same), LW_EUSAGE);
}

static void files_are_read_back(void **state)
{
    (void)state;
    char path[64];
    LW_CLEANUP(lw_bench_clear) lw_bench a = bench_of("A", 3);
    LW_CLEANUP(lw_bench_clear) lw_bench b = {0};
    LW_CLEANUP(lw_str_clear) lw_str csv = {0};
    snprintf(path, sizeof path, "/tmp/lw_test_bench_%d.json", (int)getpid());
    snprintf(a.cases[2].skipped, sizeof a.cases[2].skipped, "out of memory");
    a.cases[2].n = 0;
    LW_CLEANUP(lw_json_drop) json_t *tree = lw_bench_to_json(&a);
    assert_int_equal(lw_json_save(path, tree), 0);
    assert_int_equal(lw_bench_load(path, &b), 0);
    assert_int_equal(b.n, 3);
    assert_string_equal(b.cases[1].name, "two");
    assert_int_equal(b.cases[1].n, 3);
    for (int i = 0; i < 3; i++)
        assert_true(b.cases[1].ms[i] == a.cases[1].ms[i]);
    assert_int_equal(b.cases[2].n, 0);
    assert_int_equal(lw_bench_same_machine(&a, &b), 0);
    unlink(path);
    json_t *bad = json_deep_copy(tree);
    json_array_append_new(
        json_object_get(json_array_get(json_object_get(bad, "results"), 0), "samples_ms"),
        json_string("x"));
    assert_int_equal(lw_json_save(path, bad), 0);
    json_decref(bad);
    lw_bench c = {0};
    assert_int_equal(lw_bench_load(path, &c), LW_EFORMAT);
    unlink(path);
    assert_int_equal(lw_bench_csv(&a, &csv), 0);
    assert_non_null(strstr(lw_str_c(&csv), "method,batch_size,mean_ms,p50_ms,p95_ms,p99_ms,std_ms,"
                                           "per_image_ms,throughput_imgs,"));
}

/* Each key that a comparison reads, missing and of another type: named, never a crash. */
static void incomplete_files_are_refused(void **state)
{
    (void)state;
    static const char *const keys[] = {"cpu", "cpus", "threads", "isa"};
    char path[64];
    snprintf(path, sizeof path, "/tmp/lw_test_bench_%d.json", (int)getpid());
    LW_CLEANUP(lw_bench_clear) lw_bench a = bench_of("A", 1);
    for (size_t i = 0; i < LW_COUNT(keys); i++)
        for (int wrong = 0; wrong < 2; wrong++) {
            LW_CLEANUP(lw_json_drop) json_t *tree = lw_bench_to_json(&a);
            LW_CLEANUP(lw_json_drop) json_t *machine = json_deep_copy(a.machine);
            lw_bench b = {0};
            if (wrong)
                json_object_set_new(machine, keys[i], json_array());
            else
                json_object_del(machine, keys[i]);
            json_object_set(tree, "machine", machine);
            assert_int_equal(lw_json_save(path, tree), 0);
            assert_int_equal(lw_bench_load(path, &b), LW_EFORMAT);
            assert_non_null(strstr(lw_errmsg(), path));
            assert_non_null(strstr(lw_errmsg(), keys[i]));
        }
    unlink(path);
}

/* Two and four threads of a machine that has no cores for eight. */
static void threads_share_what_was_measured(void **state)
{
    (void)state;
    lw_profile_phase phase = {.ms = 8, .tasks = 8};
    lw_profile_step s = {.ms = 8, .phase = &phase, .n_phase = 1};
    lw_profile p = {.threads = 1,
                    .at_once = 1,
                    .cpus = 4,
                    .model = {2, 4, 8},
                    .n_model = 3,
                    .pace = {{1, 2}, {1.5, 3}},
                    .own = {1, 1},
                    .weights_gbytes = 10};
    near(lw_profile_model_ms(&p, &s, 4), 2);
    near(lw_profile_expected_ms(&p, &s, 0), 4);
    near(lw_profile_expected_ms(&p, &s, 1), 3);
    assert_true(isnan(lw_profile_expected_ms(&p, &s, 2)));
    s.bytes = 80e6; /* all of its time is reading */
    near(lw_profile_expected_ms(&p, &s, 0), 8);
    near(lw_profile_expected_ms(&p, &s, 1), 6);
    s.bytes = 40e6; /* half of it */
    near(lw_profile_expected_ms(&p, &s, 1), 4.5);
    s.bytes = 0;
    phase.tasks = 2; /* two of four threads work */
    near(lw_profile_expected_ms(&p, &s, 1), 4 * (1 + .5 / 3));
    p.threads = p.at_once = 2; /* measured when these shared */
    p.own = (lw_profile_pace){1.25, 1};
    near(lw_profile_model_ms(&p, &s, 4), 8);
    near(lw_profile_expected_ms(&p, &s, 1), 8 * (1 + .5 / 3) / 1.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_described),
        cmocka_unit_test(verdicts_need_median_and_minimum),
        cmocka_unit_test(spread_widens_the_margin),
        cmocka_unit_test(benches_are_compared_by_name),
        cmocka_unit_test(other_machines_are_refused),
        cmocka_unit_test(files_are_read_back),
        cmocka_unit_test(incomplete_files_are_refused),
        cmocka_unit_test(threads_share_what_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
