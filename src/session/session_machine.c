/* SPDX-License-Identifier: Apache-2.0 */
/* Timing the peak kernels on one thread and on all. */
#include "session/session_machine.h"

#include <math.h>

#include "kernels/kernels.h"

enum { TRIES = 8, DRAM_TRIES = 3, DISPATCHES = 2000, MAX_THREADS = 4096 };
static const ptrdiff_t rounds = 1000000;             /* of a rate: some milliseconds */
static const size_t dram_bytes = (size_t)256 << 20;  /* of all threads together */
static const size_t level_traffic = (size_t)8 << 20; /* bytes of one try in a cache, a thread */

typedef struct probe {
    const lw_kernels *kernels;
    const lw_observer *obs;
    lw_peak_fma_fn *rate;    /* what rate_task runs */
    float *from, *to;        /* dram_bytes each */
    ptrdiff_t share, passes; /* floats each thread goes through, and how often */
    double ops[MAX_THREADS]; /* per thread */
    float sink[MAX_THREADS];
} probe;

static void rate_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    probe *p = arg;
    p->rate(&p->ops[task], &p->sink[task], rounds);
}

static void read_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    probe *p = arg;
    for (ptrdiff_t i = 0; i < p->passes; i++)
        p->kernels->peak.read(&p->sink[task], p->from + task * p->share, p->share);
}

static void copy_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    probe *p = arg;
    for (ptrdiff_t i = 0; i < p->passes; i++)
        p->kernels->peak.copy(p->to + task * p->share, p->from + task * p->share, p->share);
}

static void empty_task(void *arg, int64_t task, int worker)
{
    (void)arg;
    (void)task;
    (void)worker;
}

/* All threads do no less than one: where they seem to, others took the processors meanwhile. */
static lw_machine_pair pair_of(double one, double all)
{
    return (lw_machine_pair){one, LW_MAX(one, all)};
}

/* Best time of a few tries of one job with a task for each thread. */
static double best_seconds(lw_pool *pool, lw_pool_fn *fn, probe *p, int tries)
{
    double best = 1e30;
    for (int i = 0; i < tries && !(i > 0 && lw_observe_stop(p->obs)); i++) {
        double began = lw_now();
        lw_pool_run(pool, lw_pool_size(pool), fn, p);
        best = LW_MIN(best, lw_now() - began);
    }
    return best;
}

static double measure_rate(lw_pool *pool, probe *p)
{
    double seconds = best_seconds(pool, rate_task, p, TRIES), ops = 0.0;
    for (int i = 0; i < lw_pool_size(pool); i++)
        ops += p->ops[i];
    return 1e-9 * ops / seconds;
}

static void measure_rates(lw_pool *pool, probe *p, lw_machine_peak *m)
{
    lw_peak_fma_fn *const fn[LW_NUM_COUNT] = {p->kernels->peak.fma, p->kernels->peak.bf16,
                                              p->kernels->peak.int8};
    for (int i = 0; i < LW_NUM_COUNT; i++) {
        p->rate = fn[i];
        if (p->rate)
            m->rate[i] = pair_of(measure_rate(NULL, p), measure_rate(pool, p));
    }
}

/* Bytes moved per second by one thread, or all of the pool, each in its own `set` bytes. */
static double measure_bytes(lw_pool *pool, probe *p, lw_pool_fn *fn, size_t set, double each)
{
    p->share = (ptrdiff_t)(set / sizeof(float)) / 64 * 64;
    p->passes = LW_MAX((ptrdiff_t)(level_traffic / set), 1);
    double bytes = (double)sizeof(float) * (double)p->share * (double)p->passes;
    return 1e-9 * each * bytes * lw_pool_size(pool) /
           best_seconds(pool, fn, p, p->passes > 1 ? TRIES : DRAM_TRIES);
}

