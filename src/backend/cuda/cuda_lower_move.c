/* SPDX-License-Identifier: Apache-2.0 */
/* Data movement on GPUs: concatenation, slices, padding, nearest up- and subsampling, patches;
 * pooling and embeddings. */
#include "backend/cuda/cuda_private.h"

#include <math.h>

/* ---- rows of words --------------------------------------------------------------------------- */

typedef struct copy_step {
    cuda_step step;
    int64_t rows, width[2], y_pitch, x_pitch, skip; /* words; skip: before what a slice reads */
    int64_t from[2]; /* of a concatenation: between rows of the operands */
    bool there[2];   /* that operand was written in place */
} copy_step;

static int64_t inner(lw_type t, int axis)
{
    int64_t n = 1;
    for (int i = axis; i < t.rank; i++)
        n *= t.dim[i];
    return n;
}

static bool by_four(const void *y, const void *x, int64_t words)
{
    return ((uintptr_t)y | (uintptr_t)x) % 16 == 0 && words % 4 == 0;
}

/* One part of each row, or two. */
static void copy_rows(const copy_step *s, lw_cuda_copy a, int parts)
{
    int64_t width = 0;
    a.rows = s->rows;
    a.y_pitch = s->y_pitch;
    a.wide = a.y_pitch % 4 == 0;
    for (int i = 0; i < parts; i++)
        a.wide &= by_four(a.part[i].y, a.part[i].x, a.part[i].width | a.part[i].x_pitch);
    for (int i = 0; i < parts; i++) {
        a.part[i].width /= a.wide ? 4 : 1;
        a.part[i].x_pitch /= a.wide ? 4 : 1;
        width = LW_MAX(width, a.part[i].width);
    }
    a.y_pitch /= a.wide ? 4 : 1;
    lw_cuda_launch(s->step.d, LW_CUDA_copy_rows, lw_cuda_blocks(LW_CUDA_copy_rows, a.rows * width),
                   parts, &a);
}

static void concat_task(const lw_task *t)
{
    const copy_step *s = t->arg;
    lw_cuda_copy a = {0};
    int parts = 0;
    for (int i = 0; i < 2; i++)
        if (!s->there[i])
            a.part[parts++] =
                (lw_cuda_copy_part){.y = (uint32_t *)t->out[0] + (i ? s->width[0] : 0),
                                    .x = t->in[i],
                                    .width = s->width[i],
                                    .x_pitch = s->from[i]};
    copy_rows(s, a, parts);
}

static void slice_task(const lw_task *t)
{
    const copy_step *s = t->arg;
    lw_cuda_copy a = {0};
    a.part[0] = (lw_cuda_copy_part){.y = t->out[0],
                                    .x = (const uint32_t *)t->in[0] + s->skip,
                                    .width = s->width[0],
                                    .x_pitch = s->x_pitch};
    copy_rows(s, a, 1);
}

static void at_step_task(const lw_task *t)
{
    const copy_step *s = t->arg;
    lw_cuda_copy a = {.tick = lw_cuda_tick_at(s->step.d), .last = s->x_pitch - 1};
    a.part[0] = (lw_cuda_copy_part){
        .y = t->out[0], .x = t->in[0], .width = s->width[0], .x_pitch = s->width[0]};
    copy_rows(s, a, 1);
}

int lw_cuda_lower_concat(cuda_lower *c)
{
    int axis = ((const lw_attr_axis *)c->n->attr)->axis;
    int64_t width[2] = {inner(cuda_in(c, 0), axis), inner(cuda_in(c, 1), axis)};
    const int64_t rows = lw_type_count(cuda_out(c, 0)) / (width[0] + width[1]);
    const bool words = cuda_out(c, 0).dtype == LW_BF16 && width[0] % 2 == 0 && width[1] % 2 == 0;
    if (!words)
        LW_TRY(lw_cuda_f32(c, -1));
    copy_step *s = lw_cuda_arg(c, sizeof *s, concat_task);
    if (!s)
        return LW_ENOMEM;
    for (int i = 0; i < 2; i++) {
        int64_t from = width[i] / lw_type_last(cuda_in(c, i)) * cuda_in_pitch(c, i);
        s->width[i] = words ? width[i] / 2 : width[i];
        s->from[i] = words ? from / 2 : from;
        s->there[i] = lw_val_view(c->g, c->n->in[i]).of.id == c->n->out[0].id;
    }
    c->out->phase[0].n_tasks = !s->there[0] || !s->there[1];
    s->y_pitch = s->width[0] + s->width[1];
    s->rows = rows;
    return 0;
}

