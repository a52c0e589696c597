/* SPDX-License-Identifier: Apache-2.0 */
/* More threads than were there, as a model. */
#include "bench/profile/bench_profile.h"

#include "base/base.h"

/* A task that keeps its worker for so long. */
static void wait_us(void *arg, int64_t task, int worker)
{
    const double *us = arg, until = lw_now() + 1e-6 * *us;
    (void)task;
    (void)worker;
    while (lw_now() < until)
        ;
}

/* What a run of n tasks of `us` microseconds each takes beyond what all CPUs need for them: the least of
 * many, since other programs make it longer. */
static double beyond_us(lw_pool *pool, int64_t n, double us)
{
    enum { RUNS = 101 };
    double took[RUNS];
    for (int i = 0; i < RUNS; i++) {
        double t = lw_now();
        lw_pool_run(pool, n, wait_us, &us);
        took[i] = 1e6 * (lw_now() - t);
    }
    double beyond = lw_summarize(took, RUNS).min - us * (double)n / (double)lw_pool_size(pool);
    return LW_MAX(beyond, 0.0);
}

int lw_profile_measure_barrier(lw_profile *p)
{
    enum { ROUNDS = 128 };
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    p->cpus = LW_MAX(2, lw_core_count());
    LW_TRY(lw_pool_new(p->cpus, &pool));
    int64_t many = (int64_t)ROUNDS * p->cpus;
    p->barrier_us = beyond_us(pool, p->cpus, 20.0);
    double handing = beyond_us(pool, many, 2.0) - p->barrier_us;
    p->task_us = LW_MAX(handing, 0.0) / (double)many;
    return 0;
}

/* Of more threads than there are CPUs here each claims one task more. */
static double barrier_ms(const lw_profile *p, int threads)
{
    return 1e-3 * (p->barrier_us + p->task_us * LW_MAX(0, threads - p->cpus));
}

double lw_profile_model_ms(const lw_profile *p, const lw_profile_step *s, int threads)
{
    double ms = 0.0;
    for (int32_t k = 0; k < s->n_phase; k++) {
        int64_t n = LW_MAX(s->phase[k].tasks, 1);
        int64_t measured = LW_CEIL_DIV(n, (int64_t)p->at_once),
                turns = LW_CEIL_DIV(n, (int64_t)threads);
        double busy = s->phase[k].ms / (double)measured * (double)turns;
        double claims = 1e-3 * p->task_us * (double)n; /* one after another, on one word */
        if (n == 1 || threads == 1)
            ms += busy;
        else
            ms += LW_MAX(busy, claims) + barrier_ms(p, threads);
    }
    return ms;
}
