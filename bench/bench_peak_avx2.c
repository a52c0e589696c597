/* SPDX-License-Identifier: Apache-2.0 */
/* bench_peak.inc at this ISA level. */
#include "bench_peak.inc"
