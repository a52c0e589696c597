/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which convolutions use Winograd's tiles. The rule looks at one image's shape and the level, never
 * at the batch or the clock, so that a sample's bits do not depend on its neighbours. Measured on
 * one Zen 4 core, weights from memory and from cache (docs/performance.md, "Winograd"):
 *
 *   channels summed over or produced    below 12 (AVX-512), 24 (AVX2): direct; the transforms cost
 *                                       more than they save
 *   image of one 4x4 tile               F(4x4) while its weights stay in L2, else F(2x2): 36
 *                                       numbers per filter and channel are four times a plain
 *                                       weight, and at batch 1 each is used once
 *   anything else                       F(4x4)
 *
 * The reference level computes directly: it is the oracle for everything else.
 */
#include "kernels/conv/conv_winograd.h"

enum { MIN_CHANNELS_AVX2 = 24, MIN_CHANNELS_AVX512 = 12, ONE_TILE_WEIGHTS = 8192 };

int lw_winograd_tile(const lw_conv_shape *s, lw_conv_pass pass, lw_isa isa, lw_conv_mode mode)
{
    if (mode == LW_CONV_MODE_DIRECT || !lw_winograd_applies(s, pass))
        return 0;
    int least = isa >= LW_ISA_AVX512 ? MIN_CHANNELS_AVX512 : MIN_CHANNELS_AVX2;
    if (mode == LW_CONV_MODE_AUTO && (isa == LW_ISA_REF || s->C < least || s->O < least))
        return 0;
    bool one_tile = s->H <= 4 && s->W <= 4;
    return one_tile && (int64_t)s->C * s->O > ONE_TILE_WEIGHTS ? 2 : 4;
}
