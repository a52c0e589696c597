/* SPDX-License-Identifier: Apache-2.0 */
/* The body of conv_winograd_grad_body.inc for bf16 in memory at this ISA level. */
#include "kernels/conv/conv_winograd_elem_wide.h"
#include "kernels/conv/conv_winograd_grad_body.inc"
