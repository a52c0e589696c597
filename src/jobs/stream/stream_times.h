/* SPDX-License-Identifier: Apache-2.0 */
/* How long something took, any number of times in memory that does not grow: counts in bins 1 % wide. */
#ifndef LW_STREAM_TIMES_H
#define LW_STREAM_TIMES_H

#include "jobs/stream/stream_job.h"

enum { LW_TIMES_BINS = 2100 }; /* from a microsecond on: 1.01^2100 of them are 20 minutes */

typedef struct lw_times {
    uint32_t bin[LW_TIMES_BINS];
    int64_t n;
    double sum, max; /* seconds */
} lw_times;

void lw_times_add(lw_times *t, double seconds);
lw_stream_latency lw_times_latency(const lw_times *t); /* zeros for none */

#endif
