/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run is: frozen config structs, filled by the option tables of cli/ (or by another job),
 * never looked up again and never written: what a run decides itself is in lw_train_state. Pointers
 * are borrowed and must outlive the job's call.
 */
#ifndef LW_TRAIN_CONFIG_H
#define LW_TRAIN_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "session/session.h"

typedef enum lw_schedule { LW_SCHEDULE_CONSTANT, LW_SCHEDULE_COSINE } lw_schedule;

/* Of a checkpoint that a run begins from: the average, or the weights of its last step. */
typedef enum lw_start_weights { LW_START_MODEL, LW_START_EMA } lw_start_weights;

/* Everything trainers share. Zero means "the job's default" where that makes sense. */
typedef struct lw_train_config {
    const char *data;        /* data spec */
    const char *output_dir;  /* run directory */
    const char *part_of;     /* address of a page that the run's own links to, or NULL */
    const char *resume_from; /* run or checkpoint directory; NULL: start (or go on with output_dir
                                when resume) */
    const char
        *init_from; /* weights to begin with: any model that may be named; NULL: random ones */
    int32_t init_weights; /* lw_start_weights: which of a checkpoint's */
    bool resume;          /* go on from output_dir's last checkpoint */
    bool reschedule;      /* resuming may change the learning rate's schedule */
    const char
        *rescheduled;   /* which of its options are others now, but for the steps; NULL: none */
    int64_t steps;      /* 0: those of the run that goes on, or what minutes come to */
    double minutes;     /* > 0: steps are fixed from a measured rate before training starts */
    int32_t batch_size; /* samples per micro-batch */
    int32_t grad_accum_steps;
    int32_t leaf_size; /* samples; 0: a whole micro-batch (train_leaves.h) */
    bool flip;         /* mirrored copies, where the data allows them */
    int32_t optimizer; /* lw_optimizer */
    double learning_rate, adam_beta1, adam_beta2, adam_eps, momentum, weight_decay;
    double grad_clip;  /* global norm; 0: none */
    int32_t scheduler; /* lw_schedule */
    int64_t warmup_steps;
    double lr_floor;  /* cosine ends at this share of the learning rate */
    double ema_decay; /* warmed up: min(decay, (1 + s) / (10 + s)); 0: no average */
    int64_t save_every, log_every, sample_every, eval_every; /* 0: never (save: at the end only) */
    int32_t keep_last_k_checkpoints;                         /* 0: all */
    int32_t precision;                                       /* 0: f32 */
    bool unoptimised; /* plans of graphs as they were built, to be compared with */
    bool recompute; /* make cheap activations again in the backward pass: less memory, same bits */
    int64_t seed;
    int32_t threads; /* 0: all */
    int32_t conv;    /* lw_conv_mode */
    bool dry_run;
    int32_t profile; /* > 0: so many steps are timed part by part, nothing is trained or written */
    const json_t *options; /* of the command, in the order of config.yaml; NULL: none is written */
    const char *command_line; /* written as command.txt */
} lw_train_config;

#endif
