/* SPDX-License-Identifier: Apache-2.0 */
/* Feature statistics, avx512 words. */
#include "kernels/stats/stats_body.inc"
