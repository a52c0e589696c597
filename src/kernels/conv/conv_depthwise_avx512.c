/* SPDX-License-Identifier: Apache-2.0 */
/* The vector body of conv_depthwise_body.inc at this ISA level. */
#include "kernels/conv/conv_depthwise_body.inc"
