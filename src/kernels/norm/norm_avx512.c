/* SPDX-License-Identifier: Apache-2.0 */
/* Group norm, avx512 words. */
#include "kernels/norm/norm_body.inc"
