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

#include "backend/backend.h"

int lw_cpu_open(const lw_backend_options *options, lw_device **out);
/* The same with memory that the host cannot address, for tests. */
int lw_cpu_open_discrete(const lw_backend_options *options, lw_device **out);

#endif
