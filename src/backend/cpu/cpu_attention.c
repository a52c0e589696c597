/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, softmax and cross-entropy. */
#include "backend/cpu/cpu_private.h"

#include <math.h>

typedef struct attention_arg {
    const lw_kernels *k;
    lw_attention_shape s;
    int64_t c, per_sample;
    int64_t parts, share; /* of all samples; parts of a task: short sequences share one */
} attention_arg;

static attention_arg *attention_record(cpu_lower *c, lw_type qkv, int64_t *batch, int backward)
{
    const lw_attr_attention *at = c->n->attr;
    attention_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return NULL;
    a->k = c->k;
    a->c = qkv.dim[2] / 3;
    a->s = (lw_attention_shape){.t = qkv.dim[1],
                                .heads = at->heads,
                                .hd = a->c / at->heads,
                                .qkv_pitch = qkv.dim[2],
                                .o_pitch = a->c};
    a->s.scale = (float)(1.0 / sqrt((double)a->s.hd));
    a->per_sample = backward ? at->heads : lw_attention_tasks(&a->s);
    c->out->scratch_bytes = sizeof(float) * lw_attention_scratch(&a->s, backward);
    *batch = qkv.dim[0];
    double flops = (backward ? 10.0 : 4.0) * (double)a->s.t * (double)a->s.t * (double)a->s.hd;
    a->parts = *batch * a->per_sample;
    a->share = LW_MAX((int64_t)LW_MIN(1e6 / flops, (double)a->parts / 64.0), (int64_t)1);
    return a;
}

static int64_t attention_tasks(const attention_arg *a)
{
    return (a->parts + a->share - 1) / a->share;
}

static void forward_part(const lw_task *t, int64_t part)
{
    const attention_arg *a = t->arg;
    int64_t b = part / a->per_sample;
    const float *q = (const float *)t->in[0] + b * a->s.t * a->s.qkv_pitch;
    float *lse = (t->out[1] ? (float *)t->out[1] : (float *)t->work) + b * a->s.heads * a->s.t;
    a->k->attention.forward((float *)t->out[0] + b * a->s.t * a->c, lse, q, q + a->c, q + 2 * a->c,
                            &a->s, part % a->per_sample, t->scratch);
}

static void forward_task(const lw_task *t)
{
    const attention_arg *a = t->arg;
    int64_t end = LW_MIN((t->index + 1) * a->share, a->parts);
    for (int64_t i = t->index * a->share; i < end; i++)
        forward_part(t, i);
}

int lw_cpu_lower_attention(cpu_lower *c)
{
    int64_t batch;
    attention_arg *a = attention_record(c, cpu_in(c, 0), &batch, 0);
    if (!a)
        return LW_ENOMEM;
    c->out->work_bytes = sizeof(float) * (size_t)(batch * a->s.heads * a->s.t);
    lw_cpu_phase(c, forward_task, attention_tasks(a));
    return 0;
}

static void backward_part(const lw_task *t, int64_t part)
{
    const attention_arg *a = t->arg;
    int64_t b = part / a->per_sample, n = a->s.t * a->s.qkv_pitch;
    const float *q = (const float *)t->in[1] + b * n;
    float *dq = (float *)t->out[0] + b * n;
    a->k->attention.backward(dq, dq + a->c, dq + 2 * a->c,
                             (const float *)t->in[0] + b * a->s.t * a->c,
                             (const float *)t->in[2] + b * a->s.t * a->c,
                             (const float *)t->in[3] + b * a->s.heads * a->s.t, q, q + a->c,
                             q + 2 * a->c, &a->s, part % a->per_sample, 0, t->scratch);
}

static void backward_task(const lw_task *t)
{
    const attention_arg *a = t->arg;
    int64_t end = LW_MIN((t->index + 1) * a->share, a->parts);
    for (int64_t i = t->index * a->share; i < end; i++)
        backward_part(t, i);
}

int lw_cpu_lower_attention_grad(cpu_lower *c)
{
    int64_t batch;
    attention_arg *a = attention_record(c, cpu_in(c, 1), &batch, 1);
    if (!a)
        return LW_ENOMEM;
    lw_cpu_phase(c, backward_task, attention_tasks(a));
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct rows_arg {
    const lw_kernels *k;
    cpu_range r;
    ptrdiff_t n;
} rows_arg;

static int lower_rows(cpu_lower *c, lw_type x, lw_task_fn *fn)
{
    rows_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->k = c->k;
    a->n = lw_type_last(x);
    a->r = (cpu_range){lw_type_count(x) / a->n, lw_softmax_rows(a->n)};
    lw_cpu_phase(c, fn, cpu_range_tasks(a->r));
    return 0;
}

static void softmax_task(const lw_task *t)
{
    const rows_arg *a = t->arg;
    int64_t r = cpu_begin(a->r, t->index), m = cpu_end(a->r, t->index) - r;
    a->k->softmax.forward((float *)t->out[0] + r * a->n, (const float *)t->in[0] + r * a->n, m,
                          a->n, a->n, a->n);
}

/* inputs: dy, y */
static void softmax_grad_task(const lw_task *t)
{
    const rows_arg *a = t->arg;
    int64_t r = cpu_begin(a->r, t->index), m = cpu_end(a->r, t->index) - r;
    a->k->softmax.backward((float *)t->out[0] + r * a->n, (const float *)t->in[1] + r * a->n,
                           (const float *)t->in[0] + r * a->n, m, a->n, a->n, 0);
}

static void ce_task(const lw_task *t)
{
    const rows_arg *a = t->arg;
    int64_t r = cpu_begin(a->r, t->index), m = cpu_end(a->r, t->index) - r;
    float *lse = t->out[1] ? t->out[1] : t->work;
    float *loss = t->out[0] ? t->out[0] : (float *)t->work + a->r.n;
    a->k->softmax.xent_forward(loss + r, lse + r, (const float *)t->in[0] + r * a->n,
                               (const int32_t *)t->in[1] + r, m, a->n, a->n);
}

/* inputs: dloss, logits, labels, lse */
static void ce_grad_task(const lw_task *t)
{
    const rows_arg *a = t->arg;
    int64_t r = cpu_begin(a->r, t->index), m = cpu_end(a->r, t->index) - r;
    a->k->softmax.xent_backward((float *)t->out[0] + r * a->n, (const float *)t->in[0] + r,
                                (const float *)t->in[3] + r, (const float *)t->in[1] + r * a->n,
                                (const int32_t *)t->in[2] + r, m, a->n, a->n, a->n, 0);
}

int lw_cpu_lower_softmax(cpu_lower *c)
{
    return lower_rows(c, cpu_in(c, 0), softmax_task);
}
int lw_cpu_lower_softmax_grad(cpu_lower *c)
{
    return lower_rows(c, cpu_in(c, 0), softmax_grad_task);
}
int lw_cpu_lower_cross_entropy(cpu_lower *c)
{
    c->out->work_bytes = 2 * sizeof(float) * (size_t)cpu_in(c, 0).dim[0];
    return lower_rows(c, cpu_in(c, 0), ce_task);
}
int lw_cpu_lower_cross_entropy_grad(cpu_lower *c)
{
    return lower_rows(c, cpu_in(c, 1), ce_grad_task);
}
