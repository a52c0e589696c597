/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that text and page share. Private to this folder. */
#ifndef LW_BENCH_PROFILE_TABLES_H
#define LW_BENCH_PROFILE_TABLES_H

#include "bench/profile/bench_profile.h"
#include "report/report.h"

/* Groups by op (depth 0) or layer. */
int lw_profile_group_table(const lw_profile *p, int depth, lw_table *t);
/* The `top` slowest steps, or with 0 all of them in order. */
int lw_profile_step_table(const lw_profile *p, int32_t top, lw_table *t);
int lw_profile_method_table(const lw_profile *p, lw_table *t);
/* Of the model of threads, p->n_model rows. */
int lw_profile_threads_table(const lw_profile *p, lw_table *t);
#define LW_PROFILE_THREADS_NOTE                                                                  \
    "A bound, not a measurement: each phase of a step in ceil(tasks / threads) turns, with its " \
    "barrier; caches, memory and clock are taken as unshared. Expected of as many threads as "   \
    "there are CPUs for: with what so many at once were measured to take longer for products "   \
    "and for reading weights."

#endif
