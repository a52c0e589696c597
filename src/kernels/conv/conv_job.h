/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the conv family: one task of a convolution, whatever its operands. */
#ifndef LW_KERNELS_CONV_JOB_H
#define LW_KERNELS_CONV_JOB_H

#include "kernels/conv/conv_shape.h"
#include "kernels/gemm/gemm_job.h"

enum {
    LW_CONV_MOST_COLS = 512, /* at a time, of results that are rounded and of whole numbers */
    LW_CONV_PANELS = LW_CONV_MOST_COLS / LW_TILE_COLS,
    /* Floats of sums that are rounded afterwards: those columns of the tallest tile. */
    LW_CONV_APART = LW_CONV_MOST_COLS * LW_TILE_MOST_ROWS
};

/* Words between what is read: from tap (0, 0) of the first pixel of a phase, which may lie outside the
 * image, to those of the next image, output line and output pixel, and from tap to tap. */
typedef struct lw_conv_steps {
    ptrdiff_t first, image, line, pixel, tap_y, tap_x;
} lw_conv_steps;

/* What is read, what is written; lw_conv_run fills the rest: which part. */
typedef struct lw_conv_job {
    const float *in, *packed; /* 32-bit words, see gemm_tile.h */
    float *out;               /* pixels of floats, or */
    lw_rounded low;           /* or pixels of bf16 or bytes, of pitch out_pitch too, and */
    float *apart;             /* LW_CONV_APART floats, where sums wait between blocks of taps */
    const lw_epilogue *e;
    lw_num num;
    const lw_tiles *tiles; /* of that type */
    lw_tile_room *room;    /* of lw_tiles_begin */
    float *copy;           /* for copied lines, see conv_copied.inc */
    ptrdiff_t copy_words;
    lw_bf16x3_split_fn *split; /* LW_NUM_BF16X3: pixels of f32 are split as they are copied, */
    ptrdiff_t numbers;         /* so many of each */
    const lw_quant *q;         /* LW_NUM_S8, and */
    lw_tile_quant *quant;      /* room for LW_CONV_PANELS, of the taps that are being summed */
    const float *zeros;        /* words that stand for 0: a run's worth, at most LW_CONV_ZEROS */
    ptrdiff_t in_pitch, out_pitch; /* words, and elements of out or low, between pixels */
    ptrdiff_t out_h, out_w;        /* whole output image */
    ptrdiff_t pixels;              /* 0, or of all output, where tasks go by groups of columns */

    lw_conv_phase p; /* depth in words */
    lw_conv_steps at;
    const int32_t *sums;
    ptrdiff_t b0, b1, y0, y1, n0, n1;
    bool narrow;
} lw_conv_job;
void LWV_BASE(lw_conv_run)(lw_conv_job *j, const lw_conv_shape *s, lw_conv_pass pass, int64_t task);

#endif
