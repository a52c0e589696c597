/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and cross-entropy, avx2 words. */
#include "kernels/softmax/softmax_body.inc"
