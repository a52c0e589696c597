/* SPDX-License-Identifier: Apache-2.0 */
/* `leeway bench --tune`: which way of computing a 3x3 convolution is fastest on this machine. */
#ifndef LW_BENCH_TUNE_H
#define LW_BENCH_TUNE_H

#include "base/base.h"
#include "session/session_tuned.h"

/* Every 3x3 convolution of the shared U-Net and square ones of usual networks (names contain `filter`,
 * NULL: all; "f32.forward.128_128@32"), forward and data gradient, f32 and, where the machine multiplies
 * it, bf16: each possible tile and none, `samples` times in turns. The rule's choice stays unless another
 * one is 5 % faster by the least time and by the median. Rows are the caller's lw_free(). */
typedef struct lw_tune_config {
    int threads, samples;
    const char *filter;
    bool list; /* measure nothing: rows have no times, and the rule's tile */
} lw_tune_config;
int lw_job_tune(const lw_tune_config *config, const lw_observer *obs, lw_tuned_row **rows, int *n);
enum { LW_TUNE_NAME = 64 };
/* "f32.forward.128_128@32" */
void lw_tune_name(const lw_conv_choice *c, char name[LW_TUNE_NAME]);

#endif
