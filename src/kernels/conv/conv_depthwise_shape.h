/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the depthwise kernels: which rows, images and channels a task has. */
#ifndef LW_KERNELS_CONV_DEPTHWISE_SHAPE_H
#define LW_KERNELS_CONV_DEPTHWISE_SHAPE_H

#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_shape.h"

/* Rows [r0, r1) of all images' rows of what the pass makes. */
typedef struct lw_depthwise_rows {
    int64_t r0, r1;
} lw_depthwise_rows;
lw_depthwise_rows lw_depthwise_rows_of(const lw_conv_shape *s, lw_conv_pass pass, int64_t task);

/* Images [b0, b1) and channels [c0, c1) of a task of the weight gradient, whose sums stand at
 * partials + at: [KH][KW] filters and one sum of dy, each [C]. */
typedef struct lw_depthwise_part {
    ptrdiff_t b0, b1, c0, c1, at;
} lw_depthwise_part;
lw_depthwise_part lw_depthwise_part_of(const lw_conv_shape *s, int64_t task);

#endif
