/* SPDX-License-Identifier: Apache-2.0 */
/* Group normalisation: a task is one sample and a range of its groups, or, where a sample is one
 * row (layer norm), a block of rows. */
#include "backend/cpu/cpu_private.h"

#include <string.h>

enum { NORM_ROWS = 32 }; /* of a task */

typedef struct norm_arg {
    const lw_kernels *k;
    lw_norm_shape s;
    int64_t batch, per_sample;
    int64_t x_bytes, y_bytes; /* of an element of x, of y */
} norm_arg;

static norm_arg *norm_record(cpu_lower *c, lw_type x)
{
    const lw_attr_norm *at = c->n->attr;
    norm_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return NULL;
    ptrdiff_t ch = lw_type_last(x);
    a->k = c->k;
    a->batch = x.dim[0];
    a->s = (lw_norm_shape){.hw = lw_type_count(x) / (a->batch * ch),
                           .c = ch,
                           .groups = at->groups,
                           .x_pitch = ch,
                           .y_pitch = ch,
                           .eps = at->eps,
                           .act = (lw_act)at->act,
                           .rms = at->rms != 0,
                           .x_num = x.dtype == LW_BF16 ? LW_NUM_BF16 : LW_NUM_F32};
    a->x_bytes = (int64_t)lw_dtype_size(x.dtype);
    a->per_sample = lw_norm_tasks(&a->s, a->batch);
    c->out->scratch_bytes = sizeof(float) * lw_norm_scratch(&a->s);
    return a;
}

static const float *row(const void *p, int64_t b, int64_t n)
{
    return p ? (const float *)p + b * n : NULL;
}
static float *row_mut(void *p, int64_t b, int64_t n)
{
    return p ? (float *)p + b * n : NULL;
}

static void forward_task(const lw_task *t)
{
    const norm_arg *a = t->arg;
    int64_t b = t->index / a->per_sample, n = a->s.hw * a->s.c;
    ptrdiff_t g0, g1;
    lw_norm_range(&a->s, a->per_sample, t->index % a->per_sample, &g0, &g1);
    float *stat = t->work; /* mean and rstd nobody reads */
    float *mean = t->out[1] ? t->out[1] : stat,
          *rstd = t->out[2] ? t->out[2] : stat + a->batch * a->s.groups;
    a->k->norm.forward(row_mut(t->out[0], b, n), row_mut(mean, b, a->s.groups),
                       row_mut(rstd, b, a->s.groups), row(t->in[0], b, a->s.hw * a->s.x_pitch),
                       t->in[1], t->in[2], row(t->in[3], b, a->s.c), row(t->in[4], b, a->s.c),
                       &a->s, g0, g1, t->scratch);
}

/* x or y of bf16, or y of u8. */
static void forward_narrow_task(const lw_task *t)
{
    const norm_arg *a = t->arg;
    int64_t b = t->index / a->per_sample, n = a->s.hw * a->s.c;
    ptrdiff_t g0, g1;
    lw_norm_range(&a->s, a->per_sample, t->index % a->per_sample, &g0, &g1);
    float *stat = t->work; /* mean and rstd nobody reads */
    float *mean = t->out[1] ? t->out[1] : stat,
          *rstd = t->out[2] ? t->out[2] : stat + a->batch * a->s.groups;
    a->k->norm.forward_narrow((char *)t->out[0] + b * n * a->y_bytes, row_mut(mean, b, a->s.groups),
                              row_mut(rstd, b, a->s.groups),
                              (const char *)t->in[0] + b * a->s.hw * a->s.x_pitch * a->x_bytes,
                              t->in[1], t->in[2], row(t->in[3], b, a->s.c),
                              row(t->in[4], b, a->s.c),
                              a->y_bytes == 1   ? LW_NUM_S8
                              : a->y_bytes == 2 ? LW_NUM_BF16
                                                : LW_NUM_F32,
                              t->in[5], &a->s, g0, g1, t->scratch);
}

/* Layer norm of rows. Bytes are cast from rows of f32 in this worker's scratch, a few at a time, which the first cache holds. */
enum { BYTE_ROWS = 4 };
static void rows_task(const lw_task *t)
{
    const norm_arg *a = t->arg;
    const bool bytes = a->y_bytes == 1;
    const int64_t ch = a->s.c, end = LW_MIN((t->index + 1) * NORM_ROWS, a->batch);
    const int64_t step = bytes ? BYTE_ROWS : NORM_ROWS;
    const float *pair = t->in[5];
    float *stat = t->work; /* mean and rstd nobody reads */
    float *mean = t->out[1] ? t->out[1] : stat, *rstd = t->out[2] ? t->out[2] : stat + a->batch;
    for (int64_t b = t->index * NORM_ROWS; b < end; b += step) {
        const int64_t n = LW_MIN(step, end - b);
        void *y = (char *)t->out[0] + b * ch * a->y_bytes;
        a->k->norm.rows(bytes ? t->scratch : y, t->out[3] ? (lw_bf16 *)t->out[3] + b * ch : NULL,
                        mean + b, rstd + b, row(t->in[0], b, a->s.x_pitch), t->in[1], t->in[2],
                        row(t->in[3], b, ch), row(t->in[4], b, ch),
                        a->y_bytes == 2 ? LW_NUM_BF16 : LW_NUM_F32, &a->s, n);
        if (bytes)
            a->k->cast.f32_to_u8(y, t->scratch, n * ch, pair[0], (int32_t)pair[1]);
    }
}

