/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one thread pool. Task boundaries are the caller's and must be a pure function of the work
 * (never of the thread count); workers claim task numbers as they come, so only the order of
 * execution varies. The calling thread works too. Between jobs workers spin briefly, then sleep on
 * a futex.
 */
#ifndef LW_BASE_POOL_H
#define LW_BASE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/observer.h"

typedef struct lw_pool lw_pool;
/* fn(arg, task, worker): task in [0, n_tasks), worker in [0, lw_pool_size). Must not call
 * lw_pool_run. */
typedef void lw_pool_fn(void *arg, int64_t task, int worker);

int lw_pool_new(int threads, lw_pool **out); /* threads >= 1, the caller counts as one */
/*
 * The same with a core for each thread that it starts. The calling thread keeps the others of its cores (at
 * least one), and so does what it starts from here on: readers of pictures, threads of libraries. Two
 * such pools of one thread therefore never share a core; one made by lw_pool_new beside it has all CPUs of
 * the process. Freeing gives the caller's CPUs back. LW_EUSAGE: more threads than the calling thread
 * has cores. LW_EDEVICE: this system binds no threads.
 */
int lw_pool_new_bound(int threads, lw_pool **out);
void lw_pool_free(lw_pool **pp);
int lw_pool_size(const lw_pool *p);
/* Runs all tasks, returns when all are done (full barrier). One caller at a time. NULL pool:
 * serial. */
void lw_pool_run(lw_pool *p, int64_t n_tasks, lw_pool_fn *fn, void *arg);
/* The same of tasks that may fail. All are run; the result is that of the failing one of lowest number,
 * which is run once more by the caller: messages are a thread's own. So a task must bear to be run
 * twice. */
typedef int lw_pool_try_fn(void *arg, int64_t task, int worker);
int lw_pool_try(lw_pool *p, int64_t n_tasks, lw_pool_try_fn *fn, void *arg);
/* From here on runs that may be stopped ask this observer, which outlives them (NULL: nobody):
 * lw_pool_run_asking before a task of the calling thread, plans' steps among them. For work whose
 * parts can be thrown away. */
void lw_pool_watch(lw_pool *p, const lw_observer *obs);
bool lw_pool_should_stop(const lw_pool *p);
/* As lw_pool_run; once the observer asks for it no task is begun, and the result is LW_ESTOPPED. */
int lw_pool_run_asking(lw_pool *p, int64_t n_tasks, lw_pool_fn *fn, void *arg);

#endif
