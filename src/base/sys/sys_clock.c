/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, sleeping, and how much memory this process has used. */
#include <errno.h>
#include <sys/resource.h>
#include <time.h>

#include "base/sys/sys.h"

static double clock_seconds(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double lw_now(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

double lw_process_seconds(void)
{
    return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

double lw_wall_time(void)
{
    return clock_seconds(CLOCK_REALTIME);
}

void lw_sleep(double seconds)
{
    if (!(seconds > 0.0))
        return;
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}

uint64_t lw_peak_rss(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return (uint64_t)usage.ru_maxrss * 1024u; /* Linux counts KiB */
}
