/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution forward, data gradient and weight gradient. */
#include "backend/cpu/cpu_private.h"

typedef struct conv_arg {
    const lw_kernels *k;
    lw_conv_shape s;
    lw_conv_pass pass;
    lw_act act;
    bool packed;
    ptrdiff_t ld_residual;
} conv_arg;

lw_conv_shape lw_cpu_conv_shape(const lw_attr_conv *a, int32_t batch)
{
    lw_conv_shape s = {
        .B = batch,
        .H = a->h,
        .W = a->w,
        .C = a->c,
        .O = a->o,
        .KH = a->kh,
        .KW = a->kw,
        .stride = a->stride,
        .pad_top = a->pad_t,
        .pad_left = a->pad_l,
        .pad_bottom = a->pad_b,
        .pad_right = a->pad_r,
    };
    int rc = lw_conv_shape_init(&s);
    LW_ASSERT(rc == 0, "%s", lw_errmsg());
    return s;
}

static void pack_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    a->k->conv.pack(t->work, t->in[1], &a->s, a->pass, t->index);
}

static void forward_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    lw_epilogue e = {.bias = t->in[2],
                     .image_bias = t->in[5],
                     .ld_image_bias = a->s.O,
                     .residual = t->in[3],
                     .ld_residual = a->ld_residual,
                     .act = a->act};
    a->k->conv.forward(t->out[0], t->in[0], a->packed ? t->in[1] : t->work, &a->s, &e, t->index);
}

static void data_grad_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    lw_epilogue e = {
        .bias = t->in[3], .residual = t->in[2], .ld_residual = a->ld_residual, .act = a->act};
    a->k->conv.data_grad(t->out[0], t->in[0], a->packed ? t->in[1] : t->work, &a->s, &e, t->index);
}

static void weight_grad_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    a->k->conv.weight_grad(t->out[0], t->out[1], t->in[0], t->in[1], &a->s, 0, t->work, t->index);
}

static void combine_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    a->k->conv.weight_grad_combine(t->out[0], t->out[1], &a->s, 0, t->work, t->index);
}

static conv_arg *conv_record(cpu_lower *c)
{
    const lw_attr_conv *at = c->n->attr;
    conv_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return NULL;
    a->k = c->k;
    a->s = lw_cpu_conv_shape(at, cpu_in(c, 0).dim[0]);
    a->act = (lw_act)at->act;
    return a;
}

/* Floats between pixels, and between those of the residual (operand r). */
static void set_pitches(cpu_lower *c, conv_arg *a, ptrdiff_t x, ptrdiff_t y, int r)
{
    a->s.ldx = x;
    a->s.ldy = y;
    a->ld_residual = cpu_has(c, r) ? cpu_in_pitch(c, r) : 0;
}

static int lower_product(cpu_lower *c, lw_conv_pass pass, lw_task_fn *fn)
{
    conv_arg *a = conv_record(c);
    if (!a)
        return LW_ENOMEM;
    a->pass = pass;
    if (pass == LW_CONV_FORWARD)
        set_pitches(c, a, cpu_in_pitch(c, 0), cpu_out_pitch(c), 3);
    else
        set_pitches(c, a, cpu_out_pitch(c), cpu_in_pitch(c, 0), 2);
    a->packed = lw_val_node(c->g, c->n->in[1])->op == LW_OP_PACK;
    if (!a->packed) {
        c->out->work_bytes = sizeof(float) * (size_t)lw_conv_packed_floats(&a->s, pass);
        lw_cpu_phase(c, pack_task, lw_conv_pack_tasks(&a->s, pass));
    }
    lw_cpu_phase(c, fn, lw_conv_tasks(&a->s, pass));
    return 0;
}

int lw_cpu_lower_conv2d(cpu_lower *c)
{
    return lower_product(c, LW_CONV_FORWARD, forward_task);
}
int lw_cpu_lower_conv2d_dx(cpu_lower *c)
{
    return lower_product(c, LW_CONV_DATA_GRAD, data_grad_task);
}

int lw_cpu_lower_conv2d_dw(cpu_lower *c)
{
    conv_arg *a = conv_record(c);
    if (!a)
        return LW_ENOMEM;
    set_pitches(c, a, cpu_in_pitch(c, 1), cpu_in_pitch(c, 0), 2); /* reads no residual */
    c->out->work_bytes = sizeof(float) * (size_t)lw_conv_weight_grad_partial_floats(&a->s);
    lw_cpu_phase(c, weight_grad_task, lw_conv_weight_grad_tasks(&a->s));
    if (lw_conv_weight_grad_combine_tasks(&a->s))
        lw_cpu_phase(c, combine_task, lw_conv_weight_grad_combine_tasks(&a->s));
    return 0;
}
