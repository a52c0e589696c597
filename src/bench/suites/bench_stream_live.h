/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of any model of `leeway stream`. Private to the suite stream. */
#ifndef LW_BENCH_STREAM_LIVE_H
#define LW_BENCH_STREAM_LIVE_H

#include "bench/bench_case.h"

/* For each --image-size, of --model, in --latents: a case of one evaluation, and one of five where it takes
 * several. */
int lw_bench_stream_live(lw_bench_run *r);

#endif
