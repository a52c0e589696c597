/* SPDX-License-Identifier: Apache-2.0 */
/* Peaks, avx2 words. */
#include "kernels/peak/peak_body.inc"
