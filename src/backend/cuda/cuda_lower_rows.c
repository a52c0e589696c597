/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embeddings, distances of all pairs of rows, statistics of feature maps on
 * GPUs. */
#include "backend/cuda/cuda_private.h"

typedef struct rope_step {
    cuda_step step;
    lw_cuda_rope a;
} rope_step;

static void rope_task(const lw_task *t)
{
    const rope_step *s = t->arg;
    lw_cuda_rope a = s->a;
    a.y = t->out[0];
    a.x = t->in[0];
    a.table = t->in[1];
    lw_cuda_launch(s->step.d, LW_CUDA_rope, lw_cuda_blocks(LW_CUDA_rope, a.rows * (a.c / 2)), 1,
                   &a);
}

int lw_cuda_lower_rope(cuda_lower *c)
{
    lw_type x = cuda_in(c, 0), table = cuda_in(c, 1);
    LW_TRY(lw_cuda_f32(c, -1));
    rope_step *s = lw_cuda_arg(c, sizeof *s, rope_task);
    if (!s)
        return LW_ENOMEM;
    s->a = (lw_cuda_rope){.rows = (int64_t)x.dim[0] * x.dim[1],
                          .tokens = table.dim[0],
                          .c = x.dim[2],
                          .d = table.dim[2],
                          .pieces = table.dim[1],
                          .sign = ((const lw_attr_rope *)c->n->attr)->back ? -1.0f : 1.0f};
    return 0;
}

typedef struct pairs_step {
    cuda_step step;
    lw_cuda_pairs a;
} pairs_step;

static void pairs_task(const lw_task *t)
{
    const pairs_step *s = t->arg;
    lw_cuda_pairs a = s->a;
    a.d = t->out[0];
    a.x = t->in[0];
    a.y = t->in[1];
    lw_cuda_launch(s->step.d, LW_CUDA_pair_distance,
                   lw_cuda_blocks(LW_CUDA_pair_distance, a.m * a.n), 1, &a);
}

int lw_cuda_lower_pair_distance(cuda_lower *c)
{
    LW_TRY(lw_cuda_f32(c, -1));
    pairs_step *s = lw_cuda_arg(c, sizeof *s, pairs_task);
    if (!s)
        return LW_ENOMEM;
    s->a = (lw_cuda_pairs){.m = cuda_in(c, 0).dim[0],
                           .n = cuda_in(c, 1).dim[0],
                           .c = cuda_in(c, 0).dim[1],
                           .distance = ((const lw_attr_pairs *)c->n->attr)->distance};
    return 0;
}

typedef struct stats_step {
    cuda_step step;
    lw_cuda_stats a;
    int64_t batch;
} stats_step;

/* Over all, over patches of 2 x 2, of 4 x 4: what anybody reads of these. */
static void stats_task(const lw_task *t)
{
    const stats_step *s = t->arg;
    for (int i = 0; i < LW_STATS; i += 2) {
        lw_cuda_stats a = s->a;
        a.x = t->in[0];
        a.mean = t->out[i];
        a.std = t->out[i + 1];
        a.ph = i ? i : a.h;
        a.pw = i ? i : a.w;
        a.n = s->batch * (a.h / a.ph) * (a.w / a.pw) * a.c;
        if (a.n && (a.mean || a.std))
            lw_cuda_launch(s->step.d, LW_CUDA_feature_stats,
                           lw_cuda_blocks(LW_CUDA_feature_stats, a.n), 1, &a);
    }
}

int lw_cuda_lower_feature_stats(cuda_lower *c)
{
    lw_type x = cuda_in(c, 0);
    LW_TRY(lw_cuda_f32(c, -1));
    stats_step *s = lw_cuda_arg(c, sizeof *s, stats_task);
    if (!s)
        return LW_ENOMEM;
    s->batch = x.dim[0];
    s->a = (lw_cuda_stats){.h = x.dim[1], .w = x.dim[2], .c = x.dim[3]};
    return 0;
}
