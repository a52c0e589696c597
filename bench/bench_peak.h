/* SPDX-License-Identifier: Apache-2.0 */
/* Peak of one core in floating-point operations per second, per ISA level. */
#ifndef LW_BENCH_PEAK_H
#define LW_BENCH_PEAK_H

#include "base/base.h"

double bench_peak_flops_avx2(long rounds);
double bench_peak_flops_avx512(long rounds);

#endif
