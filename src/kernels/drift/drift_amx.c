/* SPDX-License-Identifier: Apache-2.0 */
/* The drift field, avx512 words with products of bf16 and, for those of f32, tile registers. */
#include "kernels/drift/drift_body.inc"
