/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise tile programs, avx512 words. */
#include "kernels/ew/ew_body.inc"
