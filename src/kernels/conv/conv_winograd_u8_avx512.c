/* SPDX-License-Identifier: Apache-2.0 */
/* The body of conv_winograd_body.inc for u8 at this ISA level. */
#include "kernels/conv/conv_winograd_elem_u8.h"
#include "kernels/conv/conv_winograd_body.inc"
