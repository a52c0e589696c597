/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leeway sample: pictures of a trained generator in a PNG grid, a folder or an array.
 */
#ifndef LW_SAMPLE_JOB_H
#define LW_SAMPLE_JOB_H

#include "session/session.h"

/* As users type them. */
#define LW_ALPHA_SCHEDULES "constant|linear|list"
typedef enum lw_alpha_schedule {
    LW_ALPHA_CONSTANT,
    LW_ALPHA_LINEAR,
    LW_ALPHA_LIST
} lw_alpha_schedule;

typedef struct lw_sample_config {
    const char *source;
    const char *classes; /* "all": in turn; or a list that is gone through in turn */
    /* x.png: grid; x.npy, a pipe or a device: [n,C,H,W] f32 in [-1,1]; x.npz: u8 [n,H,W,C] as arr_0
     * and classes as arr_1, as ADM's evaluator reads it; else a folder of pictures. */
    const char *output;
    int64_t n;
    int32_t steps, kind;           /* lw_sampler_kind */
    int32_t spacing;               /* lw_sampler_opts.spacing */
    bool use_clipped_model_output; /* else lw_sampler_opts.keep_eps */
    double alpha;                  /* lw_sampler_opts.alpha */
    int32_t alpha_schedule;        /* lw_alpha_schedule */
    double alpha_start, alpha_end; /* of the first and the last picture; linear */
    float alpha_values[64];        /* gone through in turn; list */
    int32_t n_alpha_values;
    double guidance_scale; /* lw_sampler_opts.guidance_scale */
    int32_t batch;
    bool ema;
    int32_t precision; /* lw_num */
    int32_t window;    /* lw_network.window */
    uint64_t seed;
    int32_t threads;
    int32_t conv; /* lw_conv_mode */
} lw_sample_config;

typedef struct lw_sample_result {
    int64_t n, step, parameters;
    int32_t evaluations, image_size;
    const char *method, *sampler, *precision; /* static */
    lw_sampler_kind kind;                     /* the same sampler */
    double seconds, images_per_second;
    size_t bytes; /* of weights and frames */
    uint64_t hash;
    bool averaged;
} lw_sample_result;

/* What decided the pictures beside what every result says: options that are not at their default and
 * count for this sampler, by their names with _ for -. The caller's; NULL: out of memory. */
json_t *lw_sample_options(const lw_sample_config *c, lw_sampler_kind kind);

int lw_job_sample(const lw_sample_config *c, const lw_observer *obs, lw_sample_result *out);

#endif
