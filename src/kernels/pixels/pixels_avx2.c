/* SPDX-License-Identifier: Apache-2.0 */
/* The body of pixels_body.inc at this ISA level. */
#include "kernels/pixels/pixels_body.inc"
