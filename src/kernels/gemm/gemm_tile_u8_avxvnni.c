/* SPDX-License-Identifier: Apache-2.0 */
/* The body of gemm_tile_body.inc for u8 at this ISA level. */
#include "kernels/gemm/gemm_elem_u8.h"
#include "kernels/gemm/gemm_tile_body.inc"
