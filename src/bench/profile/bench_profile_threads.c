/* SPDX-License-Identifier: Apache-2.0 */
/* More threads than were there, as a model. */
#include "bench/profile/bench_profile.h"

#include <math.h>

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

static int measure_barrier(lw_profile *p)
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

/* Limits of some threads: of products, and of reading weights. */
typedef struct limits {
    lw_machine_pair products, reading;
} limits;

static limits limits_of(const lw_profile *p, lw_num num, const lw_machine_peak *m)
{
    const lw_machine_pair *rate = &m->rate[num], *near = &m->read[LW_L3];
    bool in_cache = p->weights <= m->cache[LW_L3] && near->all > 0;
    return (limits){rate->all > 0 ? *rate : m->rate[LW_NUM_F32],
                    in_cache ? *near : m->read[LW_DRAM]};
}

/* Of what one and all were seen to do within the same seconds: hosts change their pace. */
static lw_profile_pace pace_of(int threads, limits l)
{
    return (lw_profile_pace){fmax(1.0, threads * l.products.one / l.products.all),
                             fmax(1.0, threads * l.reading.one / l.reading.all)};
}

int lw_profile_measure_threads(lw_profile *p, lw_num num, lw_isa isa, const lw_machine_peak *peak,
                               const lw_observer *obs)
{
    const limits own = limits_of(p, num, peak);
    LW_TRY(measure_barrier(p));
    p->weights_gbytes = own.reading.all;
    p->own = pace_of(p->at_once, own);
    for (int32_t i = 0; i < p->n_model; i++) {
        lw_machine_peak m = *peak;
        if (p->model[i] > p->cpus)
            continue;
        if (p->model[i] != p->threads)
            LW_TRY(lw_machine_measure(p->model[i], isa, obs, &m));
        p->pace[i] = pace_of(p->model[i], limits_of(p, num, &m));
    }
    return 0;
}

/* So many threads at work, where `threads` have this pace. */
static double slower(double pace, int64_t working, int threads)
{
    return threads < 2 ? 1.0 : 1.0 + (pace - 1.0) * (double)(working - 1) / (threads - 1);
}

/* What s takes longer with so many of the threads at work than it took when it was measured. */
static double sharing(const lw_profile *p, const lw_profile_step *s, int64_t working, int threads,
                      lw_profile_pace pace)
{
    const int64_t then = LW_MIN(working, (int64_t)p->at_once);
    const double reading = fmin(1.0, 1e-6 * s->bytes / s->ms / p->weights_gbytes);
    return (1.0 - reading) * slower(pace.products, working, threads) /
               slower(p->own.products, then, p->at_once) +
           reading * slower(pace.reading, working, threads) /
               slower(p->own.reading, then, p->at_once);
}

/* pace: NULL where nothing is shared. */
static double model_ms(const lw_profile *p, const lw_profile_step *s, int threads,
                       const lw_profile_pace *pace)
{
    double ms = 0.0;
    for (int32_t k = 0; k < s->n_phase; k++) {
        int64_t n = LW_MAX(s->phase[k].tasks, 1);
        int64_t measured = LW_CEIL_DIV(n, (int64_t)p->at_once),
                turns = LW_CEIL_DIV(n, (int64_t)threads);
        double busy = s->phase[k].ms / (double)measured * (double)turns;
        double claims = 1e-3 * p->task_us * (double)n; /* one after another, on one word */
        if (pace && s->ms > 0)
            busy *= sharing(p, s, LW_MIN(n, (int64_t)threads), threads, *pace);
        if (n == 1 || threads == 1)
            ms += busy;
        else
            ms += LW_MAX(busy, claims) + barrier_ms(p, threads);
    }
    return ms;
}

double lw_profile_model_ms(const lw_profile *p, const lw_profile_step *s, int threads)
{
    return model_ms(p, s, threads, NULL);
}

double lw_profile_expected_ms(const lw_profile *p, const lw_profile_step *s, int32_t i)
{
    return p->pace[i].products > 0 ? model_ms(p, s, p->model[i], &p->pace[i]) : (double)NAN;
}
