/* SPDX-License-Identifier: Apache-2.0 */
/* The body of gemm_tile_body.inc at this ISA level. */
#include "kernels/gemm/gemm_tile_body.inc"
