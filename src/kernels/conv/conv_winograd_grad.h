/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the Winograd kernels: weight gradients over tiles of 4x4 outputs, the transpose of F(4x4,3x3).
 *
 *   Y = A^T [ (G g G^T) . (B^T d B) ] A                          a tile's outputs from inputs d and taps g
 *   dg = G^T [ sum over tiles of (A dY A^T) . (B^T d B) ] G      with the same A, B and G
 *
 * 36 instead of 144 multiplications per tile and pair of channels. Summed are products of points, 36 matrices
 * [O][C] in place of 9, which become taps once, at the end: so tiles are the more worth it the more of them there are.
 * A task's matrices, inputs and gradients of a chunk of tiles are 1.2 MB. Its transforms are done again for every other
 * range of filters, or of channels: a quarter of the time where both have 64; taps from points are a tenth
 * (docs/performance-zen4.md, "Winograd").
 */
#ifndef LW_KERNELS_CONV_WINOGRAD_GRAD_H
#define LW_KERNELS_CONV_WINOGRAD_GRAD_H

#include "kernels/conv/conv_winograd.h"
#include "kernels/gemm/gemm_shape.h"

enum { LW_WINO_GRAD_TILE = 4 };

/*
 * Task = (group * channel ranges + channel range) * o_tasks + filter range.
 *   U [points][chunk][ldu], V [points][chunk][ldv], M [points][o_step][ldv]   in scratch
 *
 * with a few words between points, so that they do not share cache sets.
 */
typedef struct lw_wino_grad {
    lw_wgrad_split split; /* groups of images, ranges of filters; out_tasks: of both ranges */
    ptrdiff_t c_step;     /* channels of a range */
    ptrdiff_t tiles_x;
    int64_t per_image;                          /* tiles */
    ptrdiff_t chunk;                            /* tiles of a chunk, at most */
    ptrdiff_t ldu, ldv, u_step, v_step, m_step; /* words */
} lw_wino_grad;
lw_wino_grad lw_wino_grad_of(const lw_conv_shape *s);

#endif