/* Half of each cache, so that two arrays of a copy fit; the third level is shared. */
static void choose_sets(lw_machine_peak *m)
{
    const size_t l1 = lw_cache_bytes(1), l2 = lw_cache_bytes(2);
    m->cache[LW_L1] = l1 ? l1 : (size_t)32 << 10;
    m->cache[LW_L2] = l2 ? l2 : (size_t)512 << 10;
    m->cache[LW_L3] = lw_cache_bytes(3);
    m->bytes[LW_L1] = m->cache[LW_L1] / 2;
    m->bytes[LW_L2] = m->cache[LW_L2] / 2;
    m->bytes[LW_L3] = m->cache[LW_L3] / 4 / (size_t)m->threads;
    m->bytes[LW_DRAM] = dram_bytes / (size_t)m->threads;
    if (m->bytes[LW_L3] <= m->cache[LW_L2])
        m->bytes[LW_L3] = 0; /* none, or no more than a thread's second level */
}

static void measure_memory(lw_pool *pool, probe *p, lw_machine_peak *m)
{
    for (int i = 0; i < LW_MACHINE_LEVELS; i++) {
        size_t set = m->bytes[i], half = i == LW_DRAM ? set : set / 2;
        if (set < 4096)
            continue;
        m->read[i] = pair_of(measure_bytes(NULL, p, read_task, set, 1),
                             measure_bytes(pool, p, read_task, set, 1));
        m->copy[i] = pair_of(measure_bytes(NULL, p, copy_task, half, 2),
                             measure_bytes(pool, p, copy_task, half, 2));
    }
}

static double dispatch_us(lw_pool *pool, const lw_observer *obs)
{
    double best = 1e30;
    for (int i = 0; i < DISPATCHES && !(i > 0 && lw_observe_stop(obs)); i++) {
        double began = lw_now();
        lw_pool_run(pool, lw_pool_size(pool), empty_task, NULL);
        best = LW_MIN(best, lw_now() - began);
    }
    return 1e6 * best;
}

static int measure(int threads, probe *p, lw_machine_peak *out)
{
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    lw_machine_peak m = {.threads = threads};
    LW_TRY(lw_pool_new(threads, &pool));
    choose_sets(&m);
    measure_rates(pool, p, &m);
    measure_memory(pool, p, &m);
    m.dispatch_us = dispatch_us(pool, p->obs);
    if (lw_observe_stop(p->obs))
        return lw_fail(LW_ESTOPPED, "stopped while the machine was measured");
    *out = m;
    return 0;
}

int lw_machine_measure(int threads, lw_isa isa, const lw_observer *obs, lw_machine_peak *out)
{
    lw_kernels kernels;
    lw_kernels_init(&kernels, isa);
    threads = LW_MIN(threads, MAX_THREADS);
    LW_CLEANUP(lw_free) probe *p = lw_calloc(1, sizeof *p);
    if (!p)
        return LW_ENOMEM;
    p->kernels = &kernels;
    p->obs = obs;
    p->from = lw_bulk_alloc(dram_bytes);
    p->to = lw_bulk_alloc(dram_bytes);
    int rc = p->from && p->to ? 0 : LW_ENOMEM;
    for (size_t i = 0; rc == 0 && i < dram_bytes / sizeof(float) && !lw_observe_stop(obs); i += 256)
        p->from[i] = p->to[i] = 1.0f; /* a page never written is the same page of zeros */
    if (rc == 0)
        rc = measure(threads, p, out);
    lw_bulk_free(&p->from, dram_bytes);
    lw_bulk_free(&p->to, dram_bytes);
    return rc;
}

double lw_machine_rate(const lw_machine_peak *m, lw_num num)
{
    return m->rate[num].all > 0 ? m->rate[num].all : m->rate[LW_NUM_F32].all;
}

double lw_machine_read_gb(const lw_machine_peak *m, size_t working_set)
{
    for (int i = 0; i < LW_DRAM; i++) {
        size_t cache = m->cache[i] * (i == LW_L3 ? 1 : (size_t)m->threads);
        if (working_set <= cache && m->read[i].all > 0)
            return m->read[i].all;
    }
    return m->read[LW_DRAM].all;
}
