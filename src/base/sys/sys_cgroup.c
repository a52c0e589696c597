/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of control groups. Version 2 has one line "0::/path" in /proc/self/cgroup and files
 * cpu.max and memory.max; version 1 has a line "N:cpu,cpuacct:/path" per controller and its own
 * files. Inside a container the path may not exist below the mount: walking up to the root finds
 * what is visible.
 */
#include "base/sys/sys_cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"
#include "base/sys/sys.h"

typedef double limit_fn(const char *dir); /* 0 when the directory sets no limit */

static bool read_first_line(const char *dir, const char *file, char *buf, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fgets(buf, (int)size, f) != NULL;
    fclose(f);
    return ok;
}

static double cpus_of_dir(const char *dir)
{
    char text[128], period_text[64];
    double quota = 0.0, period = 0.0;
    if (read_first_line(dir, "cpu.max", text, sizeof text)) {
        if (sscanf(text, "%lf %lf", &quota, &period) != 2)
            return 0.0; /* "max 100000" */
    } else if (read_first_line(dir, "cpu.cfs_quota_us", text, sizeof text) &&
               read_first_line(dir, "cpu.cfs_period_us", period_text, sizeof period_text)) {
        quota = strtod(text, NULL); /* -1: no limit */
        period = strtod(period_text, NULL);
    }
    return quota > 0.0 && period > 0.0 ? quota / period : 0.0;
}

static double memory_of_dir(const char *dir)
{
    char text[128];
    if (!read_first_line(dir, "memory.max", text, sizeof text) &&
        !read_first_line(dir, "memory.limit_in_bytes", text, sizeof text))
        return 0.0;
    double bytes = strtod(text, NULL);   /* "max" reads as 0 */
    return bytes < 0x1p62 ? bytes : 0.0; /* version 1 says "no limit" as a number near 2^63 */
}

/* Smallest limit in mount + path and all its parents up to mount. */
static double walk_up(const char *mount, const char *path, limit_fn *limit)
{
    char dir[4096];
    size_t root = strlen(mount);
    snprintf(dir, sizeof dir, "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
    double least = 0.0;
    for (;;) {
        double here = limit(dir);
        if (here > 0.0 && (least == 0.0 || here < least))
            least = here;
        char *slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < root)
            return least;
        *slash = '\0';
    }
}

static double least_limit(const char *self, const char *mount, const char *controller,
                          limit_fn *limit)
{
    FILE *f = fopen(self, "re");
    if (!f)
        return 0.0;
    double least = 0.0;
    char line[4096], tree[4096];
    while (fgets(line, sizeof line, f)) {
        char *list = strchr(line, ':');
        char *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        list++;
        if (*list == '\0')
            snprintf(tree, sizeof tree, "%s", mount);
        else if (lw_str_index(list, ',', controller, strlen(controller)) >= 0)
            snprintf(tree, sizeof tree, "%.2000s/%s", mount, controller);
        else
            continue;
        double here = walk_up(tree, path, limit);
        if (here > 0.0 && (least == 0.0 || here < least))
            least = here;
    }
    fclose(f);
    return least;
}

double lw_cgroup_cpus(const char *self, const char *mount)
{
    return least_limit(self, mount, "cpu", cpus_of_dir);
}

uint64_t lw_cgroup_memory(const char *self, const char *mount)
{
    return (uint64_t)least_limit(self, mount, "memory", memory_of_dir);
}

uint64_t lw_memory_total(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t total = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    uint64_t limit = lw_cgroup_memory(LW_CGROUP_SELF, LW_CGROUP_MOUNT);
    return limit > 0 && (total == 0 || limit < total) ? limit : total;
}
