/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the device that tests compute on. */
#ifndef LW_TESTS_CPU_DEVICE_H
#define LW_TESTS_CPU_DEVICE_H

#include "backend/backend.h"

static inline int cpu_device(int threads, lw_isa isa, lw_device **out)
{
    return lw_backend_open(lw_backend_chosen(),
                           &(lw_backend_options){.threads = threads, .isa = isa}, out);
}

#endif
