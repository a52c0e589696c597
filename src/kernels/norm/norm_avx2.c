/* SPDX-License-Identifier: Apache-2.0 */
/* Group norm, avx2 words. */
#include "kernels/norm/norm_body.inc"
