/* SPDX-License-Identifier: Apache-2.0 */
/* Measured limits of a GPU, for `leeway info --peak --device cuda`. */
#ifndef LW_SESSION_MACHINE_GPU_H
#define LW_SESSION_MACHINE_GPU_H

#include <jansson.h>

#include "backend/backend.h"

typedef struct lw_gpu_peak {
    /* 10^9 multiplications and additions per second of a square product with `side` rows, by operand
     * type. 0: not computed on GPUs */
    double rate[LW_NUM_COUNT];
    int32_t side[LW_NUM_COUNT];
    double copy;       /* 10^9 bytes per second, read plus written */
    size_t copy_bytes; /* of them, read and written in one pass */
    double launch_us;  /* a small kernel of a recorded graph, microseconds */
} lw_gpu_peak;

/*
 * Runs plans, as networks have them, and times their steps by the device's clock: products that grow
 * up to 4,096 (f32) and 8,192 (bf16) rows, a pass over up to 1 GiB, a chain of small steps; medians. As
 * far as time (some ms a run) and memory go. LW_EDEVICE; LW_ENOMEM: not even small ones fit.
 */
int lw_gpu_measure(lw_device *dev, lw_gpu_peak *out);
/* What types are not computed is null. New reference. */
json_t *lw_gpu_peak_json(const char *device, const lw_gpu_peak *m);

#endif
