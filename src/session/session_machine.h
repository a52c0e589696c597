/* SPDX-License-Identifier: Apache-2.0 */
/* Measured limits of this machine, for `leeway info --peak` and beside every figure of a bench. */
#ifndef LW_SESSION_MACHINE_H
#define LW_SESSION_MACHINE_H

#include <jansson.h>

#include "base/base.h"
#include "base/observer.h"

typedef enum lw_machine_level { LW_L1, LW_L2, LW_L3, LW_DRAM, LW_MACHINE_LEVELS } lw_machine_level;

/* 10^9 per second, on one thread and on all together. 0: not there, or not measured. */
typedef struct lw_machine_pair {
    double one, all;
} lw_machine_pair;

typedef struct lw_machine_peak {
    lw_machine_pair rate[LW_NUM_COUNT]; /* multiplications and additions, by operand type */
    lw_machine_pair read[LW_MACHINE_LEVELS];
    lw_machine_pair copy[LW_MACHINE_LEVELS]; /* bytes read plus bytes written */
    size_t bytes[LW_MACHINE_LEVELS]; /* working set of a thread at that level; 0: not measured */
    size_t cache[LW_DRAM];           /* size of the caches: L1d and L2 of a core, L3 */
    int threads;
    double dispatch_us; /* an empty job on the pool, microseconds */
} lw_machine_peak;

/* Takes about two seconds and 512 MiB. The best of several tries: other programs only slow things
 * down. LW_ESTOPPED when the observer (may be NULL) asks for it. */
int lw_machine_measure(int threads, lw_isa isa, const lw_observer *obs, lw_machine_peak *out);
/* 10^9 operations per second on all threads that products of this type can reach; a type without
 * instructions of its own is computed as f32. */
double lw_machine_rate(const lw_machine_peak *m, lw_num num);
/* 10^9 bytes per second on all threads, where a working set of so many bytes lives. */
double lw_machine_read_gb(const lw_machine_peak *m, size_t working_set);

const char *lw_machine_level_name(lw_machine_level l); /* "L1", "L2", "L3", "DRAM" */

/* {"cpu", "cpus", "threads", "isa", "version", "commit", "compiler", "system", "memory_bytes",
 * "env": {LW_* variables}, "date"}. New reference; NULL: out of memory. */
json_t *lw_machine_json(int threads, lw_isa isa);
json_t *lw_machine_peak_json(const lw_machine_peak *m);

#endif
