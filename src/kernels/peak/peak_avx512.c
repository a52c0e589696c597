/* SPDX-License-Identifier: Apache-2.0 */
/* Peaks, avx512 words. */
#include "kernels/peak/peak_body.inc"
