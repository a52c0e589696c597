/* SPDX-License-Identifier: Apache-2.0 */
/* base/pool and base/ring: every task once, full barriers, errors that travel. Built under TSan
 * too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

enum { MOST_TASKS = 512 };

typedef struct job {
    int size;
    int64_t times[MOST_TASKS]; /* plain: a task run twice at once is a race that TSan sees */
    int64_t round;
} job;

static void bump(void *arg, int64_t task, int worker)
{
    job *j = arg;
    if (worker < 0 || worker >= j->size)
        abort();
    j->times[task] += j->round;
}

static void run_rounds(int threads, int rounds)
{
    static const int counts[] = {0, 1, 2, 3, 7, 64, MOST_TASKS};
    lw_pool *pool = NULL;
    assert_int_equal(lw_pool_new(threads, &pool), 0);
    assert_int_equal(lw_pool_size(pool), threads);
    job j = {.size = threads};
    int64_t expected[MOST_TASKS] = {0};
    for (int r = 0; r < rounds; r++) {
        int n = counts[(size_t)r % LW_COUNT(counts)];
        j.round = r;
        lw_pool_run(pool, n, bump, &j);
        for (int i = 0; i < n; i++)
            expected[i] += r;
        assert_memory_equal(j.times, expected, sizeof expected); /* the barrier: all done by now */
    }
    lw_pool_free(&pool);
    assert_null(pool);
}

static void every_task_runs_once(void **state)
{
    (void)state;
    run_rounds(1, 50);
    run_rounds(2, 4000);
    run_rounds(5, 2000); /* more threads than many machines have CPUs */
}

/* Every third task fails: the first of them is what the caller hears of, however many threads. */
static int every_third(void *arg, int64_t task, int worker)
{
    job *j = arg;
    (void)worker;
    j->times[task]++;
    return task % 3 == 2 ? lw_fail(LW_EFORMAT, "task %lld", (long long)task) : 0;
}

static void the_first_failure_is_told(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 5; threads += 2) {
        lw_pool *pool = NULL;
        job j = {.size = threads};
        assert_int_equal(lw_pool_new(threads, &pool), 0);
        assert_int_equal(lw_pool_try(pool, 2, every_third, &j), 0);
        assert_int_equal(lw_pool_try(pool, MOST_TASKS, every_third, &j), LW_EFORMAT);
        assert_string_equal(lw_errmsg(), "task 2");
        for (int i = 0; i < MOST_TASKS; i++) /* all were run, that one again */
            assert_int_equal(j.times[i], 1 + (i < 2) + (i == 2));
        lw_pool_free(&pool);
    }
}

/* More tasks than claims: these are of groups. */
static void mark(void *arg, int64_t task, int worker)
{
    (void)worker;
    ((uint8_t *)arg)[task]++;
}

static void many_tasks_run_once(void **state)
{
    enum { MANY = 200003 };
    static uint8_t times[MANY];
    static const int counts[] = {65533, 65534, 65535, 131069, MANY};
    (void)state;
    for (int threads = 2; threads <= 3; threads++) {
        lw_pool *pool = NULL;
        assert_int_equal(lw_pool_new(threads, &pool), 0);
        for (size_t i = 0; i < LW_COUNT(counts); i++) {
            memset(times, 0, sizeof times);
            lw_pool_run(pool, counts[i], mark, times);
            for (int k = 0; k < MANY; k++)
                if (times[k] != (k < counts[i]))
                    fail_msg("task %d of %d ran %d times", k, counts[i], times[k]);
        }
        lw_pool_free(&pool);
    }
}

/* Pauses longer than the spin: workers sleep and must wake for the next job. */
static void workers_wake_from_sleep(void **state)
{
    (void)state;
    lw_pool *pool = NULL;
    assert_int_equal(lw_pool_new(3, &pool), 0);
    job j = {.size = 3, .round = 1};
    for (int r = 0; r < 30; r++) {
        lw_sleep(r % 3 == 0 ? 0.004 : 0.00016);
        lw_pool_run(pool, 9, bump, &j);
        assert_int_equal(j.times[8], r + 1);
    }
    lw_pool_free(&pool);
}

typedef struct meeting {
    int arrived[2];
} meeting;

/* Each of two tasks waits until the other has begun: only two threads at work can finish this. */
static void meet(void *arg, int64_t task, int worker)
{
    (void)worker;
    meeting *m = arg;
    __atomic_store_n(&m->arrived[task], 1, __ATOMIC_SEQ_CST);
    double began = lw_now();
    while (!__atomic_load_n(&m->arrived[1 - task], __ATOMIC_SEQ_CST))
        if (lw_now() - began > 20.0)
            abort();
}

static void tasks_run_at_the_same_time(void **state)
{
    (void)state;
    lw_pool *pool = NULL;
    assert_int_equal(lw_pool_new(2, &pool), 0);
    for (int r = 0; r < 5; r++) {
        meeting m = {{0, 0}};
        lw_pool_run(pool, 2, meet, &m);
        assert_int_equal(m.arrived[0] + m.arrived[1], 2);
        lw_sleep(0.001);
    }
    lw_pool_free(&pool);
}

