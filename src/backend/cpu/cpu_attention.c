/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, softmax and cross-entropy. */
#include "backend/cpu/cpu_private.h"

#include <math.h>

/* Where q, k or v of a sample is: elements behind the start of an operand. */
typedef struct attention_part {
    int operand;
    int64_t at, sample; /* of sample 0; from one sample to the next */
} attention_part;

typedef struct attention_arg {
    const lw_kernels *k;
    void (*run_part)(const lw_task *t, int64_t index); /* forward or backward, of either type */
    lw_attention_shape s;
    attention_part part[3]; /* q, k, v */
    int n;                  /* operands */
    int64_t o_sample, lse_sample, per_sample;
    int64_t parts, share; /* of all samples; parts of a task: short sequences share one */
} attention_arg;

/* The last of n operands holds all that follows its own, side by side. */
static void find_parts(attention_arg *a, const cpu_lower *c, int first, ptrdiff_t channels)
{
    ptrdiff_t *pitch[3] = {&a->s.q_pitch, &a->s.k_pitch, &a->s.v_pitch};
    for (int i = 0; i < 3; i++) {
        int at = LW_MIN(i, a->n - 1);
        lw_type t = cpu_in(c, first + at);
        *pitch[i] = t.dim[2];
        a->part[i] = (attention_part){at, (i - at) * channels, (int64_t)t.dim[1] * t.dim[2]};
    }
}

/* o: the type of the result; n operands from input `first` on. */
static attention_arg *attention_record(cpu_lower *c, lw_type o, int first, int n, int backward)
{
    const lw_attr_attention *at = c->n->attr;
    attention_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return NULL;
    a->k = c->k;
    a->n = n;
    a->s = (lw_attention_shape){.tq = o.dim[1],
                                .tk = cpu_in(c, first + n - 1).dim[1],
                                .heads = at->heads,
                                .hd = o.dim[2] / at->heads,
                                .o_pitch = o.dim[2],
                                .samples = o.dim[0]};
    a->s.scale = (float)(1.0 / sqrt((double)a->s.hd));
    find_parts(a, c, first, o.dim[2]);
    a->o_sample = a->s.tq * a->s.o_pitch;
    a->lse_sample = a->s.tq * a->s.heads;
    a->per_sample = backward ? at->heads : lw_attention_tasks(&a->s);
    c->out->scratch_bytes = sizeof(float) * lw_attention_scratch(&a->s, backward);
    double flops = (backward ? 10.0 : 4.0) * (double)a->s.tq * (double)a->s.tk * (double)a->s.hd;
    a->parts = o.dim[0] * a->per_sample;
    a->share = LW_MAX((int64_t)LW_MIN(1e6 / flops, (double)a->parts / 64.0), (int64_t)1);
    return a;
}

static int64_t attention_tasks(const attention_arg *a)
{
    return (a->parts + a->share - 1) / a->share;
}

static void attention_task(const lw_task *t)
{
    const attention_arg *a = t->arg;
    int64_t end = LW_MIN((t->index + 1) * a->share, a->parts);
    for (int64_t i = t->index * a->share; i < end; i++)
        a->run_part(t, i);
}

/* q, k or v (i = 0, 1, 2) of sample b among the operands, or their gradients; NULL: not there. */
static float *part_of(void *const *operand, const attention_arg *a, int i, int64_t b)
{
    const attention_part *p = &a->part[i];
    float *x = operand[p->operand];
    return x ? x + b * p->sample + p->at : NULL;
}

static void forward_part(const lw_task *t, int64_t index)
{
    const attention_arg *a = t->arg;
    int64_t b = index / a->per_sample;
    float *lse = t->out[1] ? t->out[1] : t->work;
    a->k->attention.forward((float *)t->out[0] + b * a->o_sample, lse + b * a->lse_sample,
                            part_of(t->in, a, 0, b), part_of(t->in, a, 1, b),
                            part_of(t->in, a, 2, b), &a->s, index % a->per_sample, t->scratch);
}

/* part_of operands of bf16. */
static const lw_bf16 *part_of_bf16(void *const *operand, const attention_arg *a, int i, int64_t b)
{
    const attention_part *p = &a->part[i];
    return (const lw_bf16 *)operand[p->operand] + b * p->sample + p->at;
}

