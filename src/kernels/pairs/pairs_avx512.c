/* SPDX-License-Identifier: Apache-2.0 */
/* Distances of pairs, avx512 words. */
#include "kernels/pairs/pairs_body.inc"
