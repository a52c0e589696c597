/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to base: sets of CPUs that threads may run on, and the cores that they belong to. A core may
 * show as several CPUs (SMT), which share its arithmetic.
 */
#ifndef LW_BASE_SYS_CORES_H
#define LW_BASE_SYS_CORES_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#define LW_CPU_TREE "/sys/devices/system/cpu"
enum {
    LW_MOST_CPUS = 8192
}; /* the kernel's own limit: a smaller set is refused by larger kernels */

typedef union lw_cpus {
    cpu_set_t set; /* for the macros CPU_*_S with sizeof (lw_cpus) */
    unsigned long word[LW_MOST_CPUS / 8 / sizeof(unsigned long)];
} lw_cpus;

/* tid 0: the calling thread. False: the kernel would not (a sandbox). */
bool lw_cpus_get(int tid, lw_cpus *out);
bool lw_cpus_set(int tid, const lw_cpus *cpus);
/* Of each core that has a CPU in `allowed` its lowest CPU there, in order, into cpu[most]. How many cores
 * there are. `tree` is LW_CPU_TREE, a parameter for the tests; a CPU it says nothing about is a core. */
int lw_cpus_cores(const lw_cpus *allowed, const char *tree, int *cpu, int most);
/* Takes the CPUs of the core that `cpu` belongs to out of the set. */
void lw_cpus_drop_core(lw_cpus *cpus, const char *tree, int cpu);

/* Bytes of the cache of a level that CPU 0 reads data from, 0 where the tree has none (see lw_cache_bytes). */
size_t lw_cpus_cache(const char *tree, int level);

/* Once threads are bound a thread's own set says little: the process's is that of before, kept by the
 * first call (and of that moment's calling thread). False: nothing was kept. */
void lw_cpus_keep_process(const lw_cpus *cpus);
bool lw_cpus_process(lw_cpus *out);

#endif
