/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the conv family: passes as stride phases, and the cutting of work into tasks. */
#ifndef LW_KERNELS_CONV_SHAPE_H
#define LW_KERNELS_CONV_SHAPE_H

#include "kernels/conv/conv.h"
#include "kernels/gemm/gemm_shape.h"

enum {
    LW_CONV_ZEROS = 4096, /* words */
    LW_CONV_COPY = 65536  /* words of copied lines (conv_copied.inc), a part of L2 */
};

/*
 * One direction (y or x) of a phase: output positions q = 0..count-1 stand for out = out0 + q *
 * out_step, and tap t = 0..taps-1 reads input position q * in_step + in0 + t (skipped outside
 * 0..in_size-1) with filter index w0 + t * w_step. A forward pass is one phase; the data gradient
 * of stride s has s phases per direction (by output parity), each a plain stride-1 convolution of
 * dy.
 */
typedef struct lw_conv_line {
    int32_t count, out0, out_step;
    int32_t taps, in0, in_step, in_size;
    int32_t w0, w_step;
} lw_conv_line;

lw_conv_line lw_conv_line_forward(int32_t in, int32_t out, int32_t k, int32_t stride, int32_t pad);
/* Phase `phase` (0..stride-1): the inputs i with (i + pad) % stride == phase. `in` inputs, `out`
 * outputs. */
lw_conv_line lw_conv_line_data(int32_t in, int32_t out, int32_t k, int32_t stride, int32_t pad,
                               int32_t phase);

typedef struct lw_conv_phase {
    lw_conv_line y, x;
    int32_t depth;         /* channels summed over: C forward, O for the data gradient */
    int32_t cols;          /* channels produced */
    int64_t packed_offset; /* floats before this phase's packed weights */
} lw_conv_phase;
/* Bytes of a type before a phase's packed weights; those of s8 are followed by their sums. */
size_t lw_conv_phase_offset(lw_num num, const lw_conv_phase *p);
/* Phases of a pass: 1, or stride^2 for the data gradient. */
int32_t lw_conv_phases(const lw_conv_shape *s, lw_conv_pass pass);
lw_conv_phase lw_conv_phase_of(const lw_conv_shape *s, lw_conv_pass pass, int32_t phase);

/* Tasks of one pass: phase x image group x row group x column group. */
typedef struct lw_conv_split {
    int64_t phases, image_groups, row_groups, col_groups;
    int32_t images, rows; /* of a task: rows < all rows of the phase only if images == 1 */
    ptrdiff_t cols;
} lw_conv_split;
lw_conv_split lw_conv_split_of(const lw_conv_shape *s, lw_conv_pass pass);
/* As lw_gemm_wide_split. */
lw_conv_split lw_conv_wide_split(lw_num num, const lw_conv_shape *s, lw_conv_pass pass);

#endif
