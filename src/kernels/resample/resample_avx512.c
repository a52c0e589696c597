/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear resizing, avx512 words. */
#include "kernels/resample/resample_body.inc"
