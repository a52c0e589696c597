/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution and its gradients, f32: rows of pictures; channels of weights. */
#include "backend/cpu/cpu_private.h"

typedef struct depthwise_arg {
    const lw_kernels *k;
    lw_conv_shape s;
    lw_act act;
    bool packed;
    ptrdiff_t ld_residual;
    cpu_range channels; /* of what goes by channels: packing, adding up */
} depthwise_arg;

/* ---- packing --------------------------------------------------------------------------------- */

static void pack(const depthwise_arg *a, float *packed, const float *w, int64_t task)
{
    lw_depthwise_pack(packed, w, &a->s, (ptrdiff_t)cpu_begin(a->channels, task),
                      (ptrdiff_t)cpu_end(a->channels, task));
}

static void pack_to_work(const lw_task *t)
{
    pack(t->arg, t->work, t->in[1], t->index);
}

static void pack_to_out(const lw_task *t)
{
    pack(t->arg, t->out[0], t->in[0], t->index);
}

static size_t weight_bytes(const lw_conv_shape *s)
{
    return sizeof(float) * (size_t)s->KH * (size_t)s->KW * (size_t)s->C;
}

/* p of the attributes: channels, kh, kw. One packing serves both passes of every size. */
bool lw_cpu_wants_pack_depthwise(const lw_attr_conv *at, lw_attr_pack *out)
{
    *out = (lw_attr_pack){
        CPU_PACK_DEPTHWISE, {at->c, at->kh, at->kw}, (int64_t)at->c * at->kh * at->kw};
    return true;
}

int lw_cpu_lower_pack_depthwise(cpu_lower *c)
{
    const lw_attr_pack *at = c->n->attr;
    depthwise_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->s = (lw_conv_shape){.C = at->p[0], .KH = at->p[1], .KW = at->p[2]};
    a->channels = cpu_split(a->s.C, (int64_t)a->s.KH * a->s.KW);
    lw_cpu_phase(c, pack_to_out, cpu_range_tasks(a->channels));
    return 0;
}

/* ---- forward and data gradient --------------------------------------------------------------- */

static const float *weights(const lw_task *t)
{
    return ((const depthwise_arg *)t->arg)->packed ? t->in[1] : t->work;
}

static void forward_task(const lw_task *t)
{
    const depthwise_arg *a = t->arg;
    const lw_epilogue e = {
        .bias = t->in[2], .residual = t->in[3], .ld_residual = a->ld_residual, .act = a->act};
    a->k->depthwise.run(t->out[0], t->in[0], weights(t), &a->s, LW_CONV_FORWARD, &e, t->index);
}

static void data_grad_task(const lw_task *t)
{
    const depthwise_arg *a = t->arg;
    const lw_epilogue e = {
        .bias = t->in[3], .residual = t->in[2], .ld_residual = a->ld_residual, .act = a->act};
    a->k->depthwise.run(t->out[0], t->in[0], weights(t), &a->s, LW_CONV_DATA_GRAD, &e, t->index);
}

static depthwise_arg *depthwise_record(cpu_lower *c)
{
    const lw_attr_conv *at = c->n->attr;
    depthwise_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return NULL;
    *a = (depthwise_arg){.k = c->k,
                         .s = lw_cpu_conv_shape(at, cpu_in(c, 0).dim[0]),
                         .act = (lw_act)at->act,
                         .channels = cpu_split(at->c, (int64_t)at->kh * at->kw)};
    return a;
}

static int lower(cpu_lower *c, lw_conv_pass pass, int residual)
{
    depthwise_arg *a = depthwise_record(c);
    if (!a)
        return LW_ENOMEM;
    bool forward = pass == LW_CONV_FORWARD;
    a->s.ldx = forward ? cpu_in_pitch(c, 0) : cpu_out_pitch(c);
    a->s.ldy = forward ? cpu_out_pitch(c) : cpu_in_pitch(c, 0);
    a->ld_residual = cpu_has(c, residual) ? cpu_in_pitch(c, residual) : 0;
    a->packed = lw_val_node(c->g, c->n->in[1])->op == LW_OP_PACK;
    if (!a->packed) {
        c->out->work_bytes = weight_bytes(&a->s);
        lw_cpu_phase(c, pack_to_work, cpu_range_tasks(a->channels));
    }
    lw_cpu_phase(c, forward ? forward_task : data_grad_task, lw_depthwise_tasks(&a->s, pass));
    return 0;
}

int lw_cpu_lower_depthwise(cpu_lower *c)
{
    return lower(c, LW_CONV_FORWARD, 3);
}
int lw_cpu_lower_depthwise_dx(cpu_lower *c)
{
    return lower(c, LW_CONV_DATA_GRAD, 2);
}

/* ---- weight gradient ------------------------------------------------------------------------- */

static void weight_grad_task(const lw_task *t)
{
    const depthwise_arg *a = t->arg;
    a->k->depthwise.weight_grad(t->work, t->in[0], t->in[1], &a->s, t->index);
}

static void combine_task(const lw_task *t)
{
    const depthwise_arg *a = t->arg;
    lw_depthwise_combine(t->out[0], t->out[1], t->work, &a->s,
                         (ptrdiff_t)cpu_begin(a->channels, t->index),
                         (ptrdiff_t)cpu_end(a->channels, t->index));
}

int lw_cpu_lower_depthwise_dw(cpu_lower *c)
{
    depthwise_arg *a = depthwise_record(c);
    if (!a)
        return LW_ENOMEM;
    a->s.ldy = cpu_in_pitch(c, 0);
    a->s.ldx = cpu_in_pitch(c, 1);
    c->out->work_bytes = sizeof(float) * (size_t)lw_depthwise_partial_floats(&a->s);
    lw_cpu_phase(c, weight_grad_task, lw_depthwise_weight_grad_tasks(&a->s));
    lw_cpu_phase(c, combine_task, cpu_range_tasks(a->channels));
    return 0;
}
