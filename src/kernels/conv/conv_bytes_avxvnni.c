/* SPDX-License-Identifier: Apache-2.0 */
/* The body of conv_bytes_body.inc at this ISA level. */
#include "kernels/conv/conv_bytes_body.inc"
