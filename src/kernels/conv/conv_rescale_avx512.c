/* SPDX-License-Identifier: Apache-2.0 */
/* The body of conv_rescale_body.inc at this ISA level. */
#include "kernels/conv/conv_rescale_body.inc"
