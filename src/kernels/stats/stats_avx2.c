/* SPDX-License-Identifier: Apache-2.0 */
/* Feature statistics, avx2 words. */
#include "kernels/stats/stats_body.inc"
