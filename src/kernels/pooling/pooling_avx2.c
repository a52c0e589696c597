/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling and accumulating copies, avx2 words. */
#include "kernels/pooling/pooling_body.inc"
