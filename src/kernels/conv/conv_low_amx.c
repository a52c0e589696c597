/* SPDX-License-Identifier: Apache-2.0 */
/* The body of conv_low_body.inc at this ISA level. */
#include "kernels/conv/conv_low_body.inc"
