/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of CPUs, and which core each belongs to. */
#include "base/sys/sys_cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/memory.h"

bool lw_cpus_get(int tid, lw_cpus *out)
{
    memset(out, 0, sizeof *out);
    return sched_getaffinity((pid_t)tid, sizeof *out, &out->set) == 0;
}

bool lw_cpus_set(int tid, const lw_cpus *cpus)
{
    return sched_setaffinity((pid_t)tid, sizeof *cpus, &cpus->set) == 0;
}

/* The first line of a file; false: there is none. */
static bool first_line(const char *path, char *line, int size)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    const bool read = fgets(line, size, f) != NULL;
    fclose(f);
    return read;
}

/* The lowest CPU of the core: its name. */
static int core_of(const char *tree, int cpu)
{
    char path[512], line[64];
    snprintf(path, sizeof path, "%s/cpu%d/topology/thread_siblings_list", tree, cpu);
    if (!first_line(path, line, sizeof line) || line[0] < '0' || line[0] > '9')
        return cpu;
    const int first = (int)strtol(line, NULL, 10);
    return first < LW_MOST_CPUS ? first : cpu;
}

int lw_cpus_cores(const lw_cpus *allowed, const char *tree, int *cpu, int most)
{
    lw_cpus seen = {.word = {0}};
    int n = 0;
    for (int c = 0; c < LW_MOST_CPUS; c++) {
        if (!CPU_ISSET_S((size_t)c, sizeof *allowed, &allowed->set))
            continue;
        size_t core = (size_t)core_of(tree, c);
        if (CPU_ISSET_S(core, sizeof seen, &seen.set))
            continue;
        CPU_SET_S(core, sizeof seen, &seen.set);
        if (n < most)
            cpu[n] = c;
        n++;
    }
    return n;
}

void lw_cpus_drop_core(lw_cpus *cpus, const char *tree, int cpu)
{
    int core = core_of(tree, cpu);
    for (int c = 0; c < LW_MOST_CPUS; c++)
        if (CPU_ISSET_S((size_t)c, sizeof *cpus, &cpus->set) && core_of(tree, c) == core)
            CPU_CLR_S((size_t)c, sizeof *cpus, &cpus->set);
}

/* The line of a file of cache `i` of CPU 0; false: there is none. */
static bool cache_line(const char *tree, int i, const char *name, char *line, int size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/cpu0/cache/index%d/%s", tree, i, name);
    return first_line(path, line, size);
}

size_t lw_cpus_cache(const char *tree, int level)
{
    char line[64];
    for (int i = 0; cache_line(tree, i, "level", line, sizeof line); i++) {
        if (strtol(line, NULL, 10) != level || !cache_line(tree, i, "type", line, sizeof line) ||
            line[0] == 'I' || !cache_line(tree, i, "size", line, sizeof line))
            continue;
        char *unit = line;
        const unsigned long long n = strtoull(line, &unit, 10);
        return (size_t)n << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0);
    }
    return 0;
}

static lw_cpus process;
static int kept; /* 0: nothing, 1: being written, 2: there, for good */

void lw_cpus_keep_process(const lw_cpus *cpus)
{
    int none = 0;
    if (!__atomic_compare_exchange_n(&kept, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    process = *cpus;
    __atomic_store_n(&kept, 2, __ATOMIC_RELEASE);
}

bool lw_cpus_process(lw_cpus *out)
{
    if (__atomic_load_n(&kept, __ATOMIC_ACQUIRE) != 2)
        return false;
    *out = process;
    return true;
}
