/* SPDX-License-Identifier: Apache-2.0 */
/* What a suite adds to a bench. Private to recipe_bench*.c. */
#ifndef LW_RECIPE_BENCH_CASE_H
#define LW_RECIPE_BENCH_CASE_H

#include "backend/cpu/cpu.h"
#include "recipes/recipe_bench.h"

typedef struct lw_bench_run {
    const lw_bench_config *config;
    const lw_observer *obs;
    lw_device *dev;
    lw_bench *out;
} lw_bench_run;

/* One case, ready to be called. */
typedef struct lw_bench_work {
    const char *name;
    int (*call)(void *self);
    void *self;
    double flops;
    size_t memory;
    lw_exec *exec;               /* profiled when asked for; may be NULL */
    const char *extra;           /* work outside the exec, timed by the callee: its name, or NULL */
    const double *extra_seconds; /* of the last call */
    double extra_bytes;
} lw_bench_work;

/* True when --filter lets the case through. */
bool lw_bench_wants(const lw_bench_run *r, const char *name);
/* Warms up, times, profiles and stores one case. LW_ESTOPPED when asked to stop. */
int lw_bench_measure(lw_bench_run *r, const lw_bench_work *w);
/* Time per kind of op over a few runs, into c->part, longest first. */
int lw_bench_profile(lw_bench_case *c, const lw_bench_work *w);

int lw_bench_suite_unet(lw_bench_run *r);
int lw_bench_suite_field(lw_bench_run *r);

#endif
