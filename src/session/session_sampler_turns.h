/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samplers timed in turns, so that a machine that changes its pace changes all of them alike: of
 * two times taken in one turn the ratio still means something.
 */
#ifndef LW_SESSION_SAMPLER_TURNS_H
#define LW_SESSION_SAMPLER_TURNS_H

#include "session/session_sampler.h"

typedef struct lw_timed_sampler {
    lw_sampler *sampler; /* borrowed; NULL: left out */
    float *pictures;     /* of `batch`, overwritten by each run */
    int64_t batch;
    int32_t times; /* runs a turn: a short one needs several */
} lw_timed_sampler;

/* Seconds of one run: by the clock, of all processors, and within the network alone. */
typedef struct lw_sampler_time {
    double wall, cpu, network;
} lw_sampler_time;

typedef struct lw_turn_limits {
    int32_t least, most; /* turns */
    double seconds;      /* no turn begins later, once `least` are taken; 0: no limit */
} lw_turn_limits;

/* One untimed turn (weights are packed, caches warm), then timed ones; `keep` gets each run. */
int lw_sampler_take_turns(
    const lw_timed_sampler *s, int n, const lw_turn_limits *limits, const lw_observer *obs,
    int (*keep)(void *self, int which, int32_t turn, const lw_sampler_time *time), void *self);

#endif
