/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a convolution behind upsampling, and their gradient: ranges of channels. */
#include "backend/cpu/cpu_private.h"

typedef struct upconv_arg {
    const lw_kernels *k;
    cpu_range r;
    ptrdiff_t o, c;
} upconv_arg;

static void weight_task(const lw_task *t)
{
    const upconv_arg *a = t->arg;
    a->k->pooling.upconv_weight(t->out[0], t->in[0], a->o, a->c, cpu_begin(a->r, t->index),
                                cpu_end(a->r, t->index));
}

static void weight_grad_task(const lw_task *t)
{
    const upconv_arg *a = t->arg;
    a->k->pooling.upconv_weight_grad(t->out[0], t->in[0], a->o, a->c, cpu_begin(a->r, t->index),
                                     cpu_end(a->r, t->index));
}

/* A task fills `floats` consecutive floats of the result per channel of its range. */
static int lower(cpu_lower *c, lw_type w3, int64_t channels, int64_t floats, lw_task_fn *fn)
{
    upconv_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->k = c->k;
    a->o = w3.dim[0];
    a->c = w3.dim[3];
    a->r = cpu_split(channels, floats);
    a->r.step = LW_ROUND_UP(a->r.step, 16); /* whole cache lines of the operand */
    lw_cpu_phase(c, fn, cpu_range_tasks(a->r));
    return 0;
}

int lw_cpu_lower_upconv_weight(cpu_lower *c)
{
    lw_type w = cpu_in(c, 0);
    return lower(c, w, w.dim[3], 16 * (int64_t)w.dim[0], weight_task);
}

int lw_cpu_lower_upconv_weight_grad(cpu_lower *c)
{
    lw_type w = cpu_out(c, 0);
    return lower(c, w, w.dim[0], 9 * (int64_t)w.dim[3], weight_grad_task);
}

/* F(4x4) on the upsampled picture takes 0.75 of the time of the four phases, F(2x2) 1.15, direct
 * convolution 2.3 (256 channels, Zen 4), tiles of the smaller picture .63 of F(4x4)'s (Zen 3). bf16 is computed
 * directly, which takes what F(4x4) of bf16 does without its errors, and bytes, unless the tiles of the smaller picture
 * beat them (lw_cpu_wide). */
bool lw_cpu_upconv_pays(void *self, const lw_node *n, const lw_attr_conv *up, lw_num num)
{
    const lw_device *d = self; /* self begins with the lw_device */
    lw_conv_shape s = lw_cpu_conv_shape(n->attr, 1);
    if (num != LW_NUM_F32)
        return true;
    if (n->op == LW_OP_CONV2D_DX)
        return lw_cpu_conv_tile(d, num, &s, LW_CONV_DATA_GRAD) != 4;
    if (lw_cpu_conv_tile(d, num, &s, LW_CONV_FORWARD) != 4)
        return true;
    s = lw_cpu_conv_shape(up, 1);
    s.upsampling = true;
    return num == LW_NUM_F32 && lw_cpu_rescales(d, &s, LW_CONV_DATA_GRAD);
}
