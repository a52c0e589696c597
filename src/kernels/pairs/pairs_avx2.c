/* SPDX-License-Identifier: Apache-2.0 */
/* Distances of pairs, avx2 words. */
#include "kernels/pairs/pairs_body.inc"
