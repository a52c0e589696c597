/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blur: pictures of bytes under a Gaussian, as Pillow's ImageFilter.GaussianBlur approximates it, bit
 * for bit: an extended box filter (Gwosdek et al. 2011, "Theoretical foundations of Gaussian
 * convolution by extended box filtering") of the Gaussian's variance, three times along each axis.
 *
 *   a box of radius r + a, 0 <= a < 1:   y[i] = sum over |j| <= r of w x[i+j] + v (x[i-r-1] + x[i+r+1])
 *
 * with w = 2^24 / (2 (r + a) + 1) and v so that all weights are 2^24; sums are rounded to bytes behind
 * every pass. A picture goes on beyond its border as its last pixel. Radii are those of Pillow, which are
 * standard deviations in pixels; those larger than the picture are as good as any.
 */
#ifndef LW_KERNELS_BLUR_H
#define LW_KERNELS_BLUR_H

#include <stdint.h>

#include "base/base.h"

/* In place, x [h][w][c]; between: as many bytes. One instruction set: half of a decoding's time. */
void lw_blur_u8(uint8_t *x, uint8_t *between, ptrdiff_t h, ptrdiff_t w, ptrdiff_t c, float radius);

#endif
