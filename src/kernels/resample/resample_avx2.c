/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear resizing, avx2 words. */
#include "kernels/resample/resample_body.inc"
