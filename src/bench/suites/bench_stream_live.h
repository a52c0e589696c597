/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of any model of `leeway stream`. Private to the suite stream. */
#ifndef LW_BENCH_STREAM_LIVE_H
#define LW_BENCH_STREAM_LIVE_H

#include "bench/bench_case.h"

/* One case for each --image-size, of --model, in --latents. */
int lw_bench_stream_live(lw_bench_run *r);

#endif
