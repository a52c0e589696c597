/* SPDX-License-Identifier: Apache-2.0 */
/* Private to gemm_tile.h: what row tiles on tile registers need of a kernel call. */
#ifndef LW_KERNELS_GEMM_TILE_AMX_H
#define LW_KERNELS_GEMM_TILE_AMX_H

#include "kernels/simd/simd_amx.h"

extern const lw_tiles lw_tiles_bf16_avx512bf16, lw_tiles_u8_avx512bf16, lw_tiles_bf16x3_amx;
lw_tile_fn lw_tile_run_bf16_avx512bf16, lw_tile_run_u8_avx512bf16; /* finish sums of any level */

enum {
    LW_ROOM_TILES = 2 * LW_WIDE_DEPTH / AMX_WORDS + 18, /* of which three go into each other */
    LW_ROOM_STRETCHES = 144
};

lw_tile_fn lw_tile_run_bf16x3_amx;

/* As lw_tiles_are_wide says. */
#define LW_TILES_OF(type, words) \
    ((words) < LW_WIDE_LEAST ? &lw_tiles_##type##_avx512bf16 : &lw_tiles_##type##_amx)

/* Chunks of a run that follow one another: of a half of 16 rows each its address, bytes between rows
 * and words between chunks. */
typedef struct lw_tile_stretch {
    const float *a[2];
    ptrdiff_t pitch[2], step[2];
    ptrdiff_t k, chunks,
        words; /* first step in the panel; words: of a chunk, less when it is short */
} lw_tile_stretch;

typedef struct lw_tile_room {
    _Alignas(64) float sums[LW_TILE_MOST_ROWS * LW_TILE_COLS];
    _Alignas(64) float rows[LW_ROOM_TILES * AMX_ROWS * AMX_WORDS]; /* copies */
    _Alignas(64) float panel[AMX_ROWS * LW_TILE_COLS];
    ptrdiff_t n;
    bool all; /* the stretches are all words of the rows */
    lw_tile_stretch stretch[LW_ROOM_STRETCHES];
} lw_tile_room;

static inline lw_tile_room *lw_tiles_begin(lw_tile_room *room)
{
    amx_begin();
    return room;
}
static inline void lw_tiles_end(void)
{
    amx_end();
}

#endif
