/* SPDX-License-Identifier: Apache-2.0 */
/* Which size of which network this machine runs how often a second: a few seconds of measuring. */
#ifndef LW_BENCH_DOCTOR_H
#define LW_BENCH_DOCTOR_H

#include "backend/backend.h"

enum { LW_DOCTOR_NETWORKS = 3, LW_DOCTOR_SIZES = 7 };

typedef struct lw_doctor_network {
    const char *name;
    int64_t parameters;
    int32_t n, side[LW_DOCTOR_SIZES]; /* measured, from small to large, until one is slow */
    double fps[LW_DOCTOR_SIZES];      /* one evaluation of one square RGB frame, median */
} lw_doctor_network;

/* Weights are random: time does not depend on them. */
int lw_bench_doctor(lw_device *dev, const lw_observer *obs,
                    lw_doctor_network out[LW_DOCTOR_NETWORKS]);
int32_t lw_doctor_side(int k); /* what is measured: k 0 .. LW_DOCTOR_SIZES - 1 */
/* The largest side that reaches so many frames a second; 0: none. */
int32_t lw_doctor_reaches(const lw_doctor_network *n, double fps);

#endif
