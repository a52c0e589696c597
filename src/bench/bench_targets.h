/* SPDX-License-Identifier: Apache-2.0 */
/* Rates and latencies of live video beside what the suite stream reached. Private to bench. */
#ifndef LW_BENCH_TARGETS_H
#define LW_BENCH_TARGETS_H

#include "bench/bench.h"

/* A row for each frame case and target; nothing without such cases. Appended. */
int lw_bench_targets_text(const lw_bench *b, lw_str *out);
/* model_config, model_stats, performance and targets of a frame case, into o. */
void lw_bench_targets_json(const lw_bench_case *c, json_t *o);

#endif
