/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the rescaling kernels: a pass as cells, blocks of cells and columns.
 *
 * A line is cut into tiles of four pixels of the smaller picture; one that grows begins with an edge of one pixel:
 *
 *   grows     input   |0 . . . .|. . . .      a tile reads 5 and makes 8, from the second on; the edge
 *             output   e|. . . . . . . .|.    reads the first and makes the first
 *   shrinks   input   |. . . . . . . . .      a tile reads 9 and makes 4
 *             output  |. . . .|. . . .
 *
 * A tile of a line has nine points, an edge one; but filters have six numbers, since four of the points are multiplied by the
 * same one, and the edge by that of the fifth:
 *
 *   number of a filter       0  1  2  3   4               5
 *   points of c tiles        c  c  c  c   c and the edge  4 c     in the order of the line
 *
 * A cell is a tile, or the edge, of lines and columns: of 81, 9 or 1 points. A block is a rectangle of cells of an image, or all
 * those of some images; its points are rows, those of one of the 36 numbers side by side, so that one product makes them:
 *
 *   V [row][ldv]             transformed inputs
 *   M [panel][row][columns]  products, before they are transformed back: of some panels in scratch, or, where numbers are
 *                            divided, one such M for each task, behind all V
 */
#ifndef LW_KERNELS_CONV_RESCALE_SHAPE_H
#define LW_KERNELS_CONV_RESCALE_SHAPE_H

#include "kernels/conv/conv_rescale.h"
#include "kernels/conv/conv_winograd_shape.h"

enum {
    LW_RESCALE_TILE = 4,                                   /* of the smaller picture, a line */
    LW_RESCALE_LINE = 9,                                   /* points of a tile of a line */
    LW_RESCALE_NUMBERS_LINE = 6,                           /* of a filter's line */
    LW_RESCALE_POINTS = LW_RESCALE_LINE * LW_RESCALE_LINE, /* of a cell, at most */
    LW_RESCALE_NUMBERS = LW_RESCALE_NUMBERS_LINE * LW_RESCALE_NUMBERS_LINE,
    /* Tiles of a block, at most: 16 rows of the rarest numbers. Blocks whose V the second cache holds have so few that weights are
     * read too often: of 4 tiles 10 to 37 % slower (256 to 512 channels, Zen 3), of 8 as fast or 5 % slower. */
    LW_RESCALE_BLOCK = 16
};

typedef struct lw_rescale {
    bool up;                     /* the picture grows */
    ptrdiff_t H, W;              /* of the smaller picture */
    ptrdiff_t in_H, in_W;        /* of the input */
    ptrdiff_t out_H, out_W;      /* of the output */
    ptrdiff_t pad_y, pad_x;      /* before the input of a picture that shrinks */
    ptrdiff_t K, N;              /* channels summed over, channels produced */
    ptrdiff_t ld_in, ld_out;     /* floats between pixels */
    ptrdiff_t tiles_y, tiles_x;  /* of an image */
    ptrdiff_t bands_y, bands_x;  /* blocks of an image; 1 where a block has several images */
    ptrdiff_t B, images, groups; /* images in all, of a block at most, groups of them */
    int64_t blocks;
    ptrdiff_t rows;             /* of a block, at most */
    ptrdiff_t ldv;              /* floats between rows of V */
    ptrdiff_t cols, col_groups; /* columns of a task */
    bool shared;                /* V: made by tasks of its own */
    ptrdiff_t pieces;           /* tasks that make a block's shared V */
    bool by_groups;             /* order of tasks, see lw_wino_task */
    ptrdiff_t parts;            /* of the numbers of a task; 1: it multiplies them itself */
} lw_rescale;
lw_rescale lw_rescale_of(const lw_conv_shape *s, lw_conv_pass pass);

/* A part of a line: tiles [first, first + tiles), and the edge before them or not. */
typedef struct lw_rescale_band {
    ptrdiff_t first, tiles, edge;
} lw_rescale_band;
typedef struct lw_rescale_block {
    ptrdiff_t image, images;
    lw_rescale_band y, x;
    ptrdiff_t row[LW_RESCALE_NUMBERS + 1]; /* of the first point of each number */
} lw_rescale_block;
lw_rescale_block lw_rescale_block_of(const lw_rescale *z, int64_t block);

/* The first number of a part: of about as many rows, or weights, each. */
ptrdiff_t lw_rescale_number(const lw_rescale *z, const lw_rescale_block *b, ptrdiff_t part);

/* Floats before the shared M of a task, where numbers are divided: behind all V. */
static inline int64_t lw_rescale_products_at(const lw_rescale *z, int64_t task)
{
    return z->rows * (z->blocks * z->ldv + task * LW_GEMM_COLS);
}

/* The number that point i of a tile of a line, or the point of the edge, is multiplied by. */
static inline int lw_rescale_number_of(ptrdiff_t i, bool edge)
{
    return edge ? 4 : (int)LW_MIN(i, 5);
}

/* Cells of a block: image by image, line by line, edges first. */
static inline ptrdiff_t lw_rescale_cells(const lw_rescale_block *b)
{
    return b->images * (b->y.edge + b->y.tiles) * (b->x.edge + b->x.tiles);
}
typedef struct lw_rescale_cell {
    ptrdiff_t image; /* of all */
    bool edge_y, edge_x;
    ptrdiff_t y, x;                 /* of its first pixel, of the smaller picture */
    int32_t row[LW_RESCALE_POINTS]; /* of its points, line by line */
} lw_rescale_cell;
void lw_rescale_cell_of(lw_rescale_cell *c, const lw_rescale_block *b, ptrdiff_t cell);

/* The first output of a tile of a line, or of the edge. */
static inline ptrdiff_t lw_rescale_first_out(const lw_rescale *z, ptrdiff_t first, bool edge)
{
    return !z->up ? first : edge ? 0 : 2 * first + 1;
}

#endif
