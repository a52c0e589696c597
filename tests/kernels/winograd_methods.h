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
} method;
static const method F4 = {LW_NUM_F32, 4}, PLAIN = {LW_NUM_F32, 4 | LW_WINOGRAD_PLAIN},
                    PLAIN2 = {LW_NUM_F32, 2 | LW_WINOGRAD_PLAIN}, F2 = {LW_NUM_F32, 2},
                    ALONE = {LW_NUM_F32, 4 | LW_WINOGRAD_ALONE}, LOW = {LW_NUM_BF16, 2},
                    NARROW = {LW_NUM_F32, 4 | LW_WINOGRAD_NARROW}, LOW4 = {LW_NUM_BF16, 4};
enum { METHODS = 8 }; /* of these constants */

#endif
