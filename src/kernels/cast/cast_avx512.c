/* SPDX-License-Identifier: Apache-2.0 */
/* The body of cast_body.inc at this ISA level. */
#include "kernels/cast/cast_body.inc"