static void forward_bf16_part(const lw_task *t, int64_t index)
{
    const attention_arg *a = t->arg;
    int64_t b = index / a->per_sample, size = a->s.store == LW_NUM_BF16 ? 2 : 4;
    float *lse = t->out[1] ? (float *)t->out[1] + b * a->lse_sample : NULL;
    a->k->attention.forward_bf16((char *)t->out[0] + b * a->o_sample * size, lse,
                                 part_of_bf16(t->in, a, 0, b), part_of_bf16(t->in, a, 1, b),
                                 part_of_bf16(t->in, a, 2, b), &a->s, index % a->per_sample,
                                 t->scratch);
}

int lw_cpu_lower_attention(cpu_lower *c)
{
    lw_type o = cpu_out(c, 0);
    if (((const lw_attr_attention *)c->n->attr)->window > 0)
        return lw_cpu_lower_window(c);
    attention_arg *a = attention_record(c, o, 0, c->n->n_in, 0);
    if (!a)
        return LW_ENOMEM;
    bool low = ((const lw_attr_attention *)c->n->attr)->num == LW_NUM_BF16;
    a->s.store = o.dtype == LW_BF16 ? LW_NUM_BF16 : LW_NUM_F32;
    if (!low)
        c->out->work_bytes = sizeof(float) * (size_t)(o.dim[0] * a->lse_sample);
    a->run_part = low ? forward_bf16_part : forward_part;
    lw_cpu_phase(c, attention_task, attention_tasks(a));
    return 0;
}

/* inputs: do, operands, o, lse */
static void backward_part(const lw_task *t, int64_t index)
{
    const attention_arg *a = t->arg;
    int64_t b = index / a->per_sample;
    void *const *x = t->in + 1;
    const float *g = t->in[0], *o = x[a->n], *lse = x[a->n + 1];
    a->k->attention.backward(part_of(t->out, a, 0, b), part_of(t->out, a, 1, b),
                             part_of(t->out, a, 2, b), g + b * a->o_sample, o + b * a->o_sample,
                             lse + b * a->lse_sample, part_of(x, a, 0, b), part_of(x, a, 1, b),
                             part_of(x, a, 2, b), &a->s, index % a->per_sample, 0, t->scratch);
}

static void backward_bf16_part(const lw_task *t, int64_t index)
{
    const attention_arg *a = t->arg;
    int64_t b = index / a->per_sample;
    const lw_bf16 *g = t->in[0], *o = t->in[1 + a->n];
    const float *lse = t->in[2 + a->n];
    a->k->attention.backward_bf16(
        part_of(t->out, a, 0, b), part_of(t->out, a, 1, b), part_of(t->out, a, 2, b),
        g + b * a->o_sample, o + b * a->o_sample, lse + b * a->lse_sample,
        part_of_bf16(t->in + 1, a, 0, b), part_of_bf16(t->in + 1, a, 1, b),
        part_of_bf16(t->in + 1, a, 2, b), &a->s, index % a->per_sample, 0, t->scratch);
}

int lw_cpu_lower_attention_grad(cpu_lower *c)
{
    attention_arg *a = attention_record(c, cpu_in(c, 0), 1, c->n->n_in - 3, 1);
    if (!a)
        return LW_ENOMEM;
    bool low = ((const lw_attr_attention *)c->n->attr)->num == LW_NUM_BF16;
    a->run_part = low ? backward_bf16_part : backward_part;
    lw_cpu_phase(c, attention_task, attention_tasks(a));
    return 0;
}

/* ---- rotary positions ------------------------------------------------------------------------ */

typedef struct rope_arg {
    const lw_kernels *k;
    cpu_range r;
    lw_rope_shape s;
    float sign;
} rope_arg;

static void rope_task(const lw_task *t)
{
    const rope_arg *a = t->arg;
    a->k->attention.rope(t->out[0], t->in[0], t->in[1], a->sign, &a->s, cpu_begin(a->r, t->index),
                         cpu_end(a->r, t->index));
}

int lw_cpu_lower_rope(cpu_lower *c)
{
    lw_type x = cpu_in(c, 0), table = cpu_in(c, 1);
    rope_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->k = c->k;
    a->s = (lw_rope_shape){
        .c = x.dim[2], .d = table.dim[2], .tokens = table.dim[0], .pieces = table.dim[1]};
    a->sign = ((const lw_attr_rope *)c->n->attr)->back ? -1.0f : 1.0f;
    a->r = cpu_split((int64_t)x.dim[0] * x.dim[1], x.dim[2]);
    lw_cpu_phase(c, rope_task, cpu_range_tasks(a->r));
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
