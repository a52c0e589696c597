/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend: the devices that run plans. This header is the only door: what a device can do is
 * declared by plan (plan/plan_device.h), and nothing outside knows which one it has.
 *
 * A folder for each: cpu/ lowers ops to tasks over the kernels of src/kernels, on a pool of
 * threads. Another device is another folder and a row in backend.c.
 */
#ifndef LW_BACKEND_H
#define LW_BACKEND_H

#include "kernels/kernels.h"
#include "plan/plan.h"

typedef struct lw_backend_options {
    int threads;       /* of the host; 0: all CPUs this process may use */
    lw_isa isa;        /* best level of the host's kernels that may be used */
    lw_conv_mode conv; /* where f32 convolutions use Winograd's tiles */
} lw_backend_options;

/* The device that LW_DEVICE names; without it "cpu". */
const char *lw_backend_chosen(void);
/* LW_EDEVICE: there is no device of this name ("cpu"; "cpu-discrete", which behaves as one with
 * memory of its own, for tests). */
int lw_backend_open(const char *name, const lw_backend_options *options, lw_device **out);
/* After everything that was made on it. */
void lw_backend_close(lw_device **pp);

#endif
