/* SPDX-License-Identifier: Apache-2.0 */
/* The body of attention_low_body.inc at this ISA level. */
#include "kernels/attention/attention_low_body.inc"
