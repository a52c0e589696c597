/* SPDX-License-Identifier: Apache-2.0 */
/* Group norm of narrow numbers, avx512bf16 words: an instruction rounds results. */
#include "kernels/norm/norm_narrow_body.inc"
