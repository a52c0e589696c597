/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the gemm and conv families: block sizes and the cutting of work into tasks. */
#ifndef LW_KERNELS_GEMM_SHAPE_H
#define LW_KERNELS_GEMM_SHAPE_H

#include "kernels/gemm/gemm.h"

enum {
    LW_GEMM_COLS = 32,       /* columns of a task are a multiple: the widest panel of any ISA */
    LW_GEMM_ROWS = 8,        /* rows of a task are a multiple */
    LW_TASK_FLOPS = 800000,  /* of a task, at least: 5 to 10 us */
    LW_GEMM_LEAST_ROWS = 32, /* fewer count as this many: reading the weights decides */
    LW_GEMM_DEPTH = 3072, /* k-steps before partial sums go through memory (a panel stays in L2) */
    LW_GEMM_GROUP_FLOATS = 98304 /* packed floats of one column group: 384 KiB of L2 */
};
/* The same where products take so little time that bringing operands and tasks decides (amx). */
enum {
    LW_WIDE_ROWS = 32,
    LW_WIDE_DEPTH = 2304,
    LW_WIDE_GROUP = 294912,      /* words: 1.1 MiB, of the 2 MiB that such machines have */
    LW_WIDE_OPS_MOST = 16000000, /* of a task, where a product has four such */
    LW_WIDE_OPS_MIN = 8000000,
    LW_WIDE_CHUNK = 16, /* words of a row that a tile register has */
    LW_WIDE_LEAST = 8   /* words: of less, most of a tile register would be zeros */
};
/* Do products of rows of so many numbers (of a tap) take tile registers? By shape alone: sums of the two kinds differ in
 * their last bits. */
static inline bool lw_tiles_are_wide(lw_isa isa, lw_num num, ptrdiff_t depth)
{
    return isa >= LW_ISA_AMX && num != LW_NUM_F32 &&
           (num == LW_NUM_BF16X3 || depth / lw_num_per_word(num) >= LW_WIDE_LEAST);
}

/*
 * Packed s8 weights of `taps` taps (1 for a matrix): the panels, lw_s8_weight_bytes(N, taps *
 * depth), then the column sums of every tap, int32 [taps][N rounded up to LW_S8_SUMS_STEP].
 */
enum { LW_S8_SUMS_STEP = 16 };
size_t lw_s8_weight_bytes(ptrdiff_t N, ptrdiff_t K);
size_t lw_s8_sums_bytes(ptrdiff_t N, ptrdiff_t taps);
static inline const int32_t *lw_s8_sums(const void *packed, ptrdiff_t N, ptrdiff_t K)
{
    return (const int32_t *)(const void *)((const char *)packed + lw_s8_weight_bytes(N, K));
}

/* Work of one task, given the work of the whole, in floating-point operations. */
double lw_gemm_task_flops(double total);
/* The same of a power of two of tasks, so that the last turn of 8, 16, 32 or 64 threads is a full one, none of less work
 * than `least`. Not for weight gradients, whose sums would be cut otherwise then: other bits. */
double lw_gemm_even_flops(double total, double least);
/* Columns whose packed panels stay in L2 while rows stream past, a multiple of LW_GEMM_COLS. */
ptrdiff_t lw_gemm_group_cols(ptrdiff_t N, ptrdiff_t K);
/* Columns packed by one task of pack. */
ptrdiff_t lw_gemm_pack_cols(ptrdiff_t N, ptrdiff_t K);

typedef struct lw_gemm_split {
    ptrdiff_t rows, cols;           /* of one task (the last may be smaller) */
    ptrdiff_t row_tasks, col_tasks; /* which of them a task is: lw_tiles_part */
} lw_gemm_split;
lw_gemm_split lw_gemm_split_of(ptrdiff_t M, ptrdiff_t N, ptrdiff_t K);

/* Larger parts, no more of them than tasks of lw_gemm_split_of. */
lw_gemm_split lw_gemm_wide_split(lw_num num, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K);
ptrdiff_t lw_gemm_wide_cols(ptrdiff_t N, ptrdiff_t words);
double lw_gemm_wide_ops(lw_num num, double total);

/* A weight gradient's tasks: row groups (each with its own partial sums when there are several)
 * times output groups. Task = group * out_tasks + out_task. */
typedef struct lw_wgrad_split {
    int64_t groups;            /* image groups, 1 = sums go straight to dw */
    int64_t images;            /* images (or matrix rows) per group, the last may be smaller */
    int64_t out_tasks;         /* ranges of filter rows: ky_tasks * o_tasks */
    int32_t ky_tasks, o_tasks; /* out_task = ky_task * o_tasks + o_task */
    int32_t o_step;            /* output channels per o_task */
    int64_t floats;            /* of one partial: O * KH * KW * C + O, rounded up to 16 */
    int64_t combine_tasks, combine_step; /* floats of dw and db per combine task */
} lw_wgrad_split;
/* Groups of images alone: at most `most`, and no more than partial sums of weights + O numbers are kept for. */
lw_wgrad_split lw_wgrad_groups(int64_t images, int64_t most, int64_t weights, int64_t O);
/* `images` of `pixels` each; O outputs; rows KH of depth KWC. */
lw_wgrad_split lw_wgrad_split_of(int64_t images, int64_t pixels, int64_t O, int64_t KH,
                                 int64_t KWC);

/* The part of a product that a task is, of row parts times column groups: by groups those of a group follow one another, whose
 * weights stay in L2, else those of a row part, which read the same rows. */
static inline int64_t lw_tiles_part(int64_t task, int64_t rows, int64_t cols, bool by_groups)
{
    return by_groups ? task % rows * cols + task / rows : task;
}

#endif