static void null_pool_is_serial(void **state)
{
    (void)state;
    job j = {.size = 1, .round = 1};
    lw_pool_run(NULL, 10, bump, &j);
    for (int i = 0; i < 10; i++)
        assert_int_equal(j.times[i], 1);
    assert_int_equal(lw_pool_size(NULL), 1);
    lw_pool *none = NULL;
    lw_pool_free(&none);
    assert_int_equal(lw_pool_new(0, &none), LW_EUSAGE);
    assert_null(none);
}

typedef struct ask_job {
    int64_t asked, ran[8]; /* by worker: no two write one of them */
} ask_job;

static bool third_time(void *self)
{
    return ++((ask_job *)self)->asked >= 3;
}

static void count_run(void *arg, int64_t task, int worker)
{
    (void)task;
    ((ask_job *)arg)->ran[worker]++;
    usleep(1000);
}

/* A stop that says yes is obeyed within a task; nobody asked, all run. */
static void a_watched_job_can_be_stopped(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
        assert_int_equal(lw_pool_new(threads, &pool), 0);
        ask_job j = {0};
        const lw_observer watch = {.self = &j, .should_stop = third_time};
        lw_pool_watch(pool, &watch);
        assert_int_equal(lw_pool_run_asking(pool, 5000, count_run, &j), LW_ESTOPPED);
        assert_true(j.ran[0] == 2 && j.asked >= 3); /* the third was not begun */
        assert_true(j.ran[0] + j.ran[1] + j.ran[2] + j.ran[3] < 5000);
        lw_pool_watch(pool, NULL);
        memset(&j, 0, sizeof j);
        assert_int_equal(lw_pool_run_asking(pool, 20, count_run, &j), 0);
        assert_int_equal(j.ran[0] + j.ran[1] + j.ran[2] + j.ran[3], 20);
    }
}

static void running_jobs_allocates_nothing(void **state)
{
    (void)state;
    lw_pool *pool = NULL;
    assert_int_equal(lw_pool_new(2, &pool), 0);
    job j = {.size = 2, .round = 1};
    uint64_t before = lw_alloc_count();
    for (int r = 0; r < 100; r++)
        lw_pool_run(pool, 16, bump, &j);
    assert_int_equal(lw_alloc_count(), before);
    lw_pool_free(&pool);
}

typedef struct source {
    int64_t slot[8]; /* item number + 1000 in each slot */
    int64_t stop_at;
    int how; /* 1: end, LW_E*: failure */
} source;

static int fill(void *arg, int slot, int64_t item)
{
    source *s = arg;
    if (item == s->stop_at)
        return s->how < 0 ? lw_fail(s->how, "item %lld is broken", (long long)item) : s->how;
    s->slot[slot] = item + 1000;
    return 0;
}

static void ring_gives_items_in_order(void **state)
{
    (void)state;
    for (int slots = 1; slots <= 8; slots += slots < 3 ? 1 : 5) {
        source s = {.stop_at = 500, .how = 1};
        lw_ring *r = NULL;
        int slot = -1;
        assert_int_equal(lw_ring_new(slots, fill, &s, &r), 0);
        for (int64_t i = 0; i < 500; i++) {
            assert_int_equal(lw_ring_next(r, &slot), 0);
            assert_int_equal(slot, i % slots);
            assert_int_equal(s.slot[slot], i + 1000);
        }
        assert_int_equal(lw_ring_next(r, &slot), 1);
        assert_int_equal(lw_ring_next(r, &slot), 1);
        lw_ring_free(&r);
        assert_null(r);
    }
}

static void ring_carries_errors_after_the_good_items(void **state)
{
    (void)state;
    source s = {.stop_at = 3, .how = LW_EFORMAT};
    lw_ring *r = NULL;
    int slot = -1;
    assert_int_equal(lw_ring_new(2, fill, &s, &r), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(lw_ring_next(r, &slot), 0);
    for (int again = 0; again < 2; again++) {
        lw_errclear();
        assert_int_equal(lw_ring_next(r, &slot), LW_EFORMAT);
        assert_string_equal(lw_errmsg(), "item 3 is broken");
    }
    lw_ring_free(&r);
}

static void ring_can_be_dropped_at_any_time(void **state)
{
    (void)state;
    for (int taken = 0; taken < 12; taken++) {
        source s = {.stop_at = -1};
        lw_ring *r = NULL;
        int slot = -1;
        assert_int_equal(lw_ring_new(4, fill, &s, &r), 0);
        for (int i = 0; i < taken; i++)
            assert_int_equal(lw_ring_next(r, &slot), 0);
        lw_ring_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once),
        cmocka_unit_test(the_first_failure_is_told),
        cmocka_unit_test(many_tasks_run_once),
        cmocka_unit_test(workers_wake_from_sleep),
        cmocka_unit_test(tasks_run_at_the_same_time),
        cmocka_unit_test(null_pool_is_serial),
        cmocka_unit_test(a_watched_job_can_be_stopped),
        cmocka_unit_test(running_jobs_allocates_nothing),
        cmocka_unit_test(ring_gives_items_in_order),
        cmocka_unit_test(ring_carries_errors_after_the_good_items),
        cmocka_unit_test(ring_can_be_dropped_at_any_time),
    };
    return cmocka_run_group_tests_name("base_threads", tests, NULL, NULL);
}
