/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread pool. One 64-bit word says everything workers need to claim a task:
 *
 *     claim = job number (32 bits) | claimed from the back (16) | claimed from the front (16)
 *
 * The caller closes the word (all claims set) with the next job's number, writes fn, arg and the
 * task count, and opens it with no claims. A worker loads the word, reads the job, and claims a task
 * by compare-and-swap of the word to the one with one claim more. If the job had changed in between,
 * the word had been closed before its fields were written (release/acquire), so the swap fails. A
 * job ends when its finished tasks are counted up: a worker that never woke up is never waited for,
 * which keeps an oversubscribed machine from stalling.
 *
 * Every second worker begins at the back. Tasks are numbered along the data, so that of two workers
 * each keeps one half of the pictures through all steps, in its own cache.
 *
 * Waiting: spin with `pause`, then with sched_yield, then sleep on a futex.
 */
#include "base/thread/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sys/sys.h"
#include "base/sys/sys_cores.h"
#include "base/thread/thread.h"

static const double spin_seconds = 40e-6, yield_seconds = 400e-6;
enum { CLAIM_BITS = 16, MOST_CLAIMS = (1 << CLAIM_BITS) - 2 };
static const uint64_t closed = ((uint64_t)1 << 2 * CLAIM_BITS) - 1;

typedef struct pool_worker {
    lw_pool *pool;
    pthread_t thread;
    int number;
} pool_worker;

struct lw_pool {
    alignas(64) _Atomic uint64_t claim;
    alignas(64) _Atomic(lw_pool_fn *) fn; /* the job: written only while claim is closed */
    _Atomic(void *) arg;
    _Atomic uint32_t n_tasks, group; /* a claim is of a group of tasks: 1, beyond 65,534 more */
    alignas(64) _Atomic uint32_t unfinished; /* tasks of the job; the caller's futex */
    alignas(64) _Atomic uint32_t bell;       /* the workers' futex: counts rings */
    _Atomic int sleepers;                    /* workers that sleep or are about to */
    _Atomic int caller_sleeps;
    _Atomic bool stop;
    alignas(64) int size, started;
    double spin, yield;   /* seconds of each way of waiting */
    pool_worker *workers; /* size - 1 */
    int *core;            /* of each worker, the CPU that it is bound to; NULL: not bound */
    int caller;           /* bound: the thread whose CPUs were `before` */
    lw_cpus before;
    const lw_observer *obs; /* asked by the caller alone */
};

static inline void cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static uint32_t job_of(uint64_t claim)
{
    return (uint32_t)(claim >> 2 * CLAIM_BITS);
}

static uint64_t claim_of(uint32_t job, uint64_t claims)
{
    return (uint64_t)job << 2 * CLAIM_BITS | claims;
}

static bool is_closed(uint64_t claim)
{
    return (claim & closed) == closed;
}