int lw_cuda_lower_slice(cuda_lower *c)
{
    const lw_attr_axis *at = c->n->attr;
    if (lw_dtype_size(cuda_out(c, 0).dtype) != sizeof(uint32_t))
        return lw_cuda_lacks(c, " of other than 32-bit numbers");
    const bool stays = lw_val_ok(lw_val_view(c->g, c->n->out[0]).of);
    copy_step *s = lw_cuda_arg(c, sizeof *s, slice_task);
    if (!s)
        return LW_ENOMEM;
    c->out->phase[0].n_tasks = !stays;
    s->width[0] = s->y_pitch = inner(cuda_out(c, 0), at->axis);
    s->x_pitch = inner(cuda_in(c, 0), at->axis);
    s->skip = at->begin * (s->x_pitch / cuda_in(c, 0).dim[at->axis]);
    s->rows = lw_type_count(cuda_out(c, 0)) / s->width[0];
    if (at->axis == cuda_in(c, 0).rank - 1)
        s->x_pitch = cuda_in_pitch(c, 0);
    return 0;
}

int lw_cuda_lower_at_step(cuda_lower *c)
{
    copy_step *s = lw_cuda_arg(c, sizeof *s, at_step_task);
    if (!s)
        return LW_ENOMEM;
    s->rows = 1;
    s->width[0] = s->y_pitch = (int64_t)(lw_type_bytes(cuda_out(c, 0)) / sizeof(uint32_t));
    s->x_pitch = cuda_in(c, 0).dim[0];
    return 0;
}

/* ---- pictures -------------------------------------------------------------------------------- */

typedef struct space_step {
    cuda_step step;
    lw_cuda_space a;
} space_step;

static void space_task(const lw_task *t)
{
    const space_step *s = t->arg;
    lw_cuda_space a = s->a;
    a.y = t->out[0];
    a.x = t->in[0];
    a.wide = by_four(a.y, a.x, a.oc | a.c | a.lo[2]);
    if (a.wide) {
        a.n /= 4;
        a.oc /= 4;
        a.c /= 4;
        a.lo[2] /= 4;
    }
    lw_cuda_launch(s->step.d, LW_CUDA_space, lw_cuda_blocks(LW_CUDA_space, a.n), 1, &a);
}

static int lower_space(cuda_lower *c, int32_t mul, int32_t div, const int32_t *lo)
{
    lw_type x = cuda_in(c, 0), y = cuda_out(c, 0);
    LW_TRY(lw_cuda_f32(c, -1));
    space_step *s = lw_cuda_arg(c, sizeof *s, space_task);
    if (!s)
        return LW_ENOMEM;
    s->a = (lw_cuda_space){.n = lw_type_count(y),
                           .oh = y.dim[1],
                           .ow = y.dim[2],
                           .oc = y.dim[3],
                           .h = x.dim[1],
                           .w = x.dim[2],
                           .c = x.dim[3],
                           .mul = mul,
                           .div = div};
    for (int i = 0; lo && i < 3; i++)
        s->a.lo[i] = lo[i];
    return 0;
}

int lw_cuda_lower_pad(cuda_lower *c)
{
    return lower_space(c, 1, 1, ((const lw_attr_pad *)c->n->attr)->lo);
}
int lw_cuda_lower_subsample(cuda_lower *c)
{
    return lower_space(c, ((const lw_attr_factor *)c->n->attr)->k, 1, NULL);
}
int lw_cuda_lower_upsample(cuda_lower *c)
{
    return lower_space(c, 1, ((const lw_attr_factor *)c->n->attr)->k, NULL);
}

typedef struct patches_step {
    cuda_step step;
    lw_cuda_patches a;
} patches_step;

static void patches_task(const lw_task *t)
{
    const patches_step *s = t->arg;
    lw_cuda_patches a = s->a;
    a.y = t->out[0];
    a.x = t->in[0];
    a.wide = by_four(a.y, a.x, a.run);
    if (a.wide) {
        a.n /= 4;
        a.run /= 4;
    }
    lw_cuda_launch(s->step.d, LW_CUDA_patches, lw_cuda_blocks(LW_CUDA_patches, a.n), 1, &a);
}

