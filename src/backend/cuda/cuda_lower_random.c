/* SPDX-License-Identifier: Apache-2.0 */
/* Random draws, dropout and the reverse step of a diffusion process on GPUs. */
#include "backend/cuda/cuda_private.h"

#include <math.h>

typedef struct random_step {
    cuda_step step;
    lw_cuda_random a;
    int ids; /* the input with the rows' ids */
} random_step;

enum { KIND_DROPOUT = 3 };
_Static_assert((int)LW_RANDOM_BELOW < (int)KIND_DROPOUT, "kinds");

static void random_task(const lw_task *t)
{
    const random_step *s = t->arg;
    lw_cuda_random a = s->a;
    a.y = t->out[0];
    a.x = a.kind == KIND_DROPOUT ? t->in[0] : NULL;
    a.ids = t->in[s->ids];
    a.tick = lw_cuda_tick_at(s->step.d);
    lw_cuda_launch(s->step.d, LW_CUDA_random,
                   lw_cuda_blocks(LW_CUDA_random, a.rows * LW_CEIL_DIV(a.n, 4)), 1, &a);
}

int lw_cuda_lower_random(cuda_lower *c)
{
    const lw_attr_random *at = c->n->attr;
    random_step *s = lw_cuda_arg(c, sizeof *s, random_task);
    if (!s)
        return LW_ENOMEM;
    s->a.rows = at->type.dim[0];
    s->a.n = lw_type_count(at->type) / s->a.rows;
    s->a.kind = at->kind;
    s->a.below = (uint32_t)at->below;
    s->a.stream = at->stream;
    return 0;
}

int lw_cuda_lower_dropout(cuda_lower *c)
{
    const lw_attr_dropout *at = c->n->attr;
    lw_type x = cuda_in(c, 0);
    LW_TRY(lw_cuda_f32(c, 1));
    random_step *s = lw_cuda_arg(c, sizeof *s, random_task);
    if (!s)
        return LW_ENOMEM;
    s->a.rows = x.dim[0];
    s->a.n = lw_type_count(x) / s->a.rows;
    s->a.kind = KIND_DROPOUT;
    s->a.limit = (uint32_t)ceil((double)at->p * 0x1p24) << 8;
    s->a.scale = 1.0f / (1.0f - at->p);
    s->a.stream = at->stream;
    s->ids = 1;
    return 0;
}

typedef struct reverse_step {
    cuda_step step;
    lw_cuda_reverse a;
} reverse_step;

static void reverse_task(const lw_task *t)
{
    const reverse_step *s = t->arg;
    lw_cuda_reverse a = s->a;
    a.y = t->out[0];
    a.x = t->in[0];
    a.said = t->in[1];
    a.numbers = t->in[2];
    a.noise = t->in[3];
    lw_cuda_launch(s->step.d, LW_CUDA_reverse, lw_cuda_blocks(LW_CUDA_reverse, a.n), 1, &a);
}

int lw_cuda_lower_reverse_step(cuda_lower *c)
{
    const lw_attr_reverse *at = c->n->attr;
    LW_TRY(lw_cuda_f32(c, 2));
    reverse_step *s = lw_cuda_arg(c, sizeof *s, reverse_task);
    if (!s)
        return LW_ENOMEM;
    s->a.n = lw_type_count(cuda_out(c, 0));
    s->a.prediction = at->prediction;
    s->a.keep_eps = at->keep_eps;
    return 0;
}
