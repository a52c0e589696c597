/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend: the devices that run plans. This header is the only door: what a device can do is
 * declared by plan (plan/plan_device.h), and nothing outside knows which one it has.
 *
 * A folder for each: cpu/ lowers ops to tasks over the kernels of src/kernels, on a pool of
 * threads; cuda/ to launches of its own kernels on an NVIDIA GPU. Another device is another folder
 * and a row in backend.c.
 */
#ifndef LW_BACKEND_H
#define LW_BACKEND_H

#include "kernels/kernels.h"
#include "plan/plan.h"

typedef struct lw_backend_options {
    int threads;           /* of the host; 0: all CPUs this process may use */
    bool bind;             /* a core for each of them: lw_pool_new_bound */
    lw_isa isa;            /* best level of the host's kernels that may be used */
    lw_conv_mode conv;     /* where convolutions use Winograd's tiles */
    lw_conv_choices tuned; /* measured ones, before those of the rule; outlive the device */
} lw_backend_options;

/* The device that lw_session_device opens from now on. LW_EDEVICE: this machine has none such. */
int lw_backend_choose(const char *name);
/* The one chosen; else the one that LW_DEVICE names; without it "cpu". */
const char *lw_backend_chosen(void);
/* LW_EUSAGE: LW_DEVICE says cuda:N with an N that is no number of a GPU. */
int lw_backend_check_chosen(void);
/* What lw_session_device asks of it from now on. */
void lw_backend_bind(bool on);
bool lw_backend_binds(void);
void lw_backend_tune(lw_conv_choices choices); /* borrowed */
lw_conv_choices lw_backend_tuned(void);
/* LW_EDEVICE: there is no device of this name ("cpu"; "cuda", "cuda:1", an NVIDIA GPU;
 * "cpu-discrete", which behaves as one with memory of its own, for tests). */
int lw_backend_open(const char *name, const lw_backend_options *options, lw_device **out);
/* A device failed where no error can be returned (reading a result): kept here, for whoever ends
 * with what it has computed to ask. LW_EDEVICE with the first failure of this process. */
void lw_backend_fail(const char *why);
int lw_backend_failed(void);
/* The same of one device: others go on. */
int lw_backend_failed_on(const lw_device *device);
/* What is asked of a GPU is not there on it: LW_EDEVICE, and nothing is broken. */
void lw_backend_refuse(void);
bool lw_backend_refused(void);
/* A GPU computes: what comes out from here on is its own. The first time `tell` (or NULL) hears of it. */
void lw_backend_begin(void);
bool lw_backend_begun(void);
void lw_backend_on_begin(void (*tell)(void));
/* None has failed: an LW_EDEVICE of compiling a plan means that the device lacks one of its ops. */
bool lw_backend_working(void);
/* One line about GPU number i; LW_EDEVICE: why it cannot be used. */
int lw_backend_gpu(int i, char *line, size_t size);
/* How many GPUs the driver sees, whatever they can do; 0 without a driver. */
int lw_backend_gpu_count(void);
/* Does this program hold kernels for GPUs (was nvcc there when it was built)? */
bool lw_backend_has_gpu_kernels(void);
/* After everything that was made on it. */
void lw_backend_close(lw_device **pp);

#endif
