/* SPDX-License-Identifier: Apache-2.0 */
/* The body of gemm_tile_amx_body.inc for u8. */
#include "kernels/gemm/gemm_tile.h"

#define TILE_INTEGER 1
#define TILE_PARTS 1
#define TILE_RUN LWV(lw_tile_run_u8)
#define TILE_KIND LWV(lw_tiles_u8)
#define TILE_FINISH lw_tile_run_u8_avx512bf16
#include "kernels/gemm/gemm_tile_amx_body.inc"
