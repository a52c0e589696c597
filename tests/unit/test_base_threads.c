/* SPDX-License-Identifier: Apache-2.0 */
/* base/pool and base/ring: every task once, full barriers, errors that travel. Built under TSan
 * too. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/sys/sys_cores.h"

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
typedef struct slow_back {
    uint8_t *times;
    int64_t n;
    _Atomic int64_t done;
} slow_back;

/* Workers keep their first task until the caller has done all the others. */
static void wait_at_the_back(void *arg, int64_t task, int worker)
{
    slow_back *b = arg;
    while (worker > 0 && atomic_load(&b->done) < b->n - 2)
        sched_yield();
    b->times[task]++;
    atomic_fetch_add(&b->done, 1);
}

/* Claims from one end alone are as many as they can be. */
static void one_thread_may_do_nearly_all(void **state)
{
    enum { MOST = 65540 };
    static uint8_t times[MOST];
    (void)state;
    lw_pool *pool = NULL;
    assert_int_equal(lw_pool_new(2, &pool), 0);
    for (int n = 65530; n <= MOST; n++) {
        slow_back b = {.times = times, .n = n};
        memset(times, 0, sizeof times);
        lw_pool_run(pool, n, wait_at_the_back, &b);
        for (int k = 0; k < n; k++)
            if (times[k] != 1)
                fail_msg("task %d of %d ran %d times", k, n, times[k]);
    }
    lw_pool_free(&pool);
    assert_int_equal(lw_pool_new(0, &pool), LW_EUSAGE);
    assert_int_equal(lw_pool_new(4097, &pool), LW_EUSAGE);
    assert_null(pool);
}

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

/* ---- binding --------------------------------------------------------------------------------- */

