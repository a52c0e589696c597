/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench: how long the work that matters takes on this machine. A case is prepared once, run a few
 * times for warm-up, then timed until there are enough samples; every sample is kept.
 *
 * Read: recipe_bench.h, recipe_bench.c (timing, the loop over cases), recipe_bench_unet.c and
 * recipe_bench_field.c (the cases), recipe_bench_profile.c (time per kind of op).
 */
#ifndef LW_RECIPE_BENCH_H
#define LW_RECIPE_BENCH_H

#include "formats/formats.h"
#include "recipes/recipe_observer.h"

typedef enum lw_bench_suite { LW_BENCH_UNET, LW_BENCH_FIELD, LW_BENCH_TRAIN } lw_bench_suite;

typedef struct lw_bench_config {
    lw_bench_suite suite;
    int threads;
    int32_t batch[16], n_batch; /* unet: batch sizes; none: forward 1 and 8, train 16 */
    bool train;                 /* unet: the batch sizes are training steps */
    bool large;                 /* unet: the 210M network */
    double dropout;             /* of training steps */
    const char *filter;         /* only cases whose name contains this; NULL: all */
    double seconds;             /* time for each case */
    int32_t min_samples;
    bool profile; /* time per kind of op, from further runs */
} lw_bench_config;

/* What one kind of op took in a run. */
typedef struct lw_bench_part {
    char what[64]; /* "conv2d 3x3", "group_norm", "adamw" */
    int32_t steps;
    double ms, flops, bytes;
} lw_bench_part;

typedef struct lw_bench_case {
    char name[64]; /* "forward_b8" */
    double *ms;    /* every sample, in the order taken */
    int32_t n, cap;
    double cpu_ms; /* processor time of one run, all threads */
    double flops;  /* of one run, by the ops' cost rules */
    size_t memory; /* bytes of slabs, frame and prepared data */
    lw_bench_part *part;
    int32_t n_part;
} lw_bench_case;

typedef struct lw_bench {
    lw_bench_case *cases;
    int32_t n;
    int threads;
    const char *isa;
} lw_bench;

int lw_recipe_bench(const lw_bench_config *config, const lw_observer *obs, lw_bench *out);
void lw_bench_clear(lw_bench *b); /* accepts a zeroed struct */

/* Share p in [0,1] of the samples is at most this (linear between neighbours). */
double lw_bench_quantile(const lw_bench_case *c, double p);
/* Median distance from the median. */
double lw_bench_mad(const lw_bench_case *c);
/* {"machine": {..}, "results": [{"name", "median_ms", "p10_ms", "p90_ms", "min_ms", "mad_ms",
 * "cpu_ms", "samples_ms", "gflop", "gflops", "memory_bytes", "profile"?}]}. New reference. */
json_t *lw_bench_to_json(const lw_bench *b);

/* Cases against those of an earlier file (lw_bench_to_json saved). */
typedef enum lw_bench_verdict {
    LW_BENCH_NOISE,
    LW_BENCH_BETTER,
    LW_BENCH_WORSE,
    LW_BENCH_NEW
} lw_bench_verdict;
typedef struct lw_bench_change {
    double base_ms, new_ms; /* medians */
    lw_bench_verdict verdict;
} lw_bench_change;
/* change[b->n]. Worse (better) when both minimum and median moved by more than max(3 %, 3 MAD). */
int lw_bench_compare(const lw_bench *b, const char *path, lw_bench_change *change);

#endif
