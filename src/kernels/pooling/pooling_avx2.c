/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling and accumulating copies, signed sums of rows, avx2 words. */
#include "kernels/pooling/pooling_body.inc"
#include "kernels/pooling/pooling_bag_body.inc"