int lw_cuda_lower_patches(cuda_lower *c)
{
    const lw_attr_patches *at = c->n->attr;
    lw_type t = at->h ? cuda_out(c, 0) : cuda_in(c, 0); /* the picture */
    if (at->pad[0] | at->pad[1] | at->pad[2] | at->pad[3])
        return lw_cuda_lacks(c, " with zeros around pictures");
    const int32_t run = at->k * t.dim[3],
                  each = t.dtype == LW_BF16 ? 2 : 1; /* elements in a word */
    if (each == 1)
        LW_TRY(lw_cuda_f32(c, -1));
    if (run % each)
        return lw_cuda_lacks(c, " of bf16 in odd rows");
    patches_step *s = lw_cuda_arg(c, sizeof *s, patches_task);
    if (!s)
        return LW_ENOMEM;
    s->a = (lw_cuda_patches){.n = lw_type_count(t) / each,
                             .k = at->k,
                             .across = t.dim[2] / at->k,
                             .run = run / each,
                             .back = at->h != 0};
    return 0;
}

typedef struct pool_step {
    cuda_step step;
    lw_cuda_pool a;
} pool_step;

static void pool_task(const lw_task *t)
{
    const pool_step *s = t->arg;
    lw_cuda_pool a = s->a;
    a.y = t->out[0];
    a.x = t->in[0];
    lw_cuda_launch(s->step.d, LW_CUDA_pool, lw_cuda_blocks(LW_CUDA_pool, a.n), 1, &a);
}

int lw_cuda_lower_pool(cuda_lower *c)
{
    const lw_attr_pool *at = c->n->attr;
    lw_type x = cuda_in(c, 0), y = cuda_out(c, 0);
    LW_TRY(lw_cuda_f32(c, -1));
    pool_step *s = lw_cuda_arg(c, sizeof *s, pool_task);
    if (!s)
        return LW_ENOMEM;
    s->a = (lw_cuda_pool){.n = lw_type_count(y),
                          .h = x.dim[1],
                          .w = x.dim[2],
                          .c = x.dim[3],
                          .oh = y.dim[1],
                          .ow = y.dim[2],
                          .k = at->k,
                          .stride = at->stride,
                          .pad = at->pad,
                          .inside = at->inside,
                          .max = at->max};
    return 0;
}

typedef struct embedding_step {
    cuda_step step;
    lw_cuda_embedding a;
} embedding_step;

static void embedding_task(const lw_task *t)
{
    const embedding_step *s = t->arg;
    lw_cuda_embedding a = s->a;
    a.y = t->out[0];
    a.table = t->in[0];
    a.ids = t->in[1];
    lw_cuda_launch(s->step.d, LW_CUDA_embedding, lw_cuda_blocks(LW_CUDA_embedding, a.rows * a.c), 1,
                   &a);
}

int lw_cuda_lower_embedding(cuda_lower *c)
{
    lw_type y = cuda_out(c, 0);
    LW_TRY(lw_cuda_f32(c, 1));
    embedding_step *s = lw_cuda_arg(c, sizeof *s, embedding_task);
    if (!s)
        return LW_ENOMEM;
    s->a.rows = y.dim[0];
    s->a.c = lw_type_count(y) / y.dim[0];
    s->a.v = cuda_in(c, 0).dim[0];
    return 0;
}

typedef struct bag_step {
    cuda_step step;
    lw_cuda_bag a;
} bag_step;

static void bag_task(const lw_task *t)
{
    const bag_step *s = t->arg;
    lw_cuda_bag a = s->a;
    a.y = t->out[0];
    a.table = t->in[0];
    a.ids = t->in[1];
    a.base = t->in[2];
    lw_cuda_launch(s->step.d, LW_CUDA_embedding_bag,
                   lw_cuda_blocks(LW_CUDA_embedding_bag, a.rows * a.c), 1, &a);
}

int lw_cuda_lower_embedding_bag(cuda_lower *c)
{
    const lw_attr_bag *at = c->n->attr;
    LW_TRY(lw_cuda_f32(c, 1));
    bag_step *s = lw_cuda_arg(c, sizeof *s, bag_task);
    if (!s)
        return LW_ENOMEM;
    s->a = (lw_cuda_bag){.rows = cuda_out(c, 0).dim[0],
                         .c = cuda_in(c, 0).dim[1],
                         .v = cuda_in(c, 0).dim[0],
                         .k = at->k,
                         .period = at->period,
                         .minus = at->minus};
    return 0;
}
