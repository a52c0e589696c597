/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upconv: nearest upsampling by two and a 3x3 convolution become one transposed convolution, 4x4 of
 * stride 2, whose weights are sums of the 3x3 ones (ir/ops/op_upconv.c): 2.25 times fewer products,
 * and the upsampled picture is never made. Input: any graph. Likewise for the gradients:
 *
 *   conv2d(upsample(x), w)             ->  conv2d_dx(x, upconv_weight(w))
 *   upsample_grad(conv2d_dx(dy, w))    ->  conv2d(dy, upconv_weight(w))
 *   conv2d_dw(dy, upsample(x))         ->  upconv_weight_grad(conv2d_dw(x, dy)), sum of dy
 *
 * Forward and data gradient stay as they are where the device computes them faster that way
 * (Winograd's tiles save more, but those of conv_rescale.h, forward, most); the weight gradient always
 * changes. A pure function of the graph's shapes per sample. The sums of weights round differently, so bits change;
 * values stay equal up to rounding.
 */
#include "plan/plan_pass.h"

enum { FEWEST = 8 }; /* channels in: with fewer, the picture's first layer, memory decides anyway */

/* The transposed convolution that stands for the 3x3 one: its data gradient makes y from x. */
static bool transposed(const lw_attr_conv *a, lw_attr_conv *up)
{
    if (a->kh != 3 || a->kw != 3 || a->stride != 1 || a->pad_t != 1 || a->pad_l != 1 ||
        a->pad_b != 1 || a->pad_r != 1 || a->h % 2 || a->w % 2 || a->act != LW_ACT_NONE ||
        a->c < FEWEST)
        return false;
    *up = (lw_attr_conv){.kh = 4,
                         .kw = 4,
                         .stride = 2,
                         .pad_t = 1,
                         .pad_l = 1,
                         .pad_b = 1,
                         .pad_r = 1,
                         .h = a->h,
                         .w = a->w,
                         .c = a->o,
                         .o = a->c};
    return true;
}

/* The node that makes v when it is upsampling by two. */
static const lw_node *upsampling_by_two(const lw_graph *g, lw_val v)
{
    const lw_node *n = lw_val_node(g, v);
    return n->op == LW_OP_UPSAMPLE && ((const lw_attr_factor *)n->attr)->k == 2 ? n : NULL;
}

static lw_val summed_weight(lw_rewrite *r, lw_val w)
{
    return lw_rewrite_shared(r, LW_OP_UPCONV_WEIGHT, w, NULL, 0);
}

static bool operand(const lw_node *n, int i)
{
    return i < n->n_in && lw_val_ok(n->in[i]);
}

static bool pays(const lw_rewrite *r, const lw_node *n, const lw_attr_conv *up, lw_num num)
{
    return !r->dev->upconv || r->dev->upconv(r->dev->self, n, up, num);
}

/* n: conv2d of an upsampled picture. */
static bool forward(lw_rewrite *r, const lw_node *n, lw_num num, int *rc)
{
    lw_attr_conv up;
    const lw_node *u = upsampling_by_two(r->from, n->in[0]);
    if (!u || operand(n, 3) || !transposed(n->attr, &up) || !pays(r, n, &up, num))
        return false;
    lw_val in[4] = {lw_rewrite_map(r, u->in[0]), summed_weight(r, lw_rewrite_map(r, n->in[1])),
                    LW_NOVAL, operand(n, 2) ? lw_rewrite_map(r, n->in[2]) : LW_NOVAL};
    *rc = lw_rewrite_emit(r, n, LW_OP_CONV2D_DX, in, 4, &up, sizeof up);
    return true;
}

/* n: upsample_grad; its operand a data gradient that nothing else reads. */
static bool data_gradient(lw_rewrite *r, const lw_node *n, lw_num num, int *rc)
{
    lw_attr_conv up;
    const lw_node *d = lw_val_node(r->from, n->in[0]);
    if (((const lw_attr_factor *)n->attr)->k != 2 || d->op != LW_OP_CONV2D_DX ||
        r->uses[n->in[0].id] != 1 || operand(d, 2) || operand(d, 3) || !transposed(d->attr, &up) ||
        !pays(r, d, &up, num))
        return false;
    lw_val in[2] = {lw_rewrite_map(r, d->in[0]), summed_weight(r, lw_rewrite_map(r, d->in[1]))};
    *rc = lw_rewrite_emit(r, n, LW_OP_CONV2D, in, 2, &up, sizeof up);
    return true;
}

/* n: conv2d_dw whose x is an upsampled picture. */
static bool weight_gradient(lw_rewrite *r, const lw_node *n, int *rc)
{
    lw_attr_conv up;
    const lw_node *u = upsampling_by_two(r->from, n->in[1]);
    if (!u || !transposed(n->attr, &up))
        return false;
    lw_val dy = lw_rewrite_map(r, n->in[0]);
    const lw_val in[2] = {lw_rewrite_map(r, u->in[0]), dy};
    const char *was = lw_scope_set(r->to, lw_scope_name(r->to, n->scope));
    if (r->uses[n->out[0].id]) {
        lw_val d = lw_graph_op(r->to, LW_OP_CONV2D_DW, in, 2, &up, sizeof up);
        d = lw_val_ok(d) ? lw_graph_op(r->to, LW_OP_UPCONV_WEIGHT_GRAD, &d, 1, NULL, 0) : d;
        r->map[n->out[0].id] = d;
    }
    if (r->uses[n->out[1].id])
        r->map[n->out[1].id] = lw_sum(r->to, dy, LW_OVER_ROWS);
    lw_scope_set(r->to, was);
    *rc = lw_graph_error(r->to);
    return true;
}

static int upconv_node(lw_rewrite *r, const lw_node *n, void *arg)
{
    int rc = 0;
    lw_num num = *(const lw_num *)arg;
    if ((n->op == LW_OP_CONV2D && forward(r, n, num, &rc)) ||
        (n->op == LW_OP_UPSAMPLE_GRAD && data_gradient(r, n, num, &rc)) ||
        (n->op == LW_OP_CONV2D_DW && weight_gradient(r, n, &rc)))
        return rc;
    return lw_rewrite_copy(r, n, NULL);
}

int lw_pass_upconv(lw_graph **g, lw_device *dev, const lw_compile_opts *o)
{
    lw_num num = o->precision;
    return lw_rewrite_graph(g, dev, upconv_node, &num);
}