int lw_cpu_lower_group_norm(cpu_lower *c)
{
    norm_arg *a = norm_record(c, cpu_in(c, 0));
    if (!a)
        return LW_ENOMEM;
    a->s.x_pitch = cpu_in_pitch(c, 0);
    c->out->work_bytes = sizeof(float) * 2u * (size_t)(a->batch * a->s.groups);
    a->y_bytes = (int64_t)lw_dtype_size(cpu_out(c, 0).dtype);
    if (a->s.hw == 1 && a->s.groups == 1) {
        if (a->y_bytes == 1)
            c->out->scratch_bytes = sizeof(float) * BYTE_ROWS * (size_t)a->s.c;
        lw_cpu_phase(c, rows_task, LW_CEIL_DIV(a->batch, (int64_t)NORM_ROWS));
        return 0;
    }
    bool wide = a->x_bytes == sizeof(float) && a->y_bytes == sizeof(float);
    lw_cpu_phase(c, wide ? forward_task : forward_narrow_task, a->batch * a->per_sample);
    return 0;
}

/* inputs: dy, x, gamma, beta, scale?, shift?, mean, rstd; outputs: dx, dgamma, dbeta, dscale,
 * dshift */
static void backward_task(const lw_task *t)
{
    const norm_arg *a = t->arg;
    int64_t b = t->index / a->per_sample, n = a->s.hw * a->s.c, ch = a->s.c, gr = a->s.groups;
    float *dgamma = t->out[1] ? (float *)t->work + b * ch : NULL;
    float *dbeta = t->out[2] ? (float *)t->work + (a->batch + b) * ch : NULL;
    ptrdiff_t g0, g1;
    lw_norm_range(&a->s, a->per_sample, t->index % a->per_sample, &g0, &g1);
    a->k->norm.backward(row_mut(t->out[0], b, n), dgamma, dbeta, row_mut(t->out[3], b, ch),
                        row_mut(t->out[4], b, ch), row(t->in[0], b, n), row(t->in[1], b, n),
                        row(t->in[6], b, gr), row(t->in[7], b, gr), t->in[2], t->in[3],
                        row(t->in[4], b, ch), row(t->in[5], b, ch), &a->s, g0, g1, 0, t->scratch);
}

/* Sums the samples' terms in index order. */
static void combine_task(const lw_task *t)
{
    const norm_arg *a = t->arg;
    const float *part = (const float *)t->work + t->index * a->batch * a->s.c;
    if (t->out[1 + t->index])
        a->k->reduce.col_combine(t->out[1 + t->index], part, a->batch, a->s.c, 1.0, 0, 0, a->s.c);
}

/* Layer norm, block by block of rows: partial sums of dgamma, then of dbeta, lie in work. */
static void rows_backward_task(const lw_task *t)
{
    const norm_arg *a = t->arg;
    int64_t b = t->index * NORM_ROWS, n = LW_MIN((int64_t)NORM_ROWS, a->batch - b), ch = a->s.c;
    int64_t blocks = LW_CEIL_DIV(a->batch, (int64_t)NORM_ROWS);
    float *dgamma = t->out[1] ? (float *)t->work + t->index * ch : NULL;
    float *dbeta = t->out[2] ? (float *)t->work + (blocks + t->index) * ch : NULL;
    a->k->norm.rows_backward(row_mut(t->out[0], b, ch), dgamma, dbeta, row(t->in[0], b, ch),
                             row(t->in[1], b, ch), row(t->in[6], b, 1), row(t->in[7], b, 1),
                             t->in[2], &a->s, n);
    if (t->out[3]) /* of no scale: nobody can use it */
        memset(row_mut(t->out[3], b, ch), 0, sizeof(float) * (size_t)(n * ch));
    if (t->out[4])
        memcpy(row_mut(t->out[4], b, ch), row(t->in[0], b, ch), sizeof(float) * (size_t)(n * ch));
}

static void rows_combine_task(const lw_task *t)
{
    const norm_arg *a = t->arg;
    int64_t blocks = LW_CEIL_DIV(a->batch, (int64_t)NORM_ROWS);
    const float *part = (const float *)t->work + t->index * blocks * a->s.c;
    if (t->out[1 + t->index])
        a->k->reduce.col_combine(t->out[1 + t->index], part, blocks, a->s.c, 1.0, 0, 0, a->s.c);
}

int lw_cpu_lower_group_norm_grad(cpu_lower *c)
{
    norm_arg *a = norm_record(c, cpu_in(c, 1));
    if (!a)
        return LW_ENOMEM;
    if (lw_norm_is_layer_norm(cpu_in(c, 1), c->n->attr, cpu_has(c, 4))) {
        int64_t blocks = LW_CEIL_DIV(a->batch, (int64_t)NORM_ROWS);
        c->out->work_bytes = sizeof(float) * 2u * (size_t)(blocks * a->s.c);
        lw_cpu_phase(c, rows_backward_task, blocks);
        lw_cpu_phase(c, rows_combine_task, 2);
        return 0;
    }
    c->out->work_bytes = sizeof(float) * 2u * (size_t)(a->batch * a->s.c);
    lw_cpu_phase(c, backward_task, a->batch * a->per_sample);
    lw_cpu_phase(c, combine_task, 2);
    return 0;
}
