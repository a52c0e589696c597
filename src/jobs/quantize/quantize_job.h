/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leeway quantize: runs a model in f32 over calibration inputs, measures the range of every
 * activation that an int8 plan would read as bytes, and writes a model folder that --precision int8
 * takes: the f32 weights and quantization.json.
 */
#ifndef LW_QUANTIZE_JOB_H
#define LW_QUANTIZE_JOB_H

#include "base/observer.h"
#include "jobs/quantize/quantize_ranges.h"

typedef struct lw_quantize_config {
    const char *source;      /* a run, checkpoint, model folder, or ResNet weights file */
    const char *calibration; /* data spec; NULL or "noise": a generator's own inputs */
    const char *output_dir;  /* NULL: source with "-int8" behind */
    bool ema;                /* averaged weights of a checkpoint */
    int32_t n, batch;        /* pictures; at a time */
    int32_t on_error;        /* lw_on_error, of pictures that cannot be read */
    int32_t steps;           /* DDPM: evaluations per picture, times spread over the schedule */
    int32_t rule;            /* lw_range_rule */
    double percentile;       /* of the values kept, in per cent */
    uint64_t seed;
    int32_t threads;
    int32_t conv; /* lw_conv_mode */
} lw_quantize_config;

typedef struct lw_quantize_result {
    char output_dir[512];
    const char *inputs; /* static: what the ranges were measured on */
    int32_t edges;
    int64_t evaluations; /* pictures times times */
    double mean_error;   /* of rounding activations, relative, over edges */
    double worst_error;
    char worst[160];     /* the edge that rounds worst */
    double output_error; /* int8 against f32 on the last inputs: root mean square, relative */
    double seconds;
} lw_quantize_result;

int lw_job_quantize(const lw_quantize_config *c, const lw_observer *obs, lw_quantize_result *out);

#endif
