/* SPDX-License-Identifier: Apache-2.0 */
/* The forward of any model folder on npy files: an oracle for other programs. */
#ifndef LW_RUN_JOB_H
#define LW_RUN_JOB_H

#include "formats/formats.h"
#include "base/observer.h"

typedef struct lw_run_config {
    const char *source;    /* a run, checkpoint, model folder, or ResNet weights file */
    bool ema;              /* averaged weights of a checkpoint */
    const char *input;     /* npy [N,C,H,W] */
    const char *t;         /* npy [N] or one number; NULL: 0 */
    const char *classes;   /* npy [N] or one integer; required by class-conditional models */
    const char *styles;    /* npy [N,K]; required by models with styles */
    const char *latent;    /* npy [N,K]; required by models with a latent */
    const char *condition; /* npy [N,K,H,W]; required by models with a condition */
    const char *want;      /* output's name; NULL: the first */
    const char *output;    /* npy */
    int32_t batch;         /* rows at a time; results do not depend on it */
    int32_t precision;     /* lw_num */
    int32_t window;        /* lw_network.window */
    int threads;
    int32_t conv; /* lw_conv_mode */
} lw_run_config;

typedef struct lw_run_result {
    char name[32]; /* of the network */
    char want[16]; /* the output written */
    int64_t parameters;
    int rank;
    int64_t shape[4];
    double seconds; /* of the forward passes alone */
    size_t memory;  /* of weights, frame and prepared data */
} lw_run_result;

int lw_job_run(const lw_run_config *c, const lw_observer *obs, lw_run_result *out);

#endif
