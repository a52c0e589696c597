/* SPDX-License-Identifier: Apache-2.0 */
/* The body of resample_pass_body.inc for floats at this ISA level. */
#include "kernels/resample/resample_elem_f32.h"
#include "kernels/resample/resample_pass_body.inc"
