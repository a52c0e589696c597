/* SPDX-License-Identifier: Apache-2.0 */
/* Random rows, avx512 words. */
#include "kernels/random/random_body.inc"
