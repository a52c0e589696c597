/* SPDX-License-Identifier: Apache-2.0 */
/* Timing the peak kernels on one thread and on all. */
#include "recipes/recipe_machine.h"

#include "kernels/kernels.h"

enum { TRIES = 5, DISPATCHES = 2000 };
static const ptrdiff_t fma_rounds = 2000000, read_floats = (ptrdiff_t)64 << 20;

typedef struct probe {
    const lw_kernels *kernels;
    const float *memory; /* [read_floats] */
    ptrdiff_t share;     /* floats each task reads */
    double flops[4096];  /* per task */
    float sink[4096];
} probe;

static void fma_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    probe *p = arg;
    p->kernels->peak.fma(&p->flops[task], &p->sink[task], fma_rounds);
}

static void read_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    probe *p = arg;
    p->kernels->peak.read(&p->sink[task], p->memory + task * p->share, p->share);
}

static void empty_task(void *arg, int64_t task, int worker)
{
    (void)arg;
    (void)task;
    (void)worker;
}

/* Best time of a few tries of one job with a task for each thread. */
static double best_seconds(lw_pool *pool, lw_pool_fn *fn, probe *p)
{
    double best = 1e30;
    for (int i = 0; i < TRIES; i++) {
        double began = lw_now();
        lw_pool_run(pool, lw_pool_size(pool), fn, p);
        best = LW_MIN(best, lw_now() - began);
    }
    return best;
}

static double gflops(lw_pool *pool, probe *p)
{
    double seconds = best_seconds(pool, fma_task, p), flops = 0.0;
    for (int i = 0; i < lw_pool_size(pool); i++)
        flops += p->flops[i];
    return 1e-9 * flops / seconds;
}

static double read_gb(lw_pool *pool, probe *p)
{
    p->share = read_floats / lw_pool_size(pool) / 64 * 64;
    double bytes = (double)sizeof(float) * (double)p->share * lw_pool_size(pool);
    return 1e-9 * bytes / best_seconds(pool, read_task, p);
}

static double dispatch_us(lw_pool *pool)
{
    double best = 1e30;
    for (int i = 0; i < DISPATCHES; i++) {
        double began = lw_now();
        lw_pool_run(pool, lw_pool_size(pool), empty_task, NULL);
        best = LW_MIN(best, lw_now() - began);
    }
    return 1e6 * best;
}

static int measure(int threads, probe *p, lw_machine_peak *out)
{
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    lw_machine_peak m;
    LW_TRY(lw_pool_new(threads, &pool));
    m.gflops_one = gflops(NULL, p);
    m.gflops_all = gflops(pool, p);
    m.read_gb_one = read_gb(NULL, p);
    m.read_gb_all = read_gb(pool, p);
    m.dispatch_us = dispatch_us(pool);
    *out = m;
    return 0;
}

int lw_machine_measure(int threads, lw_isa isa, lw_machine_peak *out)
{
    lw_kernels kernels;
    lw_kernels_init(&kernels, isa);
    size_t bytes = (size_t)read_floats * sizeof(float);
    float *memory = lw_bulk_alloc(bytes);
    LW_CLEANUP(lw_free) probe *p = lw_calloc(1, sizeof *p);
    if (!memory || !p) {
        lw_bulk_free(&memory, bytes);
        return LW_ENOMEM;
    }
    for (ptrdiff_t i = 0; i < read_floats; i += 256)
        memory[i] = 1.0f; /* a page that was never written is the same page of zeros */
    p->kernels = &kernels;
    p->memory = memory;
    int rc = measure(threads, p, out);
    lw_bulk_free(&memory, bytes);
    return rc;
}
