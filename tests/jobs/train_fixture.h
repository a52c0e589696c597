/* SPDX-License-Identifier: Apache-2.0 */
/* Running the `leeway` binary on tiny networks, and comparing what it left on disk. */
#ifndef LW_TESTS_TRAIN_FIXTURE_H
#define LW_TESTS_TRAIN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "formats/formats.h"

/* Options of the smallest nets that hold every kind of layer; each a step of some milliseconds. */
#define TINY_NET                                                                            \
    " --data synth:16 --limit 256 --base-channels 8 --channel-mult 1,2 --num-res-blocks 1 " \
    "--attn-resolutions 8"                                                                  \
    " --heads 2 --norm-groups 4 --learning-rate 2e-3"
#define TINY_DDPM "train ddpm --batch-size 8" TINY_NET
#define TINY_FLOW "train flow --batch-size 8" TINY_NET
#define TINY_DRIFT                                                            \
    "train drift --groups 2 --negatives-per-group 4 --positives-per-group 8 " \
    "--unconditional-per-group 4"                                             \
    " --noise-shape 4x4 --latent-dim 4" TINY_NET
#define TINY_ENCODER                                                                               \
    "train encoder --data synth:16 --limit 256 --width 8 --stages 2 --norm-groups 4 --batch-size " \
    "16"                                                                                           \
    " --warmup-steps 4"

/* Group fixtures: a fresh directory becomes the working directory, and goes at the end. */
int lab_enter(void **state);
int lab_leave(void **state);

/* Runs `leeway ARGS` (split at blanks) with --no-progress; what it printed is in lab_out and
 * lab_err. Returns the exit code, or 1000 + signal. lab_env, when set, is one NAME=VALUE for the
 * child. */
extern char lab_out[16384], lab_err[16384];
extern const char *lab_env;
int lab_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Runs and fails the test unless it ends with `code`. */
#define lab_expect(code, ...)                                                     \
    do {                                                                          \
        int lab_rc_ = lab_run(__VA_ARGS__);                                       \
        if (lab_rc_ != (code))                                                    \
            fail_msg("exit code %d instead of %d: %s", lab_rc_, (code), lab_err); \
    } while (0)
/* Starts, sends `signal` after so many seconds (unless it ended before), waits. Returns
 * as lab_run. */
int lab_run_until(double seconds, int signal, const char *args);
/* Text of lab_err is one line (and perhaps log lines of level warn). */
bool lab_one_line(void);

/* Byte for byte: model, EMA, optimizer of checkpoints/last of two runs, and the step. Fails the
 * test. */
void lab_same_checkpoint(const char *run_a, const char *run_b);
/* metrics.jsonl line by line without times; loss_log.csv steps and losses. Fails the test. */
void lab_same_logs(const char *run_a, const char *run_b);
/* The step of checkpoints/last; -1: none. */
int64_t lab_last_step(const char *run);
/* A number of the last (from_end 0), second last, ... row of metrics.jsonl; first with
 * from_end -1. */
double lab_metric(const char *run, const char *key, int from_end);
/* Mean of a metric over rows [from, to). */
double lab_metric_mean(const char *run, const char *key, size_t from, size_t to);
/* A deterministic draw in [0,1). */
double lab_uniform(void);

#endif
