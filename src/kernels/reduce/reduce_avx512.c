/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, avx512 words. */
#include "kernels/reduce/reduce_body.inc"
