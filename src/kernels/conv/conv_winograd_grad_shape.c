/* SPDX-License-Identifier: Apache-2.0 */
/* How a weight gradient over Winograd's tiles is cut into tasks: pure functions of the shape. */
#include "kernels/conv/conv_winograd_grad.h"

enum {
    RANGE = 64,       /* filters, and channels, of a task: its matrices are 576 KiB */
    FILTERS = 12,     /* shorter ranges of filters are a multiple, two or one and a half tiles */
    CHANNELS = 16,    /* of channels: a cache line */
    GROUP_TILES = 64, /* fewest tiles of a group: a task makes taps once for so many */
    TASKS_WANTED = 64,
    CHUNK = 32, /* tiles at a time: the more, the less often its matrices come and go */
    APART = 16  /* words between points */
};

lw_wino_grad lw_wino_grad_of(const lw_conv_shape *s)
{
    lw_wino_grad z = {.tiles_x = LW_CEIL_DIV(s->OW, LW_WINO_GRAD_TILE)};
    z.per_image = (int64_t)LW_CEIL_DIV(s->OH, LW_WINO_GRAD_TILE) * z.tiles_x;
    const int64_t o_tasks = LW_CEIL_DIV(s->O, RANGE), c_tasks = LW_CEIL_DIV(s->C, RANGE);
    const int64_t most = LW_CEIL_DIV((int64_t)TASKS_WANTED, o_tasks * c_tasks);
    z.split = lw_wgrad_groups(s->B, LW_MIN(most, s->B * z.per_image / GROUP_TILES),
                              (int64_t)s->O * 9 * s->C, s->O);
    z.split.o_step = (int32_t)LW_ROUND_UP(LW_CEIL_DIV(s->O, o_tasks), FILTERS);
    z.split.o_step = (int32_t)LW_MIN((int64_t)z.split.o_step, (int64_t)RANGE);
    z.split.o_tasks = (int32_t)LW_CEIL_DIV(s->O, z.split.o_step);
    z.c_step = LW_ROUND_UP(LW_CEIL_DIV(s->C, c_tasks), CHANNELS);
    z.split.out_tasks = (int64_t)z.split.o_tasks * LW_CEIL_DIV(s->C, z.c_step);
    z.ldu = LW_ROUND_UP(z.split.o_step, 16);
    z.ldv = LW_ROUND_UP(z.c_step, 16);
    z.chunk = (ptrdiff_t)LW_MIN(z.split.images * z.per_image, (int64_t)CHUNK);
    z.u_step = z.chunk * z.ldu + APART;
    z.v_step = z.chunk * z.ldv + APART;
    z.m_step = z.split.o_step * z.ldv + APART;
    return z;
}

int64_t lw_winograd_weight_grad_tasks(const lw_conv_shape *s)
{
    lw_wino_grad z = lw_wino_grad_of(s);
    return z.split.groups * z.split.out_tasks;
}

int64_t lw_winograd_weight_grad_partial_floats(const lw_conv_shape *s)
{
    lw_wino_grad z = lw_wino_grad_of(s);
    return z.split.groups > 1 ? z.split.groups * z.split.floats : 0;
}

int64_t lw_winograd_weight_grad_combine_tasks(const lw_conv_shape *s)
{
    return lw_wino_grad_of(s).split.combine_tasks;
}

int64_t lw_winograd_weight_grad_scratch_words(const lw_conv_shape *s)
{
    lw_wino_grad z = lw_wino_grad_of(s);
    return (int64_t)(z.u_step + z.v_step + z.m_step) * (LW_WINO_GRAD_TILE + 2) *
           (LW_WINO_GRAD_TILE + 2);
}
