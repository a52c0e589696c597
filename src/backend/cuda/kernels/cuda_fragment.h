/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments, the operands that a lane gives to lw_mma_bf16, from rows of bf16 in shared memory that
 * are contiguous along the depth. A pitch of 4 words more than a multiple of 8 puts the 8 rows and
 * 4 words that a warp reads at once into 32 banks. */
#ifndef LW_CUDA_FRAGMENT_H
#define LW_CUDA_FRAGMENT_H

#include "backend/cuda/kernels/cuda_port.h"

/* Halves from the first of a warp's rows to this lane's. */
LW_ON_DEVICE int lw_fragment_lane(const int pitch)
{
    return LW_TID % 32 / 4 * pitch + LW_TID % 4 * 2;
}

/* 16 rows of what is multiplied from the left; at: this lane's place in them. */
LW_ON_DEVICE void lw_left_fragment(uint32_t out[4], const uint16_t *at, const int pitch)
{
    out[0] = lw_two_halves(at);
    out[1] = lw_two_halves(at + 8 * pitch);
    out[2] = lw_two_halves(at + 8);
    out[3] = lw_two_halves(at + 8 * pitch + 8);
}

/* 8 columns, each a row in shared memory. */
LW_ON_DEVICE void lw_right_fragment(uint32_t out[2], const uint16_t *at)
{
    out[0] = lw_two_halves(at);
    out[1] = lw_two_halves(at + 8);
}

#endif