static void futex_wait(_Atomic uint32_t *word, uint32_t expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* State of one wait: each call is one turn; false when it is time to sleep. */
typedef struct waiter {
    double began;
    int turns;
} waiter;

static bool wait_turn(waiter *w, const lw_pool *p)
{
    enum { PAUSES = 16 };
    if (w->turns++ == 0)
        w->began = lw_now();
    double waited = lw_now() - w->began;
    if (waited >= p->spin + p->yield)
        return false;
    if (waited >= p->spin)
        sched_yield();
    else
        for (int i = 0; i < PAUSES; i++)
            cpu_pause();
    return true;
}

/* Claims and runs tasks until the job that is open now has none left. Returns its number: the
 * newest job that this thread need not look at again. */
static uint32_t work(lw_pool *p, int worker)
{
    const uint64_t mask = ((uint64_t)1 << CLAIM_BITS) - 1;
    const bool back = worker % 2 != 0;
    uint32_t done = 0;
    uint64_t claim = atomic_load_explicit(&p->claim, memory_order_acquire);
    for (;;) {
        uint64_t first = claim & mask, last = claim >> CLAIM_BITS & mask;
        lw_pool_fn *fn = atomic_load_explicit(&p->fn, memory_order_acquire);
        void *arg = atomic_load_explicit(&p->arg, memory_order_acquire);
        uint64_t n = atomic_load_explicit(&p->n_tasks, memory_order_acquire);
        uint64_t group = atomic_load_explicit(&p->group, memory_order_acquire);
        uint64_t groups = LW_CEIL_DIV(n, group);
        if (first + last >= groups)
            break;
        uint64_t more = claim + (back ? (uint64_t)1 << CLAIM_BITS : 1);
        if (!atomic_compare_exchange_weak_explicit(&p->claim, &claim, more, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        uint64_t at = (back ? groups - 1 - last : first) * group;
        for (uint64_t end = LW_MIN(at + group, n); at < end; at++, done++)
            fn(arg, (int64_t)at, worker);
        claim = more;
    }
    /* With tasks of ours uncounted the job cannot have been replaced, so this counts for it. */
    if (done > 0 && atomic_fetch_sub(&p->unfinished, done) == done &&
        atomic_load(&p->caller_sleeps) != 0)
        futex_wake(&p->unfinished, 1);
    return is_closed(claim) ? job_of(claim) - 1 : job_of(claim);
}

/* Waits for a job other than `seen` to be open; false when the pool closes. */
static bool wait_for_job(lw_pool *p, uint32_t seen)
{
    waiter w = {0};
    for (;;) {
        uint64_t claim = atomic_load(&p->claim);
        if (atomic_load_explicit(&p->stop, memory_order_acquire))
            return false;
        if (job_of(claim) != seen && !is_closed(claim))
            return true;
        if (wait_turn(&w, p))
            continue;
        /* Announce the sleep, then look once more: either we see the job or its caller sees us. */
        uint32_t bell = atomic_load(&p->bell);
        atomic_fetch_add(&p->sleepers, 1);
        claim = atomic_load(&p->claim);
        if (job_of(claim) == seen && !atomic_load(&p->stop))
            futex_wait(&p->bell, bell);
        atomic_fetch_sub(&p->sleepers, 1);
        w = (waiter){0};
    }
}

static void *worker_main(void *arg)
{
    pool_worker *w = arg;
    uint32_t seen = 0;
    while (wait_for_job(w->pool, seen))
        seen = work(w->pool, w->number);
    return NULL;
}

static void wait_for_tasks(lw_pool *p)
{
    waiter w = {0};
    while (atomic_load(&p->unfinished) != 0) {
        if (wait_turn(&w, p))
            continue;
        atomic_store(&p->caller_sleeps, 1);
        uint32_t left = atomic_load(&p->unfinished);
        if (left != 0)
            futex_wait(&p->unfinished, left);
        atomic_store(&p->caller_sleeps, 0);
    }
}

static void ring_bell(lw_pool *p, int n)
{
    if (atomic_load(&p->sleepers) == 0)
        return;
    atomic_fetch_add(&p->bell, 1);
    futex_wake(&p->bell, n);
}

void lw_pool_run(lw_pool *p, int64_t n_tasks, lw_pool_fn *fn, void *arg)
{
    if (!p || p->size == 1 || n_tasks <= 1) {
        for (int64_t i = 0; i < n_tasks; i++)
            fn(arg, i, 0);
        return;
    }
    LW_ASSERT(n_tasks < INT_MAX, "%lld tasks in one job", (long long)n_tasks);
    uint32_t job = job_of(atomic_load_explicit(&p->claim, memory_order_relaxed)) + 1;
    atomic_store(&p->claim, claim_of(job, closed));
    atomic_store_explicit(&p->fn, fn, memory_order_release);
    atomic_store_explicit(&p->arg, arg, memory_order_release);
    atomic_store_explicit(&p->n_tasks, (uint32_t)n_tasks, memory_order_release);
    atomic_store_explicit(&p->group, (uint32_t)LW_CEIL_DIV(n_tasks, (int64_t)MOST_CLAIMS),
                          memory_order_release);
    atomic_store_explicit(&p->unfinished, (uint32_t)n_tasks, memory_order_release);
    atomic_store(&p->claim, claim_of(job, 0));
    ring_bell(p, (int)LW_MIN(n_tasks - 1, (int64_t)p->size - 1));
    work(p, 0);
    wait_for_tasks(p);
}

typedef struct trial {
    lw_pool_try_fn *fn;
    void *arg;
    _Atomic int64_t failed; /* the lowest number of a task that failed */
} trial;

static void try_task(void *arg, int64_t i, int worker)
{
    trial *t = arg;
    int64_t lowest = atomic_load_explicit(&t->failed, memory_order_relaxed);
    if (t->fn(t->arg, i, worker) >= 0)
        return;
    while (i < lowest && !atomic_compare_exchange_weak(&t->failed, &lowest, i))
        ;
}

int lw_pool_try(lw_pool *p, int64_t n_tasks, lw_pool_try_fn *fn, void *arg)
{
    trial t = {.fn = fn, .arg = arg, .failed = n_tasks};
    lw_pool_run(p, n_tasks, try_task, &t);
    int64_t failed = atomic_load(&t.failed);
    return failed < n_tasks ? fn(arg, failed, 0) : 0;
}

void lw_pool_watch(lw_pool *p, const lw_observer *obs)
{
    p->obs = obs;
}

bool lw_pool_should_stop(const lw_pool *p)
{
    return p && lw_observe_stop(p->obs);
}

typedef struct asking_job {
    lw_pool *pool;
    lw_pool_fn *fn;
    void *arg;
    _Atomic bool stopped;
} asking_job;

static void asking_task(void *arg, int64_t task, int worker)
{
    asking_job *job = arg;
    if (atomic_load(&job->stopped))
        return;
    if (worker == 0 && lw_pool_should_stop(job->pool)) /* worker 0 is the caller */
        atomic_store(&job->stopped, true);
    else
        job->fn(job->arg, task, worker);
}

int lw_pool_run_asking(lw_pool *p, int64_t n_tasks, lw_pool_fn *fn, void *arg)
{
    asking_job job = {.pool = p, .fn = fn, .arg = arg};
    if (p && p->obs)
        lw_pool_run(p, n_tasks, asking_task, &job);
    else
        lw_pool_run(p, n_tasks, fn, arg);
    return job.stopped ? lw_fail(LW_ESTOPPED, "interrupted") : 0;
}

/* A worker has a core of its own or every CPU of the process, never its creator's few. */
static int start_worker(lw_pool *p, int i)
{
    lw_cpus cpus = {.word = {0}};
    bool chosen = p->core || lw_cpus_process(&cpus);
    pthread_attr_t attr;
    if (p->core)
        CPU_SET_S((size_t)p->core[i], sizeof cpus, &cpus.set);
    int why = pthread_attr_init(&attr);
    if (why != 0)
        return why;
    if (chosen)
        why = pthread_attr_setaffinity_np(&attr, sizeof cpus, &cpus.set);
    if (why == 0)
        why = lw_thread_start(&p->workers[i].thread, &attr, worker_main, &p->workers[i]);
    pthread_attr_destroy(&attr);
    return why;
}

static int start_workers(lw_pool *p)
{
    int why = 0;
    for (int i = 0; i < p->size - 1 && why == 0; i++) {
        p->workers[i] = (pool_worker){.pool = p, .number = i + 1};
        why = start_worker(p, i);
        if (why == 0)
            p->started++;
    }
    if (why != 0)
        return lw_fail(LW_ENOMEM, "cannot start thread %d of %d: %s", p->started + 1, p->size,
                       strerror(why));
    return 0;
}

/* Cores for the workers, the last ones: the first, where systems do their own work, stays the caller's. */
static int choose_cores(lw_pool *p)
{
    lw_cpus rest;
    if (!lw_cpus_get(0, &rest))
        return lw_fail(LW_EDEVICE,
                       "threads cannot be bound: this system does not say to which CPUs");
    int n = lw_cpus_cores(&rest, LW_CPU_TREE, NULL, 0);
    if (p->size > n)
        return lw_fail(LW_EUSAGE, "%d threads cannot have a core each: %d may be used", p->size, n);
    LW_CLEANUP(lw_free) int *cpu = lw_calloc((size_t)n, sizeof *cpu);
    p->core = lw_calloc((size_t)p->size, sizeof *p->core);
    if (!cpu || !p->core)
        return LW_ENOMEM;
    lw_cpus_cores(&rest, LW_CPU_TREE, cpu, n);
    p->before = rest;
    for (int i = 0; i < p->size - 1; i++) {
        p->core[i] = cpu[n - p->size + 1 + i];
        lw_cpus_drop_core(&rest, LW_CPU_TREE, p->core[i]);
    }
    lw_cpus_keep_process(&p->before);
    if (!lw_cpus_set(0, &rest))
        return lw_fail(LW_EDEVICE, "threads cannot be bound: this system does not allow it");
    p->caller = (int)syscall(SYS_gettid);
    return 0;
}

static int make(int threads, bool bound, lw_pool **out)
{
    if (threads < 1 || threads > 4096)
        return lw_fail(LW_EUSAGE, "%d threads: use 1 to 4096", threads);
    LW_CLEANUP(lw_pool_free) lw_pool *p = lw_bulk_alloc(sizeof *p); /* 64-byte aligned */
    if (!p)
        return LW_ENOMEM;
    p->size = threads;
    p->group = 1;
    /* More threads than CPUs: whoever spins keeps another from working. */
    bool crowded = threads > lw_core_count();
    p->spin = crowded ? 0.0 : spin_seconds;
    p->yield = crowded ? 10e-6 : yield_seconds;
    p->workers = lw_calloc((size_t)threads, sizeof *p->workers);
    if (!p->workers)
        return LW_ENOMEM;
    if (bound)
        LW_TRY(choose_cores(p));
    LW_TRY(start_workers(p));
    *out = lw_steal(&p);
    return 0;
}

int lw_pool_new(int threads, lw_pool **out)
{
    return make(threads, false, out);
}

int lw_pool_new_bound(int threads, lw_pool **out)
{
    return make(threads, true, out);
}

void lw_pool_free(lw_pool **pp)
{
    lw_pool *p = *pp;
    if (!p)
        return;
    atomic_store(&p->stop, true);
    atomic_fetch_add(&p->bell, 1);
    futex_wake(&p->bell, INT_MAX);
    for (int i = 0; i < p->started; i++)
        pthread_join(p->workers[i].thread, NULL);
    if (p->caller > 0)
        lw_cpus_set(p->caller, &p->before);
    lw_free(&p->workers);
    lw_free(&p->core);
    lw_bulk_free(pp, sizeof *p);
}

int lw_pool_size(const lw_pool *p)
{
    return p ? p->size : 1;
}
