/* SPDX-License-Identifier: Apache-2.0 */
/* The drift field on GPUs: the workspace, and one launch for each pass. */
#include "backend/cuda/cuda_private.h"

typedef struct drift_step {
    cuda_step step;
    lw_cuda_drift a;
    size_t row, column, v, part, total; /* byte offsets in the workspace; distances come first */
} drift_step;

static void launch_all(cuda *d, const lw_cuda_drift *a)
{
    int64_t groups = (int64_t)a->g * a->t, m = (int64_t)a->n + a->nu + a->np, k = a->k;
    lw_cuda_launch(d, LW_CUDA_drift_distances, LW_CEIL_DIV(a->n, 32) * LW_CEIL_DIV(m, 32), groups,
                   a);
    lw_cuda_launch(d, LW_CUDA_drift_scale_rows, a->rows, 1, a);
    lw_cuda_launch(d, LW_CUDA_drift_scale, 1, 1, a);
    lw_cuda_launch(d, LW_CUDA_drift_rows, a->rows, k, a);
    lw_cuda_launch(d, LW_CUDA_drift_columns, lw_cuda_blocks(LW_CUDA_drift_columns, groups * m), k,
                   a);
    lw_cuda_launch(d, LW_CUDA_drift_gather, LW_CEIL_DIV(a->n, 16) * LW_CEIL_DIV(a->c, 64),
                   groups * k, a);
    lw_cuda_launch(d, LW_CUDA_drift_moments, a->rows, k * k, a);
    lw_cuda_launch(d, LW_CUDA_drift_finish, 1, 1, a);
    if (a->dx || a->f)
        lw_cuda_launch(d, LW_CUDA_drift_output,
                       lw_cuda_blocks(LW_CUDA_drift_output, a->rows * a->c), 1, a);
}

static void drift_task(const lw_task *t)
{
    const drift_step *s = t->arg;
    lw_cuda_drift a = s->a;
    char *work = t->work;
    a.x = t->in[0];
    a.pos = t->in[1];
    a.unc = t->in[2];
    a.w_u = t->in[3];
    a.loss = t->out[0];
    a.dx = t->out[1];
    a.report = t->out[2];
    a.f = t->out[3];
    a.d = (float *)(void *)work;
    a.row = (float *)(void *)(work + s->row);
    a.column = (float *)(void *)(work + s->column);
    a.v = (float *)(void *)(work + s->v);
    a.part = (double *)(void *)(work + s->part);
    a.total = (double *)(void *)(work + s->total);
    launch_all(s->step.d, &a);
}

static size_t take(size_t *at, int64_t n, size_t size)
{
    size_t mine = *at;
    *at += LW_ROUND_UP((size_t)n * size, 256);
    return mine;
}

int lw_cuda_lower_drift_field(cuda_lower *c)
{
    const lw_attr_drift *at = c->n->attr;
    LW_TRY(lw_cuda_f32(c, -1));
    int64_t groups = (int64_t)at->groups * at->slots, m = (int64_t)at->n + at->nu + at->np;
    if (groups * at->n_tau > 65535)
        return lw_cuda_lacks(c, " of more than 65,535 groups and temperatures");
    if (at->door)
        return lw_cuda_lacks(c, " of some of the groups");
    if (c->n->n_in > 5)
        return lw_cuda_lacks(c, " with temperatures that change");
    if (at->own_scale)
        return lw_cuda_lacks(c, " with a scale of each slot");
    if (at->products == LW_DRIFT_BF16)
        return lw_cuda_lacks(c, " with products of bf16");
    drift_step *s = lw_cuda_arg(c, sizeof *s, drift_task);
    if (!s)
        return LW_ENOMEM;
    s->a = (lw_cuda_drift){.rows = groups * at->n,
                           .g = at->groups,
                           .n = at->n,
                           .np = at->np,
                           .nu = at->nu,
                           .t = at->slots,
                           .c = at->c,
                           .k = at->n_tau,
                           .rows_only = !at->normalize_over_x,
                           .variant = at->variant};
    for (int i = 0; i < at->n_tau; i++)
        s->a.tau[i] = at->tau[i];
    size_t *end = &c->out->work_bytes;
    int64_t k = at->n_tau, rows = s->a.rows;
    take(end, rows * m, sizeof(float));
    s->row = take(end, k * rows, sizeof(float));
    s->column = take(end, k * groups * m, sizeof(float));
    s->v = take(end, k * rows * at->c, sizeof(float));
    s->part = take(end, k * k * rows, sizeof(double));
    s->total = take(end, 1 + k, sizeof(double));
    return 0;
}
