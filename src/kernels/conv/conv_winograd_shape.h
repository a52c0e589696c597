/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the Winograd kernels: one pass as tiles, blocks of tiles and columns. */
#ifndef LW_KERNELS_CONV_WINOGRAD_SHAPE_H
#define LW_KERNELS_CONV_WINOGRAD_SHAPE_H

#include "kernels/conv/conv_winograd.h"
#include "kernels/gemm/gemm_shape.h"

enum {
    LW_WINO_MAX_SIDE = 6,
    LW_WINO_MAX_LINE = 10,
    LW_WINO_MAX_POINTS = 36,
    LW_WINO_MAX_BLOCK = 32
};

/* What kernels are compiled for: squares of outputs of 3x3, of 5x5, or, in one dimension, four of a line of 3 or of 7 taps. */
enum { LW_WINO_2X2 = 2, LW_WINO_4X4 = 4, LW_WINO_5X5 = 5, LW_WINO_LINE3 = 3, LW_WINO_LINE7 = 7 };
/* Of squares: outputs and taps of a line, inputs of a line. */
static inline int lw_wino_tile_of(int kind)
{
    return kind == LW_WINO_5X5 ? 2 : kind;
}
static inline int lw_wino_taps_of(int kind)
{
    return kind == LW_WINO_5X5 ? 5 : 3;
}
static inline int lw_wino_side_of(int kind)
{
    return lw_wino_tile_of(kind) + lw_wino_taps_of(kind) - 1;
}

/*
 * The tiles of all images in a row (image, then y, then x) are cut into blocks; a task is one block
 * and one group of output columns, of products also one part of the points.
 *   V [points][block][ldv]            the block's transformed inputs: in its scratch, or, where they
 *                                     are shared, one such V for each block
 *   M [points][panels][block][panel columns]  products, before they are transformed back: of one panel, in
 *                                     scratch, or, where points are divided, one such M for each task, behind all V
 *
 * with a few words between points, so that the points of a tile do not share cache sets.
 */
typedef struct lw_wino {
    bool plain;                 /* filters are packed as they are */
    int numbers;                /* of a packed filter: points, or 9 */
    int kind;                   /* see above */
    int taps;                   /* of a filter */
    int tile_y, tile_x;         /* outputs of a tile */
    int side_y, side_x, points; /* inputs, side_y * side_x */
    ptrdiff_t in_H, in_W, H, W; /* of input, of output */
    ptrdiff_t pad_y, pad_x;     /* lines of zeros before the input */
    ptrdiff_t K, N;             /* channels summed over, channels produced */
    ptrdiff_t steps;            /* words of K */
    ptrdiff_t ld_in, ld_out;    /* numbers between pixels */
    ptrdiff_t tiles_y, tiles_x;
    int64_t tiles, blocks; /* of all images; block i has the tiles from tiles * i / blocks on */
    ptrdiff_t block;       /* tiles of the largest block */
    ptrdiff_t cols, col_groups;
    ptrdiff_t ldv, v_step, m_step; /* words */
    bool shared;                   /* V */
    ptrdiff_t pieces;              /* tasks that make a shared V */
    bool by_groups;                /* order of tasks, see lw_wino_task */
    ptrdiff_t parts;               /* of the points of a task; 1: it multiplies them itself */
} lw_wino;
/* Tasks that keep 64 threads busy. */
enum { LW_WINO_TASKS = 64 };
/* Into how many parts the points of each of some tasks are divided, where it reads so many words of weights, so that they become
 * that many: none reads less than is worth a task. */
ptrdiff_t lw_wino_parts(int64_t tasks, int64_t words);
lw_wino lw_wino_of(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile);

/*
 * The block and the group of columns of a task. By groups, those of a group follow one another: where weights are more than V,
 * so that each comes from memory once (at batch 1 these are most of what is read), and where points are divided, whose M
 * lie in this order. Else tasks go block by block, in the order in which V is made: who takes the first, or the last, half of
 * both finds its part of V where it left it, which counts where threads do not share their third cache.
 */
typedef struct lw_wino_task {
    int64_t block, group;
} lw_wino_task;
static inline lw_wino_task lw_wino_task_of(int64_t task, int64_t blocks, int64_t col_groups,
                                           bool by_groups)
{
    const int64_t part = lw_tiles_part(task, blocks, col_groups, by_groups);
    return (lw_wino_task){part / col_groups, part % col_groups};
}

/* Words before the sums of the filters, of bytes. */
int64_t lw_wino_sums_at(const lw_wino *z);

/* The first point of a part. */
static inline ptrdiff_t lw_wino_point(const lw_wino *z, ptrdiff_t part)
{
    return z->points * part / z->parts;
}

/* Words before the shared M of a task. */
static inline int64_t lw_wino_products_at(const lw_wino *z, int64_t task)
{
    return z->points * (z->blocks * z->v_step + task * z->m_step);
}

/* Tiles [t0, t0 + tiles) of a block. */
static inline int64_t lw_wino_first(const lw_wino *z, int64_t block)
{
    return z->tiles * block / z->blocks;
}

#endif
