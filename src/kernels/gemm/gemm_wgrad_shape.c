/* SPDX-License-Identifier: Apache-2.0 */
/* How a weight gradient is cut: groups of images with partial sums of their own, times output
 * ranges. */
#include "kernels/gemm/gemm_shape.h"

enum {
    GROUP_PIXELS = 2048, /* fewest pixels per group: keeps the traffic of partial sums below 4 % */
    GROUPS_MAX = 32,
    PARTIAL_FLOATS_MAX = 4 << 20, /* all groups together: 16 MiB */
    O_STEP = 24,                  /* output channels of a task are a multiple */
    COMBINE_FLOATS = 1 << 16      /* floats read per combine task */
};

lw_wgrad_split lw_wgrad_groups(int64_t images, int64_t most, int64_t weights, int64_t O)
{
    lw_wgrad_split s = {.floats = LW_ROUND_UP(weights + O, 16)};
    int64_t groups = LW_MIN(most, LW_MIN(GROUPS_MAX, PARTIAL_FLOATS_MAX / s.floats));
    s.images = LW_CEIL_DIV(images, LW_MAX(groups, 1));
    s.groups = LW_CEIL_DIV(images, s.images);
    if (s.groups > 1) {
        s.combine_step = LW_MAX(LW_ROUND_UP(COMBINE_FLOATS / s.groups, 16), 1024);
        s.combine_tasks = LW_CEIL_DIV(weights + O, s.combine_step);
    }
    return s;
}

lw_wgrad_split lw_wgrad_split_of(int64_t images, int64_t pixels, int64_t O, int64_t KH, int64_t KWC)
{
    int64_t weights = O * KH * KWC;
    double flops = 2.0 * (double)images * (double)pixels * (double)weights;
    int64_t wanted = (int64_t)(flops / lw_gemm_task_flops(flops)) + 1;
    lw_wgrad_split s = lw_wgrad_groups(images, LW_MIN(images * pixels / GROUP_PIXELS, wanted),
                                       weights, O);
    int64_t out = LW_CEIL_DIV(wanted, s.groups);
    int64_t o_most = LW_CEIL_DIV(O, O_STEP);
    s.ky_tasks = (int32_t)(out >= KH ? KH : 1);
    int64_t o_tasks = LW_MIN(LW_CEIL_DIV(out, s.ky_tasks), o_most);
    s.o_step = (int32_t)LW_ROUND_UP(LW_CEIL_DIV(O, o_tasks), O_STEP);
    s.o_tasks = (int32_t)LW_CEIL_DIV(O, s.o_step);
    s.out_tasks = (int64_t)s.ky_tasks * s.o_tasks;
    return s;
}

/* A matrix product has no images: blocks of rows play their part. */
int64_t lw_gemm_weight_grad_tasks(ptrdiff_t M, ptrdiff_t N, ptrdiff_t K)
{
    lw_wgrad_split s = lw_wgrad_split_of(M, 1, N, 1, K);
    return s.groups * s.out_tasks;
}

int64_t lw_gemm_weight_grad_partial_floats(ptrdiff_t M, ptrdiff_t N, ptrdiff_t K)
{
    lw_wgrad_split s = lw_wgrad_split_of(M, 1, N, 1, K);
    return s.groups > 1 ? s.groups * s.floats : 0;
}

int64_t lw_gemm_weight_grad_combine_tasks(ptrdiff_t M, ptrdiff_t N, ptrdiff_t K)
{
    return lw_wgrad_split_of(M, 1, N, 1, K).combine_tasks;
}
