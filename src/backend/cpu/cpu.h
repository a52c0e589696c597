/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend/cpu: the device that runs plans on this machine's cores. Lowers each op to tasks over the
 * kernels of src/kernels and owns the thread pool.
 *
 * Read: cpu_device.c (open, close, the lowering table), then one file per op family. A lowering
 * reads the node's shapes, fills a small record in plan memory and names task functions; the task
 * split is a pure function of shapes. Task functions call one kernel each.
 */
#ifndef LW_CPU_H
#define LW_CPU_H

#include "kernels/kernels.h"
#include "plan/plan.h"
#include "backend/cpu/cpu_optim.h"

typedef struct lw_cpu_options {
    int threads; /* workers; 0: all CPUs this process may use */
    lw_isa isa;
    lw_conv_mode conv; /* where f32 convolutions use Winograd's tiles */
} lw_cpu_options;

int lw_cpu_open_with(const lw_cpu_options *options, lw_device **out);
/* With LW_CONV_MODE_AUTO. */
int lw_cpu_open(int threads, lw_isa isa, lw_device **out);
void lw_cpu_close(lw_device **pp);
const lw_kernels *lw_cpu_kernels(const lw_device *d);

#endif
