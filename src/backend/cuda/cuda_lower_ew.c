/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs and reductions on GPUs. */
#include "backend/cuda/cuda_private.h"

#include <string.h>

_Static_assert(sizeof(lw_cuda_ew_step) == sizeof(lw_ew_step), "instructions");
_Static_assert((int)LW_CUDA_EW_STEPS == (int)LW_EW_MAX_INSTR, "instructions");
_Static_assert((int)LW_CUDA_EW_IN == (int)LW_MAX_IN, "operands");

typedef struct ew_step {
    cuda_step step;
    lw_cuda_ew a;
} ew_step;

static void ew_task(const lw_task *t)
{
    const ew_step *s = t->arg;
    lw_cuda_ew a = s->a;
    a.y = t->out[0];
    for (int i = 0; i < a.n_in; i++)
        a.in[i] = t->in[i];
    lw_cuda_launch(s->step.d, LW_CUDA_ew, lw_cuda_blocks(LW_CUDA_ew, a.n), 1, &a);
}

int lw_cuda_lower_ew(cuda_lower *c)
{
    const lw_attr_ew *at = c->n->attr;
    const bool store = cuda_out(c, 0).dtype == LW_BF16;
    int64_t b;
    for (int i = 0; store && i < c->n->n_in; i++)
        if (cuda_in(c, i).dtype != LW_F32)
            return lw_cuda_lacks(c, " of other numbers than f32 to bf16");
    if (!store)
        LW_TRY(lw_cuda_f32(c, -1));
    ew_step *s = lw_cuda_arg(c, sizeof *s, ew_task);
    if (!s)
        return LW_ENOMEM;
    lw_ew_view(at->type, &b, &s->a.s, &s->a.c);
    s->a.n = b * s->a.s * s->a.c;
    s->a.n_in = c->n->n_in;
    s->a.n_step = at->n_step;
    s->a.store = store;
    memcpy(s->a.mode, at->mode, (size_t)c->n->n_in);
    memcpy(s->a.step, at->step, sizeof s->a.step);
    return 0;
}

typedef struct reduce_step {
    cuda_step step;
    lw_cuda_reduce a;
} reduce_step;

static void reduce_task(const lw_task *t)
{
    const reduce_step *s = t->arg;
    lw_cuda_reduce a = s->a;
    a.y = t->out[0];
    a.x = t->in[0];
    if (a.c == 1)
        lw_cuda_launch(s->step.d, LW_CUDA_reduce_rows, a.a, 1, &a);
    else
        lw_cuda_launch(s->step.d, LW_CUDA_reduce_columns,
                       lw_cuda_blocks(LW_CUDA_reduce_columns, a.a * a.c), 1, &a);
}

int lw_cuda_lower_reduce(cuda_lower *c)
{
    const lw_attr_reduce *at = c->n->attr;
    lw_type x = cuda_in(c, 0);
    LW_TRY(lw_cuda_f32(c, -1));
    reduce_step *s = lw_cuda_arg(c, sizeof *s, reduce_task);
    if (!s)
        return LW_ENOMEM;
    int64_t n = lw_type_count(x), last = lw_type_last(x);
    bool columns = at->over == LW_OVER_ROWS || at->over == LW_OVER_MIDDLE;
    s->a.c = columns ? last : 1;
    s->a.a = at->over == LW_OVER_LAST                                  ? n / last
             : at->over == LW_OVER_MIDDLE || at->over == LW_OVER_BATCH ? x.dim[0]
                                                                       : 1;
    s->a.r = n / s->a.a / s->a.c;
    s->a.scale = at->mean ? 1.0 / (double)s->a.r : 1.0;
    return 0;
}