static void put(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    *strrchr(path, '/') = '\0';
    assert_int_equal(lw_mkdirs(path), 0);
    path[strlen(path)] = '/';
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Four cores of two CPUs each, numbered as Linux does, 0 and 4 together; 3 and 7 say nothing. */
static void cores_are_told_from_cpus(void **state)
{
    (void)state;
    char tree[] = "/tmp/leeway_cores.XXXXXX";
    assert_non_null(mkdtemp(tree));
    for (int c = 0; c < 8; c++) {
        char name[64], list[16];
        snprintf(name, sizeof name, "cpu%d/topology/thread_siblings_list", c);
        snprintf(list, sizeof list, c % 4 == 2 ? "2-6\n" : "%d,%d\n", c % 4, c % 4 + 4);
        put(tree, name, c == 3 ? "nothing of the kind" : c == 7 ? "\n" : list);
    }
    lw_cpus all = {.word = {0xff}}, some = {.word = {0xe6}}; /* 1 2 5 6 7 */
    int cpu[8];
    assert_int_equal(lw_cpus_cores(&all, tree, cpu, 8), 5);
    for (int i = 0; i < 4; i++)
        assert_int_equal(cpu[i], i);
    assert_int_equal(cpu[4], 7);
    assert_int_equal(lw_cpus_cores(&some, tree, cpu, 1), 3); /* and not written beyond one */
    assert_int_equal(cpu[0], 1);
    assert_int_equal(cpu[1], 1);
    lw_cpus_drop_core(&all, tree, 6);
    assert_int_equal(all.word[0], 0xbb);
    lw_cpus_drop_core(&all, tree, 7);
    assert_int_equal(all.word[0], 0x3b);
    assert_int_equal(lw_remove_tree(tree), 0);
}

/* As Linux tells of them: instructions apart, each level's size in its unit. */
static void caches_are_told(void **state)
{
    (void)state;
    static const char *const cache[][3] = {{"1", "Instruction", "64K"},
                                           {"1", "Data", "32K"},
                                           {"2", "Unified", "512K"},
                                           {"3", "Unified", "32M"}};
    char tree[] = "/tmp/leeway_caches.XXXXXX";
    assert_non_null(mkdtemp(tree));
    assert_int_equal(lw_cpus_cache(tree, 1), 0);
    for (int i = 0; i < 4; i++) {
        static const char *const file[] = {"level", "type", "size"};
        for (int k = 0; k < 3; k++) {
            char name[64], text[32];
            snprintf(name, sizeof name, "cpu0/cache/index%d/%s", i, file[k]);
            snprintf(text, sizeof text, "%s\n", cache[i][k]);
            put(tree, name, text);
        }
    }
    assert_int_equal(lw_cpus_cache(tree, 1), 32 << 10);
    assert_int_equal(lw_cpus_cache(tree, 2), 512 << 10);
    assert_int_equal(lw_cpus_cache(tree, 3), 32 << 20);
    assert_int_equal(lw_cpus_cache(tree, 4), 0);
    assert_int_equal(lw_remove_tree(tree), 0);
    assert_int_equal(lw_cache_bytes(0), 0);
}

enum { MOST_WORKERS = 64 };

typedef struct places {
    int n;
    int arrived;
    lw_cpus of[MOST_WORKERS];
} places;

/* Every worker takes exactly one of n tasks: none ends before all have begun. */
static void say_place(void *arg, int64_t task, int worker)
{
    places *p = arg;
    (void)task;
    if (!lw_cpus_get(0, &p->of[worker]))
        abort();
    __atomic_fetch_add(&p->arrived, 1, __ATOMIC_SEQ_CST);
    double began = lw_now();
    while (__atomic_load_n(&p->arrived, __ATOMIC_SEQ_CST) < p->n)
        if (lw_now() - began > 20.0)
            abort();
}

static void ask_places(lw_pool *pool, places *p)
{
    *p = (places){.n = lw_pool_size(pool)};
    lw_pool_run(pool, p->n, say_place, p);
}

static int count(const lw_cpus *c)
{
    return CPU_COUNT_S(sizeof *c, &c->set);
}

static bool meets(const lw_cpus *a, const lw_cpus *b)
{
    lw_cpus both;
    CPU_AND_S(sizeof both, &both.set, &a->set, &b->set);
    return count(&both) > 0;
}

static void bound_threads_have_cores_of_their_own(void **state)
{
    (void)state;
    lw_cpus before, now;
    assert_true(lw_cpus_get(0, &before));
    int cores = lw_whole_core_count(), all = lw_core_count();
    int n = LW_MIN(cores, MOST_WORKERS);
    lw_pool *pool = NULL, *beside = NULL;
    places p, q;
    assert_int_equal(lw_pool_new_bound(5000, &pool), LW_EUSAGE);
    assert_int_equal(lw_pool_new_bound(4096, &pool), LW_EUSAGE);
    assert_null(pool);
    assert_true(lw_cpus_get(0, &now) && memcmp(&now, &before, sizeof now) == 0);
    assert_int_equal(lw_pool_new_bound(n, &pool), 0);
    ask_places(pool, &p);
    for (int i = 0; i < n; i++) {
        lw_cpus both;
        CPU_AND_S(sizeof both, &both.set, &p.of[i].set, &before.set);
        assert_memory_equal(&both, &p.of[i], sizeof both); /* nothing that was not allowed */
        if (i > 0)
            assert_int_equal(count(&p.of[i]), 1);
        for (int k = 0; k < i; k++)
            assert_false(meets(&p.of[i], &p.of[k]));
    }
    assert_int_equal(lw_core_count(), all); /* the process's, not this thread's */
    assert_int_equal(lw_pool_new(n, &beside), 0);
    ask_places(beside, &q);
    for (int i = 1; i < n; i++)
        assert_memory_equal(&q.of[i], &before, sizeof before);
    lw_pool_free(&beside);
    lw_pool_free(&pool);
    assert_true(lw_cpus_get(0, &now) && memcmp(&now, &before, sizeof now) == 0);
}

/* Of one CPU there is one thread; its sums are those of any other pool. */
static void a_narrow_mask_is_honoured(void **state)
{
    (void)state;
    lw_cpus before, one = {.word = {0}};
    int first = 0;
    lw_pool *pool = NULL;
    assert_true(lw_cpus_get(0, &before));
    assert_true(lw_cpus_cores(&before, LW_CPU_TREE, &first, 1) >= 1);
    CPU_SET_S((size_t)first, sizeof one, &one.set);
    assert_true(lw_cpus_set(0, &one));
    assert_int_equal(lw_pool_new_bound(2, &pool), LW_EUSAGE);
    assert_string_equal(lw_errmsg(), "2 threads cannot have a core each: 1 may be used");
    assert_int_equal(lw_pool_new_bound(1, &pool), 0);
    lw_pool_free(&pool);
    assert_true(lw_cpus_set(0, &before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once),
        cmocka_unit_test(the_first_failure_is_told),
        cmocka_unit_test(many_tasks_run_once),
        cmocka_unit_test(one_thread_may_do_nearly_all),
        cmocka_unit_test(workers_wake_from_sleep),
        cmocka_unit_test(tasks_run_at_the_same_time),
        cmocka_unit_test(null_pool_is_serial),
        cmocka_unit_test(a_watched_job_can_be_stopped),
        cmocka_unit_test(running_jobs_allocates_nothing),
        cmocka_unit_test(cores_are_told_from_cpus),
        cmocka_unit_test(caches_are_told),
        cmocka_unit_test(bound_threads_have_cores_of_their_own),
        cmocka_unit_test(a_narrow_mask_is_honoured),
        cmocka_unit_test(ring_gives_items_in_order),
        cmocka_unit_test(ring_carries_errors_after_the_good_items),
        cmocka_unit_test(ring_can_be_dropped_at_any_time),
    };
    return cmocka_run_group_tests_name("base_threads", tests, NULL, NULL);
}
