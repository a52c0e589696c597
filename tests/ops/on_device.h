/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device beside the CPU's references, case by case: every op, forward, and the drift field. `leeway check --device D` runs
 * it, and so do the tests of the emulated GPU.
 */
#ifndef LW_TESTS_ON_DEVICE_H
#define LW_TESTS_ON_DEVICE_H

#include "base/base.h"

struct lw_device;

typedef struct on_device {
    const char *device; /* as --device has it */
    const char *
        filter; /* cases whose family.case contains it, or one of its parts between commas; "": all */
    bool first;                  /* none behind the first that is wrong */
    int computed, wrong, absent; /* cases so far; absent: the device does not compute their ops */
} on_device;

/* Is this case to be run? */
bool on_device_chosen(const on_device *o, const char *family, const char *name);
/* One line each, and counted. `worst`: the greatest error of `compared` numbers, which `tol` allows. */
void on_device_compared(on_device *o, const char *name, int64_t compared, double worst, double tol);
void on_device_failed(on_device *o, const char *name, const char *why);

void ops_on_device(on_device *o, struct lw_device *dev);
void drift_on_device(on_device *o, struct lw_device *dev);

/* Opens the device and runs both. Exit status: 0; 1: one is wrong, or fewer than `least` were computed; 2: no case has such a
 * name; else an error's, as 6 where there is no such device or it broke (said on stderr). */
int on_device_run(on_device *o, int least);

#endif
