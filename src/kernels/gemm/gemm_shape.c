/* SPDX-License-Identifier: Apache-2.0 */
/* How a matrix product is cut into tasks: pure functions of the shape, the type and the
 * level. */
#include "kernels/gemm/gemm_shape.h"

#include <math.h>

/* Work per task: between 5 and 150 us of one core, about 1/32 of a weight gradient, 1/64 of a product. */
enum {
    TASK_FLOPS_MIN = 1500000,
    TASK_FLOPS_MAX = 16000000,
    TASKS_WANTED = 32,
    EVEN_TASKS_WANTED = 64
};

double lw_gemm_task_flops(double total)
{
    return LW_MIN(LW_MAX(total / TASKS_WANTED, (double)TASK_FLOPS_MIN), (double)TASK_FLOPS_MAX);
}

/* A half, a quarter .. of the whole: 64 tasks of at least so much, more where they were larger than `most`. */
static double halved(double total, double least, double most)
{
    double task = total;
    for (int64_t tasks = 1; task / 2 >= least && (tasks < EVEN_TASKS_WANTED || task > most);
         tasks *= 2)
        task /= 2;
    return task;
}

double lw_gemm_even_flops(double total, double least)
{
    return halved(total, least, TASK_FLOPS_MAX);
}

/* Groups of equally many panels where twice as many groups as it takes come out even. */
static ptrdiff_t group_cols(ptrdiff_t N, ptrdiff_t depth, ptrdiff_t group)
{
    ptrdiff_t panels = LW_CEIL_DIV(N, LW_GEMM_COLS);
    ptrdiff_t most = group / depth / LW_GEMM_COLS;
    ptrdiff_t fewest = LW_CEIL_DIV(panels, most);
    for (ptrdiff_t groups = fewest; groups < 2 * fewest; groups++)
        if (panels % groups == 0)
            return panels / groups * LW_GEMM_COLS;
    return most * LW_GEMM_COLS;
}

ptrdiff_t lw_gemm_group_cols(ptrdiff_t N, ptrdiff_t K)
{
    return group_cols(N, LW_MIN(K, LW_GEMM_DEPTH), LW_GEMM_GROUP_FLOATS);
}

ptrdiff_t lw_gemm_wide_cols(ptrdiff_t N, ptrdiff_t words)
{
    return group_cols(N, LW_MIN(words, LW_WIDE_DEPTH), LW_WIDE_GROUP);
}

double lw_gemm_wide_ops(lw_num num, double total)
{
    const double parts = num == LW_NUM_BF16X3 ? 6 : 1;
    const double least = LW_MIN(LW_MAX(total * parts / 4, (double)LW_WIDE_OPS_MIN),
                                (double)LW_WIDE_OPS_MOST) /
                         parts;
    return halved(total, least, total);
}

lw_gemm_split lw_gemm_split_of(ptrdiff_t M, ptrdiff_t N, ptrdiff_t K)
{
    double busy = (double)LW_MAX(M, LW_GEMM_LEAST_ROWS);
    double task = lw_gemm_even_flops(2.0 * busy * (double)N * (double)LW_MAX(K, 8), LW_TASK_FLOPS);
    lw_gemm_split s = {.cols = lw_gemm_group_cols(N, K)};
    double per_row = 2.0 * (double)LW_MIN(s.cols, N) * (double)LW_MAX(K, 8);
    /* Few rows and many columns: narrower column groups instead. */
    while (M <= 64 && s.cols > LW_GEMM_COLS && busy * per_row > task) {
        s.cols = LW_ROUND_UP(s.cols / 2, LW_GEMM_COLS);
        per_row /= 2;
    }
    double rows = task / per_row;
    s.rows = rows >= (double)M ? M : LW_ROUND_UP((ptrdiff_t)rows, LW_GEMM_ROWS);
    s.rows = LW_MAX(LW_MIN(s.rows, M), 1);
    s.row_tasks = LW_CEIL_DIV(M, s.rows);
    s.col_tasks = LW_CEIL_DIV(N, s.cols);
    return s;
}

lw_gemm_split lw_gemm_wide_split(lw_num num, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K)
{
    const lw_gemm_split most = lw_gemm_split_of(M, N, K);
    if (M <= LW_WIDE_ROWS) /* weights are read once: by as many as like */
        return most;
    lw_gemm_split s = {.cols = lw_gemm_wide_cols(N, lw_num_words(num, K))};
    double task = lw_gemm_wide_ops(num, 2.0 * (double)M * (double)N * (double)K);
    double rows = task / (2.0 * (double)LW_MIN(s.cols, N) * (double)LW_MAX(K, 8));
    s.rows = rows >= (double)M ? M : LW_ROUND_UP((ptrdiff_t)ceil(rows), LW_WIDE_ROWS);
    s.rows = LW_MIN(s.rows, M);
    s.row_tasks = LW_CEIL_DIV(M, s.rows);
    s.col_tasks = LW_CEIL_DIV(N, s.cols);
    return s.row_tasks * s.col_tasks <= most.row_tasks * most.col_tasks ? s : most;
}

int64_t lw_gemm_packed_floats(ptrdiff_t N, ptrdiff_t K)
{
    return (int64_t)LW_ROUND_UP(N, 16) * K;
}

size_t lw_s8_weight_bytes(ptrdiff_t N, ptrdiff_t K)
{
    return (size_t)(LW_ROUND_UP(N, LW_S8_SUMS_STEP) * K);
}

size_t lw_gemm_packed_bytes(lw_num num, ptrdiff_t N, ptrdiff_t K)
{
    if (num == LW_NUM_S8)
        return lw_s8_weight_bytes(N, K) + lw_s8_sums_bytes(N, 1);
    return (size_t)lw_gemm_packed_floats(N, lw_num_words(num, K)) * sizeof(float);
}

size_t lw_s8_sums_bytes(ptrdiff_t N, ptrdiff_t taps)
{
    return (size_t)(LW_ROUND_UP(N, LW_S8_SUMS_STEP) * taps) * sizeof(int32_t);
}

ptrdiff_t lw_gemm_pack_cols(ptrdiff_t N, ptrdiff_t K)
{
    ptrdiff_t cols = LW_ROUND_UP(LW_CEIL_DIV(131072, LW_MAX(K, 1)), LW_GEMM_COLS);
    return LW_MIN(cols, LW_ROUND_UP(N, LW_GEMM_COLS));
}

int64_t lw_gemm_pack_tasks(ptrdiff_t N, ptrdiff_t K)
{
    return LW_CEIL_DIV(N, lw_gemm_pack_cols(N, K));
}

int64_t lw_gemm_tasks(lw_isa isa, lw_num num, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K)
{
    lw_gemm_split s = lw_tiles_are_wide(isa, num, K) ? lw_gemm_wide_split(num, M, N, K)
                                                     : lw_gemm_split_of(M, N, K);
    return (int64_t)s.row_tasks * s.col_tasks;
}
