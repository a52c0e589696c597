/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of Winograd's tiles share: shapes that have tiles, and the ways of computing with them. */
#ifndef LW_TESTS_WINOGRAD_METHODS_H
#define LW_TESTS_WINOGRAD_METHODS_H

#include "kernels/kernels.h"

static inline lw_conv_shape shape(int B, int H, int W, int C, int O)
{
    lw_conv_shape s = lw_conv_choice_shape(&(lw_conv_choice){.C = C, .O = O, .H = H, .W = W});
    s.B = B;
    return s;
}

/* The same filters with other pads. */
static inline lw_conv_shape with_pads(lw_conv_shape s, int top, int left, int bottom, int right)
{
    s.OH += top + bottom - s.pad_top - s.pad_bottom;
    s.OW += left + right - s.pad_left - s.pad_right;
    s.pad_top = top;
    s.pad_left = left;
    s.pad_bottom = bottom;
    s.pad_right = right;
    return s;
}

/* Of floats. */
typedef struct method {
    lw_num num;
    int tile;
    int kh, kw; /* 0: 3x3 */
} method;
#define TILES(num, tile) \
    {                    \
        num, tile, 0, 0  \
    }
static const method F4 = TILES(LW_NUM_F32, 4), PLAIN = TILES(LW_NUM_F32, 4 | LW_WINOGRAD_PLAIN),
                    PLAIN2 = TILES(LW_NUM_F32, 2 | LW_WINOGRAD_PLAIN), F2 = TILES(LW_NUM_F32, 2),
                    ALONE = TILES(LW_NUM_F32, 4 | LW_WINOGRAD_ALONE), LOW = TILES(LW_NUM_BF16, 2),
                    NARROW = TILES(LW_NUM_F32, 4 | LW_WINOGRAD_NARROW),
                    LOW4 = TILES(LW_NUM_BF16, 4), ROW7 = {LW_NUM_F32, 4, 1, 7},
                    COLUMN7 = {LW_NUM_F32, 4, 7, 1}, ROW3 = {LW_NUM_F32, 4, 1, 3},
                    COLUMN3 = {LW_NUM_F32, 4, 3, 1},
                    COLUMN7_NARROW = {LW_NUM_F32, 4 | LW_WINOGRAD_NARROW, 7, 1},
                    ROW7_ALONE = {LW_NUM_F32, 4 | LW_WINOGRAD_ALONE, 1, 7},
                    SQUARE5 = {LW_NUM_F32, 2, 5, 5};
enum { METHODS = 15 }; /* of these constants */

/* One direction of a shape of 3x3 as one of `taps`: pads of nothing, half and all around a tap stay that. */
static inline void line_direction(int32_t taps, int32_t *kernel, int32_t *in, int32_t *out,
                                  int32_t *before, int32_t *after)
{
    if (*before != 1 || *after != 1) /* enough for a window */
        *in += LW_MAX(taps - 3, 0);
    *kernel = taps;
    *before *= (taps - 1) / 2;
    *after *= (taps - 1) / 2;
    *out = *in + *before + *after - taps + 1;
}

/* A shape of 3x3 with the method's filters. */
static inline lw_conv_shape of_method(lw_conv_shape s, method m)
{
    if (m.kh) {
        line_direction(m.kh, &s.KH, &s.H, &s.OH, &s.pad_top, &s.pad_bottom);
        line_direction(m.kw, &s.KW, &s.W, &s.OW, &s.pad_left, &s.pad_right);
    }
    return s;
}

#endif
