/* SPDX-License-Identifier: Apache-2.0 */
/* The body of resample_pass_body.inc for bytes at this ISA level. */
#include "kernels/resample/resample_elem_u8.h"
#include "kernels/resample/resample_pass_body.inc"
