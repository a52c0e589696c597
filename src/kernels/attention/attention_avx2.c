/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, avx2 words. */
#include "kernels/attention/attention_body.inc"
