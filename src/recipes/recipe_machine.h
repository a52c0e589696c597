/* SPDX-License-Identifier: Apache-2.0 */
/* Measured limits of this machine, for `leeway info --peak`. */
#ifndef LW_RECIPE_MACHINE_H
#define LW_RECIPE_MACHINE_H

#include "base/base.h"

typedef struct lw_machine_peak {
    double gflops_one, gflops_all;   /* f32 multiply-adds, one thread and all; 10^9 per second */
    double read_gb_one, read_gb_all; /* reading memory, 10^9 bytes per second */
    double dispatch_us;              /* an empty job on the pool, microseconds */
} lw_machine_peak;

/* Takes about a second and 256 MiB. The best of several tries: other programs only slow things
 * down. */
int lw_machine_measure(int threads, lw_isa isa, lw_machine_peak *out);

#endif
