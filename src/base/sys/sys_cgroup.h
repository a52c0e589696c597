/* SPDX-License-Identifier: Apache-2.0 */
/* Private to base: limits that control groups (version 1 and 2) put on this process. */
#ifndef LW_BASE_SYS_CGROUP_H
#define LW_BASE_SYS_CGROUP_H

#include <stdint.h>

#define LW_CGROUP_SELF "/proc/self/cgroup"
#define LW_CGROUP_MOUNT "/sys/fs/cgroup"

/* Smallest CPU quota (in CPUs) on the way from this process' group to the root; 0 without one.
 * `self` is the file that names the groups, `mount` the mounted tree: parameters for the tests. */
double lw_cgroup_cpus(const char *self, const char *mount);
/* Smallest memory limit in bytes on that way; 0 without one. */
uint64_t lw_cgroup_memory(const char *self, const char *mount);

#endif
